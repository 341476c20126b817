//! Resources with a TTL, which last as long as there are heartbeats.

use std::time::Duration;

use interop::{Backend, Envoy, Flow, assert_no_init_fetch_timeout};
use trunkline::kind;

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, other, route, static_cluster};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// A resource that lasts only for as long as it is spoken of.
fn lasting(name: &str, ttl: &str, resource: &str) -> String {
    let resource = resource.strip_prefix("- ").expect("an item");
    other(
        "envoy.service.discovery.v3.Resource",
        &format!("name: {name:?}, ttl: {ttl}, resource: {resource}"),
    )
}

/// A heartbeat in time keeps a cluster; without it, the cluster is removed. The
/// endpoints have a TTL, too, which is not sent in state of the world: Envoy
/// would crash when it runs out.
fn what_has_a_ttl_is_kept_alive(way: Way) {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            cluster("c"),
            lasting("c", "0.5s", &endpoints("c", backend.address())),
            lasting("short", "2s", &static_cluster("short", backend.address())),
            listener("http", "r"),
            route("r", "short"),
        ],
    )]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    serving
        .journal
        .wait_times("the cluster again and again", 4, |sent| {
            sent.type_url == kind::CDS && sent.brings("short")
        });
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert_eq!(envoy.active_clusters().len(), 2);
    serving.stop();
    envoy.wait_for("the cluster to run out", SOON, |envoy| {
        let held: Vec<_> = envoy.active_clusters().into_keys().collect();
        (held == ["c"]).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
    assert_eq!(envoy.stop(), Some(0), "it did not crash");
}

#[test]
fn s59_a_cluster_with_a_ttl_is_kept_alive_by_state_of_the_world() {
    what_has_a_ttl_is_kept_alive(SOTW);
}

#[test]
fn s59_a_cluster_with_a_ttl_is_kept_alive_by_delta() {
    what_has_a_ttl_is_kept_alive(DELTA);
}
