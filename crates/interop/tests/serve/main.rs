//! The server as it is run: what is written into files takes effect in real
//! peers.
#![allow(clippy::expect_used, reason = "all of this is tests")]

mod certificates;
mod drain;
mod follow;
mod grpc;
mod hazards;
mod on_demand;
mod rejection;
mod removal;
mod restart;
mod site;
mod texts;
mod tls;
mod virtual_hosts;
mod way;

use std::path::PathBuf;

use interop::Script;

/// Starts a script of this folder's neighbour.
fn script(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Script {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py");
    Script::start(&PathBuf::from(tests).join(name), arguments, variables)
}
