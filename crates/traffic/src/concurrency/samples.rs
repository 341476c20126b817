//! Latencies of a window, in buckets of two decimal digits, so that a window
//! takes little memory however many requests it has.

use std::collections::BTreeMap;
use std::time::Duration;

/// The latencies of a window, in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// The counts of buckets by their lower ends.
    buckets: BTreeMap<u64, u64>,
    count: u64,
}

impl Samples {
    /// Counts a latency.
    pub(super) fn add(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        *self.buckets.entry(lower_end(micros)).or_default() += 1;
        self.count += 1;
    }

    /// Returns the number of latencies.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Forgets all latencies.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the latency that a part of the requests did not exceed, within
    /// its bucket in proportion; `None` without requests.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "microseconds of two digits that count"
    )]
    pub(super) fn quantile(&self, part: f64) -> Option<Duration> {
        let expected = self.count as f64 * part;
        // How many of the requests are in the buckets before.
        let mut smaller = 0.0;
        for (lower, count) in &self.buckets {
            let count = *count as f64;
            if smaller + count >= expected {
                let fraction = (expected - smaller) / count;
                let micros = *lower as f64 + width(*lower) as f64 * fraction;
                return Some(Duration::from_micros(micros as u64));
            }
            smaller += count;
        }
        None
    }
}

/// Returns the lower end of the bucket of a number.
fn lower_end(number: u64) -> u64 {
    number - number % width(number)
}

/// Returns the width of the bucket of a number: 1 below 100, 10 below 1000, and so
/// on, so that its two first digits count.
fn width(number: u64) -> u64 {
    match number.checked_ilog10() {
        None | Some(0) => 1,
        Some(digits) => 10_u64.pow(digits - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_a_bucket() {
        let mut samples = Samples::default();
        assert_eq!(samples.quantile(0.5), None);
        for micros in [0, 7, 12_345, 12_399, 99_999] {
            samples.add(Duration::from_micros(micros));
        }
        // Five requests; the third of them is in the bucket from 12 000.
        assert_eq!(samples.quantile(0.5), Some(Duration::from_micros(12_250)));
        assert_eq!(samples.quantile(1.0), Some(Duration::from_micros(100_000)));
        assert_eq!(samples.count(), 5);
        samples.clear();
        assert_eq!(samples.count(), 0);
    }

    #[test]
    fn buckets_have_two_digits() {
        for (number, lower) in [
            (0, 0),
            (9, 9),
            (10, 10),
            (99, 99),
            (100, 100),
            (109, 100),
            (12_999, 12_000),
        ] {
            assert_eq!(lower_end(number), lower);
        }
    }
}
