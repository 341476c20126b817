//! Time as an argument: a point on the caller's clock.
//!
//! The transport passes the time since its own start, a simulation passes
//! virtual time.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, counted from a start that only the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The start of the caller's clock.
    pub const START: Self = Self(Duration::ZERO);

    /// Makes the moment that lies `since_start` after the caller's start.
    #[must_use]
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Makes the moment that lies `millis` milliseconds after the caller's
    /// start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the time since the caller's start.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Returns the moment after a wait, at most the last one that can be told.
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// Returns the time between two moments; zero if the earlier one is later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
