//! What the streams of a server share: the hub, and what a server has beside it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, ChangedName, Commit, Database};
use trunkline_core::kind;
use trunkline_core::message::Response;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};

use super::contents::{Changed, Contents};
use super::convergence::Convergence;
use super::hook_set::HookSet;
use super::options::Options;
use super::push_budget::PushBudget;
use super::services;
use super::stream::Stream;
use crate::health::Health;
use crate::hub::Hub;
use crate::load::{Load, LoadLimits};
use crate::node::{BaseRules, NodeRules};
use crate::wire::KnownVersions;

/// See the module's documentation.
pub(super) struct Shared {
    pub(super) hub: Hub<Stream>,
    loading: Mutex<Loading>,
    numbers: AtomicU64,
    /// Streams that were admitted and have not ended.
    pub(super) admitted: AtomicUsize,
    /// Streams end one by one (S79).
    pub(super) draining: CancellationToken,
    /// Streams end.
    pub(super) stopped: CancellationToken,
    ready: watch::Sender<bool>,
    pub(super) options: Options,
    /// Lists of versions that clients reconnected with.
    pub(super) known_versions: Arc<KnownVersions>,
    /// What the node of a client decides.
    pub(super) rules: NodeRules,
    pub(super) hooks: Arc<HookSet>,
    pub(super) contents: Vec<Arc<dyn Contents>>,
    pub(super) push_budget: Arc<PushBudget>,
    pub(super) load: Load,
    pub(super) health: Health,
}

/// Which contents a server waits for before it serves.
#[derive(Default)]
struct Loading {
    awaited: BTreeSet<usize>,
    is_started: bool,
}

impl Shared {
    pub(super) fn new(
        options: Options,
        hooks: HookSet,
        contents: Vec<Arc<dyn Contents>>,
        this: &Weak<Self>,
    ) -> Self {
        let ready = contents.is_empty();
        let mut db = if ready {
            Database::new()
        } else {
            Database::cache()
        };
        db.watch_demand();
        let health = Health::new(services::names());
        health.set_ready(ready);
        Self {
            health,
            known_versions: Arc::default(),
            hub: Hub::new(db),
            loading: Mutex::new(Loading {
                awaited: (0..contents.len()).collect(),
                is_started: false,
            }),
            numbers: AtomicU64::new(0),
            admitted: AtomicUsize::new(0),
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
            ready: watch::Sender::new(ready),
            push_budget: Arc::new(PushBudget::new(options.pushes, options.bytes_in_flight)),
            load: Load::new(options.load.clone(), LoadLimits::default(), {
                let this = Weak::clone(this);
                move || this.upgrade().map_or_else(Vec::new, |this| this.clusters())
            }),
            hooks: Arc::new(hooks),
            rules: NodeRules::new(
                BaseRules::new(options.base_sets.clone()),
                options.params.clone(),
                options.resource_errors.clone(),
            ),
            options,
            contents,
        }
    }

    /// Makes all changes, or none, and wakes the streams that they concern,
    /// soon.
    pub(super) fn apply(
        self: &Arc<Self>,
        origin: &str,
        changes: Vec<Change>,
    ) -> Result<Vec<Changed>, ApplyError> {
        let commit = Commit::new(changes)?;
        let read = |made: ChangedName<'_>, all: &mut Vec<Changed>| all.extend(Changed::of(made));
        let wave = || {
            let hooks = Some(&self.hooks).filter(|hooks| hooks.are_any());
            hooks.map(|hooks| Arc::new(Convergence::new(hooks)))
        };
        let mut changed = self.hub.apply(commit, read, wave)?;
        self.wake_soon();
        changed.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
        let comes_or_goes = |c: &Changed| c.from.is_some() != c.to.is_some();
        let clusters = changed.iter().filter(|c| c.type_url.as_str() == kind::CDS);
        if clusters.into_iter().any(comes_or_goes) {
            self.load.clusters_changed();
        }
        self.hooks.changed(origin, &changed);
        Ok(changed)
    }

    fn clusters(&self) -> Vec<String> {
        let all = self.all(&kind::CDS.into());
        let mut names: Vec<String> = all.iter().map(|r| r.name.to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Every resource of a type, found in slices.
    pub(super) fn all(&self, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        let mut all = Vec::new();
        let Some(type_id) = self.with(|db| db.find_type(type_url)) else {
            return all;
        };
        let slice = |nth| {
            self.with(|db| {
                let some = db.slice_of_resources(type_id, nth)?;
                Some(some.cloned().collect::<Vec<_>>())
            })
        };
        for some in (0..).map_while(slice) {
            all.extend(some);
            self.hub.give_way();
        }
        all
    }

    /// The first contents of one of the sources are complete.
    pub(super) fn loaded(&self, place: usize) {
        {
            let mut loading = self.loading();
            loading.awaited.remove(&place);
            if !loading.awaited.is_empty() || !self.with(|db| db.is_cache()) {
                return;
            }
            self.hub.complete();
        }
        self.hub.wake();
        self.ready.send_replace(true);
        if !self.draining.is_cancelled() {
            self.health.set_ready(true);
        }
    }

    fn wake_soon(self: &Arc<Self>) {
        let debounce = self.options.debounce;
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| !debounce.is_zero()) else {
            return self.hub.wake();
        };
        if !self.hub.arm() {
            return;
        }
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(debounce).await;
            shared.hub.wake();
        });
    }

    /// Asks the database.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut Database) -> T) -> T {
        self.hub.with(ask)
    }

    /// Begins a stream.
    pub(super) fn open(&self, config: Config, stream: &Arc<Stream>) -> Session {
        self.hub.open(stream, |db| {
            let session = Session::open(db, config);
            (session.stream(), session)
        })
    }

    /// What a session has to say now, all of it looked at: who polls by REST does
    /// not wait for a second answer. In slices (S85).
    pub(super) fn answer(&self, session: &mut Session, now: Moment) -> Option<Response> {
        loop {
            let response = self.with(|db| session.poll(db, now));
            if response.is_some() || !session.has_more() {
                return response;
            }
            self.hub.give_way();
        }
    }

    /// Ends a stream, in slices: one that asked for much has much to be
    /// forgotten (S85).
    pub(super) fn close(&self, mut session: Session) {
        while !self.close_some(&mut session) {
            self.hub.give_way();
        }
    }

    fn close_some(&self, session: &mut Session) -> bool {
        self.hub
            .close_slice(session.stream(), |db| session.close_slice(db))
    }

    /// The streams that have made a request, oldest first.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.hub.watchers();
        streams.sort_by_key(|stream| stream.number);
        streams
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// True once, for whoever starts the contents.
    pub(super) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.loading().is_started, true)
    }

    pub(super) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    fn loading(&self) -> MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Connection, Server};
    use super::*;
    use trunkline_core::Moment;
    use trunkline_core::database::SLICE;
    use trunkline_core::message::{DeltaRequest, Locator, Mode};

    #[test]
    fn s85_a_stream_keeps_its_number_until_all_of_it_is_forgotten() {
        let shared = Server::builder().build().shared;
        let only = (Mode::Delta, Some(kind::EDS.into()));
        let stream = Stream::new(Arc::clone(&shared), only, Connection::default(), None);
        let stream = Arc::new(stream);
        let mut session = shared.open(stream.config(), &stream);
        let place = session.stream().index();
        let names = (0..3 * SLICE).map(|n| Locator::from(n.to_string().as_str()));
        let request = DeltaRequest {
            subscribe: names.collect(),
            ..DeltaRequest::default()
        };
        let handled = shared.with(|db| session.handle_delta(db, request, Moment::START));
        handled.unwrap();
        // Many names are asked for in slices, too.
        while shared.with(|db| {
            session.poll(db, Moment::START);
            session.has_more()
        }) {}

        let mut holds = 1;
        while !shared.close_some(&mut session) {
            assert_eq!(shared.streams().len(), 1);
            let other = shared.open(stream.config(), &stream);
            assert_ne!(other.stream().index(), place);
            shared.close(other);
            holds += 1;
        }
        assert!(holds >= 3, "{holds}");
        assert!(shared.streams().is_empty());
        let next = shared.open(stream.config(), &stream);
        assert_eq!(next.stream().index(), place);
    }
}
