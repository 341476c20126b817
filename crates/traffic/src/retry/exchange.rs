//! One request and its attempts, as a machine: events and time go in, what to
//! do comes out (40-45).
//!
//! ```text
//!  start ─▶ Attempt ─▶ attempt ──response──▶ Respond
//!             ▲           │ reset, per-try timeout, bad status
//!             └─ back-off ┘            timeouts ─▶ Reply
//! ```
//!
//! With hedging, an attempt that takes too long goes on beside the next one,
//! and the first good response wins. Such an attempt has been retried, and is
//! not retried again; a response that would be, or its reset, is dropped while
//! another attempt is under way or scheduled.

use std::time::Duration;

use super::conditions::Reset;
use super::reply::Reply;
use super::state::{RetryContext, RetryState, RetryVerdict};
use super::timeouts::Timeouts;
use crate::headers::Headers;

/// One request under way.
#[derive(Debug)]
pub struct Exchange<'p> {
    retries: RetryState<'p>,
    timeouts: Timeouts,
    is_hedged: bool,
    started: Duration,
    last_byte: Duration,
    attempts: Vec<Attempt>,
    /// Whether a [`Step::Attempt`] was given whose attempt has not started.
    is_scheduled: bool,
    is_exhausted: bool,
}

/// An attempt under way.
#[derive(Debug)]
struct Attempt {
    number: u32,
    started: Duration,
    /// Whether its per-try timeout has passed and it goes on (45).
    is_late: bool,
    /// Whether another attempt was made because it is late.
    is_retried: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until the next event or deadline.
    Wait,
    /// Another attempt is made at this time; call [`Exchange::start_attempt`]
    /// then. Attempts that are given up are reset.
    Attempt {
        /// When.
        at: Duration,
    },
    /// The response that was just handled goes to the client.
    Respond,
    /// The client gets this reply, and all attempts are reset.
    Reply(Reply),
}

impl<'p> Exchange<'p> {
    /// Makes the machine of a request that has been received at `now`.
    #[must_use]
    pub fn new(
        retries: RetryState<'p>,
        timeouts: Timeouts,
        is_hedged: bool,
        now: Duration,
    ) -> Self {
        Self {
            retries,
            timeouts,
            is_hedged,
            started: now,
            last_byte: now,
            attempts: Vec::new(),
            is_scheduled: false,
            is_exhausted: false,
        }
    }

    /// Starts an attempt. Returns its number and what
    /// `x-envoy-expected-rq-timeout-ms` says.
    pub fn start_attempt(&mut self, now: Duration) -> (u32, Option<Duration>) {
        let number = self.retries.attempts();
        self.is_scheduled = false;
        self.attempts.push(Attempt {
            number,
            started: now,
            is_late: false,
            is_retried: false,
        });
        let passed = now.saturating_sub(self.started);
        (number, self.timeouts.expected(passed, self.is_hedged))
    }

    /// Returns whether a reply was not retried only because there had been as
    /// many retries as the policy allows (`URX`).
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Returns the timeouts of the request.
    #[must_use]
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Handles the headers of a response to an attempt: it goes to the client
    /// unless it is retried, or would be and another attempt may do better.
    pub fn handle_response(
        &mut self,
        attempt: u32,
        status: u16,
        headers: &Headers,
        now: Duration,
        context: &RetryContext,
    ) -> Step {
        self.last_byte = now;
        if self.remove_attempt(attempt) {
            return match self.retries.would_retry(status, headers) && self.awaits_another() {
                true => Step::Wait,
                false => Step::Respond,
            };
        }

        let verdict = self.retries.judge_response(status, headers, context);
        let otherwise = match verdict == RetryVerdict::LimitExceeded && self.awaits_another() {
            true => Step::Wait,
            false => Step::Respond,
        };
        self.apply_verdict(verdict, now, otherwise)
    }

    /// Handles the reset of an attempt that had no response yet: a retry if the
    /// policy has one, else the reply to this reset, or [`Step::Wait`] while
    /// another attempt is under way or scheduled.
    pub fn handle_reset(
        &mut self,
        attempt: u32,
        reset: Reset,
        now: Duration,
        context: &RetryContext,
    ) -> Step {
        let verdict = match self.remove_attempt(attempt) {
            true => RetryVerdict::No,
            false => self.retries.judge_reset(reset, context),
        };
        let otherwise = match self.awaits_another() {
            true => Step::Wait,
            false => Step::Reply(Reply::reset(reset)),
        };
        self.apply_verdict(verdict, now, otherwise)
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called
    /// next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let deadlines = [
            self.timeouts.stream.map(|limit| self.started + limit),
            self.timeouts.response.map(|limit| self.started + limit),
            self.timeouts.idle.map(|limit| self.last_byte + limit),
            self.next_late_moment(),
            self.upstream_end(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Handles that time has passed: the first limit that is exceeded counts, and
    /// those of the whole request come before those of an attempt. Returns
    /// [`Step::Wait`] if none is.
    pub fn handle_timeout(&mut self, now: Duration, context: &RetryContext) -> Step {
        let is_over = |limit: Option<Duration>, start: Duration| {
            limit.is_some_and(|limit| start + limit <= now)
        };

        if is_over(self.timeouts.stream, self.started) {
            return Step::Reply(Reply::StreamDuration);
        }

        if is_over(self.timeouts.response, self.started) {
            return Step::Reply(match self.timeouts.answers_no_content {
                true => Reply::NoContent,
                false => Reply::ResponseTimeout,
            });
        }

        if is_over(self.timeouts.idle, self.last_byte) {
            return Step::Reply(Reply::IdleTimeout);
        }

        if self.upstream_end().is_some_and(|end| end <= now) {
            return self.handle_upstream_end(now, context);
        }

        let late_moment = self.next_late_moment();
        match late_moment.is_some_and(|moment| moment <= now) {
            true => self.handle_late(now, context),
            false => Step::Wait,
        }
    }

    /// Gives up the attempt that has lasted longest: it is retried as one that
    /// was reset, or the client gets a reply, whatever else is under way.
    fn handle_upstream_end(&mut self, now: Duration, context: &RetryContext) -> Step {
        let oldest = self.attempts.iter().min_by_key(|attempt| attempt.started);
        let oldest = oldest.map_or(0, |attempt| attempt.number);
        let verdict = match self.remove_attempt(oldest) {
            true => RetryVerdict::No,
            false => self.retries.judge_reset(Reset::Stream, context),
        };
        self.apply_verdict(verdict, now, Step::Reply(Reply::UpstreamStreamDuration))
    }

    /// Handles attempts that have exceeded the timeout of one try. With hedging
    /// they go on beside another attempt, else they end.
    fn handle_late(&mut self, now: Duration, context: &RetryContext) -> Step {
        if self.is_hedged {
            let verdict = self.retries.judge_hedge(context);
            let is_retried = matches!(verdict, RetryVerdict::Retry(_));
            for attempt in self.attempts.iter_mut().filter(|attempt| !attempt.is_late) {
                attempt.is_late = true;
                attempt.is_retried = is_retried;
            }
            return self.apply_verdict(verdict, now, Step::Wait);
        }

        self.attempts.clear();
        let verdict = self.retries.judge_reset(Reset::Stream, context);
        self.apply_verdict(verdict, now, Step::Reply(Reply::PerTryTimeout))
    }

    /// Removes an attempt that has ended. Returns whether it was retried.
    fn remove_attempt(&mut self, number: u32) -> bool {
        let index = self.attempts.iter().position(|a| a.number == number);
        index.is_some_and(|index| self.attempts.remove(index).is_retried)
    }

    /// Returns whether another attempt is under way or scheduled, whose response
    /// may be better than what there is.
    fn awaits_another(&self) -> bool {
        self.is_scheduled || !self.attempts.is_empty()
    }

    /// Returns the moment at which the next attempt exceeds the timeout of one
    /// try; `None` if none can.
    fn next_late_moment(&self) -> Option<Duration> {
        let limit = self.timeouts.per_try?;
        let timely_attempts = self.attempts.iter().filter(|attempt| !attempt.is_late);
        timely_attempts.map(|attempt| attempt.started + limit).min()
    }

    /// Returns the moment at which the first attempt exceeds the limit of a
    /// stream to an endpoint; `None` if none can.
    fn upstream_end(&self) -> Option<Duration> {
        let limit = self.timeouts.upstream_stream?;
        self.attempts
            .iter()
            .map(|attempt| attempt.started + limit)
            .min()
    }

    /// Schedules another attempt if the verdict is to retry. Otherwise returns
    /// the step `otherwise`.
    fn apply_verdict(&mut self, verdict: RetryVerdict, now: Duration, otherwise: Step) -> Step {
        match verdict {
            RetryVerdict::Retry(delay) => {
                self.is_scheduled = true;
                Step::Attempt { at: now + delay }
            }
            RetryVerdict::No => otherwise,
            RetryVerdict::LimitExceeded => {
                self.is_exhausted = true;
                otherwise
            }
        }
    }
}
