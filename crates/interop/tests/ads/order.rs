//! Make before break: a cluster is replaced under load, and nobody notices.

use std::time::{Duration, Instant};

use interop::{
    Backend, Envoy, Flow, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, free_port,
};
use trunkline::kind;

use crate::resources::{
    cluster, put_cluster, put_endpoints, put_listener, put_listener_on, put_route, remove,
};

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
        // The resource that is sent last is written first.
        serving.apply(vec![
            remove(kind::CDS, &old),
            remove(kind::EDS, &old),
            put_route("r", &new),
            put_endpoints(&new, backend.address()),
            put_cluster(&cluster(&new)),
        ]);
        envoy.wait_for("the old cluster to go", Duration::from_secs(5), |envoy| {
            let clusters: Vec<_> = envoy.active_clusters().into_keys().collect();
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

/// The old listener drains for minutes and uses its old route and cluster
/// meanwhile, so these stay although they are removed from the contents.
fn a_replaced_listener_costs_no_request(mode: Mode) {
    let backend = Backend::start("any");
    let port = free_port();
    let part = |round: usize| {
        let (route, name) = (format!("r{round}"), format!("c{round}"));
        vec![
            put_listener_on(port, "http", &route),
            put_route(&route, &name),
            put_endpoints(&name, backend.address()),
            put_cluster(&cluster(&name)),
        ]
    };
    let serving = Serving::start(part(0));
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    for round in 1..=3 {
        let (route, name) = (format!("r{}", round - 1), format!("c{}", round - 1));
        let place = serving.journal.place();
        let mut changes = part(round);
        changes.extend([
            remove(kind::RDS, &route),
            remove(kind::CDS, &name),
            remove(kind::EDS, &name),
        ]);
        serving.apply(changes);
        let route = format!("r{round}");
        serving
            .journal
            .wait_accepted("the new route", place, kind::RDS, |sent| {
                sent.brings(&route)
            });
    }
    assert_eq!(envoy.active_clusters().len(), 4, "none is taken away yet");
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s73_a_listener_is_replaced_under_load_by_state_of_the_world() {
    a_replaced_listener_costs_no_request(Mode::Sotw);
}

#[test]
fn s73_a_listener_is_replaced_under_load_by_delta() {
    a_replaced_listener_costs_no_request(Mode::Delta);
}
