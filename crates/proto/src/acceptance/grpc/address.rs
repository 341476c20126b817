//! Socket addresses (C56).

use std::net::{IpAddr, SocketAddr};

use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::envoy::envoy::config::core::v3::address::Address as OneAddress;
use crate::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use crate::envoy::envoy::config::core::v3::{Address, SocketAddress};

/// Returns the IP address and port of an address. Rejects the body and returns
/// `None` if there is none.
pub(super) fn check_ip(
    address: Option<&Address>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<SocketAddr> {
    let socket = check_socket(address, place, findings)?;
    let socket_place = place.field("socket_address");
    let ip = parse_ip(&socket.address);
    if ip.is_none() {
        let quoted = clip(&socket.address, MAX_VALUE).to_owned();
        findings.reject(&socket_place.field("address"), Problem::NotIp(quoted));
    }
    let port = check_port(socket, &socket_place, findings);
    Some(SocketAddr::new(ip?, port?))
}

/// Returns the socket address of an address. Rejects the body and returns
/// `None` if the address is missing or of another kind.
pub(super) fn check_socket<'a>(
    address: Option<&'a Address>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<&'a SocketAddress> {
    const ALLOWED: &str = "socket_address";
    let kind = match address.and_then(|address| address.address.as_ref()) {
        Some(OneAddress::SocketAddress(socket)) => return Some(socket),
        None => {
            findings.reject(&place.field("socket_address"), Problem::Missing);
            return None;
        }
        Some(OneAddress::Pipe(_)) => "pipe",
        Some(OneAddress::EnvoyInternalAddress(_)) => "envoy_internal_address",
    };
    findings.reject(place, Problem::value(kind, ALLOWED));
    None
}

/// Returns the port of a socket address. Rejects the body and returns `None` if
/// the port is missing, named or too large.
pub(super) fn check_port(
    socket: &SocketAddress,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<u16> {
    let place = place.field("port_value");
    match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => {
            let number = u16::try_from(port).ok();
            if number.is_none() {
                findings.reject(&place, Problem::value(port, "at most 65535"));
            }
            number
        }
        Some(PortSpecifier::NamedPort(_)) | None => {
            findings.reject(&place, Problem::Missing);
            None
        }
    }
}

/// Reads an IP address, also an IPv6 address with a scope.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        None => text.parse().ok(),
        Some((address, _)) => address.parse().ok().map(IpAddr::V6),
    }
}
