//! A listener as gRPC and Armeria use it, and its routes.

use prost::{Message, Name};
use trunkline::{Change, kind};
use trunkline_proto::envoy::envoy::config::listener::v3::{ApiListener, Listener};
use trunkline_proto::envoy::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route, route_action,
    route_match,
};
use trunkline_proto::envoy::envoy::extensions::filters::http::router::v3::Router;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_connection_manager, http_filter,
};
use trunkline_proto::envoy::google::protobuf::Any;

use super::contents::{PREFIX, ads, name, upsert};
use crate::error::Result;

/// Returns the change that puts a listener whose routes come by RDS. Both have
/// the prefix as their name.
pub(super) fn listener() -> Result<Change> {
    let router = HttpFilter {
        // Armeria finds filters by their canonical names.
        name: "envoy.filters.http.router".into(),
        config_type: Some(http_filter::ConfigType::TypedConfig(
            any(&Router::default()),
        )),
        ..HttpFilter::default()
    };
    let manager = HttpConnectionManager {
        // Armeria rejects a manager without one.
        stat_prefix: PREFIX.into(),
        route_specifier: Some(http_connection_manager::RouteSpecifier::Rds(Rds {
            config_source: Some(ads()),
            route_config_name: PREFIX.into(),
        })),
        http_filters: vec![router],
        ..HttpConnectionManager::default()
    };
    let listener = Listener {
        name: PREFIX.into(),
        api_listener: Some(ApiListener {
            api_listener: Some(any(&manager)),
        }),
        ..Listener::default()
    };
    upsert(kind::LDS, listener.encode_to_vec())
}

/// Returns the change that puts `count` routes to so many clusters in turn:
/// route `n` goes to cluster `n % clusters`.
pub(super) fn routes(count: usize, clusters: usize) -> Result<Change> {
    let route = |index: usize| Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix(format!(
                "/service-{index:06}/"
            ))),
            ..RouteMatch::default()
        }),
        action: Some(route::Action::Route(RouteAction {
            cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(name(
                PREFIX,
                index % clusters.max(1),
            ))),
            ..RouteAction::default()
        })),
        ..Route::default()
    };
    let config = RouteConfiguration {
        name: PREFIX.into(),
        virtual_hosts: vec![VirtualHost {
            name: PREFIX.into(),
            domains: vec!["*".into()],
            routes: (0..count).map(route).collect(),
            ..VirtualHost::default()
        }],
        ..RouteConfiguration::default()
    };
    upsert(kind::RDS, config.encode_to_vec())
}

/// Returns an encoded message with its type.
fn any<M: Message + Name>(message: &M) -> Any {
    Any {
        type_url: M::type_url(),
        value: message.encode_to_vec(),
    }
}
