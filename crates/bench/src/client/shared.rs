//! What all clients have in common.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, Version};

use crate::contents::{Kind, Place, Truth};
use crate::measure::{Counters, Latencies};

/// What clients are to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// Nobody is connected.
    pub(crate) away: bool,
    /// It is over.
    pub(crate) stop: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) truth: Truth,
    pub(crate) counters: Counters,
    /// From being told to connect to the first configuration.
    pub(crate) first: Latencies,
    /// From a change to its arrival.
    pub(crate) converged: Latencies,
    /// The same for clients that reject some changes.
    pub(crate) converged_picky: Latencies,
    /// From subscribing to a name to its resource.
    pub(crate) answered: Latencies,
    pub(crate) orders: watch::Sender<Orders>,
    /// Clients that have their first configuration.
    configured: AtomicUsize,
    /// Streams that are open.
    connected: AtomicUsize,
    /// Told when one of these numbers changes.
    pub(crate) progress: Notify,
    /// The variants of each name.
    resources: [Mutex<HashMap<Name, Vec<Arc<Resource>>>>; Kind::ALL.len()],
    versions: [Mutex<HashMap<Place, (u32, Version)>>; Kind::ALL.len()],
    /// What went wrong last on a stream, for people.
    fault: Mutex<Option<String>>,
}

impl Shared {
    /// Makes what clients share, with counters at zero.
    pub(crate) fn new(truth: Truth) -> Self {
        Self {
            truth,
            counters: Counters::default(),
            first: Latencies::default(),
            converged: Latencies::default(),
            converged_picky: Latencies::default(),
            answered: Latencies::default(),
            orders: watch::Sender::new(Orders::default()),
            configured: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
            progress: Notify::new(),
            resources: Default::default(),
            versions: Default::default(),
            fault: Mutex::default(),
        }
    }

    /// Counts one more client that has its first configuration.
    pub(crate) fn count_configured(&self) {
        self.configured.fetch_add(1, Ordering::AcqRel);
        self.progress.notify_waiters();
    }

    /// Returns how many clients have their first configuration.
    pub(crate) fn configured_count(&self) -> usize {
        self.configured.load(Ordering::Acquire)
    }

    /// Counts a stream that was opened.
    pub(crate) fn count_connected(&self) {
        Counters::add(&self.counters.streams, 1);
        self.connected.fetch_add(1, Ordering::AcqRel);
        self.progress.notify_waiters();
    }

    /// Counts a stream that ended.
    pub(crate) fn count_disconnected(&self) {
        self.connected.fetch_sub(1, Ordering::AcqRel);
        self.progress.notify_waiters();
    }

    /// Returns how many streams are open.
    pub(crate) fn connected_count(&self) -> usize {
        self.connected.load(Ordering::Acquire)
    }

    /// Notes why a stream failed, in place of the last reason.
    pub(crate) fn note_fault(&self, fault: String) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Returns why a stream failed last.
    pub(crate) fn last_fault(&self) -> Option<String> {
        let fault = self.fault.lock();
        fault.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces a resource by an equal one that another client holds, so that
    /// each version is kept once. Other clients get this one from now on if it
    /// is another version.
    pub(crate) fn share(&self, kind: Kind, resource: &mut Arc<Resource>) {
        let kept = self.resources[kind.place()].lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        if !kept.contains_key(resource.name.as_str()) {
            kept.insert(resource.name.clone(), Vec::new());
        }
        let Some(variants) = kept.get_mut(resource.name.as_str()) else {
            return;
        };
        let same = |known: &&mut Arc<Resource>| known.constraints == resource.constraints;
        match variants.iter_mut().find(same) {
            Some(known) if **known == **resource => *resource = Arc::clone(known),
            Some(known) => *known = Arc::clone(resource),
            None => variants.push(Arc::clone(resource)),
        }
    }

    /// Notes the version by which a server calls a revision, unless that of a
    /// newer one is known.
    pub(crate) fn note_version(&self, place: Place, revision: u32, version: &str) {
        let versions = self.versions[place.kind.place()].lock();
        let mut versions = versions.unwrap_or_else(PoisonError::into_inner);
        match versions.get_mut(&place) {
            Some((known, _)) if *known >= revision => {}
            _ => {
                versions.insert(place, (revision, Version::new(version)));
            }
        }
    }

    /// Returns the version by which a server calls a revision; `None` unless it
    /// is the newest that was seen.
    pub(crate) fn version(&self, place: Place, revision: u32) -> Option<Version> {
        let versions = self.versions[place.kind.place()].lock();
        let versions = versions.unwrap_or_else(PoisonError::into_inner);
        let (known, version) = versions.get(&place)?;
        (*known == revision).then(|| version.clone())
    }
}
