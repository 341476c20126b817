//! `trunkline replay` with a real Envoy: what a server has sent to `trunkline
//! watch --record` makes the Envoy what the server would have made it.
#![allow(clippy::expect_used, reason = "all of this is tests")]

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use interop::{Envoy, Mode, Script, Served, bootstrap};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const CONTENTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
  endpoints:
  - lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: ingress
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: ingress
        rds: {route_config_name: routes, config_source: {ads: {}, resource_api_version: V3}}
        http_filters:
        - name: router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}
"#;

#[test]
fn an_envoy_takes_a_recording_for_its_server() {
    for (mode, flag) in [(Mode::Delta, "--delta"), (Mode::Sotw, "--sotw")] {
        let folder = interop::folder(&format!("replay{flag}"));
        let (contents, recording) = (folder.join("resources.yaml"), folder.join("r.jsonl"));
        fs::write(&contents, CONTENTS).expect("a file");
        let served = Served::start(["--config".as_ref(), contents.as_os_str()]);
        let recorded = Command::new(interop::trunkline())
            .args(["watch", "cds/*", "lds/*", "rds/routes", "eds/backend"])
            .args(["--once", flag, "--server", &served.listen.to_string()])
            .arg("--record")
            .arg(&recording)
            .status();
        assert!(recorded.expect("the program starts").success());
        drop(served);

        let port = interop::free_port();
        let mut replay = Command::new(interop::trunkline());
        replay.arg("replay").arg(&recording);
        replay.args(["--listen", &format!("127.0.0.1:{port}")]);
        let script = Script::run("replay", &mut replay);
        wait_for(&script, "replaying");
        let envoy = Envoy::start(&bootstrap::ads(port, mode, "sidecar-7"));
        envoy.wait_for("the listener", PATIENCE, |envoy| envoy.listener("ingress"));
        assert!(envoy.active_clusters().contains_key("backend"));
        for kind in ["cds", "eds", "lds", "rds"] {
            wait_for(&script, &format!("ACK stream=1 kind=\"{kind}\""));
        }
        assert!(!script.text().contains("NACK"), "{}", script.text());
    }
}

/// Waits until a program has printed a text.
fn wait_for(script: &Script, text: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !script.text().contains(text) {
        assert!(
            Instant::now() < deadline,
            "no {text:?} in {}",
            script.text()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
