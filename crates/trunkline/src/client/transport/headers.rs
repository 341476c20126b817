//! The headers of a stream: where it goes, what it is, and who asks.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderMap, Request};

use super::{HeaderError, StreamError};
use crate::client::{Address, ControlPlane, Secret};

/// The name of this client to a server.
const USER_AGENT: &str = concat!("trunkline/", env!("CARGO_PKG_VERSION"));
/// The most bytes of a token.
const MAX_TOKEN: u64 = 64 << 10;
/// Headers that the transport sets, or that a connection of HTTP/2 has not.
const RESERVED: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Builds the headers of a stream of gRPC.
pub(super) fn grpc_request(
    plane: &ControlPlane,
    scheme: &str,
    path: &str,
    token: Option<HeaderValue>,
) -> Result<Request<()>, HeaderError> {
    let mut request = Request::post(uri(plane, scheme, path)?)
        .version(http::Version::HTTP_2)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header("grpc-accept-encoding", "identity")
        .body(())
        // Every part of it is a constant, or was checked.
        .unwrap_or_default();
    add_metadata(request.headers_mut(), plane, token)?;
    Ok(request)
}

/// Adds the headers of every request to a control plane: the user agent, the
/// metadata, and the token if there is one.
///
/// # Errors
/// The metadata has a header that the transport sets, or that cannot be sent.
pub(super) fn add_metadata(
    headers: &mut HeaderMap,
    plane: &ControlPlane,
    token: Option<HeaderValue>,
) -> Result<(), HeaderError> {
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    for (name, Secret(value)) in &plane.metadata {
        let parsed_name = HeaderName::try_from(name.as_str()).ok();
        let is_free = |name: &HeaderName| {
            !name.as_str().starts_with("grpc-") && !RESERVED.contains(&name.as_str())
        };
        let Some(key) = parsed_name.filter(is_free) else {
            return Err(HeaderError::Name(name.clone()));
        };
        let mut value =
            HeaderValue::try_from(value.as_str()).map_err(|_| HeaderError::Value(name.clone()))?;
        // It is in no table of HPACK, and is not shown.
        value.set_sensitive(true);
        headers.append(key, value);
    }
    if let Some(token) = token {
        headers.insert(header::AUTHORIZATION, token);
    }
    Ok(())
}

/// Builds the URI of a path.
pub(super) fn uri(plane: &ControlPlane, scheme: &str, path: &str) -> Result<Uri, HeaderError> {
    let authority = authority(plane);
    let Ok(authority) = Authority::try_from(authority.as_str()) else {
        return Err(HeaderError::Authority(authority));
    };
    let invalid = |_| HeaderError::Path(path.to_owned());
    let path = PathAndQuery::try_from(path).map_err(invalid)?;
    let uri = Uri::builder().scheme(scheme).authority(authority);
    // All parts are good, so the whole is.
    Ok(uri.path_and_query(path).build().unwrap_or_default())
}

/// Returns the authority of requests. A socket in the file system is
/// `localhost`, as gRPC has it.
pub(super) fn authority(plane: &ControlPlane) -> String {
    match (&plane.authority, &plane.address) {
        (Some(authority), _) => authority.clone(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
        (None, Address::Tcp { host, port }) if host.contains(':') => format!("[{host}]:{port}"),
        (None, Address::Tcp { host, port }) => format!("{host}:{port}"),
    }
}

/// Reads the token of a control plane and returns the value of `authorization`;
/// `None` if the control plane has no file of one.
pub(super) async fn token(plane: &ControlPlane) -> Result<Option<HeaderValue>, StreamError> {
    let Some(path) = plane.token_file.clone() else {
        return Ok(None);
    };
    let file = path.clone();
    // Files may be on a slow disk.
    let token = tokio::task::spawn_blocking(move || read_token(&file)).await;
    let token = token.unwrap_or_else(|error| Err(io::Error::other(error)));
    token.map(Some).map_err(|source| StreamError::Token {
        path,
        source: Arc::new(source),
    })
}

/// Reads a file that holds a token, white space around it aside. Blocks on the
/// disk.
fn read_token(path: &Path) -> io::Result<HeaderValue> {
    let mut text = String::new();
    File::open(path)?
        .take(MAX_TOKEN + 1)
        .read_to_string(&mut text)?;
    let token = text.trim();
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
    if text.len() as u64 > MAX_TOKEN {
        return Err(invalid("the file is too long"));
    }
    if token.is_empty() {
        return Err(invalid("the file is empty"));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| invalid("the token is no visible ASCII"))?;
    value.set_sensitive(true);
    Ok(value)
}
