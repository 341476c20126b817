//! Convergence: how long a change takes to reach all its subscribers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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
    pub(super) fn new(hooks: &Arc<HookSet>) -> Self {
        Self {
            accepted: Instant::now(),
            reached: AtomicBool::new(false),
            hooks: Arc::clone(hooks),
        }
    }
}

/// The changes that a stream holds, oldest first.
#[derive(Debug, Default)]
pub(super) struct Convergences(Mutex<Vec<Arc<Convergence>>>);

impl Convergences {
    /// Adds a change that concerns the stream, unless the stream holds
    /// [`MAX_HELD`]: then the change converges without it.
    pub(super) fn add(&self, convergence: &Arc<Convergence>) {
        let mut held = self.lock();
        if held.len() < MAX_HELD {
            convergence.reached.store(true, Ordering::Relaxed);
            held.push(Arc::clone(convergence));
        }
    }

    /// The number of changes that the stream holds now. A change that comes
    /// later is not among the oldest of that number.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Drops the oldest `count` changes, which the client has acknowledged.
    pub(super) fn drop_acknowledged(&self, count: usize) {
        let acknowledged: Vec<Arc<Convergence>> = {
            let mut held = self.lock();
            if count >= held.len() {
                // Mostly it is all of them, and no memory is kept.
                std::mem::take(&mut *held)
            } else {
                held.drain(..count).collect()
            }
        };
        // The last holder of a change calls the hooks, so not under the lock.
        drop(acknowledged);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Convergence>>> {
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
