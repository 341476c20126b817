//! Clusters and endpoints as gRPC uses them: all of them pass its checks, and
//! none is so small that the checks have nothing to look at.

use prost::Message as _;
use trunkline::wire::accept;
use trunkline::{Change, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, Locality, SocketAddress, address,
    config_source, socket_address,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint,
};
use trunkline_proto::envoy::google::protobuf::{Duration, UInt32Value};

use crate::error::{Error, Result};

/// What every name begins with.
pub(super) const PREFIX: &str = "bench";

/// Returns the name of a cluster and of its endpoints.
pub(super) fn name(prefix: &str, index: usize) -> String {
    format!("{prefix}-{index:06}")
}

/// Returns the change that puts a cluster; revisions differ in its timeout.
pub(super) fn cluster(index: usize, revision: u32) -> Result<Change> {
    let cluster = Cluster {
        name: name(PREFIX, index),
        cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(
            cluster::DiscoveryType::Eds.into(),
        )),
        eds_cluster_config: Some(cluster::EdsClusterConfig {
            eds_config: Some(ads()),
            ..Default::default()
        }),
        lb_policy: cluster::LbPolicy::RoundRobin.into(),
        connect_timeout: Some(Duration {
            seconds: 1,
            nanos: revision.try_into().unwrap_or(0),
        }),
        ..Cluster::default()
    };
    upsert(kind::CDS, cluster.encode_to_vec())
}

/// Returns the first port of a cluster's endpoints in a revision.
pub(super) fn port(revision: u32) -> u32 {
    1024 + revision % 60_000
}

/// Returns the change that puts the endpoints of a cluster; revisions differ in
/// ports.
pub(super) fn endpoints(index: usize, count: u32, revision: u32) -> Result<Change> {
    let [_, a, b, c] = u32::try_from(index).unwrap_or(0).to_be_bytes();
    let address = |n: u32| endpoint(format!("10.{a}.{b}.{c}"), port(revision + n));
    let assignment = ClusterLoadAssignment {
        cluster_name: name(PREFIX, index),
        endpoints: vec![LocalityLbEndpoints {
            locality: Some(Locality {
                region: "region".into(),
                zone: "zone-a".into(),
                sub_zone: String::new(),
            }),
            load_balancing_weight: Some(UInt32Value { value: 1 }),
            lb_endpoints: (0..count).map(address).collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    };
    upsert(kind::EDS, assignment.encode_to_vec())
}

/// Returns the change that puts an encoded resource.
pub(super) fn upsert(type_url: &str, body: Vec<u8>) -> Result<Change> {
    let type_url = type_url.into();
    let resource = accept(&type_url, body.into());
    let resource = resource.map_err(|error| Error::Driver(error.to_string()))?;
    Ok(Change::Upsert(type_url, resource.into()))
}

/// Returns the source of a type that comes by the same stream.
pub(super) fn ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(config_source::ConfigSourceSpecifier::Ads(
            AggregatedConfigSource {},
        )),
        ..ConfigSource::default()
    }
}

/// Makes an endpoint of a cluster.
fn endpoint(address: String, port: u32) -> LbEndpoint {
    let socket = SocketAddress {
        address,
        port_specifier: Some(socket_address::PortSpecifier::PortValue(port)),
        ..SocketAddress::default()
    };
    LbEndpoint {
        host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(address::Address::SocketAddress(socket)),
            }),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::listener::{listener, routes};
    use super::*;
    use trunkline_proto::acceptance::{Policy, Types};

    #[test]
    fn grpc_accepts_all_of_it() {
        let types = Types::standard();
        for change in [
            cluster(7, 3).unwrap(),
            endpoints(7, 10, 3).unwrap(),
            listener().unwrap(),
            routes(10, 3).unwrap(),
        ] {
            let Change::Upsert(url, resource) = change else {
                panic!("a resource");
            };
            let body = resource.body.clone().unwrap();
            let accepted = types.accept(url.as_str(), &body, &Policy::grpc());
            assert!(accepted.is_ok(), "{:?}", accepted.err());
        }
    }
}
