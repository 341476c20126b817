//! What a session reports to whoever runs it: answers, refusals, faults.

use crate::message::{ErrorDetail, Node};
use crate::name::{Name, NameError};
use crate::resource::{Nonce, TypeUrl, Version};

/// Something that happened on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer accepted a response.
    Acked {
        /// The type.
        type_url: TypeUrl,
        /// Which response.
        nonce: Nonce,
    },
    /// The peer rejected a response; which of its resources is at fault is
    /// found out by sending them again in parts (S12).
    Nacked {
        /// The type.
        type_url: TypeUrl,
        /// Which response.
        nonce: Nonce,
        /// What the peer says, cut to the limit.
        error: ErrorDetail,
    },
    /// One resource was rejected on its own: it is not sent again unchanged.
    Quarantined {
        /// The type.
        type_url: TypeUrl,
        /// Which resource.
        name: Name,
        /// Which version of it.
        version: Version,
        /// What the peer says, cut to the limit.
        error: ErrorDetail,
    },
    /// An answer to a response that is no longer the newest (S6, S7).
    Stale {
        /// The type.
        type_url: TypeUrl,
        /// Which response.
        nonce: Nonce,
    },
    /// A name that the peer asks for is refused; the rest of the request counts (S72).
    Refused {
        /// The type.
        type_url: TypeUrl,
        /// Why.
        reason: Refusal,
    },
    /// The peer describes itself differently than at first; what it gets does
    /// not change by that (S2).
    NodeChanged {
        /// What it says now.
        node: Node,
    },
}

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The stream asks for too much.
    #[error(
        "the stream already has {limit} subscriptions; unsubscribe from some, or raise the limit"
    )]
    Subscriptions {
        /// The limit.
        limit: usize,
    },
    /// The stream asks for too many hosts.
    #[error(
        "the stream already asks for {limit} hosts that no virtual host names itself; keep junk \
         from the proxy, or raise the limit"
    )]
    Hosts {
        /// The limit.
        limit: usize,
    },
    /// The stream asks for too many globs.
    #[error("the stream already has {limit} globs; unsubscribe from some, or raise the limit")]
    Globs {
        /// The limit.
        limit: usize,
    },
    /// The stream brings too many sets of parameters.
    #[error("the stream already brought {limit} sets of parameters; use fewer, or raise the limit")]
    Params {
        /// The limit.
        limit: usize,
    },
    /// The stream asks for too many types.
    #[error("the stream already asks for {limit} types; open another, or raise the limit")]
    Types {
        /// The limit.
        limit: usize,
    },
}

/// The peer broke the protocol: its stream cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A stream of many types needs to be told which (S3).
    #[error("type_url is required on an aggregated stream")]
    NoType,
    /// A stream of one type was asked for another (S3).
    #[error("this stream serves {expected}, not {got}")]
    WrongType {
        /// What the stream serves.
        expected: TypeUrl,
        /// What was asked for.
        got: TypeUrl,
    },
    /// A request of the other protocol.
    #[error("a request of the other protocol on this stream")]
    WrongMode,
}
