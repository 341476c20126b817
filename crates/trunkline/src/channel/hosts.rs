//! The endpoints of a cluster, wherever they come from.

use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_proto::envoy::envoy::config::core::v3::address::Address as AddressKind;
use trunkline_proto::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{Address, SocketAddress};
use trunkline_proto::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};

use crate::client::tree::ClusterSnapshot;

/// Returns the endpoints of a cluster: by EDS, from inside of the cluster, or
/// as DNS found them for the hosts in it (A37). Returns `None` while they are
/// not known.
pub(super) fn assignment(cluster: &ClusterSnapshot) -> Option<Arc<ClusterLoadAssignment>> {
    let hosts: Vec<_> = cluster.hosts().collect();
    if hosts.is_empty() {
        return cluster.load_assignment();
    }
    let addresses = hosts.iter().filter_map(|host| host.addresses());
    let endpoints = addresses.flatten().map(endpoint);
    Some(Arc::new(ClusterLoadAssignment {
        cluster_name: cluster.name().to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: endpoints.collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }))
}

/// Returns an address as an endpoint of an assignment.
fn endpoint(address: &SocketAddr) -> LbEndpoint {
    let socket = SocketAddress {
        address: address.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(address.port().into())),
        ..SocketAddress::default()
    };
    let endpoint = Endpoint {
        address: Some(Address {
            address: Some(AddressKind::SocketAddress(socket)),
        }),
        ..Endpoint::default()
    };
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    }
}
