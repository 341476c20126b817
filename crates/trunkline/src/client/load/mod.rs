//! Load reporting: what a client tells a control plane of its own calls (LRS).
//!
//! ```text
//!   calls ──▶ LocalityReporter ──▶ counters      LoadReporter, one for each server
//!                                     │                       │
//!             every interval:  taken as a difference ──▶ LoadStatsRequest ──▶ stream
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `reporter` | the handles that calls use |
//! | `counters` | what is counted of a locality, and taken from one report to the next (C63, C64) |
//! | `store` | the clusters of one server, and their report |
//! | `task` | the stream: node first, then what the server asks for, as often as it asks (C62) |
//!
//! The stream is open while there is a [`LoadReporter`] for the server, or
//! anything that one has made. Load goes to control planes of the client only,
//! never to one that a resource names (C15): a reporter is made from the
//! resource that asks for load reports, and reports to where it came from.

mod counters;
mod reporter;
mod store;
mod task;
#[cfg(test)]
mod tests;

pub(super) use reporter::Reporting;
pub use reporter::{Call, ClusterReporter, LoadReporter, LocalityReporter};
pub(super) use task::LoadTask;
