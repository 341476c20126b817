//! Headers of one connection only, and headers that must not be believed: both
//! are taken off before a request or a response goes on (facts 2.1).

use crate::headers::Headers;

/// Headers of which Envoy makes one line, joined by a comma.
const SINGLE: &[&str] = &[
    "x-forwarded-for",
    "x-request-id",
    "referer",
    "connection",
    "te",
];

/// Takes off what a request must not bring to the upstream. An upgrade that is
/// allowed keeps what says so.
pub(super) fn clean_request(headers: &mut Headers, is_upgrade: bool) {
    SINGLE.iter().for_each(|name| headers.merge(name));
    if !is_upgrade {
        remove_nominated(headers);
        headers.remove("connection");
        headers.remove("upgrade");
    }
    for name in [
        "keep-alive",
        "proxy-connection",
        "http2-settings",
        "x-forwarded-client-cert",
    ] {
        headers.remove(name);
    }
    if headers.get("te") != Some(b"trailers") {
        headers.remove("te");
    }
    let is_url = |value: &[u8]| str::from_utf8(value).is_ok_and(is_absolute_url);
    if headers.get("referer").is_some_and(|value| !is_url(value)) {
        headers.remove("referer");
    }
}

/// Takes off what a response of the upstream must not bring to the client.
pub(super) fn clean_response(headers: &mut Headers) {
    for name in ["connection", "keep-alive", "proxy-connection", "upgrade"] {
        headers.remove(name);
    }
}

/// Removes the headers that `connection` names. `te` is judged on its own.
fn remove_nominated(headers: &mut Headers) {
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

fn is_absolute_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !text.contains([' ', ','])
    })
}
