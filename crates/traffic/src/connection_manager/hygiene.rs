//! Headers of one connection only, and headers that must not be believed: both
//! are taken off before a request or a response goes on (facts 2.1).

use crate::headers::Headers;

/// Headers of which Envoy makes one line, joined by a comma; sorted.
const SINGLE: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "cache-control",
    "connection",
    "content-type",
    "expect",
    "grpc-timeout",
    "origin",
    "pragma",
    "referer",
    "te",
    "user-agent",
    "via",
    "x-client-trace-id",
    "x-envoy-attempt-count",
    "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster",
    "x-envoy-downstream-service-node",
    "x-envoy-external-address",
    "x-envoy-force-trace",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-internal",
    "x-envoy-ip-tags",
    "x-envoy-max-retries",
    "x-envoy-original-host",
    "x-envoy-original-path",
    "x-envoy-retriable-header-names",
    "x-envoy-retriable-status-codes",
    "x-envoy-retry-grpc-on",
    "x-envoy-retry-on",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-stream-duration-ms",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-request-id",
];

/// Removes the headers of a request that must not reach the upstream. An
/// allowed upgrade keeps the headers that request it.
pub(super) fn clean_request(headers: &mut Headers, is_upgrade: bool) {
    merge_repeated_headers(headers);
    if !is_upgrade {
        remove_nominated_headers(headers);
        headers.remove("connection");
        headers.remove("upgrade");
    }

    let hop_headers: [&[u8]; 4] = [
        b"keep-alive",
        b"proxy-connection",
        b"http2-settings",
        b"x-forwarded-client-cert",
    ];
    headers.retain(|line| !hop_headers.contains(&line.name()));

    if headers.get("te") != Some(b"trailers") {
        headers.remove("te");
    }

    let is_url = |value: &[u8]| str::from_utf8(value).is_ok_and(is_absolute_url);
    if headers.get("referer").is_some_and(|value| !is_url(value)) {
        headers.remove("referer");
    }
}

/// Merges the lines of each repeated header that may have only one value. Few
/// requests repeat a header, so pairs are searched first.
fn merge_repeated_headers(headers: &mut Headers) {
    let mut repeated: Vec<&str> = Vec::new();
    for (index, line) in headers.iter().enumerate() {
        let mut later_lines = headers.iter().skip(index + 1);
        if later_lines.any(|later| later.name() == line.name())
            && let Ok(position) = SINGLE.binary_search_by(|name| name.as_bytes().cmp(line.name()))
        {
            repeated.push(SINGLE[position]);
        }
    }
    repeated.into_iter().for_each(|name| headers.merge(name));
}

/// Removes the headers of a response that must not reach the client.
pub(super) fn clean_response(headers: &mut Headers) {
    for name in ["connection", "keep-alive", "proxy-connection", "upgrade"] {
        headers.remove(name);
    }
}

/// Removes the headers that `connection` names, except `te`, which has its own
/// rule.
fn remove_nominated_headers(headers: &mut Headers) {
    let Some(list) = headers.text("connection") else {
        return;
    };
    let names: Vec<String> = list
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    headers.retain(|line| {
        let is_named = names.iter().any(|name| name.as_bytes() == line.name());
        !is_named || line.name() == b"te"
    });
}

/// Returns whether a text is an absolute URL of HTTP with a host.
fn is_absolute_url(text: &str) -> bool {
    let remainder = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    remainder.is_some_and(|remainder| {
        let host = remainder.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !text.contains([' ', ','])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_has_one_value_becomes_one_line() {
        assert!(SINGLE.is_sorted());
        let mut headers: Headers = [
            ("x-a", "1"),
            ("user-agent", "1"),
            ("x-a", "2"),
            ("user-agent", "2"),
            ("user-agent", "3"),
        ]
        .into_iter()
        .collect();
        clean_request(&mut headers, false);
        let lines: Vec<_> = headers.iter().map(|l| (l.name(), l.value())).collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"x-a", b"1"), (b"user-agent", b"1,2,3"), (b"x-a", b"2")];
        assert_eq!(lines, expected);
    }
}
