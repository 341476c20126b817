//! What the engine of a server did, which only the library's own tells.

use serde::{Deserialize, Serialize};

/// What a server did, or did in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Names visited.
    pub names: u64,
    /// Views that a change was recorded in.
    pub views_told: u64,
    /// Subscribers notified of a change.
    pub subscribers_told: u64,
    /// Constraints evaluated.
    pub evaluations: u64,
    /// The most names that were visited while others had to wait, since the
    /// start.
    pub largest_slice: u64,
    /// The longest that something had to wait for the engine, in microseconds,
    /// since the look before.
    pub longest_wait: u64,
    /// The number of views now: one for all wildcards with the same parameters.
    pub views: u64,
}

impl Work {
    /// Returns what was done since an earlier look, which has to be the one
    /// before; views and the largest slice are as they are now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            names: self.names.saturating_sub(earlier.names),
            views_told: self.views_told.saturating_sub(earlier.views_told),
            subscribers_told: self
                .subscribers_told
                .saturating_sub(earlier.subscribers_told),
            evaluations: self.evaluations.saturating_sub(earlier.evaluations),
            largest_slice: self.largest_slice,
            longest_wait: self.longest_wait,
            views: self.views,
        }
    }
}
