//! The state of clients: who is connected, and which resources were sent to
//! each, ACKed and NACKed.
//!
//! A server implements [`Clients`]; [`csds`] is the gRPC service over it.
//! Nothing here has side effects, and nothing is kept between two calls.
//!
//! ```
//! use trunkline::Server;
//! use trunkline::status::{Clients as _, Sync};
//!
//! let server = Server::default();
//! for client in server.clients() {
//!     for state in client.types.iter().filter(|state| state.sync == Sync::Nacked) {
//!         println!("{} rejects {:?}", client.node.id, state.quarantined);
//!     }
//! }
//! ```

pub mod csds;
mod matcher;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use trunkline_core::message::{ErrorDetail, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};

use crate::identity::Identity;

/// The clients of a server.
pub trait Clients: Send + std::marker::Sync {
    /// Returns all connected clients, in the order of their streams.
    fn clients(&self) -> Vec<Client>;

    /// Returns the resources that the client on a stream subscribes to, with
    /// their states; none if the stream has ended.
    fn resources(&self, stream: u64) -> Vec<ClientResource>;
}

/// A client on its stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The number of the stream; numbers are not used twice.
    pub stream: u64,
    /// The client's node.
    pub node: Node,
    /// The client's address.
    pub address: Option<SocketAddr>,
    /// Who the client is, by its certificate or by hooks.
    pub identity: Option<Identity>,
    /// The protocol.
    pub mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub only: Option<TypeUrl>,
    /// The time at which the stream began.
    pub opened: SystemTime,
    /// The types that the client subscribes to.
    pub types: Vec<TypeState>,
}

/// The state of one type with one client.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeState {
    /// The type.
    pub type_url: TypeUrl,
    /// The number of names and globs that it subscribes to.
    pub subscriptions: usize,
    /// Whether it subscribes to the wildcard.
    pub wildcard: bool,
    /// The state in one word.
    pub sync: Sync,
    /// The number of resources that the client has as they should be.
    pub current: usize,
    /// The number of resources that it should have.
    pub desired: usize,
    /// How long ago the newest response was sent.
    pub last_sent: Option<Duration>,
    /// How long the oldest response without an acknowledgement has none.
    pub unanswered: Option<Duration>,
    /// The nonce of the newest response.
    pub sent: Option<Nonce>,
    /// The nonce of the newest response that was ACKed.
    pub acked: Option<Nonce>,
    /// The version of the newest response.
    pub sent_version: Option<String>,
    /// The version of the newest response that was ACKed.
    pub acked_version: Option<String>,
    /// The error of the client's last NACK.
    pub error: Option<ErrorDetail>,
    /// Quarantined resources: NACKed alone, with the version.
    pub quarantined: Vec<(Name, Version)>,
    /// The length of the newest response, if that is more than gRPC accepts by
    /// default, the client is not Envoy, and has not acknowledged it (S80).
    pub oversized: Option<usize>,
}

/// Whether a client has its desired resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// It ACKed all of them.
    Synced,
    /// An ACK is pending.
    Stale,
    /// It NACKed some of them.
    Nacked,
}

/// One resource of one client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientResource {
    /// The type.
    pub type_url: TypeUrl,
    /// The name.
    pub name: Name,
    /// Its state.
    pub state: ResourceState,
    /// The resource that was sent last; after a NACK, the one that the client
    /// accepted before, if any.
    pub resource: Option<Arc<Resource>>,
    /// The version that it rejects.
    pub rejected: Option<Rejected>,
}

/// The state of a resource with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceState {
    /// Subscribed to, and not answered yet.
    Requested,
    /// Subscribed to, and it does not exist.
    DoesNotExist,
    /// The client ACKed it.
    Acked,
    /// Sent, with a pending ACK.
    Sent,
    /// The client NACKed it.
    Nacked,
}

/// A version that a client rejects, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The version.
    pub version: Version,
    /// The error of its NACK.
    pub error: ErrorDetail,
}
