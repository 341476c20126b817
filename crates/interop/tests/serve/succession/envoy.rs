//! Envoy, by whole sets and by differences, with listeners that drain quickly
//! and slowly.

use std::time::Duration;

use interop::succession::{By, Client, Peer, Scene, Stage, Step, Visitors, play};
use interop::{Envoy, Gate, assert_no_init_fetch_timeout};

use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// One of the Envoys that are clients of one server.
struct Kind {
    name: &'static str,
    way: Way,
    /// How many seconds its listeners drain.
    drains: u32,
    /// Whether its way to the server takes time.
    far: bool,
}

/// No listener has drained by `SLOWLY` when the test is over.
const QUICKLY: u32 = 1;
const SLOWLY: u32 = 60;

const KINDS: [Kind; 4] = [
    Kind {
        name: "whole sets, drains quickly",
        way: SOTW,
        drains: QUICKLY,
        far: false,
    },
    Kind {
        name: "whole sets, drains slowly",
        way: SOTW,
        drains: SLOWLY,
        far: true,
    },
    Kind {
        name: "differences, drains quickly",
        way: DELTA,
        drains: QUICKLY,
        far: false,
    },
    Kind {
        name: "differences, drains slowly",
        way: DELTA,
        drains: SLOWLY,
        far: true,
    },
];

impl Kind {
    fn start(&self, server: u16, far: Duration) -> (Envoy, Gate) {
        let latency = match self.far {
            false => Duration::ZERO,
            true => far,
        };
        let gate = Gate::far_from(server, latency);
        let drains = self.drains.to_string();
        let bootstrap = self.way.bootstrap(gate.port);
        let envoy = Envoy::start_with(&bootstrap, &["--drain-time-s", &drains]);
        (envoy, gate)
    }

    fn visit(&self, envoy: &Envoy) -> Box<dyn Client> {
        Visitors::start(self.name, envoy.listener("svc").expect("the listener"))
    }
}

fn nothing_is_lost(step: Step, by: By) {
    let far = match by {
        // The route of a listener is removed before the client can subscribe to
        // it.
        By::Haste => Duration::from_millis(50),
        By::Change | By::Restart => Duration::from_millis(10),
    };
    nothing_is_lost_on(Stage::new(step, Peer::Envoy, by.rounds()), step, by, far);
}

/// The contents change while no server runs, and the next one knows from the
/// history what clients may hold. A round trip of those far away is 50 ms.
fn nothing_is_lost_that_was_kept(step: Step) {
    let by = By::Restart;
    let stage = Stage::kept(step, Peer::Envoy, by.rounds());
    nothing_is_lost_on(stage, step, by, Duration::from_millis(25));
}

fn nothing_is_lost_on(mut stage: Stage, step: Step, by: By, far: Duration) {
    let port = stage.port();
    let envoys = KINDS.map(|kind| (kind.start(port, far), kind));
    let visits = envoys.iter().map(|((envoy, _), kind)| kind.visit(envoy));
    let visits = visits.collect();
    let record = play(&mut stage, by, visits);
    record.assert_nothing_lost();
    println!("{record}");
    for ((envoy, _), kind) in &envoys {
        assert_no_init_fetch_timeout(envoy);
        // Where routes keep their name nothing waits for a listener to drain.
        if kind.drains == QUICKLY || step == Step::Swap {
            only_the_last_is_left(envoy, kind.name, &step.cluster(by.rounds()));
        }
    }
}

/// Resources that are kept for old users are removed when these are done.
fn only_the_last_is_left(envoy: &Envoy, name: &str, last: &str) {
    envoy.wait_for(&format!("{name}: old clusters to go"), SOON, |envoy| {
        let clusters: Vec<_> = envoy.active_clusters().into_keys().collect();
        (clusters == [last]).then_some(())
    });
}

#[test]
fn s81_envoy_loses_no_request_when_clusters_are_swapped() {
    nothing_is_lost(Step::Swap, By::Change);
}

#[test]
fn s81_envoy_loses_no_request_when_route_configurations_are_replaced() {
    nothing_is_lost(Step::Move, By::Change);
}

#[test]
fn s82_envoy_loses_no_request_by_restarts_with_other_clusters() {
    nothing_is_lost(Step::Swap, By::Restart);
}

#[test]
fn s82_envoy_loses_no_request_by_restarts_with_other_route_configurations() {
    nothing_is_lost(Step::Move, By::Restart);
}

#[test]
fn s82_envoy_loses_no_request_by_restarts_of_a_store_with_other_clusters() {
    nothing_is_lost_that_was_kept(Step::Swap);
}

#[test]
fn s82_envoy_loses_no_request_by_restarts_of_a_store_with_other_route_configurations() {
    nothing_is_lost_that_was_kept(Step::Move);
}

#[test]
fn s81_envoy_loses_no_request_when_names_return() {
    nothing_is_lost(Step::Return, By::Change);
}

#[test]
fn s81_envoy_loses_no_request_when_changes_overtake_it() {
    nothing_is_lost(Step::Move, By::Haste);
}
