//! Binding an address to listen on.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, ToSocketAddrs, lookup_host};

/// Connections that may wait to be accepted. A fleet reconnects all at once
/// when a server restarts, and a connection that the system turns away is
/// retried late. The system has a limit of its own, and the smaller of the two
/// counts: `net.core.somaxconn` on Linux, 4096 unless it was changed.
const BACKLOG: u32 = 1 << 14;

/// Listens on the first address that is free. Unlike [`TcpListener::bind`] it
/// lets as many connections wait as the system does.
///
/// # Errors
/// If a name cannot be resolved, or no address is free: the error of the last
/// one.
pub async fn bind(addresses: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut last_error = None;
    for address in lookup_host(addresses).await? {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = Some(error),
        }
    }
    let no_address = || io::Error::new(io::ErrorKind::InvalidInput, "it has no address");
    Err(last_error.unwrap_or_else(no_address))
}

/// Listens on one address, with room for [`BACKLOG`] connections to wait.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that restarts need not wait for the connections of the one
    // before it. On Windows this would let two processes have the address.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_address_that_can_be_had() {
        let taken = bind("127.0.0.1:0").await.unwrap();
        let taken = (&taken, taken.local_addr().unwrap());
        let error = bind(taken.1).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = bind(&[taken.1, free][..]).await.unwrap();
        assert_ne!(listener.local_addr().unwrap(), taken.1);
        let none: &[SocketAddr] = &[];
        let error = bind(none).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[tokio::test]
    async fn an_address_can_be_had_again_at_once() {
        let first = bind("localhost:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = first.accept().await.unwrap();
        // The side that closes a connection first has the wait.
        drop((accepted, first));
        drop(client);
        bind(address).await.unwrap();
    }
}
