//! Contents that replace each other under load, and whether a client loses a
//! request by it (S81, S82).
//!
//! The contents of a [`Scene`] are numbered by rounds: in round `n` everything
//! leads to the cluster `k<n>`, whose one endpoint answers `k<n>`, and the
//! resources that only round `n - 1` needed are removed in the same change. A
//! [`Step`] says what else changes its name. [`Stage`] is such a server of
//! ours, [`Control`] one of others.
//!
//! Clients call all the time: [`Caller`] is a gRPC client behind a latency,
//! [`Channel`] is Trunkline's own for tonic, [`Visitors`] send requests through Envoy. [`play`] goes from round to round as
//! soon as every client has seen the answer of the last, by a change or by a
//! restart of the server; its [`Record`] says which requests failed, when, and
//! with what.

mod caller;
mod channel;
mod contents;
mod control;
mod endpoints;
mod play;
mod record;
mod stage;
mod visitors;

pub use caller::Caller;
pub use channel::Channel;
pub use contents::{Peer, Step};
pub use control::Control;
pub use play::{By, Client, Scene, play};
pub use record::{Lost, Record, Tally};
pub use stage::Stage;
pub use visitors::Visitors;

use std::time::{SystemTime, UNIX_EPOCH};

/// What the endpoint of a round answers, and the name that its cluster has as a
/// rule.
#[must_use]
pub fn name_of(round: usize) -> String {
    format!("k{round}")
}

/// The time by which processes compare when something happened: seconds since
/// 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
