//! Ports and dots that are taken off the host (facts 1.1).

use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::StripPortMode,
};

/// What is taken off the host, also for the upstream.
#[derive(Debug, Clone, Copy)]
pub struct HostPolicy {
    strips_dot: bool,
    port: StripPort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StripPort {
    None,
    /// The port of the listener.
    Matching,
    Any,
}

impl HostPolicy {
    /// Reads which parts of a host the connection manager strips.
    pub(super) fn compile(message: &HttpConnectionManager) -> Self {
        let port = match message.strip_port_mode {
            Some(StripPortMode::StripAnyHostPort(true)) => StripPort::Any,
            _ if message.strip_matching_host_port => StripPort::Matching,
            _ => StripPort::None,
        };
        Self {
            strips_dot: message.strip_trailing_host_dot,
            port,
        }
    }

    /// Returns the host of a request that arrived at `listener_port`, without
    /// the trailing dot and the port that the policy strips.
    #[must_use]
    pub fn apply(&self, host: &str, listener_port: u16) -> String {
        let mut host = host.to_owned();
        if self.strips_dot {
            host = strip_trailing_dot(&host);
        }
        let (name_end, port) = match find_port(&host) {
            Some(parts) => parts,
            None => return host,
        };
        let strips_port = match self.port {
            StripPort::None => false,
            StripPort::Matching => port == listener_port,
            StripPort::Any => true,
        };
        match strips_port {
            true => host[..name_end].to_owned(),
            false => host,
        }
    }
}

/// Returns the position of the colon before the port, and the port. Returns
/// `None` if the host has no numeric port.
fn find_port(host: &str) -> Option<(usize, u16)> {
    let colon = host.rfind(':')?;
    // The colon of an IPv6 address is inside brackets.
    if host[colon..].contains(']') {
        return None;
    }
    let port = &host[colon + 1..];
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_number)?;
    Some((colon, port))
}

/// Removes one dot at the end of the name, which may have a port after it.
fn strip_trailing_dot(host: &str) -> String {
    let (name, port) = match host.rfind(':') {
        Some(colon) => host.split_at(colon),
        None => (host, ""),
    };
    match name.strip_suffix('.') {
        Some(name) => format!("{name}{port}"),
        None => host.to_owned(),
    }
}
