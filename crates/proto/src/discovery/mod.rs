//! The messages of a discovery stream: requests, responses, and their parts.
//!
//! They are written here instead of taken from `envoy-types` for two reasons: a
//! body is a [`bytes::Bytes`] slice of the received buffer, never a copy, and
//! the node (61 KB in every message of some clients) stays raw until it is
//! needed. Field numbers are those of Envoy's `discovery.proto`; the tests
//! prove both directions against `envoy-types`.
//!
//! ```text
//! received Bytes ── scan (limits, no allocation) ── decode ── Checked { message, refused }
//! Resource ── Field (encoded once) ──┐
//! Head (nonce, …), rest (removed, …) ─┴── Frames (gRPC's own, shared bytes) ── transport
//! ```
//!
//! Reading starts at [`decode`](Inbound::decode_checked), writing at
//! [`encode_sotw`] and [`encode_delta`]; a [`Glance`] reads a few fields
//! without decoding.

mod constraints;
pub(crate) mod delimited;
mod field;
pub(crate) mod frames;
mod glance;
pub(crate) mod inbound;
mod limits;
mod message;
mod node;
mod number;
pub(crate) mod scan;
pub(crate) mod shape;
mod structs;
#[cfg(test)]
mod tests;

pub use constraints::{
    Constraint, ConstraintList, DynamicParameterConstraints, Exists, SingleConstraint, constraint,
};
pub use field::Field;
pub use frames::{Frames, Head, batches, encode_delta, encode_sotw};
pub use glance::{Entry, Glance, PlainAck, fields, name_of, split_initial_versions};
pub use inbound::{Checked, DecodeError, Inbound, Refusal};
pub use limits::Limits;
pub use message::{
    Any, CacheControl, ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse,
    DiscoveryRequest, DiscoveryResponse, Duration, HeldVersion, Resource, ResourceError,
    ResourceLocator, ResourceName, Status,
};
pub use node::{BuildVersion, ContextParams, Locality, Node, SemanticVersion, UserAgentVersion};
pub use structs::values_at;
