//! What Envoy reports of its load.

use std::time::Duration;

use interop::{Backend, Envoy, Flow};

use crate::site::Site;
use crate::texts::{listener, route, static_cluster};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);

/// Envoy counts what it sends, and says so when it is asked.
#[test]
fn envoy_reports_its_load() {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            static_cluster("c", backend.address()),
            listener("http", "r"),
            route("r", "c"),
        ],
    )]);
    let serving = site.serve_with(0, |options| {
        options.load.interval = Duration::from_millis(200);
    });
    let reports = "cluster_manager: {load_stats_config: {api_type: GRPC, \
                   transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}}\n";
    let envoy = Envoy::start(&(DELTA.bootstrap(serving.port) + reports));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    envoy.wait_for("a report", SOON, |_| {
        let all = serving.server.load().reports().snapshot();
        let of_c = all
            .iter()
            .find(|load| load.cluster == "c" && load.node == "n1")?;
        of_c.localities
            .iter()
            .find(|l| l.requests.successful > 0)
            .map(drop)
    });
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
}
