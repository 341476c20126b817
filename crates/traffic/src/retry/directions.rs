//! Headers by which a client inside the mesh directs the router.

use crate::headers::Headers;

/// What the router does as it is told, and does not pass on.
const DIRECTIONS: &[&str] = &[
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-retriable-status-codes",
    "x-envoy-retriable-header-names",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-upstream-stream-duration-ms",
    "x-envoy-upstream-alt-stat-name",
];

/// Takes off what a request said to this router alone, before it leaves. The
/// retries and timeouts of the request have been read by then.
pub fn remove_directions(headers: &mut Headers) {
    headers.remove_of_envoy(DIRECTIONS);
}
