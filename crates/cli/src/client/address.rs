//! Addresses of admin pages, and connections to them.

use http::Uri;
use tokio::net::TcpStream;

use super::Exchanged;
use super::reach::NoHost;
use crate::failure::{Failure, Result};

/// Returns the host and the port of a URL.
pub(super) fn address_of(url: &Uri, default_port: u16) -> (&str, u16) {
    let host = url.host().unwrap_or_default();
    // An IPv6 address is in brackets in a URI only.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, url.port_u16().unwrap_or(default_port))
}

/// Connects to a port of a host, by the first of its addresses that responds.
pub(super) async fn connect(host: &str, port: u16) -> Exchanged<TcpStream> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    let addresses: Vec<_> = addresses.map_err(|_| NoHost(host.to_owned()))?.collect();
    Ok(TcpStream::connect(&addresses[..]).await?)
}

/// Parses the address of `--admin`, which is one of HTTP unless it says
/// `https`. Returns it as a URI, and whether it is to be reached by TLS.
pub(super) fn parse_base(admin: &str) -> Result<(Uri, bool)> {
    parse_url(admin).ok_or_else(|| {
        Failure::usage(format!(
            "--admin {admin}: expected host:port, http://host:port or https://host:port"
        ))
    })
}

/// Parses a URL, whose scheme may be left out and then is `http`. Returns the
/// URL and whether its scheme is `https`. Returns `None` if the text is no URL
/// with a host, or has another scheme.
pub(super) fn parse_url(text: &str) -> Option<(Uri, bool)> {
    let url = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let url: Uri = url.parse().ok()?;
    let is_secure = match url.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };

    // A URL without a host names no server.
    url.host()?;
    Some((url, is_secure))
}
