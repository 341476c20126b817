//! Configurations for Envoy and gRPC to start with.
//!
//! Envoy's admin page listens on port 0: Envoy chooses the port and writes it to a
//! file, so no two tests can ask for the same one.

use std::net::SocketAddr;
use std::path::Path;

/// Which protocol Envoy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Whole sets.
    Sotw,
    /// Differences.
    Delta,
}

impl Mode {
    fn api_type(self) -> &'static str {
        match self {
            Self::Sotw => "GRPC",
            Self::Delta => "DELTA_GRPC",
        }
    }
}

/// Envoy as a client of an ADS server on this port of loopback, for listeners
/// and clusters and all that these refer to by ADS.
#[must_use]
pub fn ads(ads_port: u16, mode: Mode, node_id: &str) -> String {
    let api_type = mode.api_type();
    let server = server_cluster(ads_port, HTTP2);
    format!(
        r#"node: {{id: {node_id}, cluster: interop}}
{ADMIN}
dynamic_resources:
  ads_config:
    api_type: {api_type}
    transport_api_version: V3
    grpc_services: [{{{CLIENT}}}]
  cds_config: {ADS}
  lds_config: {ADS}
static_resources:
  clusters:
{server}"#
    )
}

/// The same behind TLS: the server's certificate comes from an authority, and
/// Envoy shows its own if it has one. All are paths of files.
#[must_use]
pub fn ads_tls(
    ads_port: u16,
    mode: Mode,
    node_id: &str,
    authority: &Path,
    own: Option<(&Path, &Path)>,
) -> String {
    let authority = authority.display();
    let own = own.map_or_else(String::new, |(certificate, key)| {
        let (certificate, key) = (certificate.display(), key.display());
        format!(
            "tls_certificates: [{{certificate_chain: {{filename: {certificate}}}, \
             private_key: {{filename: {key}}}}}], "
        )
    });
    // The cluster of the server is the end of the text.
    ads(ads_port, mode, node_id)
        + &format!(
            r#"    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: localhost
        common_tls_context: {{{own}alpn_protocols: [h2], validation_context: {{trusted_ca: {{filename: {authority}}}}}}}
"#
        )
}

/// Envoy that polls a server on this port of loopback by REST; resources that
/// refer to others do it by [`rest_source`].
#[must_use]
pub fn rest(port: u16, node_id: &str) -> String {
    without_ads(&rest_source(), &server_cluster(port, ""), node_id)
}

/// Envoy that has a stream for each type, and for each resource that refers to
/// others by [`stream_source`].
#[must_use]
pub fn streams(port: u16, mode: Mode, node_id: &str) -> String {
    without_ads(&stream_source(mode), &server_cluster(port, HTTP2), node_id)
}

fn without_ads(source: &str, server: &str, node_id: &str) -> String {
    format!(
        r#"node: {{id: {node_id}, cluster: interop}}
{ADMIN}
dynamic_resources:
  cds_config: {source}
  lds_config: {source}
static_resources:
  clusters:
{server}"#
    )
}

/// gRPC as a client of a server on this port of loopback, in JSON.
#[must_use]
pub fn grpc(port: u16, node_id: &str) -> String {
    format!(
        r#"{{"xds_servers": [{{"server_uri": "127.0.0.1:{port}",
            "channel_creds": [{{"type": "insecure"}}], "server_features": ["xds_v3"]}}],
            "node": {{"id": "{node_id}", "cluster": "interop"}}}}"#
    )
}

/// How Envoy speaks ADS, as a field in YAML. It tries again each second at
/// least, where by default it would wait for up to thirty.
pub const CLIENT: &str = "envoy_grpc: {cluster_name: xds, \
    retry_policy: {retry_back_off: {base_interval: 0.1s, max_interval: 1s}}}";

/// Where resources come from by ADS, as a value in YAML.
pub const ADS: &str = "{ads: {}, resource_api_version: V3}";

/// Where resources come from by polling, as a value in YAML.
#[must_use]
pub fn rest_source() -> String {
    "{resource_api_version: V3, api_config_source: {api_type: REST, transport_api_version: V3, \
     cluster_names: [xds], refresh_delay: 0.1s, request_timeout: 2s}}"
        .to_owned()
}

/// Where resources come from by a stream of their own, as a value in YAML.
#[must_use]
pub fn stream_source(mode: Mode) -> String {
    let api_type = mode.api_type();
    format!(
        "{{resource_api_version: V3, api_config_source: {{api_type: {api_type}, \
         transport_api_version: V3, grpc_services: [{{envoy_grpc: {{cluster_name: xds}}}}]}}}}"
    )
}

const HTTP2: &str = r#"    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
"#;

fn server_cluster(port: u16, protocol: &str) -> String {
    format!(
        r#"  - name: xds
    type: STATIC
    connect_timeout: 1s
{protocol}    load_assignment:
      cluster_name: xds
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}}}}}]}}]
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
