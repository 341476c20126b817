//! Changes that wait for the store together, so that one write to the disk
//! keeps many of them: a group commit, which `group_commit` does.
//!
//! The checked contents are ahead of the database by the changes in the queue
//! and in the batches that left it. A change that needs the two to be equal
//! waits until there are none. One that found nothing to change may rest on what
//! is in the queue: it follows the queue, and is refused if that is not kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use trunkline_core::change::Change;
use trunkline_core::database::ApplyError;

use super::contents::Changed;
use super::settle::Applied;
use super::store::StoredTransaction;
use crate::checked::RowChange;

/// The queue of a server.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Locked by the thread that commits the queue. Locked after the contents
    /// of all origins, and before other changes are locked out.
    turn: Mutex<()>,
    /// The nanoseconds that the database took for a change, lately.
    make_nanos: AtomicU64,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Those who wait for all that is in the queue or on its way out of it, and
    /// have no change of their own.
    followers: Vec<Arc<Slot>>,
    /// The newest revision that the store was given; zero if the database is
    /// not behind it.
    revision: u64,
    /// What the database refused, until the store has its inverse.
    refusal: Option<Refusal>,
    /// Changes that were not kept, oldest first, and are still in the contents.
    failed: Vec<Vec<RowChange>>,
    /// Why they were not; `None` if there are none.
    reason: Option<ApplyError>,
}

/// A change that is settled, and neither kept nor made.
struct Entry {
    transaction: StoredTransaction,
    pending: Pending,
}

/// A change that the database is to make, and where its result goes.
struct Pending {
    changes: Vec<Change>,
    accepted: Instant,
    slot: Arc<Slot>,
}

/// Changes that left the queue together.
pub(super) struct Batch {
    transactions: Vec<StoredTransaction>,
    /// One for each transaction.
    pending: Vec<Pending>,
    followers: Vec<Arc<Slot>>,
}

/// The rest of a batch, from the change on that the database refused.
pub(super) struct Refusal {
    pub(super) batch: Batch,
    pub(super) reason: ApplyError,
}

/// Where the thread that waits for a change finds its result.
#[derive(Debug, Default)]
pub(super) struct Slot {
    news: Mutex<News>,
    changed: Condvar,
}

/// What a waiting thread was told.
#[derive(Debug, Default)]
enum News {
    #[default]
    None,
    /// Nobody commits the queue: the thread may.
    TurnIsFree,
    Result(Result<Applied, ApplyError>),
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the waiting thread its result.
    fn put(&self, result: Result<Applied, ApplyError>) {
        *self.lock() = News::Result(result);
        self.changed.notify_one();
    }

    /// Tells the waiting thread that nobody works on the queue, unless it has its
    /// result.
    fn offer_turn(&self) {
        let mut news = self.lock();
        if !matches!(*news, News::Result(_)) {
            *news = News::TurnIsFree;
            self.changed.notify_one();
        }
    }

    /// Takes the result if it is there.
    pub(super) fn take(&self) -> Option<Result<Applied, ApplyError>> {
        match std::mem::take(&mut *self.lock()) {
            News::Result(result) => Some(result),
            News::None | News::TurnIsFree => None,
        }
    }

    /// Waits for the result, and takes it. Returns `None` if the queue is free
    /// before, which the thread may work on then.
    pub(super) fn wait(&self) -> Option<Result<Applied, ApplyError>> {
        let no_news = |news: &mut News| matches!(news, News::None);
        let waited = self.changed.wait_while(self.lock(), no_news);
        let mut news = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *news) {
            News::Result(result) => Some(result),
            News::None | News::TurnIsFree => None,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn to commit the queue.
    pub(super) fn wait_for_turn(&self) -> Turn<'_> {
        let guard = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Turn {
            queue: self,
            guard: Some(guard),
        }
    }

    /// Returns the turn to commit the queue; `None` if another thread has it.
    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        let guard = match self.turn.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn {
            queue: self,
            guard: Some(guard),
        })
    }

    /// Offers the turn to the first thread that waits, if any does.
    fn offer_turn(&self) {
        let state = self.lock();
        let first_change = state.entries.first().map(|entry| &entry.pending.slot);
        if let Some(slot) = first_change.or(state.followers.first()) {
            slot.offer_turn();
        }
    }

    /// Returns the number of changes in the queue.
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns how long the database takes for so many changes; zero if it has
    /// not made any yet.
    pub(super) fn time_to_make(&self, count: usize) -> Duration {
        let nanos = self.make_nanos.load(Ordering::Relaxed);
        Duration::from_nanos(nanos.saturating_mul(count as u64))
    }

    /// Notes how long the database took for so many changes. None are ignored.
    pub(super) fn note_time_to_make(&self, count: usize, time: Duration) {
        let nanos = time.as_nanos().checked_div(count as u128);
        if let Some(nanos) = nanos {
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            // A guess: who reads an older one decides a little worse.
            self.make_nanos.store(nanos, Ordering::Relaxed);
        }
    }

    /// Returns whether nobody waits in the queue.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.entries.is_empty() && state.followers.is_empty()
    }

    /// Adds a change. The caller has locked the contents of all origins. The
    /// revision of the transaction is not known yet.
    ///
    /// # Errors
    /// Changes that it may rest on were not kept.
    pub(super) fn add(
        &self,
        transaction: StoredTransaction,
        changes: Vec<Change>,
    ) -> Result<Arc<Slot>, ApplyError> {
        let mut state = self.lock();
        if let Some(reason) = &state.reason {
            return Err(reason.clone());
        }
        let slot = Arc::<Slot>::default();
        let pending = Pending {
            changes,
            accepted: Instant::now(),
            slot: Arc::clone(&slot),
        };
        state.entries.push(Entry {
            transaction,
            pending,
        });
        Ok(slot)
    }

    /// Adds a slot that gets its result when all changes before it are kept and
    /// made. If changes have failed already, it has their error at once. The
    /// caller has locked the contents of all origins.
    pub(super) fn follow(&self) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        let mut state = self.lock();
        match &state.reason {
            Some(reason) => slot.put(Err(reason.clone())),
            None => state.followers.push(Arc::clone(&slot)),
        }
        slot
    }

    /// Takes all that is in the queue, and gives the transactions revisions
    /// after the newest one that the database has or the store was given. The
    /// caller has the turn.
    pub(super) fn take_batch(&self, database_revision: u64) -> Batch {
        let mut state = self.lock();
        let mut batch = state.take_batch();
        let newest = database_revision.max(state.revision);
        for (transaction, revision) in batch.transactions.iter_mut().zip(newest + 1..) {
            transaction.info.revision = revision;
        }
        state.revision = newest + batch.len() as u64;
        batch
    }

    /// Fails batches for a reason, oldest first, and with them all that is in
    /// the queue: each change rests on those before it. The changes stay in the
    /// contents until they are taken back. No batch is with the store or being
    /// made.
    pub(super) fn fail(&self, batches: impl IntoIterator<Item = Batch>, reason: &ApplyError) {
        let mut state = self.lock();
        let queued = state.take_batch();
        for batch in batches.into_iter().chain([queued]) {
            let rows = batch.transactions.into_iter().map(|it| it.changes);
            state.failed.extend(rows);
            let slots = batch.pending.into_iter().map(|pending| pending.slot);
            for slot in slots.chain(batch.followers) {
                slot.put(Err(reason.clone()));
            }
        }
        state.revision = 0;
        state.reason = Some(reason.clone());
    }

    /// Takes the changes that were not kept, oldest first. The queue accepts
    /// changes again.
    pub(super) fn take_failed(&self) -> Vec<Vec<RowChange>> {
        let mut state = self.lock();
        state.reason = None;
        std::mem::take(&mut state.failed)
    }

    /// Notes what the database refused.
    pub(super) fn note_refusal(&self, refusal: Refusal) {
        self.lock().refusal = Some(refusal);
    }

    /// Takes what the database refused; `None` if it refused nothing, or if
    /// that was taken before.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        self.lock().refusal.take()
    }
}

impl State {
    /// Takes all that is in the queue. The transactions have no revisions yet.
    fn take_batch(&mut self) -> Batch {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let (transactions, pending) = entries
            .map(|entry| (entry.transaction, entry.pending))
            .unzip();
        Batch {
            transactions,
            pending,
            followers: std::mem::take(&mut self.followers),
        }
    }
}

/// The turn of one thread to commit the queue. At its end the turn is offered
/// to one of those who came meanwhile: they found it taken, and sleep.
pub(super) struct Turn<'a> {
    queue: &'a Queue,
    /// `None` only while it is dropped.
    guard: Option<MutexGuard<'a, ()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.guard = None;
        self.queue.offer_turn();
    }
}

impl Batch {
    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns what the store is to keep.
    pub(super) fn transactions(&self) -> &[StoredTransaction] {
        &self.transactions
    }

    /// Makes the changes in their order, by calling `make` with the number of
    /// each, its author, and when it was accepted, and gives each thread that
    /// waits its result. Followers have theirs at the end: all before them is
    /// made. If a change is refused, returns it with all that follow, and no
    /// more is made.
    pub(super) fn make(
        self,
        mut make: impl FnMut(
            usize,
            &str,
            Vec<Change>,
            Instant,
        ) -> Result<(Vec<Changed>, u64), ApplyError>,
    ) -> Option<Refusal> {
        let Self {
            mut transactions,
            pending,
            followers,
        } = self;
        let mut pending = pending.into_iter();
        let mut nth = 0;
        while let Some(mut change) = pending.next() {
            let author = &transactions[nth].info.author;
            let changes = std::mem::take(&mut change.changes);
            match make(nth, author, changes, change.accepted) {
                Ok(applied) => change.slot.put(Ok(applied.into())),
                Err(reason) => {
                    let batch = Self {
                        transactions: transactions.split_off(nth),
                        pending: std::iter::once(change).chain(pending).collect(),
                        followers,
                    };
                    return Some(Refusal { batch, reason });
                }
            }
            nth += 1;
        }
        for slot in followers {
            slot.put(Ok(Applied::default()));
        }
        None
    }
}
