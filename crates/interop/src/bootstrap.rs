//! Configurations for Envoy to start with.
//!
//! The admin page listens on port 0: Envoy chooses the port and writes it to a
//! file, so no two tests can ask for the same one.

use std::net::SocketAddr;

/// How Envoy asks for configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Whole sets.
    Sotw,
    /// Differences.
    Delta,
}

/// Envoy as a client of an ADS server on this port of loopback, for listeners
/// and clusters and all that these refer to by ADS.
#[must_use]
pub fn ads(ads_port: u16, mode: Mode, node_id: &str) -> String {
    let api_type = match mode {
        Mode::Sotw => "GRPC",
        Mode::Delta => "DELTA_GRPC",
    };
    format!(
        r#"node: {{id: {node_id}, cluster: interop}}
{ADMIN}
dynamic_resources:
  ads_config:
    api_type: {api_type}
    transport_api_version: V3
    grpc_services: [{{envoy_grpc: {{cluster_name: xds}}}}]
  cds_config: {{ads: {{}}, resource_api_version: V3}}
  lds_config: {{ads: {{}}, resource_api_version: V3}}
static_resources:
  clusters:
  - name: xds
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment:
      cluster_name: xds
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {ads_port}}}}}}}}}]}}]
"#
    )
}

/// Envoy without any server: one listener, `static`, on a port of its own
/// choice, that sends every request to the backend.
#[must_use]
pub fn without_xds(backend: SocketAddr) -> String {
    let (ip, port) = (backend.ip(), backend.port());
    format!(
        r#"node: {{id: static, cluster: interop}}
{ADMIN}
static_resources:
  listeners:
  - name: static
    address: {{socket_address: {{address: 127.0.0.1, port_value: 0}}}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: static
          http_filters:
          - name: router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{{match: {{prefix: /}}, route: {{cluster: backend}}}}]
  clusters:
  - name: backend
    type: STATIC
    connect_timeout: 1s
    load_assignment:
      cluster_name: backend
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}]}}]
"#
    )
}

const ADMIN: &str = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}";
