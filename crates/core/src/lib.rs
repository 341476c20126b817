//! The rules of xDS as pure state machines around one database of resources
//! and subscribers.
//!
//! Nothing here does IO, waits, or reads a clock. Every machine has the same
//! small grammar: `handle_*` takes input, `poll_*` gives output, time is an
//! argument ([`Moment`]). Output is level-triggered: the next message is built
//! from state at the moment the transport can take it, so nothing is queued
//! between state and wire.
//!
//! Rules of the protocol are cited by number where they are kept: `S12` is a
//! rule for servers, `C32` for clients, `E9` a habit of Envoy's.
#![forbid(unsafe_code)]

pub mod change;
pub mod database;
pub mod facts;
pub mod hosts;
mod initial_versions;
pub mod interest;
pub mod kind;
pub mod limits;
pub mod message;
pub mod moment;
pub mod name;
mod order;
pub mod params;
pub mod resource;
pub mod resource_list;
pub mod session;
pub mod sink;
pub mod source;
pub mod timer;

pub use moment::Moment;
