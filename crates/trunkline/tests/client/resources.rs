//! Resources that refer to each other, for trees.

use prost::{Message, Name};
use trunkline::ResourceMessage;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CustomClusterType, DiscoveryType, EdsClusterConfig,
};
use trunkline::envoy::config::core::v3::address::Address as AddressKind;
use trunkline::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use trunkline::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ConfigSource, SelfConfigSource, SocketAddress,
};
use trunkline::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use trunkline::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use trunkline::envoy::config::listener::v3::{ApiListener, Filter, FilterChain, Listener, filter};
use trunkline::envoy::config::route::v3::route::Action;
use trunkline::envoy::config::route::v3::route_action::ClusterSpecifier;
use trunkline::envoy::config::route::v3::route_match::PathSpecifier;
use trunkline::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use trunkline::envoy::extensions::clusters::aggregate::v3::ClusterConfig;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, Rds,
};
use trunkline::proto::envoy::google::protobuf::Any;

pub(crate) fn any<M: Message + Name>(message: &M) -> Any {
    Any {
        type_url: M::type_url(),
        value: message.encode_to_vec(),
    }
}

/// The source `ads`.
pub(crate) fn ads() -> ConfigSource {
    source(ConfigSourceSpecifier::Ads(AggregatedConfigSource {}))
}

/// The source `self`.
pub(crate) fn same() -> ConfigSource {
    source(ConfigSourceSpecifier::Self_(SelfConfigSource::default()))
}

fn source(specifier: ConfigSourceSpecifier) -> ConfigSource {
    ConfigSource {
        config_source_specifier: Some(specifier),
        ..ConfigSource::default()
    }
}

/// An API listener with routes.
pub(crate) fn listener_with(name: &str, routes: RouteSpecifier) -> Listener {
    let manager = HttpConnectionManager {
        stat_prefix: "test".into(),
        route_specifier: Some(routes),
        ..HttpConnectionManager::default()
    };
    api_listener(name, &manager)
}

/// An API listener with a connection manager.
pub(crate) fn api_listener(name: &str, manager: &HttpConnectionManager) -> Listener {
    Listener {
        name: name.to_owned(),
        api_listener: Some(ApiListener {
            api_listener: Some(any(manager)),
        }),
        ..Listener::default()
    }
}

/// A listener whose routes come by RDS from the source of the listener.
pub(crate) fn listener(name: &str, route: &str) -> Listener {
    let rds = Rds {
        route_config_name: route.to_owned(),
        config_source: Some(same()),
    };
    listener_with(name, RouteSpecifier::Rds(rds))
}

/// The same with a filter chain in place of the API listener.
pub(crate) fn chained(mut listener: Listener) -> Listener {
    let api = listener
        .api_listener
        .take()
        .and_then(|api| api.api_listener);
    let filter = Filter {
        name: "http".into(),
        config_type: api.map(filter::ConfigType::TypedConfig),
    };
    listener.address = Some(address("127.0.0.1", 80));
    listener.filter_chains = vec![FilterChain {
        filters: vec![filter],
        ..FilterChain::default()
    }];
    listener
}

/// A route configuration with a virtual host for each domain, to one cluster
/// each.
pub(crate) fn routes(name: &str, hosts: &[(&str, &str)]) -> RouteConfiguration {
    let hosts = hosts.iter().enumerate();
    let hosts = hosts.map(|(number, (domain, cluster))| VirtualHost {
        name: format!("host-{number}"),
        domains: vec![(*domain).to_owned()],
        routes: vec![route(cluster)],
        ..VirtualHost::default()
    });
    RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: hosts.collect(),
        ..RouteConfiguration::default()
    }
}

pub(crate) fn route(cluster: &str) -> Route {
    Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::Prefix("/".into())),
            ..RouteMatch::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
            ..RouteAction::default()
        })),
        ..Route::default()
    }
}

/// A cluster whose endpoints come by EDS from `ads`.
pub(crate) fn eds_cluster(name: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: Some(ads()),
            ..EdsClusterConfig::default()
        }),
        ..Cluster::default()
    }
}

/// A cluster of clusters.
pub(crate) fn aggregate(name: &str, clusters: &[&str]) -> Cluster {
    let config = ClusterConfig {
        clusters: clusters.iter().map(|name| (*name).to_owned()).collect(),
    };
    let custom = CustomClusterType {
        name: "envoy.clusters.aggregate".into(),
        typed_config: Some(any(&config)),
    };
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::ClusterType(custom)),
        lb_policy: trunkline::envoy::config::cluster::v3::cluster::LbPolicy::ClusterProvided.into(),
        ..Cluster::default()
    }
}

/// A cluster whose host is resolved by DNS.
pub(crate) fn dns_cluster(name: &str, host: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::LogicalDns.into())),
        load_assignment: Some(endpoints_at(name, host, &[80])),
        ..Cluster::default()
    }
}

/// Endpoints at these ports.
pub(crate) fn endpoints(name: &str, ports: &[u32]) -> ClusterLoadAssignment {
    endpoints_at(name, "127.0.0.1", ports)
}

fn endpoints_at(name: &str, host: &str, ports: &[u32]) -> ClusterLoadAssignment {
    let endpoints = ports.iter().map(|port| LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(address(host, *port)),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    });
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: endpoints.collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }
}

fn address(host: &str, port: u32) -> Address {
    Address {
        address: Some(AddressKind::SocketAddress(SocketAddress {
            address: host.to_owned(),
            port_specifier: Some(PortSpecifier::PortValue(port)),
            ..SocketAddress::default()
        })),
    }
}

/// A listener, routes of two hosts to the clusters `a` and `b`, and endpoints.
pub(crate) fn two_clusters() -> Vec<ResourceMessage> {
    vec![
        ResourceMessage::of(&listener("l", "r")),
        ResourceMessage::of(&routes("r", &[("a.com", "a"), ("b.com", "b")])),
        ResourceMessage::of(&eds_cluster("a")),
        ResourceMessage::of(&eds_cluster("b")),
        ResourceMessage::of(&endpoints("a", &[1])),
        ResourceMessage::of(&endpoints("b", &[2])),
    ]
}
