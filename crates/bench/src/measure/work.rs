//! What the engine of a server did, which only the library's own tells.

use serde::{Deserialize, Serialize};

/// What a server did, or did in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Names looked at.
    pub names: u64,
    /// Views told of a change.
    pub views_told: u64,
    /// Subscribers told of a change.
    pub subscribers_told: u64,
    /// Constraints evaluated.
    pub evaluations: u64,
    /// Views that there are now: one for all that ask for everything with the
    /// same parameters.
    pub views: u64,
}

impl Work {
    /// What was done since an earlier look; views are as they are now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            names: self.names.saturating_sub(earlier.names),
            views_told: self.views_told.saturating_sub(earlier.views_told),
            subscribers_told: self
                .subscribers_told
                .saturating_sub(earlier.subscribers_told),
            evaluations: self.evaluations.saturating_sub(earlier.evaluations),
            views: self.views,
        }
    }
}
