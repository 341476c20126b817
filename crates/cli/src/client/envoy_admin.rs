//! The admin page of an Envoy, which is one of plain HTTP.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{Full, LengthLimitError};

use super::address::{address_of, connect, parse_url};
use super::open::OpenResponse;
use super::reach::{NoHost, find_error};
use super::{Exchanged, collect_within};
use crate::failure::{Failure, Result};

/// The maximum of bytes in a dump, as many as a text of resources may have.
const LONGEST: usize = 256 << 20;
/// How long a dump may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Everything that Envoy has, with endpoints.
const DUMP: &str = "/config_dump?include_eds";

/// The admin page of an Envoy.
#[derive(Debug)]
pub(crate) struct EnvoyAdmin(Uri);

impl EnvoyAdmin {
    /// Parses the address of `--envoy-admin`.
    ///
    /// # Errors
    /// The address is not a URL with the scheme `http`.
    pub(crate) fn new(address: &str) -> Result<Self> {
        match parse_url(address) {
            Some((url, false)) => Ok(Self(url)),
            _ => Err(Failure::usage(format!(
                "--envoy-admin {address}: expected host:port or http://host:port, as `admin` in \
                 the bootstrap of the Envoy has it"
            ))),
        }
    }

    /// Fetches the configuration of the Envoy, as JSON.
    ///
    /// # Errors
    /// The Envoy is not reached in time, its dump is too long, or another
    /// program responds.
    pub(crate) async fn config_dump(&self) -> Result<Bytes> {
        let (status, body) = match tokio::time::timeout(PATIENCE, self.request_dump()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&explain_failure(&*error))),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                let reason = format!("no answer in {seconds} s; is --envoy-admin right?");
                return Err(self.unreachable(&reason));
            }
        };
        match status {
            StatusCode::OK => Ok(body),
            status => Err(self.not_envoy(&format!("it answers {status}"))),
        }
    }

    /// Makes the failure of an address that is not one of an Envoy.
    pub(crate) fn not_envoy(&self, reason: &str) -> Failure {
        let (host, port) = self.address();
        Failure::wrong(format!(
            "{host}:{port} is not the admin page of an Envoy: {reason} for {DUMP}; name the \
             address that `admin` in the bootstrap of the Envoy has with --envoy-admin"
        ))
    }

    /// Returns the host and the port of the address.
    fn address(&self) -> (&str, u16) {
        address_of(&self.0, 80)
    }

    /// Requests the dump over a new connection. Reads at most [`LONGEST`] bytes
    /// of the body.
    async fn request_dump(&self) -> Exchanged<(StatusCode, Bytes)> {
        let (host, port) = self.address();
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        let request = Request::get(DUMP)
            .header(header::HOST, authority)
            .body(Full::new(Bytes::new()))?;
        let response = OpenResponse::send_request(connect(host, port).await?, request).await?;
        collect_within(response, LONGEST).await
    }

    /// Makes the failure of an Envoy that does not respond.
    fn unreachable(&self, reason: &str) -> Failure {
        let (host, port) = self.address();
        Failure::unreachable(format!(
            "cannot reach the admin page of the Envoy at {host}:{port}: {reason}"
        ))
    }
}

/// Explains why the dump of an Envoy cannot be fetched, and what to do.
fn explain_failure(error: &(dyn Error + 'static)) -> String {
    if let Some(NoHost(host)) = find_error(error) {
        return format!("there is no host {host:?}; correct --envoy-admin");
    }
    if find_error::<LengthLimitError>(error).is_some() {
        return format!("its dump is longer than {LONGEST} bytes");
    }
    match find_error(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "nothing listens there; is the Envoy running, \
             and is this the address that `admin` in its bootstrap has?"
            .to_owned(),
        _ => format!("{error}; is --envoy-admin right?"),
    }
}
