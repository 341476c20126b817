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

    /// Returns the host of a request that came to a port.
    #[must_use]
    pub fn apply(&self, host: &str, listener_port: u16) -> String {
        let mut host = host.to_owned();
        if self.strips_dot {
            host = strip_dot(&host);
        }
        let (start, port) = match host_port(&host) {
            Some(parts) => parts,
            None => return host,
        };
        let strips = match self.port {
            StripPort::None => false,
            StripPort::Matching => port == listener_port,
            StripPort::Any => true,
        };
        match strips {
            true => host[..start].to_owned(),
            false => host,
        }
    }
}

/// Returns where the port begins, and the port, if it is a number.
fn host_port(host: &str) -> Option<(usize, u16)> {
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

/// Takes off one dot at the end, or before the port.
fn strip_dot(host: &str) -> String {
    let (name, port) = match host.rfind(':') {
        Some(colon) => host.split_at(colon),
        None => (host, ""),
    };
    match name.strip_suffix('.') {
        Some(name) => format!("{name}{port}"),
        None => host.to_owned(),
    }
}
