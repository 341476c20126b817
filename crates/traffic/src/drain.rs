//! Drain: how likely a connection is closed while a listener drains (9).

use std::time::Duration;

/// How a listener drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainStrategy {
    /// More and more connections are closed.
    Gradual,
    /// Every connection is closed at its next response.
    Immediate,
}

/// A listener that drains.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    strategy: DrainStrategy,
    started: Duration,
    time: Duration,
}

impl Drain {
    /// Starts to drain at `now`, for a time.
    #[must_use]
    pub fn new(strategy: DrainStrategy, now: Duration, time: Duration) -> Self {
        Self {
            strategy,
            started: now,
            time,
        }
    }

    /// Returns whether a connection is closed with this response: with the
    /// probability of the time that has passed.
    #[must_use]
    pub fn closes(&self, now: Duration, random: u64) -> bool {
        let passed = now.saturating_sub(self.started);
        if self.strategy == DrainStrategy::Immediate || passed >= self.time {
            return true;
        }
        let time = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        u128::from(random % time.max(1)) < passed.as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d9_a_connection_is_closed_as_likely_as_time_has_passed() {
        let seconds = Duration::from_secs;
        let drain = Drain::new(DrainStrategy::Gradual, seconds(100), seconds(10));
        for (now, closed) in [
            (100, 0),
            (103, 3_000),
            (105, 5_000),
            (110, 10_000),
            (200, 10_000),
        ] {
            let count = (0..10_000)
                .filter(|random| drain.closes(seconds(now), *random))
                .count();
            assert_eq!(count, closed, "{now}");
        }
        let at_once = Drain::new(DrainStrategy::Immediate, seconds(0), seconds(10));
        assert!(at_once.closes(seconds(0), 9_999));
    }
}
