//! Group commit: one of the threads that wait has the store keep all changes
//! in the [queue](super::queue), and makes them in the database.
//!
//! ```text
//!          with the turn                 with the lock `making`
//! queue ─▶ batch ─▶ store.commit ─▶ database, change by change ─▶ answers
//!                        │ fails          │ refuses: the store keeps the inverse
//!                        └──▶ failed ◀────┘
//! ```
//!
//! A thread takes the turn first and the lock `making` then, and gives the turn
//! away while it makes its batch, unless the disk is slow. The next batch is
//! committed meanwhile, and waits for the lock. So at most one batch is ahead of
//! the one that is made.
//!
//! What failed stays in the checked contents until whoever locks them next has
//! taken it back, newest first.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use trunkline_core::database::ApplyError;

use super::keeping;
use super::queue::{Batch, Refusal, Slot, Turn};
use super::settle::Applied;
use super::shared::Shared;
use super::store::{Store, StoreError, StoredTransaction};
use crate::checked::ContentSet;

/// How many times as long as making a batch its commit may take for the next
/// batch to be committed meanwhile. A disk that is slower does better with twice
/// as many changes in one write.
const SLOW_COMMIT: u32 = 3;

/// The batch that left the queue after one in which a change was refused.
enum Later {
    /// There is none.
    None,
    /// The store has kept it.
    Kept(Batch),
    /// The store could not keep it.
    Lost(Batch),
}

/// Locks out all other changes: none is with the store, and none is made.
pub(super) struct Changing<'a> {
    // The fields are dropped in this order, so whoever gets the turn next finds
    // the lock free.
    _making: MutexGuard<'a, ()>,
    _turn: Turn<'a>,
}

impl Shared {
    /// Waits until no other change is with the store or being made, and locks
    /// others out, so that hooks are told of changes one by one.
    pub(super) fn lock_changing(&self) -> Changing<'_> {
        let turn = self.queue.wait_for_turn();
        let making = self.lock_making();
        self.end_refusal();
        Changing {
            _making: making,
            _turn: turn,
        }
    }

    /// Waits for the result of a change, and commits the queue if nobody else
    /// does. The caller must not have the contents locked.
    pub(super) fn await_kept(self: &Arc<Self>, slot: &Slot) -> Result<Applied, ApplyError> {
        loop {
            if let Some(result) = slot.take() {
                return result;
            }
            // Without the turn, or with an empty queue, another thread has the
            // change in its batch, or will offer the turn.
            if let Some(turn) = self.queue.try_turn()
                && !self.queue.is_empty()
            {
                self.commit_queue(turn);
            }
            if let Some(result) = slot.wait() {
                return result;
            }
        }
    }

    /// Waits until every change that was settled is made, and takes back what
    /// failed. The caller has locked the contents, so nothing is added
    /// meanwhile.
    pub(super) fn drain_queue(self: &Arc<Self>, set: &mut ContentSet) {
        self.commit_queue(self.queue.wait_for_turn());
        self.take_back_failed(set);
    }

    /// Takes back the settlements that were not kept, the newest first. The
    /// queue accepts changes again. The caller has locked the contents.
    pub(super) fn take_back_failed(&self, set: &mut ContentSet) {
        for rows in self.queue.take_failed().iter().rev() {
            set.take_back(rows);
        }
    }

    /// Commits all that is in the queue as one batch, and makes it, after the
    /// batch before it.
    fn commit_queue(self: &Arc<Self>, turn: Turn<'_>) {
        let Some(store) = &self.store else {
            return;
        };
        let batch = self.queue.take_batch(self.revision());
        let begin = Instant::now();
        let kept = keep(&**store, &batch);
        let commit_time = begin.elapsed();

        // The thread that makes the batch before has this lock until that is
        // made.
        let making = self.lock_making();
        match (self.queue.take_refusal(), kept) {
            (None, Ok(())) => self.make(batch, commit_time, making, turn),
            (None, Err(error)) => self.queue.fail([batch], &keeping::refused(&error)),
            (Some(refusal), Ok(())) => self.fail_refused(refusal, Later::Kept(batch)),
            (Some(refusal), Err(_)) => self.fail_refused(refusal, Later::Lost(batch)),
        }
    }

    /// Makes a batch that the store has kept, and answers those who wait for
    /// it. The turn is given away as soon as the queue has as many changes as
    /// there are left to make: those who have their answers make their next
    /// changes meanwhile, so the next batch is about as large as this one.
    ///
    /// The database refuses a change that resources beside the checked contents
    /// contradict. It fails with all that follow.
    fn make(
        self: &Arc<Self>,
        batch: Batch,
        commit_time: Duration,
        making: MutexGuard<'_, ()>,
        turn: Turn<'_>,
    ) {
        let mut turn = Some(turn);
        let count = batch.len();
        let is_slow_commit = commit_time > self.queue.time_to_make(count) * SLOW_COMMIT;
        let begin = Instant::now();
        let refusal = batch.make(|nth, author, changes, accepted| {
            if !is_slow_commit && self.queue.len() >= count - nth {
                turn = None;
            }
            self.apply_allowed(author, changes, accepted)
        });
        self.queue.note_time_to_make(count, begin.elapsed());
        let Some(refusal) = refusal else {
            return;
        };

        self.queue.note_refusal(refusal);
        // Whoever has the turn meanwhile may have a batch that rests on this
        // one, and waits for the lock.
        drop(making);
        let _turn = turn.unwrap_or_else(|| self.queue.wait_for_turn());
        let _making = self.lock_making();
        self.end_refusal();
    }

    /// Ends what the database has refused, if it refused anything. The caller has
    /// the turn and the lock `making`, and no batch.
    fn end_refusal(&self) {
        if let Some(refusal) = self.queue.take_refusal() {
            self.fail_refused(refusal, Later::None);
        }
    }

    /// Fails the changes that the database refused, and with them the later
    /// batch, which rests on them. The store keeps the inverse of all that it
    /// has of them. The caller has the turn and the lock `making`.
    fn fail_refused(&self, refusal: Refusal, later: Later) {
        let Refusal { batch, reason } = refusal;
        let (kept_batch, lost_batch) = match later {
            Later::None => (None, None),
            Later::Kept(later) => (Some(later), None),
            Later::Lost(later) => (None, Some(later)),
        };
        if let Some(store) = &self.store {
            let kept_batches = std::iter::once(&batch).chain(&kept_batch);
            let transactions: Vec<_> = kept_batches.flat_map(Batch::transactions).collect();
            self.keep_inverse(&**store, &transactions);
        }
        let batches = std::iter::once(batch).chain(kept_batch).chain(lost_batch);
        self.queue.fail(batches, &reason);
    }

    /// Has the store keep the inverse of transactions, in revisions after them.
    fn keep_inverse(&self, store: &dyn Store, transactions: &[&StoredTransaction]) {
        let Some(last) = transactions.last().map(|last| last.info.revision) else {
            return;
        };
        let revisions = last + 1..;
        let inverse = transactions.iter().rev().zip(revisions);
        let inverse = inverse.map(|(transaction, revision)| transaction.inverse(revision));
        let inverse: Vec<StoredTransaction> = inverse.collect();
        // If this is not kept, the next start says so.
        let _ = store.commit(&inverse);
        self.advance_revision(last + inverse.len() as u64);
    }
}

/// Has the store keep the transactions of a batch. A batch of followers alone
/// has none.
fn keep(store: &dyn Store, batch: &Batch) -> Result<(), StoreError> {
    let transactions = batch.transactions();
    match transactions.is_empty() {
        true => Ok(()),
        false => store.commit(transactions),
    }
}
