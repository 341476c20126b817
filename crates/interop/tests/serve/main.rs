//! The server as it is run: contents of files take effect in real clients.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "all of this is tests"
)]

mod accidents;
mod admission;
mod arrival;
mod certificates;
mod drain;
mod dump;
mod extensions;
mod follow;
mod grpc;
mod large;
mod load;
mod missing;
mod names;
mod on_demand;
mod operators;
mod rejection;
mod removal;
mod restart;
mod secrets;
mod site;
mod succession;
mod texts;
mod tls;
mod ttl;
mod variants;
mod variants_conformance;
mod variants_guide;
mod vhds;
mod way;

use std::path::PathBuf;
use std::time::Duration;

use interop::{Envoy, Script, http};

/// Starts a script of this folder's neighbour.
fn script(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Script {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py");
    Script::start(&PathBuf::from(tests).join(name), arguments, variables)
}

/// What a request to a listener is answered with.
fn status(envoy: &Envoy, listener: &str) -> u16 {
    let at = envoy.listener(listener).expect("the listener");
    http::get(at, "/").expect("an answer").status
}

fn wait_for_status(envoy: &Envoy, what: &str, expected: u16) {
    envoy.wait_for(what, Duration::from_secs(10), |envoy| {
        (status(envoy, "http") == expected).then_some(())
    });
}
