//! The hub: a database, the watchers that its changes wake, and a clock.
//!
//! The rules in `trunkline-core` have neither locks nor time. A hub gives them
//! both, and nothing else: a server's streams are one kind of watcher, and know
//! of load, health and hooks; a hub does not.
//!
//! ```text
//!   changes ─▶ apply ─▶ database ─▶ woken watchers ─▶ wake
//!                          ▲                            │
//!                          └────────── with ◀───────────┘
//! ```

mod engine;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use engine::{Engine, EngineGuard, Sliced};
use trunkline_core::Moment;
use trunkline_core::database::{
    ApplyError, ChangedName, Commit, Completion, Database, Progress, SLICE, StreamId,
};

/// The owner of a stream of the database, woken by the changes that concern the
/// stream.
pub(crate) trait Watcher {
    /// A description of the changes that wake a watcher.
    type News;

    /// Called when there may be something to read, without the database locked.
    /// `news` describes the changes, if there are any to describe. The newest
    /// change that concerns the watcher makes `revision`, or the contents had it
    /// when something else woke the watcher.
    fn wake(&self, news: Option<&Self::News>, revision: u64);
}

/// See the module's documentation.
pub(crate) struct Hub<W: Watcher> {
    /// Locked to read or change the database; not to encode, send or report.
    engine: Engine<State<W>>,
    /// Locked for a whole transaction, while the engine is locked for a slice
    /// of it at a time (S85). Locked before the engine.
    writing: Mutex<()>,
    /// Locked while watchers are woken, so that `announced` is true of all.
    /// Locked before the engine.
    waking: Mutex<()>,
    /// All watchers that changes up to this revision concern were woken.
    announced: AtomicU64,
    /// The start of the clock.
    start: Instant,
}

struct State<W: Watcher> {
    db: Database,
    /// The watcher of every open stream of `db`, at the stream's index.
    watchers: Vec<Option<Arc<W>>>,
    /// The number of transactions so far.
    revision: u64,
    /// The index of each stream that a change concerns, and the revision that
    /// the change makes, since the watchers were last woken. A stream may be
    /// there several times.
    woken: Vec<(usize, u64)>,
    /// The first change since the watchers were last woken.
    news: Option<W::News>,
    /// Whether a caller is about to wake the watchers.
    is_wake_claimed: bool,
}

impl<W: Watcher> Sliced for State<W> {
    fn end_slice(&mut self) {
        self.db.end_slice();
    }
}

impl<W: Watcher> State<W> {
    /// Notes the streams that were woken since the last note, with the revision
    /// of the contents.
    fn note_woken(&mut self) {
        self.note_woken_at(self.revision);
    }

    /// Notes the streams that were woken since the last note, with the revision
    /// that the transaction at hand will make.
    fn note_woken_for_next(&mut self) {
        self.note_woken_at(self.revision + 1);
    }

    /// Notes the streams that were woken since the last note, with this
    /// revision.
    fn note_woken_at(&mut self, revision: u64) {
        let ids = self.db.take_woken_streams().into_iter();
        self.woken.extend(ids.map(|id| (id.index(), revision)));
        // Each slice of a large change may wake the same streams.
        if self.woken.len() > 2 * self.watchers.len() {
            self.merge_woken();
        }
    }

    /// Keeps one entry of each woken stream, with the newest revision.
    fn merge_woken(&mut self) {
        self.woken
            .sort_unstable_by_key(|(index, revision)| (*index, Reverse(*revision)));
        self.woken.dedup_by_key(|(index, _)| *index);
    }

    /// Takes the watchers of all woken streams, once each, with the newest
    /// revision that concerns them. A watcher that took the index of a stream
    /// which has ended is woken for nothing.
    fn take_woken(&mut self) -> Vec<(Arc<W>, u64)> {
        self.note_woken();
        self.merge_woken();
        let woken = std::mem::take(&mut self.woken).into_iter();
        let find =
            |(index, revision): (usize, u64)| Some((self.watchers.get(index)?.clone()?, revision));
        woken.filter_map(find).collect()
    }
}

impl<W: Watcher> Hub<W> {
    /// Returns a hub without watchers, whose clock starts now.
    pub(crate) fn new(db: Database) -> Self {
        Self {
            engine: Engine::new(State {
                db,
                watchers: Vec::new(),
                revision: 0,
                woken: Vec::new(),
                news: None,
                is_wake_claimed: false,
            }),
            writing: Mutex::default(),
            waking: Mutex::default(),
            announced: AtomicU64::new(0),
            start: Instant::now(),
        }
    }

    /// Locks the database for one call, a slice of work at most (S85).
    pub(crate) fn with<T>(&self, access: impl FnOnce(&mut Database) -> T) -> T {
        access(&mut self.lock().db)
    }

    /// Locks the database for one call, and returns also its revision: the
    /// number of transactions that it is from.
    pub(crate) fn with_revision<T>(&self, access: impl FnOnce(&mut Database) -> T) -> (T, u64) {
        let mut state = self.lock();
        (access(&mut state.db), state.revision)
    }

    /// Makes a transaction, in slices, and returns the list to which `list`
    /// adds each name that changed, and the revision that it made. An error
    /// means that nothing has changed.
    ///
    /// `news` describes the transaction to the watchers; it is not called while
    /// earlier news wait to be told. No watcher is woken: that is left to
    /// [`Self::wake`], since one that reads before the end sees a part of the
    /// transaction.
    pub(crate) fn apply<C>(
        &self,
        mut commit: Commit,
        mut list: impl FnMut(ChangedName<'_>, &mut Vec<C>),
        news: impl Fn() -> Option<W::News>,
    ) -> Result<(Vec<C>, u64), ApplyError> {
        let mut listed = Vec::new();
        let _writing = self.writing();
        loop {
            let mut slice = Vec::new();
            let progress = self.apply_slice(&mut commit, &mut slice, &mut list, &news)?;
            // A long list grows while the database is not locked.
            listed.append(&mut slice);
            if progress == Progress::Done {
                // No other transaction is made meanwhile.
                let (_, revision) = self.with_revision(|_| ());
                return Ok((listed, revision));
            }
            commit.free_memory();
            self.give_way();
        }
    }

    /// Makes a slice of a transaction, with the database locked, and adds the
    /// names that it changed to `listed`. The last slice makes a new revision.
    fn apply_slice<C>(
        &self,
        commit: &mut Commit,
        listed: &mut Vec<C>,
        list: &mut impl FnMut(ChangedName<'_>, &mut Vec<C>),
        news: &impl Fn() -> Option<W::News>,
    ) -> Result<Progress, ApplyError> {
        let mut state = self.lock();
        // Streams that something else woke are not concerned by it.
        state.note_woken();
        let progress = commit.advance(&mut state.db, SLICE, |name| list(name, listed))?;
        state.note_woken_for_next();
        let is_done = progress == Progress::Done;
        state.revision += u64::from(is_done);

        let has_news = is_done || !listed.is_empty();
        if has_news && state.news.is_none() {
            state.news = news();
        }
        Ok(progress)
    }

    /// Raises the revision to this one, if it is lower: transactions that were
    /// made before, or that changed no resource, count.
    pub(crate) fn advance_revision(&self, revision: u64) {
        let _writing = self.writing();
        let mut state = self.lock();
        state.revision = state.revision.max(revision);
    }

    /// Declares the database complete: a name that it does not hold does not
    /// exist from now on (S51). In slices; no watcher is woken.
    pub(crate) fn complete(&self) {
        let _writing = self.writing();
        let mut completion = Completion::default();
        while self.with(|db| db.complete_slice(&mut completion, SLICE)) == Progress::More {
            self.give_way();
        }
    }

    /// Claims the next [`Self::wake`]. Returns true to the first caller since
    /// the last wake: that one has to call it.
    pub(crate) fn claim_wake(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_wake_claimed, true)
    }

    /// Wakes the watchers that changes since the last wake concern, and tells
    /// them the news. They are called without the database locked.
    pub(crate) fn wake(&self) {
        let _waking = self.waking.lock().unwrap_or_else(PoisonError::into_inner);
        let (woken, news, revision) = {
            let mut state = self.lock();
            state.is_wake_claimed = false;
            (state.take_woken(), state.news.take(), state.revision)
        };

        for (watcher, revision) in woken {
            watcher.wake(news.as_ref(), revision);
        }
        self.announced.fetch_max(revision, Ordering::Release);
    }

    /// Returns the newest revision of which all watchers that it concerns were
    /// woken.
    pub(crate) fn announced(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }

    /// Opens a stream of the database for a watcher. `open` returns the id of
    /// the stream, and a result that is returned here.
    pub(crate) fn open<S>(
        &self,
        watcher: &Arc<W>,
        open: impl FnOnce(&mut Database) -> (StreamId, S),
    ) -> S {
        let mut state = self.lock();
        let (id, opened) = open(&mut state.db);
        let index = id.index();
        if state.watchers.len() <= index {
            state.watchers.resize(index + 1, None);
        }
        state.watchers[index] = Some(Arc::clone(watcher));
        opened
    }

    /// Closes a part of a stream of the database, by `close`. Returns what that
    /// returns: whether nothing is left of the stream. Then its watcher is
    /// dropped too.
    pub(crate) fn close_slice(
        &self,
        id: StreamId,
        close: impl FnOnce(&mut Database) -> bool,
    ) -> bool {
        let mut state = self.lock();
        let is_closed = close(&mut state.db);
        // Another stream may get the id as soon as the engine is free.
        if is_closed && let Some(watcher) = state.watchers.get_mut(id.index()) {
            *watcher = None;
        }
        is_closed
    }

    /// Returns the watchers of all open streams.
    pub(crate) fn watchers(&self) -> Vec<Arc<W>> {
        self.lock().watchers.iter().flatten().cloned().collect()
    }

    /// Lets each thread that waits for the database have it once. To be called
    /// between two slices.
    pub(crate) fn give_way(&self) {
        self.engine.give_way();
    }

    /// Returns the longest wait of a thread for the database, since the start
    /// or since it was last taken.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.engine.longest_wait()
    }

    /// Resets the longest wait, and returns it.
    pub(crate) fn take_longest_wait(&self) -> Duration {
        self.engine.take_longest_wait()
    }

    /// Returns the time on the hub's clock.
    pub(crate) fn now(&self) -> Moment {
        Moment::new(self.start.elapsed())
    }

    /// Converts a moment of the hub's clock to the clock of the runtime.
    pub(crate) fn instant(&self, moment: Moment) -> tokio::time::Instant {
        (self.start + moment.since_start()).into()
    }

    /// Locks the database and the streams.
    fn lock(&self) -> EngineGuard<'_, State<W>> {
        self.engine.lock()
    }

    /// Locks out other transactions.
    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::change::Change;
    use trunkline_core::database::Scope;
    use trunkline_core::params::ParamsId;
    use trunkline_core::resource::Resource;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(Option<u64>, u64)>>);

    impl Watcher for Heard {
        type News = u64;

        fn wake(&self, news: Option<&u64>, revision: u64) {
            self.0.lock().unwrap().push((news.copied(), revision));
        }
    }

    #[test]
    fn a_watcher_is_woken_once_for_changes_that_concern_it() {
        let hub = Hub::<Heard>::new(Database::new());
        let [all, none] = [(); 2].map(|()| Arc::new(Heard::default()));
        let ids = [(&all, "t"), (&none, "other")].map(|(watcher, url)| {
            hub.open(watcher, |db| {
                let id = db.open_stream();
                let type_id = db.type_id(&url.into());
                let subscriber = db.add_subscriber(id, type_id, ParamsId::EMPTY);
                db.open_cursor(subscriber, &Scope::All);
                (id, id)
            })
        });
        for (nth, text) in ["1", "2"].into_iter().enumerate() {
            let resource = Arc::new(Resource::new("a".into(), text.into()));
            let commit = Commit::new(vec![Change::Upsert("t".into(), resource)]).unwrap();
            let name = |changed: ChangedName<'_>, all: &mut Vec<_>| all.push(changed.name.clone());
            let (changed, revision) = hub.apply(commit, name, || Some(nth as u64)).unwrap();
            assert_eq!(changed, ["a".into()]);
            assert_eq!(revision, nth as u64 + 1);
        }
        assert!(hub.claim_wake() && !hub.claim_wake());
        assert_eq!(hub.announced(), 0);
        hub.wake();
        hub.wake();
        assert_eq!(*all.0.lock().unwrap(), [(Some(0), 2)]);
        assert_eq!(hub.announced(), 2);
        assert!(none.0.lock().unwrap().is_empty());
        assert_eq!(hub.with_revision(|_| ()).1, 2);
        assert!(hub.claim_wake(), "it was woken");
        assert_eq!(hub.watchers().len(), 2);
        assert!(!hub.close_slice(ids[0], |_| false));
        assert_eq!(hub.watchers().len(), 2);
        assert!(hub.close_slice(ids[0], |_| true));
        assert_eq!(hub.watchers().len(), 1);
    }
}
