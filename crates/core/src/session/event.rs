//! Events of a session: ACKs, NACKs, refusals and faults.

use crate::message::{ErrorDetail, Node};
use crate::name::{Name, NameError};
use crate::resource::{Nonce, TypeUrl, Version};

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client ACKed a response.
    Acked {
        /// The type.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
    },
    /// The client NACKed a response; trials find out which of its resources is
    /// at fault (S12).
    Nacked {
        /// The type.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
        /// The client's error, cut to the limit.
        error: ErrorDetail,
    },
    /// One resource was NACKed alone: it is not sent again unchanged.
    Quarantined {
        /// The type.
        type_url: TypeUrl,
        /// The name of the resource.
        name: Name,
        /// The version of the resource.
        version: Version,
        /// The client's error, cut to the limit.
        error: ErrorDetail,
    },
    /// A resource is withheld, because it has a private key in it: the client
    /// keeps what it has of the name, or is told that there is nothing.
    Withheld {
        /// The type.
        type_url: TypeUrl,
        /// The name of the resource.
        name: Name,
        /// The version of the resource.
        version: Version,
    },
    /// An acknowledgement of a response that is no longer the newest (S6, S7).
    Stale {
        /// The type.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
    },
    /// Names of a request are refused; the rest of the request counts (S72).
    Refused {
        /// The type.
        type_url: TypeUrl,
        /// Why.
        reason: Refusal,
        /// How many names.
        names: usize,
    },
    /// The node differs from that of the first request; this changes nothing
    /// that the client gets (S2).
    NodeChanged {
        /// The new node.
        node: Node,
    },
}

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The stream has too many subscriptions.
    #[error(
        "the stream already has {limit} subscriptions; unsubscribe from some, or raise the limit"
    )]
    Subscriptions {
        /// The limit.
        limit: usize,
    },
    /// The names of the stream's subscriptions weigh too much.
    #[error(
        "the names that the stream subscribes to take {limit} bytes; unsubscribe from some, or \
         raise the limit"
    )]
    SubscriptionBytes {
        /// The limit.
        limit: usize,
    },
    /// Names that do not exist weigh too much, those of all streams together.
    #[error(
        "names that do not exist may take {limit} bytes, and the share of this stream is used up; \
         unsubscribe from some, or raise the limit"
    )]
    MissingBytes {
        /// The limit for all streams.
        limit: usize,
    },
    /// The process is short of memory, and nothing has the name.
    #[error(
        "the server is near its memory limit and takes no further name that does not exist; raise \
         the limit"
    )]
    Memory,
    /// The stream subscribes to too many unbounded hosts.
    #[error(
        "the stream already asks for {limit} hosts that no virtual host names itself; keep junk \
         from the proxy, or raise the limit"
    )]
    Hosts {
        /// The limit.
        limit: usize,
    },
    /// The stream subscribes to too many globs.
    #[error("the stream already has {limit} globs; unsubscribe from some, or raise the limit")]
    Globs {
        /// The limit.
        limit: usize,
    },
    /// The stream has too many sets of parameters.
    #[error("the stream already brought {limit} sets of parameters; use fewer, or raise the limit")]
    Params {
        /// The limit.
        limit: usize,
    },
    /// There are too many sets of parameters, those of all streams together.
    #[error(
        "all streams may bring {limit} sets of parameters, and the share of this stream is used \
         up; use fewer, or raise the limit"
    )]
    AllParams {
        /// The limit for all streams.
        limit: usize,
    },
    /// The stream subscribes to too many types.
    #[error("the stream already asks for {limit} types; open another, or raise the limit")]
    Types {
        /// The limit.
        limit: usize,
    },
    /// Clients have brought too many types that nobody has contents of.
    #[error(
        "all streams may ask for {limit} types without contents, and the share of this stream is \
         used up; ask for fewer"
    )]
    AllTypes {
        /// The limit for all streams.
        limit: usize,
    },
}

/// The client broke the protocol: its stream cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A request on an aggregated stream has no type (S3).
    #[error("type_url is required on an aggregated stream")]
    NoType,
    /// A request on a stream of one type has another (S3).
    #[error("this stream serves {expected}, not {got}")]
    WrongType {
        /// The type of the stream.
        expected: TypeUrl,
        /// The type of the request.
        got: TypeUrl,
    },
    /// A request of the other protocol.
    #[error("a request of the other protocol on this stream")]
    WrongMode,
}
