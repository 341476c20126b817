//! Trunkline's channel for tonic, at several distances at once, in the
//! successions of gRPC's clients.

use std::time::Duration;

use interop::succession::{By, Channel, Client, Peer, Scene, Stage, Step, play};

/// Each way, in milliseconds: round trips of 0 and 50.
const LATENCIES: [u64; 2] = [0, 25];

fn nothing_is_lost(step: Step, by: By) {
    let mut stage = Stage::new(step, Peer::Grpc, by.rounds());
    let port = stage.port();
    let clients = LATENCIES
        .map(Duration::from_millis)
        .map(|latency| Box::new(Channel::start(port, latency)) as Box<dyn Client>);
    let record = play(&mut stage, by, clients.into());
    record.assert_nothing_lost();
    println!("{record}");
}

#[test]
fn e18_the_channel_loses_no_call_when_clusters_are_swapped() {
    nothing_is_lost(Step::Swap, By::Change);
}

#[test]
fn e18_the_channel_loses_no_call_when_names_return() {
    nothing_is_lost(Step::Return, By::Change);
}

#[test]
fn e18_the_channel_loses_no_call_when_changes_overtake_it() {
    nothing_is_lost(Step::Move, By::Haste);
}

#[test]
fn e18_the_channel_loses_no_call_by_restarts_with_other_route_configurations() {
    nothing_is_lost(Step::Move, By::Restart);
}
