//! The messages of the Mesh Configuration Protocol, `istio.mcp.v1alpha1`.
//!
//! No package carries the definition of its services any more, so the messages
//! are written here by field number; `mcp.proto` beside this file is the same
//! contract for other languages, and a test holds the two together.
//!
//! ```text
//!   sink                                                        source
//!     │ ── RequestResources { collection, initial versions, … } ──▶ │
//!     │ ◀── Resources { collection, nonce, resources, … } ───────── │
//!     │ ── RequestResources { response_nonce, error_detail? } ────▶ │
//! ```
//!
//! A resource stays encoded inside of [`Resources`]: its bytes are a slice of
//! the received buffer, and a source that sends it again copies nothing but
//! these bytes. [`Resource`] reads them. Decoding starts at
//! [`Inbound::decode_checked`](crate::discovery::Inbound::decode_checked), with
//! the limits of discovery messages.

mod collection;
mod frames;
mod inbound;
mod message;
#[cfg(test)]
mod tests;

pub use collection::Collection;
pub use frames::encode_resources;
pub use message::{Metadata, RequestResources, Resource, Resources, SinkNode, Timestamp};

/// The method of the service `ResourceSource`: the sink dials.
pub const SOURCE_METHOD: &str = "/istio.mcp.v1alpha1.ResourceSource/EstablishResourceStream";

/// The method of the service `ResourceSink`: the source dials, and the sink
/// still speaks first.
pub const SINK_METHOD: &str = "/istio.mcp.v1alpha1.ResourceSink/EstablishResourceStream";

/// The definition of the messages and both services, for peers in other
/// languages.
pub const PROTO: &str = include_str!("mcp.proto");
