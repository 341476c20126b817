//! How clients stand: who is connected, what each was sent, has accepted and
//! has rejected.
//!
//! A server tells it through [`Clients`]; [`csds`] is the gRPC service over it.
//! Nothing here has side effects, and nothing is kept between two questions.

pub mod csds;
mod matcher;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use trunkline_core::message::{ErrorDetail, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};

/// Knows the clients of a server.
pub trait Clients: Send + std::marker::Sync {
    /// All that are connected, in the order of their streams.
    fn clients(&self) -> Vec<Client>;

    /// What the client on a stream asked for and what became of it; nothing if
    /// the stream is gone. It may be called for a stream that has just ended.
    fn resources(&self, stream: u64) -> Vec<ClientResource>;
}

/// A client on its stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Which stream; numbers are not used twice.
    pub stream: u64,
    /// What the client says of itself.
    pub node: Node,
    /// Where it comes from.
    pub address: Option<SocketAddr>,
    /// Who it is, by its certificate or token.
    pub identity: Option<String>,
    /// The protocol.
    pub mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub only: Option<TypeUrl>,
    /// Since when.
    pub opened: SystemTime,
    /// The types that it asked for.
    pub types: Vec<TypeState>,
}

/// How one type stands with one client.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeState {
    /// The type.
    pub type_url: TypeUrl,
    /// How many names and globs it asks for.
    pub subscriptions: usize,
    /// Whether it asks for all of the type.
    pub wildcard: bool,
    /// In one word.
    pub sync: Sync,
    /// The newest response.
    pub sent: Option<Nonce>,
    /// The newest response that was accepted.
    pub acked: Option<Nonce>,
    /// The version of the newest response.
    pub sent_version: Option<String>,
    /// The version of the newest response that was accepted.
    pub acked_version: Option<String>,
    /// What the client last said of something that it rejects.
    pub error: Option<ErrorDetail>,
    /// What it rejected on its own, and in which version.
    pub parked: Vec<(Name, Version)>,
    /// The length of the newest response, where that is more than gRPC takes
    /// by default, the client is not Envoy, and has not answered (S80).
    pub oversized: Option<usize>,
}

/// Whether a client has what it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// It accepted all that is for it.
    Synced,
    /// It has not answered yet.
    Stale,
    /// It rejects something that is for it.
    Nacked,
}

/// One resource, as one client has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientResource {
    /// The type.
    pub type_url: TypeUrl,
    /// The name.
    pub name: Name,
    /// How it stands.
    pub state: ResourceState,
    /// What was sent last; where that was rejected, what the client accepted
    /// before, if anything.
    pub resource: Option<Arc<Resource>>,
    /// What it rejects.
    pub rejected: Option<Rejected>,
}

/// How a resource stands with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceState {
    /// Asked for, and nothing was said of it yet.
    Requested,
    /// Asked for, and there is no such thing.
    DoesNotExist,
    /// The client accepted it.
    Acked,
    /// Sent, and not answered.
    Sent,
    /// The client rejected it.
    Nacked,
}

/// A version that a client rejected, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The version.
    pub version: Version,
    /// What the client says.
    pub error: ErrorDetail,
}
