//! Resources as an operator writes them: each is an item of a list in YAML.

use std::net::SocketAddr;

use interop::bootstrap::ADS;

use crate::certificates::Certificate;

pub(crate) const ROUTER: &str = r#"{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}"#;

/// The filter by which requests wait for what they need.
pub(crate) const ON_DEMAND: &str = r#"{name: on_demand, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand}}"#;

fn item(message: &str, fields: &str) -> String {
    format!(r#"- {{"@type": type.googleapis.com/{message}, {fields}}}"#)
}

/// A resource as the variant for clients with certain parameters.
pub(crate) fn variant(name: &str, constraints: &str, resource: &str) -> String {
    let resource = resource.strip_prefix("- ").expect("an item");
    item(
        "envoy.service.discovery.v3.Resource",
        &format!(
            "resource_name: {{name: {name:?}, dynamic_parameter_constraints: {constraints}}}, \
             resource: {resource}"
        ),
    )
}

/// A cluster whose endpoints come by its own name.
pub(crate) fn cluster(name: &str) -> String {
    cluster_from(name, ADS, 1)
}

/// The same from a source, with a timeout by which versions are told apart.
pub(crate) fn cluster_from(name: &str, source: &str, timeout: u32) -> String {
    cluster_with(
        name,
        &format!(
            "type: EDS, connect_timeout: {timeout}s, eds_cluster_config: {{eds_config: {source}}}"
        ),
    )
}

pub(crate) fn cluster_with(name: &str, fields: &str) -> String {
    item(
        "envoy.config.cluster.v3.Cluster",
        &format!("name: {name:?}, {fields}"),
    )
}

/// A cluster with its one endpoint inside.
pub(crate) fn static_cluster(name: &str, at: SocketAddr) -> String {
    let endpoint = endpoint(at);
    cluster_with(
        name,
        &format!(
            "type: STATIC, connect_timeout: 1s, \
             load_assignment: {{cluster_name: {name:?}, endpoints: [{endpoint}]}}"
        ),
    )
}

/// The one endpoint of a cluster.
pub(crate) fn endpoints(cluster: &str, at: SocketAddr) -> String {
    let endpoint = endpoint(at);
    item(
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        &format!("cluster_name: {cluster:?}, endpoints: [{endpoint}]"),
    )
}

fn endpoint(at: SocketAddr) -> String {
    let address = address(at);
    format!(
        "{{locality: {{region: here}}, load_balancing_weight: 1, \
         lb_endpoints: [{{endpoint: {{address: {address}}}}}]}}"
    )
}

fn address(at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!("{{socket_address: {{address: {ip}, port_value: {port}}}}}")
}

/// A route configuration that sends every path of every host to a cluster.
pub(crate) fn route(name: &str, cluster: &str) -> String {
    routes(name, &virtual_host("all", "*", cluster))
}

/// A route configuration with virtual hosts, and what else it says.
pub(crate) fn routes(name: &str, hosts: &str) -> String {
    item(
        "envoy.config.route.v3.RouteConfiguration",
        &format!("name: {name:?}, virtual_hosts: [{hosts}]"),
    )
}

pub(crate) fn virtual_host(name: &str, domain: &str, cluster: &str) -> String {
    format!("{{{}}}", virtual_host_fields(name, domain, cluster))
}

fn virtual_host_fields(name: &str, domain: &str, cluster: &str) -> String {
    format!(
        r#"name: {name:?}, domains: [{domain:?}], routes: [{{match: {{prefix: ""}}, route: {{cluster: {cluster:?}}}}}]"#
    )
}

/// A listener on a port that Envoy chooses.
pub(crate) fn listener(name: &str, route: &str) -> String {
    listener_from(name, route, ADS)
}

pub(crate) fn listener_from(name: &str, route: &str, source: &str) -> String {
    let manager = manager(name, &rds(route, source), ROUTER);
    listener_with(name, &format!("filter_chains: [{{filters: [{manager}]}}]"))
}

/// A listener whose requests pass filters before they are routed.
pub(crate) fn listener_of(name: &str, routes: &str, filters: &str) -> String {
    let manager = manager(name, routes, &format!("{filters}, {ROUTER}"));
    listener_with(name, &format!("filter_chains: [{{filters: [{manager}]}}]"))
}

/// A listener that shows a certificate which comes by its name.
pub(crate) fn tls_listener(name: &str, route: &str, secret: &str, source: &str) -> String {
    let manager = manager(name, &rds(route, source), ROUTER);
    let tls = format!(
        r#"{{name: tls, typed_config: {{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {{tls_certificate_sds_secret_configs: [{{name: {secret:?}, sds_config: {source}}}]}}}}}}"#
    );
    listener_with(
        name,
        &format!("filter_chains: [{{filters: [{manager}], transport_socket: {tls}}}]"),
    )
}

pub(crate) fn listener_with(name: &str, fields: &str) -> String {
    let address = address(([127, 0, 0, 1], 0).into());
    item(
        "envoy.config.listener.v3.Listener",
        &format!("name: {name:?}, address: {address}, {fields}"),
    )
}

/// How a connection manager gets its routes.
pub(crate) fn rds(route: &str, source: &str) -> String {
    format!("rds: {{route_config_name: {route:?}, config_source: {source}}}")
}

pub(crate) fn manager(name: &str, routes: &str, filters: &str) -> String {
    format!(
        r#"{{name: http, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: {name:?}, {routes}, http_filters: [{filters}]}}}}"#
    )
}

pub(crate) fn secret(name: &str, certificate: &Certificate) -> String {
    let Certificate { chain, key } = certificate;
    item(
        "envoy.extensions.transport_sockets.tls.v3.Secret",
        &format!(
            "name: {name:?}, tls_certificate: {{certificate_chain: {{inline_string: {chain:?}}}, \
             private_key: {{inline_string: {key:?}}}}}"
        ),
    )
}

/// Whom to trust.
pub(crate) fn trust(name: &str, authority: &str) -> String {
    item(
        "envoy.extensions.transport_sockets.tls.v3.Secret",
        &format!(
            "name: {name:?}, validation_context: {{trusted_ca: {{inline_string: {authority:?}}}}}"
        ),
    )
}

/// A resource of another type.
pub(crate) fn other(message: &str, fields: &str) -> String {
    item(message, fields)
}
