//! Make before break: a cluster is replaced under load, and nobody notices.

use std::time::{Duration, Instant};

use interop::{Backend, Envoy, Mode, assert_no_init_fetch_timeout, bootstrap};
use trunkline::kind;

use crate::dump::active_clusters;
use crate::flow::Flow;
use crate::resources::{cluster, put_cluster, put_endpoints, put_listener, put_route, remove};
use crate::serving::Serving;

const ROUNDS: usize = 10;

fn a_replaced_cluster_costs_no_request(mode: Mode) {
    let backend = Backend::start("any");
    let serving = Serving::start(vec![
        put_cluster(&cluster("c0")),
        put_endpoints("c0", backend.address()),
        put_listener("http", "r"),
        put_route("r", "c0"),
    ]);
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    let start = Instant::now();
    for round in 1..=ROUNDS {
        let (old, new) = (format!("c{}", round - 1), format!("c{round}"));
        // What is sent last is written first.
        serving.apply(vec![
            remove(kind::CDS, &old),
            remove(kind::EDS, &old),
            put_route("r", &new),
            put_endpoints(&new, backend.address()),
            put_cluster(&cluster(&new)),
        ]);
        envoy.wait_for("the old cluster to go", Duration::from_secs(5), |envoy| {
            let clusters: Vec<_> = active_clusters(envoy).into_keys().collect();
            (clusters == [new.as_str()]).then_some(())
        });
    }
    println!("{mode:?}: {ROUNDS} replacements in {:?}", start.elapsed());
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert!(flowed.answered >= ROUNDS, "{flowed:?}");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s73_a_cluster_is_replaced_under_load_by_state_of_the_world() {
    a_replaced_cluster_costs_no_request(Mode::Sotw);
}

#[test]
fn s73_a_cluster_is_replaced_under_load_by_delta() {
    a_replaced_cluster_costs_no_request(Mode::Delta);
}
