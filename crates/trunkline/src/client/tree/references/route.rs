//! The references of routes.

use trunkline_core::hosts;
use trunkline_proto::envoy::envoy::config::route::v3::route::Action;
use trunkline_proto::envoy::envoy::config::route::v3::route_action::{
    ClusterSpecifier, RequestMirrorPolicy,
};
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteAction, RouteConfiguration, VirtualHost,
};

use super::Finder;
use crate::kind::VHDS;

impl Finder<'_> {
    /// Adds the clusters of all virtual hosts. If the key has a host, it adds
    /// those of the host's virtual host alone (C52), or that virtual host itself
    /// if the configuration has none and others are on demand.
    pub(super) fn find_in_routes(&mut self, route: &RouteConfiguration) {
        self.add_mirrors(&route.request_mirror_policies);
        let Some(host) = self.key.host.clone() else {
            return route
                .virtual_hosts
                .iter()
                .for_each(|virtual_host| self.find_in_virtual_host(virtual_host));
        };
        if let Some(index) = virtual_host(route, &host) {
            return self.find_in_virtual_host(&route.virtual_hosts[index]);
        }
        if let Some(vhds) = &route.vhds {
            let name = format!("{}/{host}", route.name);
            let source = vhds.config_source.as_ref();
            let key = self.referrer.with_source(VHDS, &name, source);
            self.add(key);
        }
    }

    /// Adds the clusters that the routes and mirrors of a virtual host name.
    pub(super) fn find_in_virtual_host(&mut self, host: &VirtualHost) {
        self.add_mirrors(&host.request_mirror_policies);
        for route in &host.routes {
            if let Some(Action::Route(action)) = &route.action {
                self.find_in_action(action);
            }
        }
    }

    /// Adds the clusters of a route. One that a header names is known by each
    /// request only: see `SnapshotWatch::subscribe_cluster`.
    fn find_in_action(&mut self, action: &RouteAction) {
        self.add_mirrors(&action.request_mirror_policies);
        match &action.cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => self.add_cluster(name),
            Some(ClusterSpecifier::WeightedClusters(weighted)) => {
                for cluster in &weighted.clusters {
                    self.add_cluster(&cluster.name);
                }
            }
            _ => {}
        }
    }

    /// Adds the clusters that requests are mirrored to.
    fn add_mirrors(&mut self, policies: &[RequestMirrorPolicy]) {
        for policy in policies {
            self.add_cluster(&policy.cluster);
        }
    }
}

/// Returns the index of the virtual host for a host in a route configuration;
/// `None` if no domain matches.
pub(in crate::client::tree) fn virtual_host(
    route: &RouteConfiguration,
    host: &str,
) -> Option<usize> {
    let virtual_hosts = route.virtual_hosts.iter().enumerate();
    let domains =
        virtual_hosts.map(|(index, host)| (index, host.domains.iter().map(String::as_str)));
    hosts::choose(host, domains)
}
