//! Timeouts of a request (40; facts 5).

use std::time::Duration;

use trunkline_proto::envoy::envoy::config::route::v3::RouteAction;

use super::policy::RetryPolicy;
use crate::balance::duration;
use crate::headers::Headers;
use crate::request::Request;

/// The timeout of a route that does not say one.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeouts as a route has them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RouteTimeouts {
    /// `None`: the default. Zero: none.
    response: Option<Duration>,
    idle: Option<Duration>,
    stream: Option<StreamDuration>,
}

/// `max_stream_duration`.
#[derive(Debug, Clone, Copy)]
struct StreamDuration {
    max: Option<Duration>,
    grpc_max: Option<Duration>,
    grpc_offset: Duration,
}

/// The timeouts of one request. Each is absent if it is off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// From the end of the request to the end of the response, retries
    /// included.
    pub response: Option<Duration>,
    /// From the start of an attempt to the headers of its response.
    pub per_try: Option<Duration>,
    /// Without a byte either way.
    pub idle: Option<Duration>,
    /// Of the whole stream, counted by the client's side.
    pub stream: Option<Duration>,
    /// Of an attempt, counted by the upstream's side.
    pub upstream_stream: Option<Duration>,
    /// Whether a timeout is answered by 204
    /// (`x-envoy-upstream-rq-timeout-alt-response`).
    pub answers_no_content: bool,
}

impl RouteTimeouts {
    /// Reads the timeouts of a route.
    pub(crate) fn compile(message: &RouteAction) -> Self {
        let stream = message
            .max_stream_duration
            .as_ref()
            .map(|limits| StreamDuration {
                max: limits.max_stream_duration.as_ref().map(duration),
                grpc_max: limits.grpc_timeout_header_max.as_ref().map(duration),
                grpc_offset: limits
                    .grpc_timeout_header_offset
                    .as_ref()
                    .map_or(Duration::ZERO, duration),
            });
        Self {
            response: message.timeout.as_ref().map(duration),
            idle: message.idle_timeout.as_ref().map(duration),
            stream,
        }
    }

    /// Returns the timeouts of a request. `idle` and `stream` are those of the
    /// connection manager, which the route's replace.
    pub(crate) fn of_request(
        &self,
        policy: &RetryPolicy,
        request: &Request<'_>,
        idle: Option<Duration>,
        stream: Option<Duration>,
    ) -> Timeouts {
        let headers = request.headers;
        // A route that limits the stream does without the older limit.
        let default = match self.stream {
            Some(_) => Duration::ZERO,
            None => ROUTE_TIMEOUT,
        };

        let header_timeout = millis(headers, "x-envoy-upstream-rq-timeout-ms");
        let response = header_timeout.or(self.response).unwrap_or(default);
        let header_per_try = millis(headers, "x-envoy-upstream-rq-per-try-timeout-ms");
        let configured_per_try = header_per_try
            .or(policy.per_try_timeout)
            .unwrap_or_default();
        // A try that may take as long as the response has no limit of its own.
        let per_try = match !response.is_zero() && configured_per_try >= response {
            true => Duration::ZERO,
            false => configured_per_try,
        };

        let is_on = |timeout: Duration| (!timeout.is_zero()).then_some(timeout);
        let route_stream = self.stream.and_then(|stream| stream.of_request(request));
        Timeouts {
            response: is_on(response),
            per_try: is_on(per_try),
            idle: self.idle.or(idle).and_then(is_on),
            stream: route_stream.or(stream).and_then(is_on),
            upstream_stream: millis(headers, "x-envoy-upstream-stream-duration-ms").and_then(is_on),
            answers_no_content: headers.has("x-envoy-upstream-rq-timeout-alt-response"),
        }
    }
}

impl StreamDuration {
    /// Returns the most time that a request's stream may take: what the client of
    /// a gRPC request asks for, within the limit and less the offset, or the
    /// limit of other requests. `None` if the route has none.
    fn of_request(&self, request: &Request<'_>) -> Option<Duration> {
        let requested = request.headers.text("grpc-timeout").and_then(grpc_timeout);
        match (self.grpc_max, requested) {
            (Some(max), Some(requested)) if request.is_grpc() => {
                let requested = match max.is_zero() {
                    true => requested,
                    false => requested.min(max),
                };
                Some(requested.saturating_sub(self.grpc_offset))
            }
            _ => self.max,
        }
    }
}

/// Reads a header with a number of milliseconds; `None` if it is missing or no
/// number.
fn millis(headers: &Headers, name: &str) -> Option<Duration> {
    let number = headers.text(name)?.parse().ok()?;
    Some(Duration::from_millis(number))
}

/// Reads the value of `grpc-timeout`: a number of at most eight digits and a unit.
/// Returns `None` for anything else.
#[must_use]
pub fn grpc_timeout(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.is_empty() || number.len() > 8 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

impl Timeouts {
    /// Returns the value of `x-envoy-expected-rq-timeout-ms` for an attempt,
    /// `passed` after the request.
    #[must_use]
    pub fn expected(&self, passed: Duration, is_hedged: bool) -> Option<Duration> {
        let left = self
            .response
            .map(|response| response.saturating_sub(passed));
        match self.per_try.filter(|_| !is_hedged) {
            Some(per_try) => Some(left.map_or(per_try, |left| per_try.min(left))),
            None => left,
        }
    }
}
