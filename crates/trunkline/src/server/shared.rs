//! The state that the streams of a server share: the hub, and what a server has
//! beside it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, ChangedName, Commit, Database};
use trunkline_core::kind;
use trunkline_core::message::Response;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};

use super::aside::Aside;
use super::contents::{Changed, Contents};
use super::convergence::Convergence;
use super::hook_set::HookSet;
use super::leases::Leases;
use super::options::Options;
use super::precondition::RecentChanges;
use super::queue::Queue;
use super::quotas::Quotas;
use super::request_bounds::RequestBounds;
use super::services;
use super::shares;
use super::store::Store;
use super::stream::Stream;
use super::unfinished::Unfinished;
use crate::bounds;
use crate::checked::ContentSet;
use crate::health::Health;
use crate::hub::Hub;
use crate::load::{Load, LoadLimits};
use crate::memory::Memory;
use crate::node::{BaseRules, NodeRules};
use crate::questions::Questions;
use crate::wire::KnownVersions;

/// See the module's documentation.
pub(super) struct Shared {
    pub(super) hub: Hub<Stream>,
    loading: Mutex<Loading>,
    /// The contents of all origins that settle theirs.
    pub(super) set: Mutex<ContentSet>,
    /// Locked while the database makes changes and until the hooks are told of
    /// them, so that they are told in the order of revisions. Locked after `set`
    /// and the turn of the queue, and before the hub.
    making: Mutex<()>,
    /// Changes that wait for the store.
    pub(super) queue: Queue,
    /// The last changes, for conflicts.
    recent: Mutex<RecentChanges>,
    /// The origins whose resources stay only as long as they are renewed.
    pub(super) leases: Leases,
    numbers: AtomicU64,
    /// Streams that were admitted and have not ended, and refused ones that are
    /// held.
    pub(super) quotas: Quotas,
    /// Cancelled to end the streams one by one (S79).
    pub(super) draining: CancellationToken,
    /// Cancelled to end all streams at once.
    pub(super) stopped: CancellationToken,
    ready: watch::Sender<bool>,
    pub(super) options: Options,
    /// Lists of versions that clients reconnected with.
    pub(super) known_versions: Arc<KnownVersions>,
    /// The rules that read the node of a client.
    pub(super) rules: NodeRules,
    pub(super) hooks: Arc<HookSet>,
    pub(super) contents: Vec<Arc<dyn Contents>>,
    /// Keeps the contents that are not of files, if there is one.
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) memory: Arc<Memory>,
    pub(super) unfinished: Arc<Unfinished>,
    /// Large work for single streams.
    pub(super) aside: Aside,
    pub(super) load: Load,
    /// The bounds on requests that are answered once.
    pub(super) questions: Questions,
    pub(super) health: Health,
}

/// The contents that a server waits for before it serves.
#[derive(Default)]
struct Loading {
    /// The indices of the contents whose first load is not complete.
    incomplete: BTreeSet<usize>,
    is_started: bool,
}

impl Shared {
    /// Returns the state of a server that has no streams. One without contents
    /// is ready at once. `this` will be the result, which its load service asks
    /// for the names of clusters.
    pub(super) fn new(
        mut options: Options,
        hooks: HookSet,
        contents: Vec<Arc<dyn Contents>>,
        store: Option<Arc<dyn Store>>,
        this: &Weak<Self>,
    ) -> Self {
        let is_ready = contents.is_empty();
        let health = Health::new(services::names());
        health.set_ready(is_ready);
        let this = Weak::clone(this);
        let clusters = move || match this.upgrade() {
            Some(shared) => shared.cluster_names(),
            None => Vec::new(),
        };

        let hooks = Arc::new(hooks);
        let memory = Arc::new(Memory::new(options.memory_limit));
        let answers = shares::take(&memory, &mut options);
        Self {
            hub: Hub::new(new_database(is_ready)),
            loading: Mutex::new(Loading {
                incomplete: (0..contents.len()).collect(),
                is_started: false,
            }),
            set: Mutex::default(),
            making: Mutex::default(),
            queue: Queue::default(),
            recent: Mutex::default(),
            leases: Leases::default(),
            numbers: AtomicU64::new(0),
            quotas: Quotas::new(&options),
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
            ready: watch::Sender::new(is_ready),
            known_versions: Arc::default(),
            aside: Aside::new(memory.share(bounds::LONG_REQUESTS, bounds::LONG_REQUESTS_PART)),
            rules: node_rules(&options),
            unfinished: Arc::new(Unfinished::new(
                options.request_bytes,
                options.unfinished_bytes,
            )),
            load: Load::new(
                options.load.clone(),
                LoadLimits::of(options.load_bytes),
                clusters,
            ),
            questions: Questions::within(Arc::clone(&memory), answers, {
                let hooks = Arc::clone(&hooks);
                move |limit| hooks.limited(limit)
            }),
            memory,
            hooks,
            options,
            contents,
            store,
            health,
        }
    }

    /// Makes all changes, or none, and returns the variants that became
    /// different, in order of type and name, and the revision that they made.
    /// The hooks may refuse them before, and are told after.
    pub(super) fn apply(
        self: &Arc<Self>,
        origin: &str,
        changes: Vec<Change>,
    ) -> Result<(Vec<Changed>, u64), ApplyError> {
        let accepted = Instant::now();
        let _changing = self.lock_changing();
        if !self.hooks.vetoes_changes() {
            return self.apply_allowed(origin, changes, accepted);
        }

        let planned_changes = self.preview(&changes);
        if !planned_changes.is_empty() {
            self.hooks.changing(origin, &planned_changes)?;
        }
        let result = self.apply_allowed(origin, changes, accepted);
        result.inspect_err(|error| self.hooks.withdrawn(origin, error))
    }

    /// Makes changes that restore an earlier state. Hooks cannot refuse them;
    /// they are told.
    pub(super) fn apply_unasked(
        self: &Arc<Self>,
        origin: &str,
        changes: Vec<Change>,
    ) -> Result<(Vec<Changed>, u64), ApplyError> {
        let accepted = Instant::now();
        let _changing = self.lock_changing();
        self.apply_allowed(origin, changes, accepted)
    }

    /// Locks the making of changes. The caller has the turn of the queue; others
    /// call [`Self::lock_changing`].
    pub(super) fn lock_making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes changes that nobody refuses but the database. The streams that
    /// they concern are woken soon, and the hooks are told. The caller has
    /// locked out other changes, for which it may have waited since they were
    /// `accepted`.
    pub(super) fn apply_allowed(
        self: &Arc<Self>,
        origin: &str,
        changes: Vec<Change>,
        accepted: Instant,
    ) -> Result<(Vec<Changed>, u64), ApplyError> {
        let commit = Commit::new(changes)?;
        let list = |name: ChangedName<'_>, changed: &mut Vec<Changed>| {
            changed.extend(Changed::of(name));
        };
        // Nobody asks how long a change takes if there are no hooks.
        let convergence = || {
            let has_hooks = self.hooks.has_any();
            has_hooks.then(|| Arc::new(Convergence::new(accepted, &self.hooks)))
        };
        let (mut changed, revision) = self.hub.apply(commit, list, convergence)?;
        self.wake_soon();

        changed.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
        if changed.iter().any(is_cluster_added_or_removed) {
            self.load.clusters_changed();
        }
        self.lock_recent().note(revision, origin, &changed);
        self.hooks.changed(revision, origin, &changed);
        Ok((changed, revision))
    }

    /// Locks the last changes. Ignores poison: a list is never half changed.
    pub(super) fn lock_recent(&self) -> MutexGuard<'_, RecentChanges> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of all clusters, in order, each once, for clients to
    /// report on.
    fn cluster_names(&self) -> Vec<String> {
        let clusters = self.all_resources(&kind::CDS.into());
        let names = clusters.iter().map(|cluster| cluster.name.to_string());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns every resource of a type with all its variants, in no order. The
    /// database is locked for a slice at a time (S85).
    pub(super) fn all_resources(&self, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        let mut resources = Vec::new();
        let Some(type_id) = self.with(|db| db.find_type(type_url)) else {
            return resources;
        };

        let read_slice = |nth| {
            self.with(|db| {
                let resources = db.slice_of_resources(type_id, nth)?;
                Some(resources.cloned().collect::<Vec<_>>())
            })
        };
        for slice in (0..).map_while(read_slice) {
            resources.extend(slice);
            self.hub.give_way();
        }
        resources
    }

    /// Notes that the first load of the contents at this index is complete.
    /// With the last of them the server is ready: a name that the database does
    /// not hold does not exist (S51). Does nothing once the server is ready.
    pub(super) fn note_loaded(&self, index: usize) {
        {
            let mut loading = self.lock_loading();
            loading.incomplete.remove(&index);
            let is_complete = !self.with(|db| db.is_cache());
            if is_complete || !loading.incomplete.is_empty() {
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

    /// Wakes the streams that changes concern after the debounce time, so that
    /// a burst of changes is one response; at once if that time is zero, or
    /// without a runtime.
    fn wake_soon(self: &Arc<Self>) {
        let debounce = self.options.debounce;
        let lanes = self.options.lanes.as_ref();
        let runtime = match lanes {
            Some(lanes) => Some(lanes.front.clone()),
            None => tokio::runtime::Handle::try_current().ok(),
        };
        let Some(runtime) = runtime.filter(|_| !debounce.is_zero()) else {
            return self.hub.wake();
        };
        // A wake that is on its way is for these changes too.
        if !self.hub.claim_wake() {
            return;
        }

        let shared = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(debounce).await;
            shared.hub.wake();
        });
    }

    /// Locks the database for one call, a slice of work at most. See
    /// [`Hub::with`].
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut Database) -> T) -> T {
        self.hub.with(access)
    }

    /// Locks the database for a slice of a request. Near the memory limit,
    /// names that do not exist are refused in it (S72).
    pub(super) fn with_request<T>(&self, access: impl FnOnce(&mut Database) -> T) -> T {
        let is_memory_short = self.memory.is_near_limit();
        self.with(|db| {
            db.set_memory_short(is_memory_short);
            access(db)
        })
    }

    /// Opens the session of a stream, which is woken by changes from now on.
    pub(super) fn open(&self, config: Config, stream: &Arc<Stream>) -> Session {
        self.hub.open(stream, |db| {
            let session = Session::open(db, config);
            (session.stream(), session)
        })
    }

    /// Polls a session until it has a response, or has evaluated everything and
    /// returns `None`: a client that polls by REST gets no second response. In
    /// slices, between which others have the database (S85).
    pub(super) fn poll_to_end(&self, session: &mut Session, now: Moment) -> Option<Response> {
        loop {
            let response = self.with(|db| session.poll(db, now));
            if response.is_some() || !session.has_more() {
                return response;
            }
            self.hub.give_way();
        }
    }

    /// Closes a session on this thread, in slices: it may have many
    /// subscriptions (S85).
    pub(super) fn close(&self, mut session: Session) {
        while !self.close_slice(&mut session) {
            self.hub.give_way();
        }
    }

    /// Closes a part of a session. Returns whether nothing is left of it.
    pub(super) fn close_slice(&self, session: &mut Session) -> bool {
        self.hub
            .close_slice(session.stream(), |db| session.close_slice(db))
    }

    /// Returns the streams that have made a request, oldest first.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.hub.watchers();
        streams.sort_by_key(|stream| stream.number);
        streams
    }

    /// Returns the number of a new stream.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether the caller has to start the contents: true only for the
    /// first call.
    pub(super) fn claim_start(&self) -> bool {
        !std::mem::replace(&mut self.lock_loading().is_started, true)
    }

    /// Returns a receiver of whether all contents are loaded.
    pub(super) fn watch_ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Returns the bounds on requests that arrive.
    pub(super) fn request_bounds(&self) -> RequestBounds {
        RequestBounds::new(Arc::clone(&self.unfinished), Arc::clone(&self.hooks))
    }

    /// Locks what is still being loaded. Ignores poison, as a stream may panic
    /// alone.
    fn lock_loading(&self) -> MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a change brings a cluster that was not there, or removes
/// one.
fn is_cluster_added_or_removed(changed: &Changed) -> bool {
    let is_cluster = changed.type_url.as_str() == kind::CDS;
    is_cluster && changed.from.is_some() != changed.to.is_some()
}

/// Makes an empty database that notes changes of demand. Until the contents are
/// loaded it is a cache, in which a missing name is unknown rather than absent
/// (S51).
fn new_database(is_ready: bool) -> Database {
    let mut db = match is_ready {
        true => Database::new(),
        false => Database::cache(),
    };
    db.watch_demand();
    db
}

/// Returns the rules that read the node of a client, by the options of the
/// server.
fn node_rules(options: &Options) -> NodeRules {
    NodeRules::new(
        BaseRules::new(options.base_sets.clone()),
        options.params.clone(),
        options.resource_errors.clone(),
    )
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
    use crate::paths::StreamForm;
    use trunkline_core::Moment;
    use trunkline_core::database::SLICE;
    use trunkline_core::message::{DeltaRequest, Locator, Mode};

    #[test]
    fn s85_a_stream_keeps_its_number_until_all_of_it_is_forgotten() {
        let shared = Server::builder().build().shared;
        let form = StreamForm {
            mode: Mode::Delta,
            only: Some(kind::EDS.into()),
        };
        let stream = Stream::new(Arc::clone(&shared), form, Connection::default(), None);
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
        while !shared.close_slice(&mut session) {
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
