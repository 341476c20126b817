//! The wire format: xDS messages and an operator's files, to values and back.
//!
//! | module | concern |
//! |---|---|
//! | [`discovery`] | the messages of every stream, with bodies that share the received bytes |
//! | [`descriptor`] | descriptors of Envoy's messages |
//! | [`text`] | YAML and JSON both ways, every mistake with its place |
//! | [`validate`] | Envoy's rules on fields, and what Envoy could not build |
//! | [`acceptance`] | the checks that a client makes of a body: gRPC's, Envoy's, or those on fields |
//! | [`conditions`] | parts of a resource that are for some clients only |
//! | [`facts`] | name, references and domains of a resource |
//! | [`load_stats`] | load reports, a cluster at a time |
//! | [`mcp`] | the messages of the Mesh Configuration Protocol |
//! | [`pieces`] | binary files, a resource at a time |
//! | [`quick`] | validation, facts and encoding of plain bodies, in one pass |
//! | [`data_sources`] | files that a message names, and their contents in place of the names |
//! | [`canonical`] | the one encoding of a message |
//! | [`redact`] | messages without their secrets |
//! | [`visit`] | every message inside a message |
//! | [`vhosts`] | virtual hosts taken out of a route configuration, and renamed |
//! | [`envoy`] | Envoy's own messages, typed, from the crate `envoy-types` |
//!
//! No rule of the protocol lives here (those are in `trunkline-core`, which this
//! crate does not know), no socket, no runtime, no clock. A number in
//! parentheses, such as S12 or TP2, names a rule of the protocol that a format
//! serves; `docs/rules.md` in the repository lists them.

pub mod acceptance;
pub mod canonical;
pub mod conditions;
pub mod data_sources;
pub mod descriptor;
pub mod discovery;
pub mod facts;
pub mod load_stats;
pub mod mcp;
mod path;
pub mod pieces;
pub mod quick;
pub mod redact;
pub mod text;
pub mod validate;
pub mod vhosts;
pub mod visit;

pub use path::{Path, Step};
/// The crate of the dynamic messages in this crate's signatures.
pub use prost_reflect;

/// Envoy's typed messages, as the crate `envoy-types` generates them.
pub use envoy_types::pb as envoy;
