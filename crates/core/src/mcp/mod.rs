//! The Mesh Configuration Protocol: sources and sinks of collections.
//!
//! A collection is a type: its name stands where xDS has a type URL, its
//! resources are in the same [`Database`](crate::database::Database), and a
//! source reads them by the same views and cursors as a wildcard of delta. The
//! body of a resource is the whole encoded resource of the protocol, metadata
//! included.
//!
//! ```text
//!   Database ──▶ McpSource ── Resources ──────────▶ McpSink ──▶ Delivery ──▶ owner
//!    cursors     one stream ◀── RequestResources ── one stream ◀── verdict ───┘
//!                               first, ACK, NACK
//! ```
//!
//! What differs from delta is little: a sink asks for whole collections and
//! never for names, whether a response is incremental is agreed message by
//! message (M6), and a rejected set is not taken apart but waits for a change
//! (M5). So each role is a small machine of its own. Who dials is unknown here
//! (M12).

mod canary;
mod collection_stream;
mod comparison;
mod held;
mod message;
mod outdated;
mod publisher;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use canary::{Rollout, Stage};
pub use message::{RequestResources, Resources, ResourcesUpdate, SinkNode};
pub use outdated::Outdated;
pub use publisher::{Canaries, Closed, Publisher, PublisherStream};
pub use sink::{Delivery, McpSink, Received, Rejected, SinkError, Verdict};
pub use source::{Handled, McpSource, Served, SourceError};
