//! An Envoy configured by the demo, where one is installed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::failure::{Failure, Result};

/// The number of lines of the log that are shown when Envoy ends.
const LAST_LINES: usize = 5;

/// A running Envoy; it ends when it is dropped.
pub(super) struct Envoy {
    pub(super) process: Child,
    log: PathBuf,
}

/// Starts the Envoy at `path`, which gets its configuration from the port `xds_port`
/// of loopback. Its bootstrap and its log are written to the folder.
pub(super) fn start_envoy(path: &Path, folder: &Path, xds_port: u16) -> Result<Envoy> {
    let start_failure = |error: std::io::Error| {
        Failure::wrong(format!("{} does not start: {error}", path.display()))
    };
    let bootstrap = folder.join("envoy.yaml");
    std::fs::write(&bootstrap, bootstrap_text(xds_port)).map_err(start_failure)?;

    let log = folder.join("envoy.log");
    let log_file = File::create(&log).map_err(start_failure)?;

    let process = Command::new(path)
        .args(["--concurrency", "1", "--disable-hot-restart"])
        .args(["--log-level", "warning", "--config-path"])
        .arg(bootstrap)
        .stdin(Stdio::null())
        .stdout(log_file.try_clone().map_err(start_failure)?)
        .stderr(log_file)
        .kill_on_drop(true)
        .spawn()
        .map_err(start_failure)?;
    Ok(Envoy { process, log })
}

/// Waits until Envoy ends by itself, and returns a message with the end of its
/// log. Never returns without an Envoy.
pub(super) async fn wait_for_exit(envoy: Option<&mut Envoy>) -> String {
    let Some(envoy) = envoy else {
        return std::future::pending().await;
    };
    let status = match envoy.process.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };

    let log = std::fs::read_to_string(&envoy.log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let first_line = lines.len().saturating_sub(LAST_LINES);
    let last_lines = lines[first_line..].join("\n  ");
    format!("Envoy has ended ({status}); its last words:\n  {last_lines}")
}

/// Returns a bootstrap with delta ADS from the server at the port `xds` of
/// loopback.
fn bootstrap_text(xds: u16) -> String {
    format!(
        r#"node: {{id: demo-envoy, cluster: demo}}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services: [{{envoy_grpc: {{cluster_name: trunkline}}}}]
  lds_config: {{ads: {{}}, resource_api_version: V3}}
  cds_config: {{ads: {{}}, resource_api_version: V3}}
static_resources:
  clusters:
  - name: trunkline
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment:
      cluster_name: trunkline
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {xds}}}}}}}
"#
    )
}
