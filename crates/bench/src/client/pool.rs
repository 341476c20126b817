//! Connections that clients share, or have one each.

use std::time::Duration;

use trunkline::client::transport::{
    ConnectError, Connector, Stream, StreamError, TransportOptions,
};
use trunkline::client::{Address, ControlPlane, Pem, Security, TlsOptions};

use crate::error::{Error, Result};
use crate::options::Options;

/// Bytes that a stream may send before they are read.
const WINDOW: u32 = 1 << 20;
/// The same for one that does not read, as an HTTP/2 client has it by itself.
const SMALL_WINDOW: u32 = 65_535;
/// Windows of streams in that of a connection that is shared.
const SHARED_WINDOWS: u32 = 16;
/// No server sends more at once.
const LONGEST: usize = 1 << 30;
/// A server that is slow is measured, not abandoned.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Pool {
    plane: ControlPlane,
    /// Makes the connections of clients that have one each.
    own: Connector,
    /// The same for clients that do not read.
    slow: Connector,
    /// Each has one connection, which its clients share. Empty: one each.
    shared: Vec<Connector>,
}

impl Pool {
    /// Makes the connections to a server at an address, as the flags say. None
    /// is opened yet.
    pub(crate) fn new(options: &Options, address: &str) -> Result<Self> {
        let shared = || connector(WINDOW, WINDOW.saturating_mul(SHARED_WINDOWS));
        Ok(Self {
            plane: control_plane(options, address)?,
            own: connector(WINDOW, WINDOW),
            slow: connector(SMALL_WINDOW, SMALL_WINDOW),
            shared: (0..options.connections).map(|_| shared()).collect(),
        })
    }

    /// Opens a stream of a client. Clients that are `alone` have a connection
    /// of their own, with small windows.
    pub(crate) async fn open(
        &self,
        client: usize,
        path: &str,
        alone: bool,
    ) -> Result<Stream, StreamError> {
        if self.shared.is_empty() || alone {
            let connector = if alone { &self.slow } else { &self.own };
            return connector.dial(&self.plane).await?.open(path).await;
        }
        let connector = &self.shared[client % self.shared.len()];
        connector.open(&self.plane, path).await
    }

    /// Checks that the files of TLS, and the server's name, can be used.
    ///
    /// # Errors
    /// They are of no use.
    pub(crate) async fn check(&self) -> Result<()> {
        let checked = self.own.check(&self.plane).await;
        checked.map_err(|source| Error::Tls(Box::new(source)))
    }

    /// Checks that the server can be trusted, by a connection. A server that
    /// does not run yet, or no longer, may start: only what will not change is
    /// an error.
    ///
    /// # Errors
    /// If one side does not trust the other, or the server speaks no TLS.
    pub(crate) async fn try_tls(&self) -> Result<()> {
        if self.plane.security == Security::Plaintext {
            return Ok(());
        }
        match self.own.dial(&self.plane).await {
            Err(source @ ConnectError::Handshake { .. }) => Err(Error::Handshake(Box::new(source))),
            _ => Ok(()),
        }
    }
}

/// Makes a connector whose streams and connections have these windows, in
/// bytes.
fn connector(stream_window: u32, connection_window: u32) -> Connector {
    Connector::new(TransportOptions {
        stream_window,
        connection_window,
        max_message: LONGEST,
        // Pings would be measured, too.
        keepalive: None,
    })
}

/// Returns the server at an address, as the flags say; without TLS if there is
/// no `--tls-ca`.
fn control_plane(options: &Options, address: &str) -> Result<ControlPlane> {
    let security = match &options.tls_ca {
        None => Security::Plaintext,
        Some(authorities) => {
            let file = |path: &std::path::PathBuf| Pem::File(path.clone());
            let pair = options.tls_cert.as_ref().zip(options.tls_key.as_ref());
            Security::Tls(TlsOptions {
                ca: Some(file(authorities)),
                certificate: pair.map(|(cert, key)| (file(cert), file(key))),
                server_name: options.tls_name.clone(),
            })
        }
    };
    Ok(ControlPlane {
        security,
        connect_timeout: CONNECT_TIMEOUT,
        ..ControlPlane::plaintext(parse(address)?)
    })
}

/// Parses an address of the form host:port.
fn parse(address: &str) -> Result<Address> {
    let parts = address.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        return Err(Error::Usage(format!(
            "{address} is no address; write host:port"
        )));
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (address, expected) in [
            ("127.0.0.1:18000", Some("127.0.0.1")),
            ("[::1]:18000", Some("::1")),
            ("xds.example.com:443", Some("xds.example.com")),
            ("bare", None),
        ] {
            let host = match parse(address) {
                Ok(Address::Tcp { host, .. }) => Some(host),
                _ => None,
            };
            assert_eq!(host.as_deref(), expected);
        }
    }
}
