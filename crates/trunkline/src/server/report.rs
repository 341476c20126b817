//! Reports on streams: enough for logs, metrics and alarms.

use std::sync::Arc;

use trunkline_core::message::{ErrorDetail, Mode, WireResource};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_core::session::Event;

use super::hooks::Connection;
use crate::identity::Identity;
use crate::wire::Refused;

/// The client and the stream that a report is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Peer<'a> {
    /// The number of the stream, in the order in which streams begin.
    pub stream: u64,
    /// The id of the client's node; empty until the first request.
    pub node: &'a str,
    /// Who the client is, by its certificate or by hooks; `None` if nothing
    /// vouches for it. What it says of itself is its node.
    pub identity: Option<&'a Identity>,
    /// The connection of the stream.
    pub connection: &'a Connection,
    /// Whether it is a stream of state of the world or of delta.
    pub mode: Mode,
}

/// An event on a stream.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Report<'a> {
    /// The stream made its first request.
    Opened,
    /// A request arrived.
    Requested {
        /// The type of the request.
        type_url: &'a TypeUrl,
        /// Its length on the wire.
        bytes: usize,
        /// Its contents, if one of the hooks [reads
        /// them](super::Hooks::reads_requests).
        details: Option<&'a RequestDetails>,
    },
    /// Names were subscribed to on demand: virtual hosts, by their hosts. Only
    /// the first ones, for there may be many.
    HostsRequested {
        /// Their type.
        type_url: &'a TypeUrl,
        /// The first names.
        names: &'a [String],
        /// The number of further names.
        more: usize,
    },
    /// A name that does not exist got its first subscriber.
    Missing {
        /// Its type.
        type_url: &'a TypeUrl,
        /// The name.
        name: &'a Name,
    },
    /// A response is sent.
    Sent(Sent<'a>),
    /// That response is larger than gRPC accepts by default, and its client is
    /// not Envoy: it will likely end the stream, reconnect, and be sent the
    /// same again (S80).
    Oversized(Oversized<'a>),
    /// An event of the session: an ACK or a NACK, a resource that was
    /// quarantined, a name that was refused, and the like.
    Event(&'a Event),
    /// An ACK or a NACK, after the events of its request: the same as
    /// [`Event::Acked`] or [`Event::Nacked`], with what the server knows of it.
    Acknowledged(Acknowledged<'a>),
    /// A name was taken out of a request.
    Refused(&'a Refused),
    /// The client may not see a type.
    Denied {
        /// The type.
        type_url: &'a TypeUrl,
    },
    /// The client sent the first ACK of the stream, so long after the stream
    /// began.
    Configured(std::time::Duration),
    /// The stream has ended.
    Closed,
}

/// The contents of a request, cut to what a log can hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestDetails {
    /// The first names that it subscribes to; in state of the world, of all that
    /// the client subscribes to. Long names are cut.
    pub names: Vec<String>,
    /// The number of further names.
    pub more: usize,
    /// The first names that it unsubscribes from, in delta.
    pub unsubscribed: Vec<String>,
    /// The number of further ones.
    pub more_unsubscribed: usize,
    /// The nonce of the response that it acknowledges.
    pub nonce: Option<Nonce>,
    /// The version that the client has accepted last, in state of the world.
    pub version: Option<Version>,
    /// The error, if it is a NACK, cut to some length, without the secrets
    /// that the client was sent.
    pub error: Option<String>,
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The type of its resources.
    pub type_url: &'a TypeUrl,
    /// Its nonce.
    pub nonce: &'a Nonce,
    /// Its resources.
    pub resources: &'a [WireResource],
    /// The names that it removes; in state of the world the first of those that
    /// a whole set leaves out.
    pub removed: &'a [Name],
    /// Its length on the wire.
    pub bytes: usize,
}

/// An ACK or a NACK of a response.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acknowledged<'a> {
    /// The type of the response.
    pub type_url: &'a TypeUrl,
    /// Its nonce.
    pub nonce: &'a Nonce,
    /// The client's error, cut to the limit, if it is a NACK. It may quote the
    /// resource, without the secrets in it.
    pub error: Option<&'a ErrorDetail>,
    /// The revision of the contents that the response was built from; `None`
    /// if the response is too old to know.
    pub revision: Option<u64>,
    /// The events of the request.
    events: &'a [Event],
}

impl<'a> Acknowledged<'a> {
    /// Finds the acknowledgement among the events of a request, which
    /// acknowledges one response at most.
    pub(super) fn find(events: &'a [Event], revision: Option<u64>) -> Option<Self> {
        let acknowledgement = events.iter().find_map(|event| match event {
            Event::Acked { type_url, nonce } => Some((type_url, nonce, None)),
            Event::Nacked {
                type_url,
                nonce,
                error,
            } => Some((type_url, nonce, Some(error))),
            _ => None,
        });
        let (type_url, nonce, error) = acknowledgement?;
        Some(Self {
            type_url,
            nonce,
            error,
            revision,
            events,
        })
    }

    /// Returns the resources that a NACK put into quarantine: they are not sent
    /// again unchanged. There are none while trials have yet to find them
    /// (S12).
    pub fn quarantined(&self) -> impl Iterator<Item = (&'a Name, &'a Version)> + use<'a> {
        self.events.iter().filter_map(|event| match event {
            Event::Quarantined { name, version, .. } => Some((name, version)),
            _ => None,
        })
    }
}

/// A response that its client may not accept.
#[derive(Clone, Copy, Debug)]
pub struct Oversized<'a> {
    /// The type of its resources.
    pub type_url: &'a TypeUrl,
    /// Its length on the wire.
    pub bytes: usize,
    /// The default limit of gRPC.
    pub limit: usize,
    /// The number of its resources.
    pub resources: usize,
    /// The largest of them.
    pub largest: Option<&'a Arc<Resource>>,
}
