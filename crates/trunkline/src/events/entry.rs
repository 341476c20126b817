//! An event of a log, and its id.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use trunkline_core::message::ErrorDetail;
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, TypeUrl, Version};

use crate::server::{ChangeCounts, Changed};

/// The id of an event: the log that it is in, and its number there. In a text
/// it is the log in hexadecimal, a hyphen, and the number, which begins at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    /// When the log was made, in nanoseconds, by which an id of another process
    /// is recognised.
    pub(super) log: u64,
    /// How many events there were up to this one.
    pub(super) number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.log, self.number)
    }
}

/// A text that is not the id of an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of an event, such as 18c0a2f4e1b3d5a7-42")]
pub struct InvalidEventId(String);

impl FromStr for EventId {
    type Err = InvalidEventId;

    /// Parses an id in the form in which it is displayed.
    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let parse = || {
            let (log, number) = text.split_once('-')?;
            Some(Self {
                log: u64::from_str_radix(log, 16).ok()?,
                number: number.parse().ok()?,
            })
        };
        parse().ok_or_else(|| InvalidEventId(text.to_owned()))
    }
}

/// An event as a reader gets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogEntry {
    /// Its id.
    pub id: EventId,
    /// When it happened.
    pub time: SystemTime,
    /// The event.
    pub event: Arc<LogEvent>,
}

/// An event of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// The contents were changed.
    Changed {
        /// The revision of the contents after it.
        revision: u64,
        /// Whoever made it.
        author: Box<str>,
        /// The first variants that became different, at most
        /// [`MOST_LISTED`](super::MOST_LISTED), in order of type and name.
        listed: Vec<Changed>,
        /// The number of all variants that became different, by type.
        counts: Vec<(TypeUrl, ChangeCounts)>,
    },
    /// A client ACKed a response.
    Acked {
        /// The client.
        client: ClientStream,
        /// The type of the response.
        type_url: TypeUrl,
        /// Its nonce.
        nonce: Nonce,
        /// The revision of the contents that it was built from, if that is
        /// known.
        revision: Option<u64>,
    },
    /// A client NACKed a response.
    Nacked {
        /// The client.
        client: ClientStream,
        /// The type of the response.
        type_url: TypeUrl,
        /// Its nonce.
        nonce: Nonce,
        /// The revision of the contents that it was built from, if that is
        /// known.
        revision: Option<u64>,
        /// The client's error. It may quote the resource, with secrets.
        error: ErrorDetail,
        /// The resources that it put into quarantine. None while trials have
        /// yet to find them.
        quarantined: Vec<(Name, Version)>,
    },
    /// A stream made its first request.
    Connected {
        /// The client.
        client: ClientStream,
        /// Its address.
        address: Option<SocketAddr>,
        /// Its identity, by its authentication.
        identity: Option<Box<str>>,
    },
    /// A stream ended.
    Disconnected {
        /// The client.
        client: ClientStream,
    },
}

/// A client on its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStream {
    /// The number of the stream, in the order in which streams begin.
    pub stream: u64,
    /// The id of the client's node.
    pub node: Box<str>,
}

impl LogEvent {
    /// The name of every kind of event.
    pub const NAMES: [&'static str; 5] =
        ["changed", "acked", "nacked", "connected", "disconnected"];

    /// Returns the name of the kind of event, one of [`Self::NAMES`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Acked { .. } => "acked",
            Self::Nacked { .. } => "nacked",
            Self::Connected { .. } => "connected",
            Self::Disconnected { .. } => "disconnected",
        }
    }

    /// Returns the client that the event is about. A change is about none.
    #[must_use]
    pub fn client(&self) -> Option<&ClientStream> {
        match self {
            Self::Changed { .. } => None,
            Self::Acked { client, .. }
            | Self::Nacked { client, .. }
            | Self::Connected { client, .. }
            | Self::Disconnected { client } => Some(client),
        }
    }

    /// Returns about how many bytes of memory the event takes. Shared names
    /// count in full, because the event may be the last that holds them.
    pub(super) fn bytes(&self) -> usize {
        let client = self.client().map_or(0, |client| client.node.len());
        let heap = match self {
            Self::Changed {
                author,
                listed,
                counts,
                ..
            } => {
                let variants = listed.iter().map(changed_bytes);
                author.len() + variants.sum::<usize>() + size_of_val(&counts[..])
            }
            Self::Nacked {
                error, quarantined, ..
            } => {
                let names = quarantined.iter().map(|(name, _)| name.as_str().len());
                error.message.len() + names.sum::<usize>() + size_of_val(&quarantined[..])
            }
            Self::Connected { identity, .. } => identity.as_ref().map_or(0, |text| text.len()),
            Self::Acked { .. } | Self::Disconnected { .. } => 0,
        };
        size_of::<Self>() + client + heap
    }
}

/// Returns about how many bytes of memory the change of a variant takes.
fn changed_bytes(changed: &Changed) -> usize {
    size_of::<Changed>() + changed.name.as_str().len()
}
