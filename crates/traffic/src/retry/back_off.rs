//! How long a retry waits (42; facts 5).

use std::time::Duration;

use crate::headers::Headers;

/// A growing interval of which a random part is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BackOff {
    pub(super) base: Duration,
    pub(super) max: Duration,
}

impl Default for BackOff {
    /// Returns the intervals that Envoy has by default.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(25),
            max: Duration::from_millis(250),
        }
    }
}

impl BackOff {
    /// Returns how long the n-th retry waits: less than the base, doubled with
    /// each retry before, up to the maximum.
    pub(super) fn delay(&self, retry: u32, random: u64) -> Duration {
        let doubled = 1_u32
            .checked_shl(retry.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let interval = self.base.saturating_mul(doubled).min(self.max);
        part(interval, random)
    }
}

fn part(interval: Duration, random: u64) -> Duration {
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % micros.max(1))
}

/// Headers of a response that say how long to wait.
#[derive(Debug, Clone)]
pub(super) struct RateLimited {
    pub(super) headers: Box<[(Box<str>, ResetFormat)]>,
    pub(super) max: Duration,
}

/// What the number in such a header means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetFormat {
    /// Seconds from now.
    Seconds,
    /// A time in seconds since 1970.
    UnixTimestamp,
}

impl RateLimited {
    /// Returns the interval that a response asks for, if it is not too long, and
    /// up to half as much again, so that clients do not come back together.
    pub(super) fn delay(
        &self,
        response: &Headers,
        unix: Duration,
        random: u64,
    ) -> Option<Duration> {
        let interval = self.headers.iter().find_map(|(name, format)| {
            let number: u64 = response.text(name)?.parse().ok()?;
            let interval = match format {
                ResetFormat::Seconds => Duration::from_secs(number),
                ResetFormat::UnixTimestamp => Duration::from_secs(number).checked_sub(unix)?,
            };
            (interval <= self.max && !interval.is_zero()).then_some(interval)
        })?;
        Some(interval + part(interval / 2, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d42_a_retry_waits_less_than_twice_the_one_before() {
        let back_off = BackOff::default();
        let longest = |retry| back_off.delay(retry, u64::MAX / 250_000 * 250_000 - 1);
        for (retry, bound) in [(1, 25), (2, 50), (3, 100), (4, 200), (5, 250), (40, 250)] {
            assert!(longest(retry) < Duration::from_millis(bound), "{retry}");
            assert!(back_off.delay(retry, bound * 1_000 - 1) > Duration::from_millis(bound - 1));
        }
    }

    #[test]
    fn d42_a_response_may_say_how_long_to_wait() {
        let limited = RateLimited {
            headers: Box::new([
                ("retry-after".into(), ResetFormat::Seconds),
                ("x-reset".into(), ResetFormat::UnixTimestamp),
            ]),
            max: Duration::from_secs(5),
        };
        let now = Duration::from_secs(1_000);
        // header, value, the least wait in seconds
        let cases = [
            ("retry-after", "1", Some(1)),
            ("retry-after", "9", None),
            ("retry-after", "x", None),
            ("x-reset", "1003", Some(3)),
            ("x-reset", "999", None),
        ];
        for (name, value, expected) in cases {
            let response: Headers = [(name, value)].into_iter().collect();
            let delay = limited.delay(&response, now, 0);
            assert_eq!(delay, expected.map(Duration::from_secs), "{name} {value}");
        }
    }
}
