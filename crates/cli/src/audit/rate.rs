//! How many refusals are recorded: whoever may not write must not fill a disk.

use std::time::Instant;

/// Refusals that are recorded at once.
const BURST: f64 = 100.0;
/// Refusals that are recorded in a second after that.
const PER_SECOND: f64 = 10.0;

/// The refusals that may be recorded, and those that were not.
#[derive(Debug)]
pub(super) struct Rate {
    tokens: f64,
    updated_at: Instant,
    suppressed: u64,
}

impl Rate {
    /// Makes the rate that allows a whole burst from `now` on.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            tokens: BURST,
            updated_at: now,
            suppressed: 0,
        }
    }

    /// Decides whether a refusal is recorded. Returns the number of refusals
    /// that were suppressed since the last recorded one, or `None` if this one
    /// is suppressed too.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        let elapsed_seconds = now.saturating_duration_since(self.updated_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed_seconds * PER_SECOND).min(BURST);
        self.updated_at = now;
        if self.tokens < 1.0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1.0;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_flood_of_refusals_is_a_bounded_number_of_lines() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let recorded = (0..10_000).filter(|_| rate.admit(start).is_some());
        assert_eq!(recorded.count(), 100);
        // The next one that is recorded tells of the others.
        let later = start + Duration::from_millis(150);
        assert_eq!(rate.admit(later), Some(9_900));
        assert_eq!(rate.admit(later), None);
    }
}
