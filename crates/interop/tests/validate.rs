//! `trunkline validate --envoy` with a real Envoy: its words are told at the
//! resource that it rejects, and what it takes is valid.
#![allow(clippy::expect_used, reason = "all of this is tests")]

use std::path::Path;
use std::process::{Command, Output};
use std::{fs, str};

/// Resources that only Envoy finds mistakes in. Clusters of the client's own,
/// sources of all kinds and references that lead nowhere are no mistakes.
const BAD: &str = r#"resources:
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: good}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: filtered
  filters: [{name: none, typed_config: {"@type": type.googleapis.com/google.protobuf.Struct}}]
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: by-eds
  type: EDS
  eds_cluster_config:
    eds_config:
      api_config_source:
        api_type: GRPC
        transport_api_version: V3
        grpc_services: [{envoy_grpc: {cluster_name: bootstrap}}]
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: by-eds
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 127.0.0.1, named_port: http}}}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: plain
  virtual_hosts:
  - {name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster_specifier_plugin: p}}]}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: on-demand
  vhds: {config_source: {ads: {}}}
  virtual_hosts:
  - {name: a, domains: [a.test], routes: [{match: {prefix: /}, route: {cluster: nowhere}}]}
  - {name: b, domains: [b.test], routes: [{match: {prefix: /}, route: {cluster_specifier_plugin: q}}]}
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: one
  address: {socket_address: {address: 127.0.0.1, port_value: 8080}}
  filter_chains:
  - filters:
    - name: manager
      typed_config: &manager
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: s
        http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
        route_config:
          virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: nowhere}}]}]
        access_log:
        - name: a
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig
            common_config:
              log_name: l
              transport_api_version: V3
              grpc_service: {envoy_grpc: {cluster_name: bootstrap}}
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: two
  address: {socket_address: {address: 127.0.0.1, port_value: 8080}}
  filter_chains: [{filters: [{name: manager, typed_config: *manager}]}]
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: ca
  validation_context: {trusted_ca: {inline_string: nonsense}}
"#;

/// The places and the words that are expected, in order.
const EXPECTED: [(&str, &str); 6] = [
    (
        "3:3: resources[1]",
        "Didn't find a registered implementation for 'none' with type URL: 'google.protobuf.Struct'",
    ),
    (
        "15:3: resources[3]",
        "IP resolver can't handle port specifier type",
    ),
    (
        "20:3: resources[4]",
        "Unknown cluster specifier plugin name: p",
    ),
    (
        "29:5: resources[5].virtual_hosts[1]",
        "Unknown cluster specifier plugin name: q",
    ),
    (
        "50:3: resources[7]",
        "'two' has duplicate address '127.0.0.1:8080'",
    ),
    (
        "54:3: resources[8]",
        "Failed to load trusted CA certificates",
    ),
];

fn validate(path: &Path) -> Output {
    Command::new(interop::trunkline())
        .arg("validate")
        .arg(path)
        .arg("--envoy")
        .arg(interop::envoy())
        .output()
        .expect("the program starts")
}

fn said(output: &Output) -> &str {
    str::from_utf8(&output.stderr).expect("text")
}

#[test]
fn the_words_of_envoy_are_told_at_each_resource() {
    let path = interop::folder("validate").join("bad.yaml");
    fs::write(&path, BAD).expect("a file");
    let output = validate(&path);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));

    let lines = said(&output).lines();
    let errors: Vec<&str> = lines.filter(|line| line.contains(" says: ")).collect();
    assert_eq!(errors.len(), EXPECTED.len(), "{}", said(&output));
    for (error, (place, words)) in errors.into_iter().zip(EXPECTED) {
        let start = format!("error: {}:{place}: Envoy 1.", path.display());
        assert!(
            error.starts_with(&start) && error.contains(words),
            "{error}\n{start}: {words}"
        );
    }
    assert!(
        said(&output).ends_with("error: 6 mistakes\n"),
        "{}",
        said(&output)
    );
}

#[test]
fn envoy_takes_the_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for folder in ["envoy", "on-demand/resources", "variants/resources"] {
        let output = validate(&examples.join(folder));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.contains("and Envoy 1."),
            "{folder}: {}",
            said(&output)
        );
    }
}
