//! The retries of one request: what happened comes in, whether it is tried
//! again comes out (41-43).

use std::time::Duration;

use super::conditions::{Condition, Conditions, Reset};
use super::policy::RetryPolicy;
use crate::headers::Headers;
use crate::request::Request;

/// The retries of one request. Its methods `judge_*` are no queries: each verdict
/// [`RetryVerdict::Retry`] uses up one of the retries that are left.
#[derive(Debug)]
pub struct RetryState<'p> {
    policy: &'p RetryPolicy,
    conditions: Conditions,
    status_codes: Vec<u16>,
    header_names: Vec<String>,
    remaining_retries: u32,
    retry_count: u32,
}

/// Whether a request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryVerdict {
    /// The outcome stands.
    No,
    /// The outcome would be tried again, but no retry is left (`URX`): it
    /// stands.
    LimitExceeded,
    /// Another attempt is made after this time, if breakers allow it. One retry
    /// is used up, whether they do or not.
    Retry(Duration),
}

/// What a verdict depends on besides the outcome.
#[derive(Debug, Clone, Copy)]
pub struct RetryContext {
    /// A random number, for the back-off.
    pub random: u64,
    /// The time since 1970, for responses that name a time.
    pub unix: Duration,
}

impl<'p> RetryState<'p> {
    /// Makes the state of a request before its first attempt. Headers of the
    /// request add conditions to those of the policy, and replace its number of
    /// retries; the connection manager has removed them if the client is
    /// outside.
    #[must_use]
    pub fn new(policy: &'p RetryPolicy, request: &Request<'_>) -> Self {
        let headers = request.headers;
        let applies = policy.request_headers.is_empty()
            || policy
                .request_headers
                .iter()
                .any(|matcher| matcher.is_match(request));
        let mut conditions = match applies {
            true => policy.conditions,
            false => Conditions::default(),
        };

        for name in ["x-envoy-retry-on", "x-envoy-retry-grpc-on"] {
            let words = headers.text(name).unwrap_or_default();
            conditions = conditions.union(Conditions::parse(words));
        }

        let list = |name| {
            headers
                .text(name)
                .unwrap_or_default()
                .split(',')
                .map(str::trim)
        };

        let codes = list("x-envoy-retriable-status-codes");
        let names = list("x-envoy-retriable-header-names").filter(|name| !name.is_empty());
        let header_retries = headers
            .text("x-envoy-max-retries")
            .and_then(|text| text.parse().ok());
        Self {
            policy,
            conditions,
            status_codes: codes.filter_map(|code| code.parse().ok()).collect(),
            header_names: names.map(str::to_ascii_lowercase).collect(),
            remaining_retries: header_retries.unwrap_or(policy.retries),
            retry_count: 0,
        }
    }

    /// Returns the number of attempts so far, the one under way included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.retry_count + 1
    }

    /// Judges an attempt that ended with the headers of a response. A verdict to
    /// try again uses up a retry; its delay is the one that the response asks
    /// for, where the policy heeds that, and else the back-off.
    pub fn judge_response(
        &mut self,
        status: u16,
        headers: &Headers,
        context: &RetryContext,
    ) -> RetryVerdict {
        if !self.would_retry(status, headers) {
            return RetryVerdict::No;
        }
        let limited = self.policy.rate_limited.as_ref();
        let requested_delay = limited.and_then(|l| l.delay(headers, context.unix, context.random));
        self.use_retry(requested_delay, context.random)
    }

    /// Judges an attempt that ended without a response. A verdict to try again
    /// uses up a retry.
    pub fn judge_reset(&mut self, reset: Reset, context: &RetryContext) -> RetryVerdict {
        match self.conditions.covers_reset(reset) {
            true => self.use_retry(None, context.random),
            false => RetryVerdict::No,
        }
    }

    /// Judges an attempt that took too long, and that would go on beside another
    /// one (45). Any condition to try again, of the policy or the request, is
    /// enough; the verdict to do so uses up a retry.
    pub fn judge_hedge(&mut self, context: &RetryContext) -> RetryVerdict {
        match self.conditions.is_empty() {
            true => RetryVerdict::No,
            false => self.use_retry(None, context.random),
        }
    }

    /// Returns whether the conditions, of the policy and of the request, cover a
    /// response with this status and these headers: it is retried if retries are
    /// left.
    pub(super) fn would_retry(&self, status: u16, headers: &Headers) -> bool {
        // A service that says "not again" is believed, whatever its status.
        if headers.has("x-envoy-ratelimited") {
            return self.conditions.has(Condition::RateLimited);
        }

        let policy = self.policy;
        let is_listed =
            || policy.status_codes.contains(&status) || self.status_codes.contains(&status);
        let is_named = || {
            policy
                .response_headers
                .iter()
                .any(|m| m.is_match_lines(headers))
                || self.header_names.iter().any(|name| headers.has(name))
        };

        self.conditions.covers_status(status)
            || self.conditions.covers_grpc(headers)
            || (self.conditions.has(Condition::StatusCodes) && is_listed())
            || (self.conditions.has(Condition::Headers) && is_named())
    }

    /// Uses up a retry, and returns the verdict to make it after the requested
    /// delay, or else after the back-off. Without a retry left, the limit is
    /// exceeded.
    fn use_retry(&mut self, requested_delay: Option<Duration>, random: u64) -> RetryVerdict {
        if self.remaining_retries == 0 {
            return RetryVerdict::LimitExceeded;
        }
        self.remaining_retries -= 1;
        self.retry_count += 1;
        let delay =
            requested_delay.unwrap_or_else(|| self.policy.back_off.delay(self.retry_count, random));
        RetryVerdict::Retry(delay)
    }
}
