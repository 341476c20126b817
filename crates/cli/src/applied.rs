//! Contents that come by `apply`, over the admin API.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline::{BoxFuture, Contents, Writer};

/// Contents that come by `apply`. They count as loaded when every awaited origin
/// has applied once; if none is named, with the first `apply` of any. Until then
/// nothing is known, and a server that knows nothing must not tell its clients
/// that nothing exists (S51).
#[derive(Debug)]
pub(crate) struct AppliedContents(Mutex<FirstApplies>);

/// The origins that have not applied yet, and the writer to tell when all have.
#[derive(Debug)]
struct FirstApplies {
    awaited: Awaited,
    writer: Option<Writer>,
}

#[derive(Debug, PartialEq, Eq)]
enum Awaited {
    /// Any origin.
    Any,
    /// All of these.
    Named(BTreeSet<String>),
    /// None: the contents are loaded.
    Nothing,
}

impl AppliedContents {
    /// Makes contents that wait for an `apply` of each of these origins, or of
    /// any origin if the list is empty.
    pub(crate) fn new(origins: &[String]) -> Self {
        Self(Mutex::new(FirstApplies {
            awaited: match origins.is_empty() {
                true => Awaited::Any,
                false => Awaited::Named(origins.iter().cloned().collect()),
            },
            writer: None,
        }))
    }

    /// Notes that an `apply` of an origin was accepted. After the last awaited
    /// one the contents count as loaded (S51); an origin that is not awaited
    /// changes nothing.
    pub(crate) fn note_applied(&self, origin: &str) {
        let mut first_applies = self.lock();
        match &mut first_applies.awaited {
            Awaited::Any => first_applies.awaited = Awaited::Nothing,
            Awaited::Named(origins) => {
                origins.remove(origin);
                if origins.is_empty() {
                    first_applies.awaited = Awaited::Nothing;
                }
            }
            Awaited::Nothing => {}
        }

        first_applies.report_if_loaded();
    }

    /// Returns the awaited origins that have not applied yet; none if an `apply`
    /// of any origin is awaited.
    pub(crate) fn awaited_origins(&self) -> Vec<String> {
        match &self.lock().awaited {
            Awaited::Named(origins) => origins.iter().cloned().collect(),
            Awaited::Any | Awaited::Nothing => Vec::new(),
        }
    }

    /// Locks the record of first applies. A panic of another thread does not
    /// spoil it.
    fn lock(&self) -> MutexGuard<'_, FirstApplies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FirstApplies {
    /// Tells the writer that the contents are loaded. Does nothing while an
    /// `apply` is awaited, and before there is a writer. Telling it again
    /// changes nothing.
    fn report_if_loaded(&self) {
        if let Some(writer) = self.writer.as_ref()
            && self.awaited == Awaited::Nothing
        {
            writer.loaded();
        }
    }
}

impl Contents for AppliedContents {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let mut first = self.lock();
        first.writer = Some(writer);
        first.report_if_loaded();
        Box::pin(std::future::pending())
    }
}
