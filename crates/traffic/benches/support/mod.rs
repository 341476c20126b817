//! Tables and endpoints of a size, for measurements and for the test that counts
//! allocations.
#![allow(dead_code, unreachable_pub)]

use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::LbPolicy;
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, SocketAddress, address::Address as AddressKind, socket_address::PortSpecifier,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
};
use trunkline_proto::envoy::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route::Action,
    route_action::ClusterSpecifier, route_match::PathSpecifier,
};
use trunkline_proto::envoy::google::protobuf::UInt32Value;
use trunkline_traffic::headers::Headers;

/// Makes a virtual host with so many routes, of which requests of the
/// measurement take the last.
pub fn host(index: usize, routes: usize) -> VirtualHost {
    let routes = (0..routes).map(|route| Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::Prefix(format!("/r{route}/"))),
            ..RouteMatch::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(format!("c{route}"))),
            ..RouteAction::default()
        })),
        ..Route::default()
    });
    VirtualHost {
        name: format!("host{index}"),
        domains: vec![
            format!("host{index}.example.com"),
            format!("*.wild{index}.example.com"),
        ],
        routes: routes.collect(),
        ..VirtualHost::default()
    }
}

/// Makes a route configuration of so many virtual hosts.
pub fn routes(hosts: usize, routes: usize) -> RouteConfiguration {
    RouteConfiguration {
        name: "routes".to_owned(),
        virtual_hosts: (0..hosts).map(|index| host(index, routes)).collect(),
        ..RouteConfiguration::default()
    }
}

/// The headers of a request as a browser sends it.
pub fn request_headers() -> Headers {
    [
        ("user-agent", "bench/1.0"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, br"),
        ("cookie", "session=0123456789abcdef; theme=dark"),
        ("x-forwarded-proto", "http"),
        ("x-request-id", "11111111-1111-4111-8111-111111111111"),
    ]
    .into_iter()
    .collect()
}

/// Makes an assignment of so many endpoints of different weights.
pub fn assignment(count: u32) -> ClusterLoadAssignment {
    let endpoints = (0..count).map(|index| LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(AddressKind::SocketAddress(SocketAddress {
                    address: format!("10.{}.{}.1", index / 256, index % 256),
                    port_specifier: Some(PortSpecifier::PortValue(80)),
                    ..SocketAddress::default()
                })),
            }),
            ..Endpoint::default()
        })),
        load_balancing_weight: Some(UInt32Value {
            value: 1 + index % 3,
        }),
        ..LbEndpoint::default()
    });
    ClusterLoadAssignment {
        cluster_name: "c".to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: endpoints.collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }
}

/// A cluster of each policy.
pub fn policies() -> Vec<(&'static str, Cluster)> {
    [
        ("round robin", LbPolicy::RoundRobin),
        ("least request", LbPolicy::LeastRequest),
        ("random", LbPolicy::Random),
        ("ring hash", LbPolicy::RingHash),
        ("maglev", LbPolicy::Maglev),
    ]
    .map(|(name, policy)| {
        let cluster = Cluster {
            lb_policy: policy.into(),
            ..Cluster::default()
        };
        (name, cluster)
    })
    .into()
}
