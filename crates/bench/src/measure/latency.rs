//! Times, kept as a distribution.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use serde::Serialize;

/// Clients that share a histogram, so that threads seldom meet.
const SHARDS: usize = 16;
/// Ten minutes, in microseconds.
const LONGEST: u64 = 600_000_000;

/// Times that many clients note at once, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<Mutex<Histogram<u64>>>);

/// Where the times of a distribution lie, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many there are.
    pub count: u64,
    /// Half are no longer.
    pub p50: f64,
    /// Nine of ten are no longer.
    pub p90: f64,
    /// All but one of a hundred are no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Mutex::new(histogram())).collect())
    }
}

/// Makes a histogram of microseconds, to three digits.
#[expect(clippy::expect_used, reason = "the bounds are constants, and in range")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds in range")
}

impl Latencies {
    /// Notes a time of a client.
    pub(crate) fn note(&self, client: usize, nanoseconds: u64) {
        let shard = self.0[client % SHARDS].lock();
        let mut shard = shard.unwrap_or_else(PoisonError::into_inner);
        shard.saturating_record((nanoseconds / 1000).max(1));
    }

    /// Returns the distribution of the times that were noted, and forgets them.
    pub(crate) fn take(&self) -> Quantiles {
        let mut all = histogram();
        for shard in &self.0 {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            // Both have the same bounds, so nothing can fail to fit.
            let _ = all.add(&*shard);
            shard.reset();
        }
        let at = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1000.0;
        Quantiles {
            count: all.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: all.max() as f64 / 1000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_milliseconds() {
        let latencies = Latencies::default();
        for client in 0..100 {
            latencies.note(client, (client as u64 + 1) * 1_000_000);
        }
        let all = latencies.take();
        assert_eq!(all.count, 100);
        assert!((49.9..50.2).contains(&all.p50), "{all:?}");
        assert!((98.9..99.2).contains(&all.p99), "{all:?}");
        assert!((99.9..100.2).contains(&all.max), "{all:?}");
        assert_eq!(latencies.take().count, 0);
    }
}
