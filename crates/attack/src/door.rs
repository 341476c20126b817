//! An address of the server, and how one gets in.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::error::Result;
use crate::tls::Certificates;

/// An address, plain or behind TLS.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Option<Certificates>,
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
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
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
