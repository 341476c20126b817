//! The rate limit of the requests of a stream: further ones wait in the
//! transport, and none is lost.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: each request takes a token, and a second's worth of them can
/// be saved up.
#[derive(Debug)]
pub(crate) struct Pace {
    per_second: f64,
    tokens: f64,
    /// When tokens were last added.
    filled: Instant,
}

impl Pace {
    /// Returns a full bucket for so many requests per second; zero is no limit.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: f64::from(per_second),
            tokens: f64::from(per_second),
            filled: Instant::now(),
        }
    }

    /// Returns when the next request may be read; `None` if now. If no token is
    /// left, adds those of the time that has passed first.
    pub(crate) fn next_request_at(&mut self) -> Option<Instant> {
        if self.per_second == 0.0 || self.tokens >= 1.0 {
            return None;
        }
        let now = Instant::now();
        let gained = now.duration_since(self.filled).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + gained).min(self.per_second);
        self.filled = now;
        let lacking = 1.0 - self.tokens;
        (lacking > 0.0).then(|| now + Duration::from_secs_f64(lacking / self.per_second))
    }

    /// Takes a token for a request. To be called when [`Self::next_request_at`]
    /// says that it may be read.
    pub(crate) fn take(&mut self) {
        self.tokens -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_spread_over_time() {
        let mut pace = Pace::new(2);
        let begin = Instant::now();
        for _ in 0..6 {
            while let Some(until) = pace.next_request_at() {
                tokio::time::sleep_until(until).await;
            }
            pace.take();
        }
        let took = begin.elapsed().as_secs_f64();
        assert!((1.9..2.3).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_bound_is_no_wait() {
        let mut pace = Pace::new(0);
        for _ in 0..1000 {
            assert_eq!(pace.next_request_at(), None);
            pace.take();
        }
    }
}
