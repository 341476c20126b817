//! An address of the server, and how one gets in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};

use crate::error::Result;
use crate::tls::Certificates;

/// An address, plain or behind TLS.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Option<Certificates>,
    /// The address that connections come from.
    pub(crate) source: IpAddr,
}

/// The address of the victim, the driver and all others of good manners.
pub(crate) const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The address of all attackers: a bound for each address is theirs alone.
pub(crate) const ATTACKERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The addresses of the server.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    /// That of a source of collections, if the server is one.
    pub(crate) xds: Door,
    pub(crate) admin: Door,
    /// Where sources of collections may connect; nobody listens there unless the
    /// setup says so.
    pub(crate) mcp: Door,
}

impl Doors {
    /// The same, entered from another address.
    pub(crate) fn from(&self, source: IpAddr) -> Self {
        let from = |door: &Door| Door {
            source,
            ..door.clone()
        };
        Self {
            xds: from(&self.xds),
            admin: from(&self.admin),
            mcp: from(&self.mcp),
        }
    }
}

/// What is spoken behind the door.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A connection of either kind.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

impl Door {
    /// A connection without TLS, whatever the server expects.
    pub(crate) async fn raw(&self) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        // Ports of connections that ended just now can be had again.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(self.source, 0))?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A connection as the server expects it.
    pub(crate) async fn enter(&self, protocol: Protocol) -> Result<Box<dyn Socket>> {
        let socket = self.raw().await?;
        Ok(match &self.certificates {
            Some(certificates) => Box::new(certificates.secure(socket, protocol).await?),
            None => Box::new(socket),
        })
    }
}
