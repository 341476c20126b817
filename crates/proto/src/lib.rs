//! The wire: what xDS peers and the files of an operator say, turned into
//! values and back.
//!
//! | module | concern |
//! |---|---|
//! | [`discovery`] | the messages of every stream, with bodies that share the received bytes |
//! | [`descriptor`] | what Envoy's messages look like, as data |
//! | [`text`] | YAML and JSON both ways, every mistake with its place |
//! | [`validate`] | the rules that Envoy puts on fields |
//! | [`conditions`] | which parts of a resource are for some clients only |
//! | [`facts`] | name, references and domains of a resource |
//! | [`pieces`] | binary files, a resource at a time |
//! | [`quick`] | validation, facts and encoding of what is plain, in one pass |
//! | [`canonical`] | the one encoding of a message |
//! | [`redact`] | messages without their secrets |
//! | [`vhosts`] | virtual hosts taken out of a route configuration, and renamed |
//! | [`envoy`] | Envoy's own messages, typed, from the crate `envoy-types` |
//!
//! What it is not: no rule of the protocol lives here (those are in
//! `trunkline-core`, which this crate does not know), no socket, no runtime,
//! no clock.

pub mod canonical;
pub mod conditions;
pub mod descriptor;
pub mod discovery;
pub mod facts;
mod path;
pub mod pieces;
pub mod quick;
pub mod redact;
pub mod text;
pub mod validate;
pub mod vhosts;

pub use path::{Path, Step};
/// The crate whose types appear in this one's.
pub use prost_reflect;

/// Envoy's typed messages, as the crate `envoy-types` generates them.
pub use envoy_types::pb as envoy;
