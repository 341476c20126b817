//! Sockets to control planes: names resolved, addresses tried, TLS spoken.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use super::ConnectError;
use super::tls::{Protocol, TlsClients};
use super::watched::{Activity, Watched};
use crate::client::{Address, ControlPlane, Security};

/// A socket of any kind.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// Connects to a control plane, within its timeout.
pub(super) async fn dial(
    plane: &ControlPlane,
    tls: &TlsClients,
    protocol: Protocol,
    activity: &Arc<Activity>,
) -> Result<Box<dyn Io>, ConnectError> {
    let after = plane.connect_timeout;
    match timeout(after, attempt(plane, tls, protocol, activity)).await {
        Ok(result) => result,
        Err(_) => Err(ConnectError::Timeout {
            address: address(plane),
            after,
        }),
    }
}

/// Connects to the one address of a control plane, and does the handshake of TLS.
async fn attempt(
    plane: &ControlPlane,
    tls: &TlsClients,
    protocol: Protocol,
    activity: &Arc<Activity>,
) -> Result<Box<dyn Io>, ConnectError> {
    match &plane.address {
        Address::Tcp { host, port } => {
            let socket = tcp(host, *port, plane.connect_timeout).await?;
            secure(socket, plane, tls, protocol, activity).await
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let socket = UnixStream::connect(path).await;
            let socket = socket.map_err(|error| dial_error(path.display().to_string(), error))?;
            secure(socket, plane, tls, protocol, activity).await
        }
        #[cfg(not(unix))]
        Address::Unix(path) => {
            let error = io::Error::from(io::ErrorKind::Unsupported);
            Err(dial_error(path.display().to_string(), error))
        }
    }
}

/// Speaks TLS on a socket, if that is the control plane's security.
async fn secure<S: Io + 'static>(
    socket: S,
    plane: &ControlPlane,
    tls: &TlsClients,
    protocol: Protocol,
    activity: &Arc<Activity>,
) -> Result<Box<dyn Io>, ConnectError> {
    Ok(match &plane.security {
        Security::Plaintext => Box::new(Watched::new(socket, Arc::clone(activity))),
        Security::Tls(options) => {
            let socket = tls.connect(plane, options, protocol, socket).await?;
            Box::new(Watched::new(socket, Arc::clone(activity)))
        }
    })
}

/// Connects to the first address of a host that takes the connection; the error
/// is that of the last address. Each address has an equal share of the time
/// that is left, so that a silent one leaves time for the others.
async fn tcp(host: &str, port: u16, time: Duration) -> Result<TcpStream, ConnectError> {
    let deadline = Instant::now() + time;
    let resolve = |source| ConnectError::Resolve {
        host: host.to_owned(),
        source: Arc::new(source),
    };
    let addresses = tokio::net::lookup_host((host, port)).await;
    let addresses: Vec<SocketAddr> = addresses.map_err(resolve)?.collect();

    let mut error = resolve(io::Error::from(io::ErrorKind::NotFound));
    for (index, address) in addresses.iter().enumerate() {
        let untried = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / untried;
        let result = match timeout(share, TcpStream::connect(address)).await {
            Ok(result) => result,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        match result.and_then(|socket| socket.set_nodelay(true).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(source) => error = dial_error(address.to_string(), source),
        }
    }
    Err(error)
}

/// Makes the error that nobody takes connections at an address.
fn dial_error(address: String, source: io::Error) -> ConnectError {
    let source = Arc::new(source);
    ConnectError::Dial { address, source }
}

/// Returns the address of a control plane, for people.
pub(super) fn address(plane: &ControlPlane) -> String {
    match &plane.address {
        Address::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp { host, port } => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    }
}
