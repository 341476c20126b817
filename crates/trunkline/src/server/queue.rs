//! Changes that wait for the store together, so that one write to the disk
//! keeps many of them.
//!
//! ```text
//! settled ─▶ queue ─▶ one of the waiting threads: store.commit(all), then the
//!            ▲   │    database, in order; each of the others is woken when its
//!            │   │    result is there, and makes its next change meanwhile
//!            │   └─ fails ─▶ failed: taken back, newest first, by whoever
//!            │                       locks the contents next
//!            └─ contents of all origins are locked
//! ```
//!
//! The thread that worked hands the queue on: it wakes the first that waits for
//! what came meanwhile.
//!
//! The checked contents are ahead of the database by the changes in the queue.
//! A change that needs the two to be equal waits until the queue is empty. One
//! that found nothing to change may rest on what is in the queue: it follows the
//! queue, and is refused if that is not kept.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use trunkline_core::change::Change;
use trunkline_core::database::ApplyError;

use super::keeping;
use super::settle::Applied;
use super::shared::Shared;
use super::store::{Store, StoredTransaction};
use crate::checked::{ContentSet, RowChange};

/// The queue of a server.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Locked by the thread that works on the queue. Locked after the contents
    /// of all origins, and before other changes are locked out.
    working: Mutex<()>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Those who wait for all that is in the queue or on its way out of it, and
    /// have no change of their own.
    followers: Vec<Arc<Slot>>,
    /// Changes that were not kept, oldest first, and are still in the contents.
    failed: Vec<Vec<RowChange>>,
    /// Why they were not; `None` if there are none.
    reason: Option<ApplyError>,
}

/// A change that is settled, and neither kept nor made.
struct Entry {
    transaction: StoredTransaction,
    changes: Vec<Change>,
    accepted: Instant,
    slot: Arc<Slot>,
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
    /// Nobody works on the queue: the thread may.
    QueueIsFree,
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
    fn offer_queue(&self) {
        let mut news = self.lock();
        if !matches!(*news, News::Result(_)) {
            *news = News::QueueIsFree;
            self.changed.notify_one();
        }
    }

    /// Takes the result if it is there.
    fn take(&self) -> Option<Result<Applied, ApplyError>> {
        match std::mem::take(&mut *self.lock()) {
            News::Result(result) => Some(result),
            News::None | News::QueueIsFree => None,
        }
    }

    /// Waits for the result, and takes it. Returns `None` if the queue is free
    /// before, which the thread may work on then.
    fn wait(&self) -> Option<Result<Applied, ApplyError>> {
        let no_news = |news: &mut News| matches!(news, News::None);
        let waited = self.changed.wait_while(self.lock(), no_news);
        let mut news = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *news) {
            News::Result(result) => Some(result),
            News::None | News::QueueIsFree => None,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn to work on the queue.
    fn work(&self) -> MutexGuard<'_, ()> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the turn to work on the queue, which is handed on when it is
    /// dropped; `None` if another thread has it.
    fn try_work(&self) -> Option<Turn<'_>> {
        let working = match self.working.try_lock() {
            Ok(working) => working,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn {
            queue: self,
            working: Some(working),
        })
    }

    /// Offers the queue to the first thread that waits, if any does.
    fn hand_on(&self) {
        let state = self.lock();
        let first_change = state.entries.first().map(|entry| &entry.slot);
        if let Some(slot) = first_change.or(state.followers.first()) {
            slot.offer_queue();
        }
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
        state.entries.push(Entry {
            transaction,
            changes,
            accepted: Instant::now(),
            slot: Arc::clone(&slot),
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
}

/// The turn of one thread to work on the queue. At its end the queue is handed
/// on, since those who came meanwhile found it taken, and sleep.
struct Turn<'a> {
    queue: &'a Queue,
    /// `None` only while it is dropped.
    working: Option<MutexGuard<'a, ()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.working = None;
        self.queue.hand_on();
    }
}

impl State {
    /// Fails these changes and followers for a reason, and with them all that
    /// wait: each rests on those before it. The changes stay in the contents
    /// until they are taken back.
    fn fail(&mut self, entries: Vec<Entry>, followers: Vec<Arc<Slot>>, reason: &ApplyError) {
        let later = std::mem::take(&mut self.followers);
        for slot in followers.into_iter().chain(later) {
            slot.put(Err(reason.clone()));
        }
        let rest = std::mem::take(&mut self.entries);
        for entry in entries.into_iter().chain(rest) {
            self.failed.push(entry.transaction.changes);
            entry.slot.put(Err(reason.clone()));
        }
        self.reason = Some(reason.clone());
    }
}

impl Shared {
    /// Waits for the result of a change, and works on the queue if nobody else
    /// does. The caller must not have the contents locked.
    pub(super) fn await_kept(self: &Arc<Self>, slot: &Slot) -> Result<Applied, ApplyError> {
        loop {
            let result = match self.queue.try_work() {
                Some(_turn) => {
                    let result = slot.take();
                    if result.is_none() {
                        self.work_on_queue();
                    }
                    result
                }
                None => slot.wait(),
            };
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// Waits until nothing is in the queue, and takes back what failed. The
    /// caller has locked the contents, so nothing is added meanwhile.
    pub(super) fn drain_queue(self: &Arc<Self>, set: &mut ContentSet) {
        {
            let _working = self.queue.work();
            self.work_on_queue();
        }
        self.take_back_failed(set);
    }

    /// Takes back the settlements that were not kept, the newest first. The
    /// queue accepts changes again. The caller has locked the contents.
    pub(super) fn take_back_failed(&self, set: &mut ContentSet) {
        let failed = {
            let mut state = self.queue.lock();
            state.reason = None;
            std::mem::take(&mut state.failed)
        };
        for changes in failed.iter().rev() {
            set.take_back(changes);
        }
    }

    /// Has the store keep all changes that wait, and makes them. The caller has
    /// the turn to work on the queue.
    fn work_on_queue(self: &Arc<Self>) {
        let Some(store) = &self.store else {
            return;
        };
        let _changing = self.lock_changing();
        let (mut entries, followers) = {
            let mut state = self.queue.lock();
            let entries = std::mem::take(&mut state.entries);
            (entries, std::mem::take(&mut state.followers))
        };
        if entries.is_empty() {
            return follow_all(followers);
        }
        let first = self.revision() + 1;
        for (entry, revision) in entries.iter_mut().zip(first..) {
            entry.transaction.info.revision = revision;
        }
        let transactions = entries.iter().map(|entry| entry.transaction.clone());
        let transactions: Vec<StoredTransaction> = transactions.collect();
        if let Err(error) = store.commit(&transactions) {
            let reason = keeping::refused(&error);
            return self.queue.lock().fail(entries, followers, &reason);
        }
        self.make_kept(store, entries, followers, &transactions);
    }

    /// Makes changes that are kept, in their order. If the database refuses
    /// one, resources that are beside the checked contents contradict it: it
    /// fails with all that follow, and the store keeps their inverse.
    fn make_kept(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        entries: Vec<Entry>,
        followers: Vec<Arc<Slot>>,
        transactions: &[StoredTransaction],
    ) {
        let mut entries = entries.into_iter().enumerate();
        while let Some((nth, mut entry)) = entries.next() {
            let changes = std::mem::take(&mut entry.changes);
            let author = &entry.transaction.info.author;
            match self.apply_allowed(author, changes, entry.accepted) {
                Ok(applied) => entry.slot.put(Ok(applied.into())),
                Err(reason) => {
                    let last = self.revision() + (transactions.len() - nth) as u64;
                    let undone = transactions[nth..].iter().rev().zip(last + 1..);
                    let inverse = undone.map(|(it, revision)| it.inverse(revision));
                    let inverse: Vec<StoredTransaction> = inverse.collect();
                    // If this is not kept, the next start says so.
                    let _ = store.commit(&inverse);
                    self.hub.advance_revision(last + inverse.len() as u64);
                    self.hub.wake();
                    let rest = std::iter::once(entry).chain(entries.map(|(_, it)| it));
                    let rest = rest.collect();
                    return self.queue.lock().fail(rest, followers, &reason);
                }
            }
        }
        follow_all(followers);
    }
}

/// Gives followers their result: all before them is kept and made.
fn follow_all(followers: Vec<Arc<Slot>>) {
    for slot in followers {
        slot.put(Ok(Applied::default()));
    }
}
