//! The references of a listener.

use std::sync::Arc;

use trunkline_proto::envoy::envoy::config::core::v3::ExtensionConfigSource;
use trunkline_proto::envoy::envoy::config::listener::v3::{
    Filter, FilterChain, Listener, filter, listener_filter,
};
use trunkline_proto::envoy::envoy::config::route::v3::ScopedRouteConfiguration;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, ScopedRoutes, http_connection_manager::RouteSpecifier, http_filter,
    scoped_routes::ConfigSpecifier,
};
use trunkline_proto::envoy::envoy::extensions::filters::network::tcp_proxy::v3::{
    TcpProxy, tcp_proxy::ClusterSpecifier,
};
use trunkline_proto::envoy::google::protobuf::Any;

use super::{Finder, unpack};
use crate::kind::{ECDS, RDS, RTDS, SRDS};

impl Finder<'_> {
    /// Adds all references of a listener, and keeps the route configurations
    /// inside of it.
    pub(super) fn find_in_listener(&mut self, listener: &Listener) {
        self.add_runtime_layers();
        let api = listener.api_listener.as_ref();
        if let Some(any) = api.and_then(|api| api.api_listener.as_ref()) {
            self.find_in_network_filter(any);
        }

        for filter in &listener.listener_filters {
            use listener_filter::ConfigType;
            if let Some(ConfigType::ConfigDiscovery(source)) = &filter.config_type {
                self.add_extension(&filter.name, source);
            }
        }

        let default = listener.default_filter_chain.iter();
        for chain in listener.filter_chains.iter().chain(default) {
            self.find_in_filter_chain(chain);
        }
    }

    /// Adds the layers of the runtime that the bootstrap names: what a listener
    /// does with requests may depend on them.
    fn add_runtime_layers(&mut self) {
        let bootstrap = self.referrer.client.settings.bootstrap.clone();
        for layer in bootstrap.iter().flat_map(|bootstrap| &bootstrap.runtime) {
            let key = self.referrer.at_source(RTDS, &layer.name, &layer.source);
            self.references.layers.push(key.name.clone());
            self.add(key);
        }
    }

    /// Adds the secrets and the filters of a filter chain.
    fn find_in_filter_chain(&mut self, chain: &FilterChain) {
        if let Some(socket) = &chain.transport_socket {
            self.find_in_transport_socket(socket);
        }
        for Filter { name, config_type } in &chain.filters {
            match config_type {
                Some(filter::ConfigType::TypedConfig(any)) => self.find_in_network_filter(any),
                Some(filter::ConfigType::ConfigDiscovery(source)) => {
                    self.add_extension(name, source)
                }
                None => {}
            }
        }
    }

    /// Adds the references of an HTTP connection manager or a TCP proxy; other
    /// filters have none.
    fn find_in_network_filter(&mut self, any: &Any) {
        if let Some(manager) = unpack::<HttpConnectionManager>(any) {
            self.find_in_http_manager(manager);
        } else if let Some(proxy) = unpack::<TcpProxy>(any) {
            match &proxy.cluster_specifier {
                Some(ClusterSpecifier::Cluster(name)) => self.add_cluster(name),
                Some(ClusterSpecifier::WeightedClusters(weighted)) => {
                    for cluster in &weighted.clusters {
                        self.add_cluster(&cluster.name);
                    }
                }
                None => {}
            }
        }
    }

    /// Adds the filters and the routes of an HTTP connection manager. Routes inside
    /// of it are kept, and their clusters added.
    fn find_in_http_manager(&mut self, manager: HttpConnectionManager) {
        for filter in &manager.http_filters {
            use http_filter::ConfigType;
            if let Some(ConfigType::ConfigDiscovery(source)) = &filter.config_type {
                self.add_extension(&filter.name, source);
            }
        }

        match manager.route_specifier {
            Some(RouteSpecifier::Rds(rds)) => {
                let source = rds.config_source.as_ref();
                let key = self
                    .referrer
                    .with_source(RDS, &rds.route_config_name, source);
                self.add(key);
            }
            Some(RouteSpecifier::RouteConfig(route)) => {
                self.find_in_routes(&route);
                self.references.routes.push(Arc::new(route));
            }
            Some(RouteSpecifier::ScopedRoutes(scopes)) => self.find_in_scopes(&scopes),
            None => {}
        }
    }

    /// Adds the route configurations of scopes that are listed, or the
    /// collection that the scopes are subscribed to by.
    fn find_in_scopes(&mut self, scopes: &ScopedRoutes) {
        match &scopes.config_specifier {
            Some(ConfigSpecifier::ScopedRouteConfigurationsList(list)) => {
                let source = scopes.rds_config_source.as_ref();
                for scope in &list.scoped_route_configurations {
                    let name = &scope.route_configuration_name;
                    let key = self.referrer.with_source(RDS, name, source);
                    self.add(key);
                }
            }
            Some(ConfigSpecifier::ScopedRds(scoped)) => {
                let name = match scoped.srds_resources_locator.as_str() {
                    "" => "*",
                    locator => locator,
                };
                let source = scoped.scoped_rds_config_source.as_ref();
                let key = self.referrer.with_source(SRDS, name, source);
                self.add(key);
            }
            None => {}
        }
    }

    /// Adds the route configuration of a scope, which is asked for where the
    /// scope is from. That of a scope on demand is left out.
    pub(super) fn find_in_scope(&mut self, scope: &ScopedRouteConfiguration) {
        if scope.on_demand {
            return;
        }
        let key = self
            .referrer
            .at_origin(RDS, &scope.route_configuration_name);
        self.add(key);
    }

    /// Adds the configuration of a filter, which is subscribed to by the
    /// filter's name.
    fn add_extension(&mut self, name: &str, source: &ExtensionConfigSource) {
        let source = source.config_source.as_ref();
        let key = self.referrer.with_source(ECDS, name, source);
        self.add(key);
    }
}
