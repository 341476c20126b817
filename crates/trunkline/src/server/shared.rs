//! What the streams of a server share: the database, and who is woken by it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch};
use trunkline_core::Moment;
use trunkline_core::database::{Database, StreamId};
use trunkline_core::session::{Config, Session};

use super::report::{Observer, Peer, Report};

/// See the module's documentation.
pub(super) struct Shared {
    /// Held to ask or change the database; not to encode, send or report.
    state: Mutex<State>,
    /// The start of the streams' clock.
    start: Instant,
    opened: AtomicU64,
    stop: watch::Sender<bool>,
    observer: Box<Observer>,
    pub(super) identifier: String,
}

struct State {
    db: Database,
    /// Has every open stream of `db`.
    wakers: HashMap<StreamId, Arc<Notify>>,
}

impl Shared {
    pub(super) fn new(identifier: String, observer: Box<Observer>) -> Self {
        Self {
            state: Mutex::new(State {
                db: Database::new(),
                wakers: HashMap::new(),
            }),
            start: Instant::now(),
            opened: AtomicU64::new(0),
            stop: watch::Sender::new(false),
            observer,
            identifier,
        }
    }

    /// Asks or changes the database, then wakes the streams that this concerns.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut Database) -> T) -> T {
        let (answer, woken) = {
            let mut state = self.lock();
            let answer = ask(&mut state.db);
            let woken = state.db.take_woken();
            let notify = |id: &StreamId| state.wakers.get(id).cloned();
            (answer, woken.iter().filter_map(notify).collect::<Vec<_>>())
        };
        for stream in woken {
            stream.notify_one();
        }
        answer
    }

    /// Begins a stream that is woken by `waker`.
    pub(super) fn open(&self, config: Config, waker: Arc<Notify>) -> Session {
        let mut state = self.lock();
        let session = Session::open(&mut state.db, config);
        state.wakers.insert(session.stream(), waker);
        session
    }

    /// Ends a stream.
    pub(super) fn close(&self, session: Session) {
        // Under one lock, because another stream may be given its number.
        let mut state = self.lock();
        state.wakers.remove(&session.stream());
        session.close(&mut state.db);
    }

    pub(super) fn now(&self) -> Moment {
        Moment::new(self.start.elapsed())
    }

    /// When a moment is on the clock of the runtime.
    pub(super) fn instant(&self, moment: Moment) -> tokio::time::Instant {
        (self.start + moment.since_start()).into()
    }

    pub(super) fn next_number(&self) -> u64 {
        self.opened.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        (self.observer)(peer, report);
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the server is stopped.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            // A sender that is gone is a server that is gone.
            let _ = stop.wait_for(|stopped| *stopped).await;
        }
    }

    /// A stream whose task panicked does not end the others.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("identifier", &self.identifier)
            .finish_non_exhaustive()
    }
}
