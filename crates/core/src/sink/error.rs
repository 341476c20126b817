//! Errors of a sink, and who is to blame.

use thiserror::Error;

use crate::name::Name;
use crate::resource::{Nonce, TypeUrl};

/// Why an input was refused. The stream and its other types go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SinkError {
    /// There is no stream that the response could have come from.
    #[error("a response without a stream; call handle_connected first")]
    NotConnected,
    /// The response is not of the stream's protocol.
    #[error("a response of the other protocol variant; the transport mixed up two streams")]
    WrongMode,
    /// The stream carries another type only.
    #[error("the stream carries {carries} only, so {wanted} cannot be asked for on it")]
    WrongType {
        /// The type of the stream.
        carries: TypeUrl,
        /// The type of the subscription.
        wanted: TypeUrl,
    },
    /// The last response of the type has no verdict or acknowledgement yet
    /// (C22).
    #[error("a response of {0} before the last one was judged and answered; ask is_busy first")]
    Busy(TypeUrl),
    /// No such response waits for a verdict: it has one, or its stream has
    /// ended.
    #[error("no response {nonce} of {type_url} waits for a verdict; drop the verdict")]
    NotJudging {
        /// The type of the response.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
    },
    /// The server sent a type that this stream never subscribed to; the
    /// response is neither ACKed nor NACKed (C20).
    #[error("the source sent {0}, which this stream never asked for; ignored")]
    NeverAsked(TypeUrl),
    /// The response contradicts itself; it is NACKed as a whole, and no part of
    /// it is used (E9).
    #[error("the source broke the protocol in response {nonce} of {type_url}, rejected: {fault}")]
    Protocol {
        /// The type of the response.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
        /// What is wrong with it.
        fault: ProtocolFault,
    },
}

/// How a response contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolFault {
    /// One variant of a name occurs twice.
    #[error("{0} is in the response twice")]
    Duplicate(Name),
    /// A name is both added and removed.
    #[error("{0} is both added and removed")]
    AddedAndRemoved(Name),
    /// A name has an error, and is added or removed, too.
    #[error("{0} has both an answer and an error")]
    AnswerAndError(Name),
}

/// Who has to fix an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The program that uses the sink.
    Caller,
    /// The server.
    Peer,
}

impl SinkError {
    /// Returns who has to fix the error.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            Self::NeverAsked(_) | Self::Protocol { .. } => Blame::Peer,
            Self::NotConnected
            | Self::WrongMode
            | Self::WrongType { .. }
            | Self::Busy(_)
            | Self::NotJudging { .. } => Blame::Caller,
        }
    }
}
