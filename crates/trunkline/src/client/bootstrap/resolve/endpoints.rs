//! The endpoints of a static cluster as addresses.

use std::net::IpAddr;
use std::path::PathBuf;

use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::DiscoveryType;
use trunkline_proto::envoy::envoy::config::core::v3::address;
use trunkline_proto::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{Address as AddressMessage, SocketAddress};
use trunkline_proto::envoy::envoy::config::endpoint::v3::LbEndpoint;
use trunkline_proto::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;

use super::super::problem::Problem;
use super::super::report::Scope;
use crate::client::Address;

/// Returns the addresses of a cluster, those of the first priority first. A
/// cluster without addresses is a mistake.
pub(super) fn read_addresses(
    cluster: &Cluster,
    kind: DiscoveryType,
    scope: &Scope<'_>,
) -> Option<Vec<Address>> {
    let scope = scope.field("load_assignment");
    let localities = cluster
        .load_assignment
        .iter()
        .flat_map(|assignment| &assignment.endpoints);
    let mut localities: Vec<_> = localities.enumerate().collect();
    localities.sort_by_key(|(_, locality)| locality.priority);

    let mut addresses = Vec::new();
    for (index, locality) in localities {
        let scope = scope.index("endpoints", index);
        for (index, endpoint) in locality.lb_endpoints.iter().enumerate() {
            let scope = scope.index("lb_endpoints", index);
            addresses.push(read_endpoint_address(endpoint, kind, &scope));
        }
    }
    if addresses.is_empty() {
        return scope.missing(
            "the address of the control plane",
            "add endpoints: [{lb_endpoints: [{endpoint: {address: ...}}]}]",
        );
    }
    addresses.into_iter().collect()
}

/// Reads the address of an endpoint. Returns `None` after a mistake.
fn read_endpoint_address(
    endpoint: &LbEndpoint,
    kind: DiscoveryType,
    scope: &Scope<'_>,
) -> Option<Address> {
    let endpoint = match endpoint.host_identifier.as_ref() {
        Some(HostIdentifier::Endpoint(endpoint)) => endpoint,
        _ => return scope.missing("endpoint", "add endpoint: {address: ...}"),
    };
    let scope = scope.field("endpoint.address");
    match endpoint.address.as_ref() {
        Some(AddressMessage {
            address: Some(address::Address::SocketAddress(socket)),
        }) => read_socket_address(socket, kind, &scope.field("socket_address")),
        Some(AddressMessage {
            address: Some(address::Address::Pipe(pipe)),
        }) => Some(Address::Unix(PathBuf::from(&pipe.path))),
        Some(AddressMessage {
            address: Some(address::Address::EnvoyInternalAddress(_)),
        }) => scope.unsupported("a listener inside of Envoy", "use socket_address or pipe"),
        _ => scope.missing("the address", "add socket_address or pipe"),
    }
}

/// Reads a host and a port. The host of a static cluster has to be an IP address.
fn read_socket_address(
    socket: &SocketAddress,
    kind: DiscoveryType,
    scope: &Scope<'_>,
) -> Option<Address> {
    let host = socket.address.clone();
    let is_ip = host.parse::<IpAddr>().is_ok();
    if kind == DiscoveryType::Static && !is_ip {
        return scope.field("address").mistake(Problem::Address {
            text: host,
            reason: "the addresses of a STATIC cluster are IPs",
            example: "10.0.0.1, or make the cluster STRICT_DNS",
        });
    }

    let port = match socket.port_specifier.as_ref() {
        Some(PortSpecifier::PortValue(port)) => u16::try_from(*port).ok().filter(|port| *port > 0),
        _ => None,
    };
    match port {
        Some(port) => Some(Address::Tcp { host, port }),
        None => scope.missing("the port", "add port_value, a number from 1 to 65535"),
    }
}
