//! gRPC's C-core, at several distances at once.

use std::path::Path;
use std::time::Duration;

use interop::Script;
use interop::succession::{By, Caller, Client, Peer, Scene, Stage, Step, play};

/// Each way, in milliseconds: round trips of 0, 20 and 50.
const LATENCIES: [u64; 3] = [0, 10, 25];

fn nothing_is_lost(step: Step, by: By) {
    nothing_is_lost_on(Stage::new(step, Peer::Grpc, by.rounds()), by);
}

fn nothing_is_lost_on(mut stage: Stage, by: By) {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py/caller.py"));
    let port = stage.port();
    let clients = LATENCIES
        .map(Duration::from_millis)
        .map(|latency| Caller::start("grpc", Script::python(script), port, latency))
        .map(|caller| Box::new(caller) as Box<dyn Client>);
    let record = play(&mut stage, by, clients.into());
    record.assert_nothing_lost();
    println!("{record}");
}

#[test]
fn s81_grpc_loses_no_call_when_clusters_are_swapped() {
    nothing_is_lost(Step::Swap, By::Change);
}

#[test]
fn s81_grpc_loses_no_call_when_route_configurations_are_replaced() {
    nothing_is_lost(Step::Move, By::Change);
}

#[test]
fn s81_grpc_loses_no_call_when_routes_go_into_the_listener_and_back() {
    nothing_is_lost(Step::Inline, By::Change);
}

#[test]
fn s82_grpc_loses_no_call_by_restarts_with_other_clusters() {
    nothing_is_lost(Step::Swap, By::Restart);
}

#[test]
fn s82_grpc_loses_no_call_by_restarts_with_other_route_configurations() {
    nothing_is_lost(Step::Move, By::Restart);
}

/// The contents change while no server runs, and the next one knows from the
/// history what clients may hold.
fn nothing_is_lost_that_was_kept(step: Step) {
    let by = By::Restart;
    nothing_is_lost_on(Stage::kept(step, Peer::Grpc, by.rounds()), by);
}

#[test]
fn s82_grpc_loses_no_call_by_restarts_of_a_store_with_other_clusters() {
    nothing_is_lost_that_was_kept(Step::Swap);
}

#[test]
fn s82_grpc_loses_no_call_by_restarts_of_a_store_with_other_route_configurations() {
    nothing_is_lost_that_was_kept(Step::Move);
}

#[test]
fn s81_grpc_loses_no_call_when_names_return() {
    nothing_is_lost(Step::Return, By::Change);
}

#[test]
fn s81_grpc_loses_no_call_when_changes_overtake_it() {
    nothing_is_lost(Step::Move, By::Haste);
}
