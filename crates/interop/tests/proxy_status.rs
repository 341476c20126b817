//! `trunkline status NODE --envoy-admin URL` with a real Envoy under `trunkline
//! serve`: the same, rejected in its own words, and different.
#![allow(clippy::expect_used, reason = "all of this is tests")]

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use interop::{Envoy, Mode, Served, bootstrap};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const NODE: &str = "sidecar-7";

/// Resources of most types that Envoy shows.
const CONTENTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
  endpoints:
  - locality: {region: r, zone: z}
    load_balancing_weight: 5
    lb_endpoints:
    - {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}, load_balancing_weight: 3}
    - {endpoint: {address: {socket_address: {address: "::1", port_value: 9}}}, health_status: DRAINING}
  - priority: 1
    lb_endpoints: [{endpoint: {address: {pipe: {path: /nowhere}}}, health_status: DEGRADED}]
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
  - name: all
    domains: ["*"]
    routes: [{match: {prefix: /}, route: {cluster: backend, timeout: 1.5s}}]
"#;

/// The program as a server of a file.
struct Serve {
    served: Served,
    file: PathBuf,
}

impl Serve {
    fn start(name: &str) -> Self {
        let file = interop::folder(name).join("resources.yaml");
        fs::write(&file, CONTENTS).expect("a file");
        let flags = [OsStr::new("--config"), file.as_os_str()];
        Self {
            served: Served::start(flags),
            file,
        }
    }

    /// Serves these resources from now on.
    fn put(&self, text: &str) {
        let new = self.file.with_extension("new");
        fs::write(&new, text).expect("a file");
        fs::rename(new, &self.file).expect("a file");
    }

    /// Compares an Envoy until the program ends with a code and prints a text.
    fn compare_until(&self, envoy: &Envoy, code: i32, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = Command::new(interop::trunkline())
                .args(["status", NODE, "--envoy-admin", &envoy.admin().to_string()])
                .args(["--admin", &self.served.admin.to_string()])
                .output()
                .expect("the program starts");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.code() == Some(code) && printed.contains(text) {
                return printed;
            }
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                Instant::now() < deadline,
                "{text:?} is not printed, but {}: {printed}{said}",
                output.status
            );
        }
    }
}

/// What is printed if all is as it should be.
const SAME: &str = "\
sidecar-7: 1 only in the proxy (static), 4 same

TYPE  NAME     STATE                       REASON
cds   xds      only in the proxy (static)  -
cds   backend  same                        -
eds   backend  same                        -
lds   ingress  same                        -
rds   routes   same                        -
";

#[test]
fn an_envoy_has_what_it_was_sent_or_says_why_not() {
    for (mode, name) in [(Mode::Delta, "proxy-delta"), (Mode::Sotw, "proxy-sotw")] {
        let serve = Serve::start(name);
        let envoy = Envoy::start(&bootstrap::ads(serve.served.listen.port(), mode, NODE));
        let same = serve.compare_until(&envoy, 0, "4 same");
        assert!(same.starts_with(SAME), "{same}");

        let stranger = r#"[{name: none, typed_config: {"@type": type.googleapis.com/google.protobuf.Struct}}]"#;
        let bad = CONTENTS
            .replace(
                "connect_timeout: 1s",
                &format!("connect_timeout: 2s\n  filters: {stranger}"),
            )
            .replace(
                "stat_prefix: ingress",
                &format!("stat_prefix: ingress\n        access_log: {stranger}"),
            );
        serve.put(&bad);
        let rejected = serve.compare_until(&envoy, 1, "2 rejected");
        let words = "Didn't find a registered implementation for 'none' with type URL: \
                     'google.protobuf.Struct'\n";
        for line in [
            &*format!(
                "cds   backend  rejected                    Error adding/updating cluster(s) \
                 backend: {words}"
            ),
            "\ncds/backend: - in the proxy, + from the server\n",
            "\n- connect_timeout: \"1s\"\n+ connect_timeout: \"2s\"\n",
        ] {
            assert!(rejected.contains(line), "{line}: {rejected}");
        }
        // The words of Envoy's dump, or those of its NACK, which comes a moment
        // earlier and says before them of which listener it is.
        let is_listener = |line: &&str| line.starts_with("lds   ingress  rejected");
        let listener = rejected.lines().find(is_listener).unwrap_or_default();
        assert!(listener.ends_with(words.trim_end()), "{rejected}");

        serve.put(&CONTENTS.replace("port_value: 9", "port_value: 19"));
        let same = serve.compare_until(&envoy, 0, "4 same");
        assert!(same.starts_with(SAME), "{same}");
    }
}

/// Envoy takes a cluster without a word that it has in its bootstrap already, and
/// does not use it. Another cluster of the bootstrap has its endpoints by ADS.
#[test]
fn an_envoy_that_has_another_differs() {
    let serve = Serve::start("proxy-differs");
    let own = "  clusters:
  - {name: backend, type: STATIC, connect_timeout: 7s}
  - name: own
    type: EDS
    eds_cluster_config: {service_name: backend, eds_config: {ads: {}, resource_api_version: V3}}
";
    let bootstrap = bootstrap::ads(serve.served.listen.port(), Mode::Delta, NODE);
    let envoy = Envoy::start(&bootstrap.replace("  clusters:\n", own));
    let printed = serve.compare_until(&envoy, 1, "1 differs, 2 only in the proxy (static), 3 same");
    for line in [
        "\ncds   backend  differs                     the proxy has it from its bootstrap\n",
        "\n- connect_timeout: \"7s\"\n",
        "\n+ connect_timeout: \"1s\"\n",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
