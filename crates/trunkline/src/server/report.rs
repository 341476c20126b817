//! What an embedder is told: enough for logs, metrics and alarms.

use trunkline_core::message::Delivered;
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::session::Event;

use crate::wire::Refused;

/// Who is told.
pub type Observer = dyn Fn(Peer<'_>, Report<'_>) + Send + Sync;

/// Which stream a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer<'a> {
    /// The streams of a server are numbered in the order in which they begin.
    pub stream: u64,
    /// The node at its other end.
    pub node: &'a str,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Report<'a> {
    /// The stream made its first request.
    Opened,
    /// A response goes out.
    Sent(Sent<'a>),
    /// The peer answered, or something of what it asks for is refused.
    Event(&'a Event),
    /// A name was taken out of a request.
    Refused(&'a Refused),
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
    pub resources: &'a [Delivered],
    /// What it says is gone.
    pub removed: &'a [Name],
    /// Its length on the wire.
    pub bytes: usize,
}
