//! Convergence: how long a change takes to reach all its subscribers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::hook_set::HookSet;

/// The maximum of changes that one stream holds: a client that never
/// acknowledges would hold every one.
const MAX_HELD: usize = 64;

/// A change on its way. Every stream that it concerns holds it until its client
/// has acknowledged; when the last one drops it, the change has converged.
pub(super) struct Convergence {
    accepted: Instant,
    /// Whether it concerned any stream.
    has_streams: AtomicBool,
    hooks: Arc<HookSet>,
}

impl Convergence {
    /// Begins to follow a change that was accepted at this time, before it
    /// waited for other changes.
    pub(super) fn new(accepted: Instant, hooks: &Arc<HookSet>) -> Self {
        Self {
            accepted,
            has_streams: AtomicBool::new(false),
            hooks: Arc::clone(hooks),
        }
    }
}

/// The changes that a stream holds.
#[derive(Debug, Default)]
pub(super) struct Convergences(Mutex<ChangeList>);

#[derive(Debug, Default)]
struct ChangeList {
    /// The changes that the client has not acknowledged, oldest first.
    changes: Vec<Arc<Convergence>>,
    /// The number of the oldest changes that a response was built after; at
    /// most that of all.
    pushed_count: usize,
}

/// The changes that a stream holds at a moment. A change that comes later is
/// not among the oldest of that number.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldChanges {
    pub(super) count: usize,
    /// When the oldest one came that no response was built after.
    unpushed_since: Option<Instant>,
}

impl Convergences {
    /// Adds a change that concerns the stream, unless the stream holds
    /// [`MAX_HELD`]: then the change converges without it.
    pub(super) fn add(&self, convergence: &Arc<Convergence>) {
        let mut list = self.lock();
        if list.changes.len() < MAX_HELD {
            convergence.has_streams.store(true, Ordering::Relaxed);
            list.changes.push(Arc::clone(convergence));
        }
    }

    /// Returns the changes that the stream holds now. They are passed back to
    /// [`Self::note_pushed`] when a response was built after them.
    pub(super) fn held_changes(&self) -> HeldChanges {
        let list = self.lock();
        let oldest = list.changes.get(list.pushed_count);
        HeldChanges {
            count: list.changes.len(),
            unpushed_since: oldest.map(|change| change.accepted),
        }
    }

    /// Notes that a response was built after these changes. Returns how long
    /// ago the oldest came that no earlier response was built after; `None` if
    /// there is none, and then the clock is not read.
    pub(super) fn note_pushed(&self, changes: HeldChanges) -> Option<Duration> {
        let oldest_time = changes.unpushed_since?;
        self.lock().pushed_count = changes.count;
        Some(oldest_time.elapsed())
    }

    /// Drops the oldest `count` changes, which the client has acknowledged. A
    /// number beyond all of them drops all.
    pub(super) fn drop_acknowledged(&self, count: usize) {
        let oldest: Vec<Arc<Convergence>> = {
            let mut list = self.lock();
            let count = count.min(list.changes.len());
            list.pushed_count = list.pushed_count.saturating_sub(count);
            if count == list.changes.len() {
                // Mostly it is all of them, and no memory is kept.
                std::mem::take(&mut list.changes)
            } else {
                list.changes.drain(..count).collect()
            }
        };
        // The last holder of a change calls the hooks, so not under the lock.
        drop(oldest);
    }

    /// Locks the changes. Ignores poison: a list is never half changed.
    fn lock(&self) -> MutexGuard<'_, ChangeList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Convergence {
    /// Tells the hooks how long the change took, if it concerned any stream.
    fn drop(&mut self) {
        if self.has_streams.load(Ordering::Relaxed) {
            self.hooks.converged(self.accepted.elapsed());
        }
    }
}

impl fmt::Debug for Convergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Convergence").finish_non_exhaustive()
    }
}
