//! Config sources inside of resources.

use trunkline::client::{
    Bootstrap, ConfigSource, ControlPlane, DataSourcePolicy, Specifier, Transport,
};
use trunkline::core::message::Mode;
use trunkline::envoy::config::core::v3 as message;
use trunkline::proto::prost_reflect::prost::Message as _;
use trunkline::proto::text::{Format, Options, read_message};

use super::api;

const ENVOY: &str = "\
node: {id: n1}
dynamic_resources:
  ads_config:
    api_type: GRPC
    transport_api_version: V3
    grpc_services: [{google_grpc: {target_uri: 'a:1', stat_prefix: s}}]
static_resources:
  clusters:
  - name: other
    type: STRICT_DNS
    http2_protocol_options: {}
    load_assignment:
      cluster_name: other
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: other.example, port_value: 2}}}
";

const GRPC: &str =
    r#"{"xds_servers": [{"server_uri": "a:1", "channel_creds": [{"type": "insecure"}]}]}"#;

/// Resolves a source against a bootstrap.
fn resolve(
    bootstrap: &Bootstrap,
    source: &str,
    policy: &DataSourcePolicy,
) -> Result<ConfigSource, String> {
    let of = "envoy.config.core.v3.ConfigSource";
    let read = read_message(of, Format::Yaml, "s", source, None, &Options::default()).unwrap();
    assert_eq!(read.errors, []);
    let bytes = read.message.encode_to_vec();
    let source = message::ConfigSource::decode(bytes.as_slice()).unwrap();
    ConfigSource::resolve(bootstrap, &source, policy).map_err(|error| error.to_string())
}

fn envoy(source: &str) -> Result<ConfigSource, String> {
    let bootstrap = Bootstrap::from_envoy("b.yaml", ENVOY).unwrap();
    resolve(&bootstrap, source, &DataSourcePolicy::default())
}

#[test]
fn c14_self_and_ads_mean_the_same_with_grpc() {
    let grpc = Bootstrap::from_grpc("b.json", GRPC).unwrap();
    for source in ["self: {}", "ads: {}"] {
        let policy = DataSourcePolicy::default();
        let resolved = resolve(&grpc, source, &policy).unwrap();
        assert_eq!(resolved.specifier, Specifier::Ads);
    }
    assert_eq!(envoy("self: {}").unwrap().specifier, Specifier::SelfSource);
    assert_eq!(envoy("ads: {}").unwrap().specifier, Specifier::Ads);
}

#[test]
fn a_resource_names_a_static_cluster() {
    let source = "api_config_source: {api_type: DELTA_GRPC, transport_api_version: V3, \
        grpc_services: [{envoy_grpc: {cluster_name: other}}]}";
    let resolved = envoy(source).unwrap();
    let mode = Mode::Delta;
    let aggregated = false;
    let transport = Transport::Grpc { mode, aggregated };
    assert_eq!(api(Some(&resolved)).transport, transport);
    assert_eq!(
        envoy(&source.replace("other", "othr")).unwrap_err(),
        "api_config_source.grpc_services[0].envoy_grpc.cluster_name: no static cluster is named \
         \"othr\", did you mean \"other\"?"
    );
}

#[test]
fn a_resource_names_servers_of_the_bootstrap_only() {
    let source = |target: &str| {
        envoy(&format!(
            "api_config_source: {{api_type: GRPC, transport_api_version: V3, grpc_services: \
             [{{google_grpc: {{target_uri: '{target}', stat_prefix: s}}}}]}}"
        ))
    };
    assert!(source("a:1").is_ok());
    assert_eq!(
        source("elsewhere:1").unwrap_err(),
        "api_config_source.grpc_services[0].google_grpc.target_uri: a control plane may not name \
         \"elsewhere:1\"; use a server of the bootstrap"
    );
    let bootstrap = Bootstrap::from_envoy("b.yaml", ENVOY).unwrap();
    let known = bootstrap.servers().next().unwrap();
    assert!(bootstrap.has_server(known));
    let other = ControlPlane {
        authority: Some("x".into()),
        ..(**known).clone()
    };
    assert!(!bootstrap.has_server(&other));
}

#[test]
fn a_control_plane_names_files_that_are_allowed() {
    let bootstrap = Bootstrap::from_envoy("b.yaml", ENVOY).unwrap();
    let policy = DataSourcePolicy::default().allow_path("/etc/xds");
    let path = |path: &str, policy: &DataSourcePolicy| {
        let source = format!("path_config_source: {{path: {path}}}");
        resolve(&bootstrap, &source, policy)
    };
    assert!(path("/etc/xds/cds.yaml", &policy).is_ok());
    for other in ["/etc/xds/../passwd", "/etc/xdsx", "/etc/passwd"] {
        let error = path(other, &policy).unwrap_err();
        assert!(error.contains("allow it by a DataSourcePolicy"), "{error}");
    }
    assert!(path("/etc/xds/cds.yaml", &DataSourcePolicy::default()).is_err());

    let source = "api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: \
        [{google_grpc: {target_uri: 'a:1', stat_prefix: s, channel_credentials: \
        {ssl_credentials: {root_certs: {environment_variable: HOME}}}}}]}";
    let error = envoy(source).unwrap_err();
    assert!(
        error.contains("the environment variable \"HOME\""),
        "{error}"
    );
}
