//! Requests that a browser makes for a page.
//!
//! A page can send requests to addresses of its user's machine. It cannot omit
//! `Origin` when it writes, and when it got here by DNS rebinding, `Host` has the
//! page's own name.

use std::net::IpAddr;

use http::request::Parts;
use http::{StatusCode, Uri, header};
use trunkline::Connection;

use crate::admin::error::Refusal;

/// Returns the host that a request names, with its port: in HTTP/2 by the URI,
/// in HTTP/1.1 by the header `Host`.
fn authority(request: &Parts) -> Option<String> {
    if let Some(authority) = request.uri.authority() {
        return Some(authority.to_string());
    }
    let host = request.headers.get(header::HOST)?.to_str().ok()?;
    Some(host.to_owned())
}

/// Refuses a request whose host is not this machine. DNS rebinding makes the
/// name of a foreign site lead here, and the requests of that site's pages
/// still have its name.
pub(super) fn check_host(request: &Parts) -> Result<(), Refusal> {
    let authority = authority(request).unwrap_or_default();
    if is_loopback_name(&authority) {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "this address is for this machine only and is called localhost, 127.0.0.1 or [::1], \
             not {authority:?}"
        ),
    ))
}

/// Returns whether an authority is `localhost` or a loopback address, with or
/// without a port. Returns `false` if the authority cannot be parsed.
fn is_loopback_name(authority: &str) -> bool {
    let Ok(uri) = format!("http://{authority}/").parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    // An IPv6 address is in brackets in a URI.
    let ip_text = host.trim_start_matches('[').trim_end_matches(']');
    match ip_text.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Refuses a write by a page of another site. A browser sends `Origin` with
/// every write; a request without the header comes from another program, and
/// passes.
pub(super) fn check_origin(request: &Parts, connection: &Connection) -> Result<(), Refusal> {
    let Some(origin) = request.headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let scheme = if connection.secure { "https" } else { "http" };
    let own_origin = authority(request).map(|authority| format!("{scheme}://{authority}"));
    let is_own = own_origin.is_some_and(|own_origin| {
        origin
            .as_bytes()
            .eq_ignore_ascii_case(own_origin.as_bytes())
    });
    if is_own {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "a page of another site may not write here",
    ))
}
