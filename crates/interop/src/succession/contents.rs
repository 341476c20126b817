//! The contents of each round, as an operator writes them.

use std::net::SocketAddr;

use super::name_of;
use crate::bootstrap::ADS;

/// Which listener a client needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// gRPC without a proxy subscribes to an API listener by the name of a
    /// service.
    Grpc,
    /// Envoy opens a port.
    Envoy,
}

/// What changes from one round to the next, beside the cluster and its
/// endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: a route configuration of the same name leads to the new cluster.
    Swap,
    /// The listener names another route configuration.
    Move,
    /// The listener holds its routes in odd rounds, and names a route
    /// configuration in even ones.
    Inline,
    /// The listener names another route configuration, and this and the cluster
    /// take the names of the round before the last: resources that were about
    /// to be removed are desired again.
    Return,
}

/// The name of the one listener: what gRPC calls, and Envoy opens.
pub(super) const LISTENER: &str = "svc";

impl Step {
    /// The name of the cluster of a round.
    #[must_use]
    pub fn cluster(self, round: usize) -> String {
        match self {
            Self::Return => name_of(round % 2),
            Self::Swap | Self::Move | Self::Inline => name_of(round),
        }
    }

    /// All resources of a round, whose endpoint is at this address.
    pub(super) fn contents(self, peer: Peer, round: usize, at: SocketAddr) -> String {
        let cluster = self.cluster(round);
        // Envoy replaces only the filter chains of a listener that is otherwise
        // the same; every third time it has to replace the listener as a whole.
        let edition = if self == Self::Swap { 0 } else { round / 3 };
        let named = |route: &str| {
            let rds = format!("rds: {{route_config_name: {route}, config_source: {ADS}}}");
            vec![listener(peer, edition, &rds), route_of(route, &cluster)]
        };
        let mut resources = match (self, round % 2) {
            (Self::Move, _) => named(&format!("r{round}")),
            (Self::Return, turn) => named(&format!("r{turn}")),
            (Self::Inline, 1) => {
                let inline = format!("route_config: {{{}}}", route_fields("inline", &cluster));
                vec![listener(peer, edition, &inline)]
            }
            (Self::Swap | Self::Inline, _) => named("r"),
        };
        resources.extend([cluster_by_eds(&cluster), endpoint(&cluster, at)]);
        format!("resources:\n{}\n", resources.join("\n"))
    }
}

fn item(message: &str, fields: &str) -> String {
    format!(r#"- {{"@type": type.googleapis.com/{message}, {fields}}}"#)
}

/// A listener with such routes; editions differ outside its filter chains.
fn listener(peer: Peer, edition: usize, routes: &str) -> String {
    let manager = format!(
        r#"{{"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: {LISTENER}, {routes}, http_filters: [{{name: envoy.filters.http.router, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}]}}"#
    );
    let fields = match peer {
        Peer::Grpc => format!("api_listener: {{api_listener: {manager}}}"),
        Peer::Envoy => format!(
            "address: {{socket_address: {{address: 127.0.0.1, port_value: 0}}}}, \
             per_connection_buffer_limit_bytes: {}, \
             filter_chains: [{{filters: [{{name: http, typed_config: {manager}}}]}}]",
            32_768 + edition
        ),
    };
    item(
        "envoy.config.listener.v3.Listener",
        &format!("name: {LISTENER}, {fields}"),
    )
}

fn route_of(name: &str, cluster: &str) -> String {
    item(
        "envoy.config.route.v3.RouteConfiguration",
        &route_fields(name, cluster),
    )
}

fn route_fields(name: &str, cluster: &str) -> String {
    format!(
        r#"name: {name}, virtual_hosts: [{{name: all, domains: ["*"], routes: [{{match: {{prefix: ""}}, route: {{cluster: {cluster}}}}}]}}]"#
    )
}

fn cluster_by_eds(name: &str) -> String {
    item(
        "envoy.config.cluster.v3.Cluster",
        &format!(
            "name: {name}, type: EDS, connect_timeout: 1s, eds_cluster_config: {{eds_config: {ADS}}}"
        ),
    )
}

fn endpoint(cluster: &str, at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    item(
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        &format!(
            "cluster_name: {cluster}, endpoints: [{{locality: {{region: here}}, \
             load_balancing_weight: 1, lb_endpoints: [{{endpoint: {{address: \
             {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}]}}]"
        ),
    )
}
