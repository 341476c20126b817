//! The references of clusters and endpoints.

use trunkline_core::name::Name;
use trunkline_core::tree::Key;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType,
};
use trunkline_proto::envoy::envoy::config::core::v3::address::Address;
use trunkline_proto::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline_proto::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use trunkline_proto::envoy::envoy::config::endpoint::v3::locality_lb_endpoints::LbConfig;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{ClusterLoadAssignment, Endpoint};
use trunkline_proto::envoy::envoy::extensions::clusters::aggregate::v3::ClusterConfig;

use super::super::place::Place;
use super::{Finder, unpack};
use crate::kind::{EDS, LEDS};

/// The type of nodes that are the addresses of a host, by DNS. No control plane
/// has it.
pub(in crate::client::tree) const DNS: &str = "dns";

impl Finder<'_> {
    /// Adds all references of a cluster.
    pub(super) fn find_in_cluster(&mut self, cluster: &Cluster) {
        match &cluster.cluster_discovery_type {
            Some(ClusterDiscoveryType::Type(kind)) => match DiscoveryType::try_from(*kind) {
                Ok(DiscoveryType::Eds) => self.add_endpoints(cluster),
                Ok(DiscoveryType::LogicalDns | DiscoveryType::StrictDns) => self.add_hosts(cluster),
                _ => {}
            },
            Some(ClusterDiscoveryType::ClusterType(_)) | None => {
                for name in aggregate_members(cluster).unwrap_or_default() {
                    self.add_cluster(&name);
                }
            }
        }
        if let Some(inline) = &cluster.load_assignment {
            self.find_in_endpoints(inline);
        }
        let matches = cluster.transport_socket_matches.iter();
        let matches = matches.filter_map(|socket_match| socket_match.transport_socket.as_ref());
        for socket in matches.chain(&cluster.transport_socket) {
            self.find_in_transport_socket(socket);
        }
    }

    /// Adds the endpoints of a cluster, which have its service name, or else its
    /// name.
    fn add_endpoints(&mut self, cluster: &Cluster) {
        let config = cluster.eds_cluster_config.as_ref();
        let service = config.map(|config| config.service_name.as_str());
        let name = service.filter(|name| !name.is_empty());
        let source = config.and_then(|config| config.eds_config.as_ref());
        let name = name.unwrap_or(&cluster.name);
        let key = self.referrer.with_source(EDS, name, source);
        self.add(key);
    }

    /// Adds the hosts of a cluster that are to be resolved (C55). Endpoints with
    /// a named port, a socket or without an address are left out.
    fn add_hosts(&mut self, cluster: &Cluster) {
        let localities = cluster.load_assignment.iter();
        let localities = localities.flat_map(|assignment| &assignment.endpoints);
        let endpoints = localities.flat_map(|locality| &locality.lb_endpoints);
        for endpoint in endpoints {
            if let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier
                && let Some(target) = target(endpoint)
            {
                self.add(Key::new(DNS, Name::new(&target), Place::Dns));
            }
        }
    }

    /// Adds the collections that stand for the endpoints of some localities.
    pub(super) fn find_in_endpoints(&mut self, endpoints: &ClusterLoadAssignment) {
        for locality in &endpoints.endpoints {
            if let Some(LbConfig::LedsClusterLocalityConfig(leds)) = &locality.lb_config {
                let name = &leds.leds_collection_name;
                let source = leds.leds_config.as_ref();
                let key = self.referrer.with_source(LEDS, name, source);
                self.add(key);
            }
        }
    }
}

/// Returns the host and the port of an endpoint as `host:port`; `None` if it has
/// no host, or no port that is a number.
fn target(endpoint: &Endpoint) -> Option<String> {
    let address = endpoint.address.as_ref()?.address.as_ref()?;
    let Address::SocketAddress(address) = address else {
        return None;
    };
    match address.port_specifier.as_ref()? {
        PortSpecifier::PortValue(port) => Some(format!("{}:{port}", address.address)),
        PortSpecifier::NamedPort(_) => None,
    }
}

/// Returns the clusters of an aggregate cluster in the order of priority;
/// `None` if it is another.
pub(in crate::client::tree) fn aggregate_members(cluster: &Cluster) -> Option<Vec<String>> {
    match cluster.cluster_discovery_type.as_ref()? {
        ClusterDiscoveryType::Type(_) => None,
        ClusterDiscoveryType::ClusterType(custom) => {
            let config = unpack::<ClusterConfig>(custom.typed_config.as_ref()?)?;
            Some(config.clusters)
        }
    }
}
