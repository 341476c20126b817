//! Large work for one stream is done aside, so that no other stream waits for
//! it (S85): a long request is decoded on a thread of its own and read in
//! slices, and a stream with many names is closed in slices.
//!
//! ```text
//!   long request ─▶ room ─▶ decoder ─▶ ┐
//!   long list ─────────────────────────┼▶ turn: a slice ─▶ turn: a slice ─▶ ...
//!   stream with many names, closed ───▶ ┘
//! ```
//!
//! All that wait are served in the order in which they came. Between two turns
//! every other stream is polled, however many large jobs there are.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};
use trunkline_core::database::SLICE;
use trunkline_core::session::Session;

use super::hooks::Limit;
use super::report::Report;
use super::request_outcome::{RequestOutcome, take_demand_changes};
use super::stream::{Fault, NextPoll, Stream};

/// The unit in which room is taken: a semaphore counts in 32 bits.
const UNIT: usize = 1 << 10;

/// The most threads that decode long requests at once. A fleet that reconnects
/// needs a few milliseconds each; more threads would take the processor from
/// streams that are up.
const DECODERS: usize = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Aside {
    room: Semaphore,
    /// All of the room.
    units: usize,
    decoders: Semaphore,
    turn: Semaphore,
}

/// Returns the number of processors that this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Aside {
    /// Returns an `Aside` with room for so many bytes of long requests.
    pub(super) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).max(1);
        Self {
            room: Semaphore::new(units),
            units,
            decoders: Semaphore::new(processors().min(DECODERS)),
            turn: Semaphore::new(1),
        }
    }

    /// Waits for room for a request of so many bytes, or for all of the room if
    /// it needs more. The permit gives the room back when it is dropped.
    /// Returns also whether it had to wait. The permit is never `None`: no
    /// semaphore here is closed.
    async fn take_room(&self, bytes: usize) -> (Option<SemaphorePermit<'_>>, bool) {
        let units = bytes.div_ceil(UNIT).min(self.units) as u32;
        match self.room.try_acquire_many(units) {
            Ok(permit) => (Some(permit), false),
            Err(_) => (self.room.acquire_many(units).await.ok(), true),
        }
    }

    /// Waits for a turn, does a slice of work, and lets other tasks run before
    /// the turn ends.
    async fn take_turn<T>(&self, slice: impl FnOnce() -> T) -> T {
        let turn = self.turn.acquire().await;
        let result = slice();
        tokio::task::yield_now().await;
        drop(turn);
        result
    }
}

impl Stream {
    /// Does a slice of work in turn with all other large work. Threads that
    /// wait for the database have it before the next slice.
    async fn take_turn<T>(&self, slice: impl FnOnce() -> T) -> T {
        let slice = || {
            let result = slice();
            self.shared.hub.give_way();
            result
        };
        self.shared.aside.take_turn(slice).await
    }

    /// Handles a long request: waits for room, decodes it on a thread of its
    /// own, and reads it in slices. Does nothing on a stream that has ended
    /// meanwhile.
    pub(super) async fn handle_aside(self: Arc<Self>, raw: Bytes) -> Result<NextPoll, Fault> {
        let bytes = raw.len();
        let aside = &self.shared.aside;
        let (_room, has_waited) = aside.take_room(bytes).await;
        if has_waited {
            self.shared.hooks.limited(Limit::LongRequests);
        }

        let decoder = aside.decoders.acquire().await;
        let stream = Arc::clone(&self);
        let reading = tokio::task::spawn_blocking(move || stream.read(raw));
        let read = match reading.await {
            Ok(read) => read?,
            // Only a runtime that shuts down cancels it.
            Err(error) if error.is_cancelled() => return Ok(NextPoll::default()),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        drop(decoder);

        let next = self.take_turn(|| self.handle_read(read, bytes)).await?;
        Ok(Arc::clone(&self).finish_aside(next).await)
    }

    /// Reads the rest of a request in slices. Returns when the stream has to be
    /// polled after that.
    pub(super) async fn finish_aside(self: Arc<Self>, mut next: NextPoll) -> NextPoll {
        while next.is_busy {
            next = self.take_turn(|| self.work_off()).await;
        }
        next
    }

    /// Does a slice of the work that the last request left, and reports what
    /// came of it. Returns whether work is left, and when the stream has to be
    /// polled.
    fn work_off(&self) -> NextPoll {
        let mut outcome = RequestOutcome::default();
        let next = self.work_off_slice(&mut outcome);
        self.report_request(0, &outcome);
        next
    }

    /// Does a slice of the work under the lock of the stream, where nothing may
    /// be reported: events are collected in `outcome`. A stream that has ended
    /// has no work left.
    fn work_off_slice(&self, outcome: &mut RequestOutcome) -> NextPoll {
        let now = self.shared.hub.now();
        let mut state = self.lock();
        let Some(session) = &mut state.session else {
            return NextPoll::default();
        };
        let is_quiet = self.shared.with_request(|db| {
            session.work_off(db);
            take_demand_changes(db, outcome);
            session.is_quiet(db, now)
        });
        let next = self.next_poll(session, is_quiet);
        state.take_events(outcome, self.shared.hooks.has_any());
        next
    }

    /// Closes the session, whichever side ended the stream, and lets go of all
    /// changes. Tells the contents of names that lost their last subscriber,
    /// and reports the end to the hooks. Does nothing if there was no request.
    /// A session with more names than a slice is closed aside, if there is a
    /// runtime.
    pub(super) fn close(self: &Arc<Self>) {
        let Some(session) = self.end() else {
            return;
        };
        self.drop_convergences();
        let lanes = self.shared.options.lanes.as_ref();
        let runtime = match lanes {
            Some(lanes) => Some(lanes.back.clone()),
            None => tokio::runtime::Handle::try_current().ok(),
        };
        match runtime.filter(|_| session.name_count() > SLICE) {
            Some(runtime) => {
                self.report(Report::Closed);
                runtime.spawn(Arc::clone(self).close_aside(session));
            }
            None => {
                self.close_now(session);
                self.report(Report::Closed);
            }
        }
    }

    /// Closes a session on this thread, in slices: it has few names, or there
    /// is no runtime.
    fn close_now(&self, mut session: Session) {
        while !self.close_slice(&mut session) {
            self.shared.hub.give_way();
        }
    }

    /// Closes a session in slices. Its memory is freed on a thread of its own,
    /// or, where there are lanes, in the back lane: clients with many names are
    /// served there, and an allocator gives memory back when the thread frees
    /// it that allocated it.
    async fn close_aside(self: Arc<Self>, mut session: Session) {
        while !self.take_turn(|| self.close_slice(&mut session)).await {}
        match self.shared.options.lanes {
            Some(_) => drop(session),
            None => drop(tokio::task::spawn_blocking(move || drop(session))),
        }
    }

    /// Closes a part of a session, and tells the contents of names that lost
    /// their last subscriber. Returns whether nothing is left of it.
    fn close_slice(&self, session: &mut Session) -> bool {
        let mut outcome = RequestOutcome::default();
        let is_closed = self.shared.close_slice(session);
        self.shared.with(|db| take_demand_changes(db, &mut outcome));
        self.report_demand(&outcome);
        is_closed
    }
}
