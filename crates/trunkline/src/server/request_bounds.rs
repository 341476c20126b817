//! The bounds on requests that arrive: the shares of those that are not complete,
//! and who is told when one is met. Services beside discovery have those of the
//! server that they run with.

use std::fmt;
use std::sync::Arc;

use super::hook_set::HookSet;
use super::hooks::Limit;
use super::unfinished::Unfinished;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct RequestBounds {
    unfinished: Arc<Unfinished>,
    hooks: Arc<HookSet>,
}

impl RequestBounds {
    /// Returns the bounds of a server, whose hooks are told of the limits that
    /// are met.
    pub(super) fn new(unfinished: Arc<Unfinished>, hooks: Arc<HookSet>) -> Self {
        Self { unfinished, hooks }
    }

    /// Returns the bounds of a service that runs without a server: so many
    /// bytes of requests that are not complete, of one connection and of all.
    #[cfg(feature = "mcp")]
    pub(crate) fn alone(connection_bytes: usize, all_bytes: usize) -> Self {
        let unfinished = Unfinished::new(connection_bytes, all_bytes);
        Self::new(Arc::new(unfinished), Arc::default())
    }

    /// Returns the shares of requests that are not complete.
    pub(super) fn shares(&self) -> &Arc<Unfinished> {
        &self.unfinished
    }

    /// Reports a limit that was met to the hooks.
    pub(crate) fn report_limit(&self, limit: Limit) {
        self.hooks.limited(limit);
    }
}

impl fmt::Debug for RequestBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBounds").finish_non_exhaustive()
    }
}
