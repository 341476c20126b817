//! The library: xDS servers over gRPC.
//!
//! Thin on purpose. The rules are in `trunkline-core`, the messages in
//! `trunkline-proto`; here they meet ([`wire`]) and are given sockets, tasks and
//! a clock ([`Server`]). Nothing is decided here.
//!
//! ```no_run
//! use std::sync::Arc;
//! use trunkline::{Change, Resource, Server, kind};
//!
//! # async fn run(cluster: bytes::Bytes) -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().build();
//! let resource = Resource::new("backend".into(), cluster);
//! server.apply(vec![Change::Upsert(kind::CDS.into(), Arc::new(resource))])?;
//! let listener = trunkline::listen::bind("127.0.0.1:18000").await?;
//! server.serve(listener).await;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod bell;
mod bind;
mod descriptors;
pub mod explain;
pub mod health;
mod hub;
pub mod listen;
pub mod load;
pub mod node;
pub mod reflection;
pub mod rest;
mod server;
pub mod status;
pub mod tls;
pub mod wire;

pub use server::{
    Body, BoxFuture, Builder, Call, Changed, Connection, Contents, Hooks, Limit, Options,
    Oversized, Peer, Report, Sent, Server, Service, Writer,
};

pub use trunkline_core::change::Change;
pub use trunkline_core::database::ApplyError;
pub use trunkline_core::facts::{Facts, Reference};
pub use trunkline_core::kind;
pub use trunkline_core::name::Name;
pub use trunkline_core::resource::{Resource, TypeUrl, Version};
pub use trunkline_core::session::Event;
