//! The library: xDS servers and clients over gRPC.
//!
//! The rules of the protocol are in `trunkline-core`, the messages in
//! `trunkline-proto`. This crate joins them and adds sockets, tasks and a
//! clock; it decides nothing. A number in parentheses, such as S12, C32, M5 or
//! TP2, names a rule of the protocol; `docs/rules.md` in the repository lists
//! them with their tests.
//!
//! | part | concern |
//! |---|---|
//! | [`Server`], [`Builder`], [`Options`] | a server, how it is made, its settings |
//! | [`Contents`], [`Writer`] | where its resources come from |
//! | [`Hooks`], [`Report`] | an embedder's decisions, and the events it is told |
//! | [`Connection`], [`Identity`] | who a client is |
//! | [`Arrival`] | which clients have answered all that was sent for a change |
//! | [`events`] | the newest changes, ACKs and NACKs, for readers who follow them |
//! | [`listen`], [`tls`] | sockets, connections, certificates |
//! | [`memory`] | the memory of the process, and its limit |
//! | [`node`] | rules about nodes: parameters, base sets |
//! | [`status`], [`explain`] | the state of clients, and why a client gets what it gets |
//! | [`load`], [`health`], [`reflection`], [`rest`] | the services beside discovery |
//! | [`mcp`] | sources and sinks of the Mesh Configuration Protocol |
//! | [`checked`] | contents on their way to a server: decoded and checked |
//! | [`client`] | a client: bootstrap in, watches and snapshots out |
//! | [`channel`] | a channel for tonic, whose calls go where a control plane says |
//! | [`wire`] | messages to values of the engine and back |
//!
//! ```no_run
//! use trunkline::envoy::config::cluster::v3::Cluster;
//! use trunkline::{ResourceMessage, Server};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().build();
//! let cluster = Cluster {
//!     name: "backend".to_owned(),
//!     ..Cluster::default()
//! };
//! server.set("my-origin", [ResourceMessage::of(&cluster)])?;
//! let listener = trunkline::listen::bind("127.0.0.1:18000").await?;
//! server.serve(listener).await;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod bind;
#[cfg(feature = "server")]
pub mod bounds;
#[cfg(feature = "channel")]
pub mod channel;
#[cfg(feature = "server")]
pub mod checked;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
mod codec;
#[cfg(feature = "server")]
mod descriptors;
#[cfg(feature = "server")]
pub mod events;
#[cfg(feature = "server")]
pub mod explain;
#[cfg(feature = "server")]
pub mod health;
#[cfg(feature = "server")]
mod hub;
#[cfg(feature = "server")]
mod identity;
#[cfg(feature = "server")]
pub mod listen;
#[cfg(feature = "server")]
pub mod load;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "server")]
pub mod memory;
#[cfg(feature = "server")]
pub mod node;
#[cfg(any(feature = "client", feature = "server"))]
mod paths;
#[cfg(any(feature = "client", feature = "server"))]
mod pem;
#[cfg(feature = "server")]
pub mod questions;
#[cfg(feature = "server")]
pub mod reflection;
#[cfg(feature = "server")]
pub mod rest;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
pub mod status;
#[cfg(feature = "server")]
pub mod tls;
#[cfg(feature = "server")]
mod wake;
pub mod wire;

/// The engine, for types in signatures such as [`core::limits::Limits`]: the
/// version that this crate is built with.
pub use trunkline_core as core;
/// The messages, for types in signatures such as [`proto::discovery::Node`]:
/// the version that this crate is built with.
pub use trunkline_proto as proto;

/// Envoy's messages, for [`ResourceMessage`]: the version that this crate is
/// built with.
pub use trunkline_proto::envoy::envoy;

#[cfg(feature = "server")]
pub use identity::Identity;
#[cfg(feature = "server")]
pub use server::{
    Accepted, Acknowledged, Applied, Arrival, ArrivalState, Awaited, Body, BoxFuture, Builder,
    Call, ChangeCounts, Changed, ClientArrival, Conflict, Connection, Contents, Hooks, Kept,
    LeaseChange, LeaseEvent, LeaseState, LeaseStatus, LeaseTtl, LeaseTtlError, Lifetime, Limit,
    Options, Outstanding, Oversized, Peer, Precondition, RecentChange, Rejected, RejectedResource,
    Repeatable, Report, RequestDetails, ResourceMessage, Sent, Server, Service, Store, StoreError,
    StoredTransaction, Terms, TransactionInfo, Writer, count_rows,
};

pub use trunkline_core::change::Change;
pub use trunkline_core::database::ApplyError;
pub use trunkline_core::facts::{Facts, Reference};
pub use trunkline_core::kind;
pub use trunkline_core::name::Name;
pub use trunkline_core::resource::{Resource, TypeUrl, Version};
pub use trunkline_core::session::Event;

/// The guide's code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-go-control-plane.md")]
struct Recipes;

/// The guide's code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct ClientGuide;

/// The guide's code is compiled.
#[cfg(all(doctest, feature = "channel"))]
#[doc = include_str!("../../../docs/tonic.md")]
struct TonicGuide;

/// The guide's code is compiled.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
struct McpGuide;
