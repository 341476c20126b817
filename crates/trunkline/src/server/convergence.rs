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
    reached: AtomicBool,
    hooks: Arc<HookSet>,
}

impl Convergence {
    /// Begins to follow a change that was accepted at this time, before it
    /// waited for other changes.
    pub(super) fn new(accepted: Instant, hooks: &Arc<HookSet>) -> Self {
        Self {
            accepted,
            reached: AtomicBool::new(false),
            hooks: Arc::clone(hooks),
        }
    }
}

/// The changes that a stream holds.
#[derive(Debug, Default)]
pub(super) struct Convergences(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Oldest first.
    changes: Vec<Arc<Convergence>>,
    /// The number of the oldest changes that a response was built after; at
    /// most that of all.
    pushed: usize,
}

/// The changes that a stream holds at a moment. A change that comes later is not
/// among the oldest of that number.
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
        let mut held = self.lock();
        if held.changes.len() < MAX_HELD {
            convergence.reached.store(true, Ordering::Relaxed);
            held.changes.push(Arc::clone(convergence));
        }
    }

    /// Returns the changes that the stream holds now. They are passed back to
    /// [`Self::note_pushed`] when a response was built after them.
    pub(super) fn held(&self) -> HeldChanges {
        let held = self.lock();
        let oldest = held.changes.get(held.pushed);
        HeldChanges {
            count: held.changes.len(),
            unpushed_since: oldest.map(|change| change.accepted),
        }
    }

    /// Notes that a response was built after these changes. Returns how long
    /// ago the oldest came that no earlier response was built after; `None` if
    /// there is none, and then the clock is not read.
    pub(super) fn note_pushed(&self, changes: HeldChanges) -> Option<Duration> {
        let since = changes.unpushed_since?;
        self.lock().pushed = changes.count;
        Some(since.elapsed())
    }

    /// Drops the oldest `count` changes, which the client has acknowledged. A
    /// number beyond all of them drops all.
    pub(super) fn drop_acknowledged(&self, count: usize) {
        let acknowledged: Vec<Arc<Convergence>> = {
            let mut held = self.lock();
            let count = count.min(held.changes.len());
            held.pushed = held.pushed.saturating_sub(count);
            if count == held.changes.len() {
                // Mostly it is all of them, and no memory is kept.
                std::mem::take(&mut held.changes)
            } else {
                held.changes.drain(..count).collect()
            }
        };
        // The last holder of a change calls the hooks, so not under the lock.
        drop(acknowledged);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Convergence {
    /// Tells the hooks how long the change took, if it concerned any stream.
    fn drop(&mut self) {
        if self.reached.load(Ordering::Relaxed) {
            self.hooks.converged(self.accepted.elapsed());
        }
    }
}

impl fmt::Debug for Convergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Convergence").finish_non_exhaustive()
    }
}
