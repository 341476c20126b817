//! What an embedder is told of streams: enough for logs, metrics and alarms.

use std::sync::Arc;

use trunkline_core::message::WireResource;
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl};
use trunkline_core::session::Event;

use super::hooks::Connection;
use crate::wire::Refused;

/// Which stream a report is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Peer<'a> {
    /// The streams of a server are numbered in the order in which they begin.
    pub stream: u64,
    /// The node at its other end; empty until its first request.
    pub node: &'a str,
    /// Who the peer was found to be when it was authenticated.
    pub identity: Option<&'a str>,
    /// The connection that it came by.
    pub connection: &'a Connection,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Report<'a> {
    /// The stream made its first request.
    Opened,
    /// A request arrived.
    Requested {
        /// What it is about.
        type_url: &'a TypeUrl,
        /// Its length on the wire.
        bytes: usize,
    },
    /// Names were asked for on demand: virtual hosts, by their hosts. Those that
    /// come first, for there may be many.
    Asked {
        /// Their type.
        type_url: &'a TypeUrl,
        /// The first names.
        names: &'a [String],
        /// How many there are beside them.
        more: usize,
    },
    /// A name that does not exist was asked for, and nobody did before.
    Missing {
        /// Its type.
        type_url: &'a TypeUrl,
        /// The name.
        name: &'a Name,
    },
    /// A response goes out.
    Sent(Sent<'a>),
    /// That response is larger than what gRPC takes by default, and its client
    /// is not Envoy: likely it will end the stream, come back, and be sent the
    /// same again (S80).
    Oversized(Oversized<'a>),
    /// The peer accepted or rejected a response, one resource was found to be
    /// at fault, a name was refused, and the like.
    Event(&'a Event),
    /// A name was taken out of a request.
    Refused(&'a Refused),
    /// The peer may not see a type.
    Denied {
        /// The type.
        type_url: &'a TypeUrl,
    },
    /// All that there was to say to the peer for the first time was said and
    /// answered, so long after its first request.
    Configured(std::time::Duration),
    /// The stream is over and forgotten.
    Closed,
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The type of its resources.
    pub type_url: &'a TypeUrl,
    /// What it is called on its stream.
    pub nonce: &'a Nonce,
    /// What it brings.
    pub resources: &'a [WireResource],
    /// What it says is gone.
    pub removed: &'a [Name],
    /// Its length on the wire.
    pub bytes: usize,
}

/// A response that its client may not take.
#[derive(Clone, Copy, Debug)]
pub struct Oversized<'a> {
    /// The type of its resources.
    pub type_url: &'a TypeUrl,
    /// Its length on the wire.
    pub bytes: usize,
    /// What gRPC takes by default.
    pub limit: usize,
    /// How many resources it brings.
    pub resources: usize,
    /// The largest of them.
    pub largest: Option<&'a Arc<Resource>>,
}
