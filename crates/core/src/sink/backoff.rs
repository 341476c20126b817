//! Computes when to reconnect; it neither connects nor waits (C37, C38, E7).
//!
//! ```text
//!   stream died without a response      cap = base · 2ⁿ, at most max
//!        └──▶ wait uniform(0, cap), n + 1
//!   stream died after a response
//!        └──▶ n = 0, wait uniform(0, base), at least floor
//! ```

use std::time::Duration;

/// Bounds of the waits. The defaults are Envoy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackoffConfig {
    /// The longest first wait.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
    /// The shortest wait after a stream that got a response: a server that
    /// responds once and dies, again and again, would otherwise be dialled
    /// without pause (C38).
    pub floor: Duration,
}

impl BackoffConfig {
    /// Makes a configuration with another first wait; the longest is ten times
    /// that (E7), and the rest are the defaults.
    #[must_use]
    pub fn with_base(base: Duration) -> Self {
        Self {
            base,
            max: base.saturating_mul(10),
            ..Self::default()
        }
    }
}

impl Default for BackoffConfig {
    /// Makes Envoy's bounds.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            max: Duration::from_secs(30),
            floor: Duration::from_millis(100),
        }
    }
}

/// Computes how long to wait before the next attempt.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: BackoffConfig,
    /// Consecutive streams that died without a response.
    failures: u32,
    /// The same seed gives the same waits.
    seed: u64,
}

impl Backoff {
    /// Makes a backoff whose waits are drawn from this seed.
    #[must_use]
    pub fn new(config: BackoffConfig, seed: u64) -> Self {
        Self {
            config,
            failures: 0,
            seed,
        }
    }

    /// Computes how long to wait after a stream that ended; `got_response` is
    /// whether a response came on it ([`super::Sink::got_response`]). Without
    /// one the waits double from stream to stream, up to the longest.
    pub fn after_stream(&mut self, got_response: bool) -> Duration {
        if got_response {
            self.failures = 0;
            return self.draw(self.config.base).max(self.config.floor);
        }

        let factor = 2u32.saturating_pow(self.failures);
        let cap = self.config.base.saturating_mul(factor);
        self.failures = self.failures.saturating_add(1);
        self.draw(cap.min(self.config.max))
    }

    /// Returns the backoff after a stream that was not needed any more: the next
    /// attempt is the first.
    #[must_use]
    pub(crate) fn after_close(&self) -> Self {
        Self {
            failures: 0,
            ..self.clone()
        }
    }

    /// Draws a wait from zero up to `cap`: full jitter, so that clients which
    /// lost one server together do not return together.
    fn draw(&mut self, cap: Duration) -> Duration {
        let share = u128::from(self.random());
        let nanos = (cap.as_nanos().min(u128::from(u64::MAX)) * share) >> 64;
        Duration::from_nanos(nanos as u64)
    }

    /// Draws 64 random bits (SplitMix64).
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The longest and the shortest of many draws after `failures` failed
    /// streams.
    fn extremes(
        config: BackoffConfig,
        failures: usize,
        got_response: bool,
    ) -> (Duration, Duration) {
        let waits = (0..400).map(|seed| {
            let mut backoff = Backoff::new(config, seed);
            for _ in 0..failures {
                backoff.after_stream(false);
            }
            backoff.after_stream(got_response)
        });
        let waits: Vec<_> = waits.collect();
        (*waits.iter().min().unwrap(), *waits.iter().max().unwrap())
    }

    #[test]
    fn e7_waits_double_up_to_the_longest() {
        let config = BackoffConfig::default();
        for (failures, cap) in [(0, 500), (1, 1000), (3, 4000), (6, 30_000), (200, 30_000)] {
            let (shortest, longest) = extremes(config, failures, false);
            assert!(shortest < MS * cap / 50, "{failures}: {shortest:?}");
            assert!(longest <= MS * cap, "{failures}: {longest:?}");
            assert!(longest > MS * cap / 50 * 49, "{failures}: {longest:?}");
        }
    }

    #[test]
    fn e7_the_longest_wait_is_ten_times_another_base() {
        let config = BackoffConfig::with_base(MS * 20);
        assert_eq!((config.base, config.max), (MS * 20, MS * 200));
        let (_, longest) = extremes(config, 9, false);
        assert!(longest > MS * 190 && longest <= MS * 200, "{longest:?}");
    }

    #[test]
    fn c37_a_response_resets_the_waits() {
        let mut backoff = Backoff::new(BackoffConfig::default(), 7);
        for _ in 0..9 {
            backoff.after_stream(false);
        }
        backoff.after_stream(true);
        assert_eq!(backoff.failures, 0);
        assert!(backoff.after_stream(false) <= MS * 500);
    }

    #[test]
    fn c38_a_source_that_answers_and_dies_is_not_dialled_at_once() {
        let (shortest, longest) = extremes(BackoffConfig::default(), 3, true);
        assert_eq!(shortest, MS * 100);
        assert!(longest > MS * 490 && longest <= MS * 500, "{longest:?}");
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        let waits = |seed| {
            let mut backoff = Backoff::new(BackoffConfig::default(), seed);
            [(); 3].map(|()| backoff.after_stream(false).as_nanos())
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
        // SplitMix64's published first draws for seed 1234567.
        let mut backoff = Backoff::new(BackoffConfig::default(), 1_234_567);
        assert_eq!(backoff.random(), 6_457_827_717_110_365_317);
        assert_eq!(backoff.random(), 3_203_168_211_198_807_973);
    }
}
