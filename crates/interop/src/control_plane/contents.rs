//! Resources of four types, in revisions that can be told apart.

use prost::Message as _;
use trunkline::envoy::config::cluster::v3::{Cluster, cluster};
use trunkline::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ConfigSource, SocketAddress, address, config_source,
    socket_address,
};
use trunkline::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint,
};
use trunkline::envoy::config::listener::v3::Listener;
use trunkline::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route, route_action,
    route_match,
};
use trunkline::kind::{CDS, EDS, LDS, RDS};
use trunkline::proto::envoy::google::protobuf::Duration;

/// The types, in the order in which a client needs them.
pub(super) const TYPES: [&str; 4] = [CDS, EDS, LDS, RDS];

/// One resource.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) type_url: &'static str,
    pub(super) name: &'static str,
    pub(super) body: Vec<u8>,
}

/// A resource of a type, in a revision.
pub(super) fn content(type_url: &'static str, name: &'static str, revision: u32) -> Content {
    let body = match type_url {
        CDS => cluster_of(name, i64::from(revision)).encode_to_vec(),
        EDS => endpoints_of(name, revision).encode_to_vec(),
        LDS => listener_of(name, revision).encode_to_vec(),
        _ => routes_of(name, revision).encode_to_vec(),
    };
    Content {
        type_url,
        name,
        body,
    }
}

/// A cluster that no client accepts: its timeout is not positive.
pub(super) fn bad_cluster(name: &'static str) -> Content {
    Content {
        type_url: CDS,
        name,
        body: cluster_of(name, -1).encode_to_vec(),
    }
}

/// The body as this side encodes it: servers may write fields in another order.
pub(super) fn normal(type_url: &str, body: &[u8]) -> Vec<u8> {
    fn again<M: prost::Message + Default>(body: &[u8]) -> Vec<u8> {
        M::decode(body).map_or_else(|_| Vec::new(), |message| message.encode_to_vec())
    }
    match type_url {
        CDS => again::<Cluster>(body),
        EDS => again::<ClusterLoadAssignment>(body),
        LDS => again::<Listener>(body),
        _ => again::<RouteConfiguration>(body),
    }
}

fn cluster_of(name: &str, seconds: i64) -> Cluster {
    let ads = config_source::ConfigSourceSpecifier::Ads(AggregatedConfigSource {});
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(
            cluster::DiscoveryType::Eds.into(),
        )),
        eds_cluster_config: Some(cluster::EdsClusterConfig {
            eds_config: Some(ConfigSource {
                config_source_specifier: Some(ads),
                ..ConfigSource::default()
            }),
            ..Default::default()
        }),
        connect_timeout: Some(Duration { seconds, nanos: 0 }),
        ..Cluster::default()
    }
}

fn socket(port: u32) -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: "127.0.0.1".to_owned(),
            port_specifier: Some(socket_address::PortSpecifier::PortValue(port)),
            ..SocketAddress::default()
        })),
    }
}

fn endpoints_of(name: &str, revision: u32) -> ClusterLoadAssignment {
    let one = LbEndpoint {
        host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
            address: Some(socket(1000 + revision)),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    };
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: vec![one],
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }
}

fn listener_of(name: &str, revision: u32) -> Listener {
    Listener {
        name: name.to_owned(),
        address: Some(socket(2000 + revision)),
        ..Listener::default()
    }
}

fn routes_of(name: &str, revision: u32) -> RouteConfiguration {
    let one = Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix(format!("/{revision}"))),
            ..RouteMatch::default()
        }),
        action: Some(route::Action::Route(RouteAction {
            cluster_specifier: Some(route_action::ClusterSpecifier::Cluster("a".to_owned())),
            ..RouteAction::default()
        })),
        ..Route::default()
    };
    RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: "all".to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![one],
            ..VirtualHost::default()
        }],
        ..RouteConfiguration::default()
    }
}
