//! What the streams of a server share: the database, and who is woken by it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{
    ApplyError, Commit, Completion, Database, Progress, SLICE, StreamId,
};
use trunkline_core::kind;
use trunkline_core::message::Response;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};

use super::contents::{Changed, Contents};
use super::convergence::Convergence;
use super::engine::{Engine, EngineGuard};
use super::hook_set::HookSet;
use super::options::Options;
use super::push_budget::PushBudget;
use super::services;
use super::stream::Stream;
use crate::health::Health;
use crate::load::{Load, LoadLimits};
use crate::node::{BaseRules, NodeRules};
use crate::wire::KnownVersions;

/// See the module's documentation.
pub(super) struct Shared {
    /// Held to ask or change the database; not to encode, send or report.
    engine: Engine<State>,
    /// Held by whoever changes contents until all is changed, while the engine
    /// is held for a slice at a time (S85). Taken before the engine.
    writing: Mutex<()>,
    /// The start of the streams' clock.
    start: Instant,
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

struct State {
    db: Database,
    /// Has every open stream of `db`, at its place.
    streams: Vec<Option<Arc<Stream>>>,
    /// How many transactions there were.
    revision: u64,
    /// What changed since the streams were last woken.
    convergence: Option<Arc<Convergence>>,
    /// Whether somebody will wake them.
    armed: bool,
    /// Contents of which the first part is not there yet.
    awaited: BTreeSet<usize>,
    started: bool,
}

impl AsMut<Database> for State {
    fn as_mut(&mut self) -> &mut Database {
        &mut self.db
    }
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
            writing: Mutex::default(),
            known_versions: Arc::default(),
            engine: Engine::new(State {
                db,
                streams: Vec::new(),
                revision: 0,
                convergence: None,
                armed: false,
                awaited: (0..contents.len()).collect(),
                started: false,
            }),
            start: Instant::now(),
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
        let mut commit = Commit::new(changes)?;
        let mut changed = Vec::new();
        {
            let _writing = self.writing();
            while self.advance(&mut commit, &mut changed)? == Progress::More {
                commit.free_memory();
                self.engine.give_way();
            }
        }
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

    /// One hold of a transaction. Streams that it concerns are woken when all of
    /// it is done; those that look before see a part of it.
    fn advance(
        &self,
        commit: &mut Commit,
        changed: &mut Vec<Changed>,
    ) -> Result<Progress, ApplyError> {
        let mut some = Vec::new();
        let progress = {
            let mut state = self.lock();
            let progress = commit.advance(&mut state.db, SLICE, |made| {
                some.extend(Changed::of(made));
            })?;
            state.revision += u64::from(progress == Progress::Done);
            if self.hooks.are_any() && (progress == Progress::Done || !some.is_empty()) {
                state
                    .convergence
                    .get_or_insert_with(|| Arc::new(Convergence::new(&self.hooks)));
            }
            progress
        };
        // A long list grows while nobody waits.
        changed.append(&mut some);
        Ok(progress)
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
            self.engine.give_way();
        }
        all
    }

    pub(super) fn longest_wait(&self) -> Duration {
        self.engine.longest_wait()
    }

    pub(super) fn take_longest_wait(&self) -> Duration {
        self.engine.take_longest_wait()
    }

    /// The first contents of one of the sources are complete.
    pub(super) fn loaded(&self, place: usize) {
        {
            let _writing = self.writing();
            {
                let mut state = self.lock();
                state.awaited.remove(&place);
                if !state.awaited.is_empty() || !state.db.is_cache() {
                    return;
                }
            }
            let mut settling = Completion::default();
            while self.with(|db| db.complete_slice(&mut settling, SLICE)) == Progress::More {
                self.engine.give_way();
            }
        }
        self.wake();
        self.ready.send_replace(true);
        if !self.draining.is_cancelled() {
            self.health.set_ready(true);
        }
    }

    fn wake_soon(self: &Arc<Self>) {
        let debounce = self.options.debounce;
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| !debounce.is_zero()) else {
            return self.wake();
        };
        if std::mem::replace(&mut self.lock().armed, true) {
            return;
        }
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(debounce).await;
            shared.wake();
        });
    }

    fn wake(&self) {
        let (woken, convergence) = {
            let mut state = self.lock();
            state.armed = false;
            let woken = state.db.take_woken_streams();
            let find = |id: &StreamId| state.streams.get(id.index())?.clone();
            let woken: Vec<Arc<Stream>> = woken.iter().filter_map(find).collect();
            (woken, state.convergence.take())
        };
        for stream in woken {
            stream.wake(convergence.as_ref());
        }
    }

    /// Asks the database.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut Database) -> T) -> T {
        ask(&mut self.lock().db)
    }

    /// Asks the database, and how many transactions it is from.
    pub(super) fn with_revision<T>(&self, ask: impl FnOnce(&mut Database) -> T) -> (T, u64) {
        let mut state = self.lock();
        (ask(&mut state.db), state.revision)
    }

    /// Begins a stream.
    pub(super) fn open(&self, config: Config, stream: &Arc<Stream>) -> Session {
        let mut state = self.lock();
        let session = Session::open(&mut state.db, config);
        let place = session.stream().index();
        if state.streams.len() <= place {
            state.streams.resize(place + 1, None);
        }
        state.streams[place] = Some(Arc::clone(stream));
        session
    }

    /// What a session has to say now, all of it looked at: who polls by REST does
    /// not wait for a second answer. In slices (S85).
    pub(super) fn answer(&self, session: &mut Session, now: Moment) -> Option<Response> {
        loop {
            let response = self.with(|db| session.poll(db, now));
            if response.is_some() || !session.has_more() {
                return response;
            }
            self.engine.give_way();
        }
    }

    /// Ends a stream, in slices: one that asked for much has much to be
    /// forgotten (S85).
    pub(super) fn close(&self, mut session: Session) {
        while !self.close_some(&mut session) {
            self.engine.give_way();
        }
    }

    fn close_some(&self, session: &mut Session) -> bool {
        let mut state = self.lock();
        let forgotten = session.close_slice(&mut state.db);
        // Its number may be another stream's as soon as the engine is free.
        let place = session.stream().index();
        if let Some(place) = state.streams.get_mut(place).filter(|_| forgotten) {
            *place = None;
        }
        forgotten
    }

    /// The streams that have made a request, oldest first.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams: Vec<_> = self.lock().streams.iter().flatten().cloned().collect();
        streams.sort_by_key(|stream| stream.number);
        streams
    }

    pub(super) fn now(&self) -> Moment {
        Moment::new(self.start.elapsed())
    }

    /// When a moment is on the clock of the runtime.
    pub(super) fn instant(&self, moment: Moment) -> tokio::time::Instant {
        (self.start + moment.since_start()).into()
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// True once, for whoever starts the contents.
    pub(super) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.lock().started, true)
    }

    pub(super) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    fn lock(&self) -> EngineGuard<'_, State> {
        self.engine.lock()
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
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
