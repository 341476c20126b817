//! The controller: requests and time go in, the limit comes out.

use std::time::Duration;

use super::config::{ConcurrencyConfig, LeastLatency};
use super::samples::Samples;

/// After so many windows at the least limit, the least latency is measured
/// again: it may have become larger.
const WINDOWS_AT_LEAST: u32 = 5;

/// How many requests may be under way, and how many are.
#[derive(Debug, Clone)]
pub struct ConcurrencyController {
    config: ConcurrencyConfig,
    under_way: u32,
    limit: u32,
    least_latency: Duration,
    samples: Samples,
    phase: Phase,
    /// When the window of samples ends.
    window_end: Duration,
    /// Requests that began before are not counted as samples.
    epoch: Duration,
    windows_at_least: u32,
}

/// What the samples are for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The least latency is measured; afterwards the limit is this again.
    Measuring { limit_before: u32 },
    /// The limit follows the latency, until the least latency is measured again;
    /// `None` if it is fixed.
    Following { next_measurement: Option<Duration> },
}

impl ConcurrencyController {
    /// Makes a controller, which begins with a measurement.
    #[must_use]
    pub fn new(config: ConcurrencyConfig, now: Duration) -> Self {
        let (limit, phase, least_latency) = match config.least_latency {
            LeastLatency::Measured { concurrency, .. } => {
                let limit_before = concurrency;
                let phase = Phase::Measuring { limit_before };
                (concurrency, phase, Duration::ZERO)
            }
            LeastLatency::Fixed(fixed) => (
                config.min,
                Phase::Following {
                    next_measurement: None,
                },
                fixed,
            ),
        };

        Self {
            under_way: 0,
            limit,
            least_latency,
            samples: Samples::default(),
            phase,
            window_end: now + config.window,
            epoch: now,
            windows_at_least: 0,
            config,
        }
    }

    /// Lets a request in, unless there are too many. One that was let in ends
    /// with [`end`](Self::end) or [`cancel`](Self::cancel).
    #[must_use]
    pub fn try_start(&mut self) -> bool {
        let is_let_in = !self.config.is_enabled || self.under_way < self.limit;
        self.under_way += u32::from(is_let_in);
        is_let_in
    }

    /// Ends a request that was let in at `started` and has its response. Its
    /// latency counts, unless it began before the last measurement did. The random
    /// number decides when the least latency is measured again.
    pub fn end(&mut self, started: Duration, now: Duration, random: u64) {
        self.cancel();
        if started < self.epoch {
            return;
        }

        self.samples.add(now.saturating_sub(started));
        let (Phase::Measuring { limit_before }, LeastLatency::Measured { requests, .. }) =
            (self.phase, self.config.least_latency)
        else {
            return;
        };

        if self.samples.count() < requests {
            return;
        }

        self.take_samples(|controller, latency| controller.least_latency = latency);
        self.limit = limit_before;
        self.windows_at_least = 0;
        self.phase = Phase::Following {
            next_measurement: self.next_measurement(now, random),
        };
        self.window_end = now + self.config.window;
    }

    /// Ends a request that was let in and has no response. It has no latency.
    pub fn cancel(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called
    /// next. `None` while the least latency is measured, which requests end.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Measuring { .. } => None,
            Phase::Following {
                next_measurement: measurement,
            } => Some(measurement.map_or(self.window_end, |measurement| {
                measurement.min(self.window_end)
            })),
        }
    }

    /// Ends a window that is over, which changes the limit, and starts a
    /// measurement that is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        let Phase::Following {
            next_measurement: measurement,
        } = self.phase
        else {
            return;
        };

        if now >= self.window_end {
            self.take_samples(|controller, latency| {
                let limit = controller.follow_latency(latency);
                controller.set_limit(limit);
            });
            self.window_end = now + self.config.window;
        }

        let is_stuck = self.windows_at_least >= WINDOWS_AT_LEAST;
        if is_stuck || measurement.is_some_and(|measurement| now >= measurement) {
            self.measure(now);
        }
    }

    /// Returns the limit.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns how many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Returns the least latency that is known.
    #[must_use]
    pub fn least_latency(&self) -> Duration {
        self.least_latency
    }

    /// Starts a measurement of the least latency, if it is measured at all.
    fn measure(&mut self, now: Duration) {
        let LeastLatency::Measured { concurrency, .. } = self.config.least_latency else {
            self.windows_at_least = 0;
            return;
        };
        self.phase = Phase::Measuring {
            limit_before: self.limit,
        };
        self.limit = concurrency;
        self.windows_at_least = 0;
        self.samples.clear();
        self.epoch = now;
    }

    /// Passes the latency of the samples to `take`, unless there are none, and
    /// drops them.
    fn take_samples(&mut self, take: impl FnOnce(&mut Self, Duration)) {
        if let Some(latency) = self.samples.quantile(self.config.percentile) {
            take(self, latency);
        }
        self.samples.clear();
    }

    /// Works out the limit after a window with this latency. It falls where
    /// requests take longer than the least latency, and grows by its root, so
    /// that a burst can be tried.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between the least limit and the greatest"
    )]
    fn follow_latency(&self, latency: Duration) -> u32 {
        let least = self.least_latency.as_secs_f64() * (1.0 + self.config.buffer);
        let gradient = (least / latency.as_secs_f64().max(1e-6)).clamp(0.5, 2.0);
        let limit = f64::from(self.limit) * gradient;
        let limit = (limit + limit.sqrt()) as u32;
        limit.min(self.config.max).max(self.config.min)
    }

    /// Sets the limit, and counts the windows in a row that kept it at the least.
    fn set_limit(&mut self, limit: u32) {
        let is_least = self.limit == self.config.min && limit == self.config.min;
        self.windows_at_least = if is_least {
            self.windows_at_least + 1
        } else {
            0
        };
        self.limit = limit;
    }

    /// Returns when the least latency is measured next; `None` if it is fixed. The
    /// interval is longer by a random part of the jitter.
    fn next_measurement(&self, now: Duration, random: u64) -> Option<Duration> {
        let LeastLatency::Measured {
            interval, jitter, ..
        } = self.config.least_latency
        else {
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of an interval in milliseconds"
        )]
        let range = (interval.as_secs_f64() * 1000.0 * jitter).ceil() as u64;
        let delay = random.checked_rem(range).unwrap_or(0);
        Some(now + interval + Duration::from_millis(delay))
    }
}
