//! The Mesh Configuration Protocol: sources and sinks of collections, each of
//! which listens or dials.
//!
//! ```text
//!                    listens: ResourceSource          dials: ResourceSource
//!   apply ─▶ McpSource ◀──────────────────────────────────────── McpSink ─▶ owner
//!                    dials: ResourceSink            listens: ResourceSink
//!            McpSource ────────────────────────────────────────▶ McpSink
//! ```
//!
//! The rules are in [`trunkline_core::mcp`] and know nothing of who dialled
//! (M12). Here are the streams: `link` is one of either direction, `accept` and
//! `dial` make them, `wire`, `xds` and `delta_xds` read and write messages.
//!
//! ```no_run
//! use trunkline::mcp::{self, Delivery, McpSink, McpSource, SinkOptions, Verdict};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let source = McpSource::default();
//! source.set("example/v1/things", [mcp::resource("ns/a", "t/T", "body")])?;
//! let listener = trunkline::listen::bind("127.0.0.1:9901").await?;
//! let serving = tokio::spawn(source.listen(listener, Default::default()));
//!
//! let sink = McpSink::new(
//!     SinkOptions::of("me", ["example/v1/things"]),
//!     |delivery: Delivery| {
//!         println!("{:?}", delivery.changes);
//!         Verdict::Accept
//!     },
//! );
//! sink.dial(mcp::plaintext("127.0.0.1:9901".parse()?)).await;
//! # Ok(())
//! # }
//! ```

mod accept;
mod answer;
mod contents;
mod delta_xds;
mod dial;
mod entry;
mod link;
mod server_owner;
mod server_source;
mod sink;
mod sink_codec;
mod sink_status;
mod source;
mod source_status;
mod source_stream;
mod wire;
mod xds;

use bytes::Bytes;
pub use contents::{Door, McpContents};
pub use link::Wire;
pub use server_owner::{OwnerOptions, ServerOwner};
pub use server_source::ServerCollections;
pub use sink::{McpOwner, McpSink, SinkOptions};
pub use sink_status::{CollectionStatus, SinkStatus};
pub use source::{McpSource, SourceOptions};
pub use source_status::{RolloutStatus, SourceStatus, SourceStreamStatus};
pub use trunkline_core::mcp::{Canaries, Delivery, Rejected, Served, SinkNode, Verdict};
use trunkline_proto::discovery::Any;
pub use trunkline_proto::mcp::{Metadata, Resource as McpResource, Timestamp};
pub use wire::read_resource;

use crate::client::{Address, ControlPlane};

/// The annotation of a resource that is for some clients only: its constraints
/// as people write them, such as `env=prod AND NOT version=v1` (TP2).
pub const CONSTRAINTS: &str = "trunkline/constraints";

/// Makes a resource with a name and a body of a type, and no labels.
#[must_use]
pub fn resource(name: &str, type_url: &str, body: impl Into<Bytes>) -> McpResource {
    McpResource {
        metadata: Some(Metadata {
            name: name.to_owned(),
            ..Metadata::default()
        }),
        body: Some(Any {
            type_url: type_url.to_owned(),
            value: body.into(),
        }),
    }
}

/// Makes a peer to dial at an address, without TLS. [`ControlPlane`] has the
/// rest: TLS, headers, keepalive.
#[must_use]
pub fn plaintext(address: Address) -> ControlPlane {
    ControlPlane::plaintext(address)
}
