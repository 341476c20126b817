//! The client over sockets, against the library's own server.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "all of this is tests"
)]

mod backend;
mod channel;
mod channel_balancing;
mod channel_calls;
mod channel_routing;
mod channel_sessions;
mod channel_tls;
mod channel_world;
mod chaos;
mod gate;
mod hostile;
mod load;
mod panics;
mod resources;
mod scopes;
mod scripted;
mod secrets;
mod server;
mod sources;
mod status;
mod streams;
mod tables;
mod tree_sources;
mod trees;

use std::time::Duration;

use trunkline::client::{State, Watch};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The next state of a watch.
async fn next<T: Send + Sync + 'static>(watch: &mut Watch<T>) -> State<T> {
    let next = tokio::time::timeout(PATIENCE, watch.changed()).await;
    next.expect("a state in time")
}
