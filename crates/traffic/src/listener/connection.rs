//! A connection as the choice of a filter chain sees it.

use std::net::{IpAddr, SocketAddr};

/// A connection that was accepted, and what listener filters found out of it.
/// An address that is `None` is that of a Unix socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct Incoming<'c> {
    /// The address that it was made to; the one before a redirect, where that
    /// was restored.
    pub destination: Option<SocketAddr>,
    /// The address of the other end; that of the client, where the PROXY
    /// protocol told it.
    pub source: Option<SocketAddr>,
    /// The address of the other end, whatever the PROXY protocol told.
    pub direct_source: Option<SocketAddr>,
    /// The name that the client wants by TLS; empty if it names none.
    pub server_name: &'c str,
    /// `tls`, `raw_buffer`; empty if no listener filter looked.
    pub transport_protocol: &'c str,
    /// The protocols that the client offers by ALPN, in its order.
    pub application_protocols: &'c [&'c str],
}

impl Incoming<'_> {
    /// Returns whether the connection comes from this machine.
    pub(super) fn is_local(&self) -> bool {
        let address = |socket: Option<SocketAddr>| socket.map(|socket| socket.ip());
        match (address(self.source), address(self.destination)) {
            (None, _) => true,
            (Some(source), destination) => is_loopback(source) || Some(source) == destination,
        }
    }
}

/// Returns whether an address is a loopback one. Of those in IPv4, Envoy knows
/// 127.0.0.1 alone.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == std::net::Ipv4Addr::LOCALHOST,
        IpAddr::V6(address) => address.is_loopback(),
    }
}
