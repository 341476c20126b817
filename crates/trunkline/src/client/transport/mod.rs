//! The transports of a client: gRPC streams to control planes, over connections
//! that equal control planes share; polls; files.
//!
//! ```text
//! ControlPlane ── Connector ──▶ Connection ──▶ Stream ── ready, send, next
//!                 dial, TLS      HTTP/2         messages as bytes
//!                     └─────────────────────▶ poll: JSON over HTTP/1.1
//! PathSource ──────────────────────────────▶ PathWatch ── next
//! ```
//!
//! Messages are bytes here. What they say, when to connect again and which
//! control plane to prefer are questions of others.
//!
//! ```no_run
//! # use trunkline::client::{ControlPlane, transport::{Connector, StreamError, TransportOptions}};
//! # async fn run(plane: ControlPlane, request: bytes::Bytes) -> Result<(), StreamError> {
//! let connector = Connector::new(TransportOptions::default());
//! let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
//! let mut stream = connector.open(&plane, path).await?;
//! stream.ready().await?;
//! stream.send(request);
//! while let Some(response) = stream.next().await? {
//!     println!("{} bytes", response.len());
//! }
//! # Ok(())
//! # }
//! ```

mod code;
mod connection;
mod connector;
mod dial;
mod discovery_text;
mod error;
mod frame;
mod headers;
mod keepalive;
mod options;
mod path_watch;
mod rest;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod watched;

pub use crate::pem::TlsError;
pub use code::Code;
pub use connection::Connection;
pub use connector::Connector;
pub use error::{ConnectError, HeaderError, StreamError};
pub use options::{Keepalive, TransportOptions};
pub(crate) use path_watch::PathWatch;
pub(crate) use rest::PollError;
pub use stream::{RequestSender, ResponseReceiver, Stream};
