//! How long a change takes to reach everybody it concerns.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::hook_set::HookSet;

/// Waves that one stream keeps at most: a peer that never answers would hold
/// every one.
pub(super) const KEPT: usize = 64;

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

    pub(super) fn reach(&self) {
        self.reached.store(true, Ordering::Relaxed);
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
