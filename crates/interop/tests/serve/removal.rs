//! Resources that are taken out of a file under load are removed in the right
//! order.

use std::time::Duration;

use interop::{Backend, Envoy, Flow, assert_no_init_fetch_timeout};

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route};
use crate::way::{DELTA, SOTW, Way};
use crate::{status, wait_for_status};

const ROUNDS: usize = 5;
const SOON: Duration = Duration::from_secs(10);

/// One file, as it often is: each edit brings a cluster and removes another.
fn a_removed_cluster_costs_no_request(way: Way) {
    let backend = Backend::start("any");
    let edition = |round: usize| {
        let name = format!("c{round}");
        [
            route("r", &name),
            cluster(&name),
            endpoints(&name, backend.address()),
            listener("http", "r"),
        ]
    };
    let site = Site::new(&[("all.yaml", &edition(0))]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    for round in 1..=ROUNDS {
        site.write("all.yaml", &edition(round));
        envoy.wait_for("the old cluster to go", SOON, |envoy| {
            let clusters: Vec<_> = envoy.active_clusters().into_keys().collect();
            (clusters == [format!("c{round}")]).then_some(())
        });
        flow.go_on_for(5);
    }
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s52_a_cluster_goes_from_a_file_under_load_by_state_of_the_world() {
    a_removed_cluster_costs_no_request(SOTW);
}

#[test]
fn s52_a_cluster_goes_from_a_file_under_load_by_delta() {
    a_removed_cluster_costs_no_request(DELTA);
}

/// A file that is deleted takes its resources along.
#[test]
fn s42_a_deleted_file_takes_its_resources_along() {
    let backend = Backend::start("any");
    let site = Site::new(&[
        (
            "one.yaml",
            &[cluster("c1"), endpoints("c1", backend.address())],
        ),
        (
            "two.yaml",
            &[cluster("c2"), endpoints("c2", backend.address())],
        ),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    assert_eq!(envoy.active_clusters().len(), 2);
    site.remove("one.yaml");
    envoy.wait_for("the cluster to go", SOON, |envoy| {
        let clusters: Vec<_> = envoy.active_clusters().into_keys().collect();
        (clusters == ["c2"]).then_some(())
    });
}

/// If they were only listed as removed, Envoy would go on using them.
fn deleted_endpoints_and_routes_are_really_gone(way: Way) {
    let backend = Backend::start("any");
    let site = Site::new(&[
        ("all.yaml", &[cluster("c"), listener("http", "r")]),
        ("endpoints.yaml", &[endpoints("c", backend.address())]),
        ("route.yaml", &[route("r", "c")]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    site.remove("endpoints.yaml");
    wait_for_status(&envoy, "the endpoints to go", 503);
    site.remove("route.yaml");
    wait_for_status(&envoy, "the routes to go", 404);
    site.write("endpoints.yaml", &[endpoints("c", backend.address())]);
    site.write("route.yaml", &[route("r", "c")]);
    wait_for_status(&envoy, "all to be back", 200);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s74_deleted_endpoints_and_routes_go_by_state_of_the_world() {
    deleted_endpoints_and_routes_are_really_gone(SOTW);
}

#[test]
fn s74_deleted_endpoints_and_routes_go_by_delta() {
    deleted_endpoints_and_routes_are_really_gone(DELTA);
}
