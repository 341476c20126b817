//! How long a change takes to reach everybody it concerns.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::hook_set::HookSet;

/// Waves that one stream keeps at most: a peer that never answers would hold
/// every one.
const KEPT: usize = 64;

/// A change on its way. Every stream that it concerns holds it until the peer
/// has answered; when the last lets go, the change has arrived.
pub(super) struct Wave {
    accepted: Instant,
    /// Whether it concerned anybody.
    reached: AtomicBool,
    hooks: Arc<HookSet>,
}

impl Wave {
    pub(super) fn new(hooks: &Arc<HookSet>) -> Self {
        Self {
            accepted: Instant::now(),
            reached: AtomicBool::new(false),
            hooks: Arc::clone(hooks),
        }
    }
}

/// The waves that a stream holds, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waves(Mutex<Vec<Arc<Wave>>>);

impl Waves {
    /// One that concerns the stream.
    pub(super) fn add(&self, wave: &Arc<Wave>) {
        let mut waves = self.lock();
        if waves.len() < KEPT {
            wave.reached.store(true, Ordering::Relaxed);
            waves.push(Arc::clone(wave));
        }
    }

    /// How many there are. Those that come later are not among them.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// So many have arrived.
    pub(super) fn arrived(&self, many: usize) {
        let arrived: Vec<Arc<Wave>> = {
            let mut waves = self.lock();
            let many = many.min(waves.len());
            waves.drain(..many).collect()
        };
        // The last holder of a wave reports it, so not while others wait.
        drop(arrived);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Wave>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wave {
    fn drop(&mut self) {
        if self.reached.load(Ordering::Relaxed) {
            self.hooks.converged(self.accepted.elapsed());
        }
    }
}

impl fmt::Debug for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wave").finish_non_exhaustive()
    }
}
