//! The rules of xDS as pure state machines around one database of resources
//! and subscribers.
//!
//! - [`database`] holds resources with their variants, and tells subscribers of
//!   changes. [`change`] is what it applies.
//! - [`session`] is the server's side of one stream. It uses [`source`], which
//!   has the state of one resource type: what the client subscribed to, what
//!   its cache holds, and what to send next.
//! - [`sink`] is the client's side of a stream: it subscribes, receives, and
//!   makes changes for the owner's database.
//! - [`client`] joins sinks into the sources of a client and its watches;
//!   [`tree`] joins single resources into snapshots of a listener or cluster.
//! - [`mcp`] has both roles of the Mesh Configuration Protocol, over the same
//!   database.
//! - [`name`], [`params`], [`resource`], [`facts`], [`kind`] and [`message`]
//!   are the vocabulary of all of them.
//!
//! Nothing here does IO, waits, or reads a clock. Every machine has the same
//! small interface: `handle_*` takes input, `poll_*` gives output, time is an
//! argument ([`Moment`]). Output is level-triggered: the next message is built
//! from state at the moment the transport can take it, so nothing is queued
//! between state and wire.
//!
//! Comments name the rule that a line keeps: `S12` is a rule for servers, `C32`
//! for clients, `E9` a behaviour of Envoy's, `M` stands for the Mesh
//! Configuration Protocol, `TP2` for an xRFC of the xDS project and `A88` for a
//! gRFC. `docs/rules.md` in the repository says what the numbered rules are,
//! and which tests prove them.
#![forbid(unsafe_code)]

pub mod change;
pub mod client;
pub mod database;
pub mod facts;
#[cfg(test)]
mod fixture;
pub mod hosts;
mod initial_versions;
pub mod interest;
pub mod kind;
pub mod limits;
pub mod mcp;
pub mod message;
mod moment;
pub mod name;
mod order;
pub mod params;
pub mod resource;
pub mod resource_list;
pub mod session;
pub mod sink;
pub mod source;
pub(crate) mod timer;
pub mod tree;

pub use moment::Moment;
