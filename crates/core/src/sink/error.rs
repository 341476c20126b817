//! What can go wrong at the asking side, and whose fault it is.

use thiserror::Error;

use crate::name::Name;
use crate::resource::{Nonce, TypeUrl};

/// Why an input was not taken. The stream and its other types go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SinkError {
    /// There is no stream that the response could have come from.
    #[error("a response without a stream; call handle_connected first")]
    NotConnected,
    /// The response is not of the variant that the stream speaks.
    #[error("a response of the other protocol variant; the transport mixed up two streams")]
    WrongMode,
    /// The stream carries one other type.
    #[error("the stream carries {carries} only, so {wanted} cannot be asked for on it")]
    WrongType {
        /// What the stream carries.
        carries: TypeUrl,
        /// What was asked for.
        wanted: TypeUrl,
    },
    /// The last response of the type is not finished with (C22).
    #[error("a response of {0} before the last one was judged and answered; ask is_busy first")]
    Busy(TypeUrl),
    /// No such response waits for a verdict: it was judged, or its stream is gone.
    #[error("no response {nonce} of {type_url} waits for a verdict; drop the verdict")]
    NotJudging {
        /// The type of the response.
        type_url: TypeUrl,
        /// The response.
        nonce: Nonce,
    },
    /// The source sent what this stream never asked for; it is neither
    /// accepted nor rejected (C20).
    #[error("the source sent {0}, which this stream never asked for; ignored")]
    NeverAsked(TypeUrl),
    /// The source contradicts itself; the response was rejected as a whole and
    /// nothing of it was used (E9).
    #[error("the source broke the protocol in response {nonce} of {type_url}, rejected: {fault}")]
    Protocol {
        /// The type of the response.
        type_url: TypeUrl,
        /// The response.
        nonce: Nonce,
        /// What is wrong with it.
        fault: ProtocolFault,
    },
}

/// How a response contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolFault {
    /// One variant of a name is there twice.
    #[error("{0} is in the response twice")]
    Duplicate(Name),
    /// A name is there and also removed.
    #[error("{0} is both added and removed")]
    AddedAndRemoved(Name),
    /// A name is there, or removed, and also cannot be given.
    #[error("{0} has both an answer and an error")]
    AnswerAndError(Name),
}

/// Who has to mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The program around the machine.
    Caller,
    /// The source at the other end.
    Peer,
}

impl SinkError {
    /// Who has to mend it.
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
