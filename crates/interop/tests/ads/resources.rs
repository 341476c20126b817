//! Resources for Envoy and gRPC, built in code.

use std::net::SocketAddr;
use std::sync::Arc;

use prost::Message;
use trunkline::wire::accept;
use trunkline::{Change, Name, TypeUrl, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, SocketAddress, address,
    config_source::ConfigSourceSpecifier, socket_address,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint,
};
use trunkline_proto::envoy::envoy::config::listener::v3::{
    ApiListener, Filter, FilterChain, Listener, filter,
};
use trunkline_proto::envoy::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route, route_action,
    route_match,
};
use trunkline_proto::envoy::envoy::extensions::filters::http::router::v3::Router;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_connection_manager::RouteSpecifier, http_filter,
};
use trunkline_proto::envoy::google::protobuf::{Any, Duration, UInt32Value};

/// A cluster that gets its endpoints by its own name.
pub(crate) fn cluster(name: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        connect_timeout: Some(seconds(1)),
        cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(
            cluster::DiscoveryType::Eds.into(),
        )),
        eds_cluster_config: Some(cluster::EdsClusterConfig {
            eds_config: Some(ads()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A cluster that gets its endpoints by another name.
pub(crate) fn cluster_of_service(name: &str, service: &str) -> Cluster {
    Cluster {
        eds_cluster_config: Some(cluster::EdsClusterConfig {
            eds_config: Some(ads()),
            service_name: service.to_owned(),
        }),
        ..cluster(name)
    }
}

pub(crate) fn put_cluster(cluster: &Cluster) -> Change {
    put(kind::CDS, cluster)
}

/// The one endpoint of a cluster.
pub(crate) fn put_endpoints(cluster: &str, at: SocketAddr) -> Change {
    put_endpoints_at(cluster, &at.ip().to_string(), at.port())
}

/// The same with an address that may be none.
pub(crate) fn put_endpoints_at(cluster: &str, ip: &str, port: u16) -> Change {
    let endpoint = LbEndpoint {
        host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
            address: Some(address(ip, port)),
            ..Default::default()
        })),
        ..Default::default()
    };
    let assignment = ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            locality: Some(Default::default()),
            lb_endpoints: vec![endpoint],
            load_balancing_weight: Some(UInt32Value { value: 1 }),
            ..Default::default()
        }],
        ..Default::default()
    };
    put(kind::EDS, &assignment)
}

/// A route configuration that sends every path of every host to a cluster.
pub(crate) fn put_route(name: &str, cluster: &str) -> Change {
    let to_cluster = RouteAction {
        cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(cluster.to_owned())),
        ..Default::default()
    };
    let all = RouteMatch {
        path_specifier: Some(route_match::PathSpecifier::Prefix(String::new())),
        ..Default::default()
    };
    let routes = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: "all".to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![Route {
                r#match: Some(all),
                action: Some(route::Action::Route(to_cluster)),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    put(kind::RDS, &routes)
}

/// A listener on a port that Envoy chooses.
pub(crate) fn put_listener(name: &str, route: &str) -> Change {
    put_listener_on(0, name, route)
}

pub(crate) fn put_listener_on(port: u16, name: &str, route: &str) -> Change {
    let chain = FilterChain {
        filters: vec![Filter {
            name: "http".to_owned(),
            config_type: Some(filter::ConfigType::TypedConfig(any(&manager(name, route)))),
        }],
        ..Default::default()
    };
    let listener = Listener {
        name: name.to_owned(),
        address: Some(address("127.0.0.1", port)),
        filter_chains: vec![chain],
        ..Default::default()
    };
    put(kind::LDS, &listener)
}

/// What gRPC clients ask for by the name of a service.
pub(crate) fn put_api_listener(name: &str, route: &str) -> Change {
    let listener = Listener {
        name: name.to_owned(),
        api_listener: Some(ApiListener {
            api_listener: Some(any(&manager(name, route))),
        }),
        ..Default::default()
    };
    put(kind::LDS, &listener)
}

pub(crate) fn remove(type_url: &str, name: &str) -> Change {
    Change::Remove(type_url.into(), Name::new(name))
}

fn manager(name: &str, route: &str) -> HttpConnectionManager {
    HttpConnectionManager {
        stat_prefix: name.to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(ads()),
            route_config_name: route.to_owned(),
        })),
        http_filters: vec![HttpFilter {
            name: "router".to_owned(),
            config_type: Some(http_filter::ConfigType::TypedConfig(
                any(&Router::default()),
            )),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn put(type_url: &str, message: &impl Message) -> Change {
    let type_url = TypeUrl::from(type_url);
    let accepted = accept(&type_url, message.encode_to_vec().into());
    Change::Upsert(type_url, Arc::new(accepted.expect("a message with a name")))
}

fn any<M: Message + prost::Name>(message: &M) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{}", M::full_name()),
        value: message.encode_to_vec(),
    }
}

fn ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    }
}

fn address(ip: &str, port: u16) -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: ip.to_owned(),
            port_specifier: Some(socket_address::PortSpecifier::PortValue(port.into())),
            ..Default::default()
        })),
    }
}

pub(crate) fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}
