//! What those who watch a name get to hear (C39).
//!
//! Two words only: the value changed, or something is wrong that does not stop
//! its use. Which of them an error becomes is decided in [`super::error_policy`].

use std::sync::Arc;

use crate::change::Transaction;
use crate::name::Name;
use crate::resource::{ErrorCode, Resource, TypeUrl};

/// Something that those who watch a name must hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The value from now on, or why there is none.
    Changed(TypeUrl, Name, Result<Arc<Resource>, WatchError>),
    /// What is wrong while the value stays in use; `None`: nothing any more.
    Ambient(TypeUrl, Name, Option<WatchError>),
}

/// Why a name has no value, or only an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchError {
    /// Whose doing it is.
    pub cause: Cause,
    /// For people only (S64).
    pub message: Arc<str>,
}

/// Whose doing an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The source cannot be reached: no stream lived until a response (C36).
    Unreachable,
    /// The owner rejected what the source sent.
    Rejected,
    /// The source says that the resource is gone, or was never there.
    Deleted,
    /// The source said nothing for too long: the name does not exist (C34).
    Silent,
    /// The source said nothing for too long: it is not known why (C35).
    TimedOut,
    /// The source did not refresh the resource in time (E10).
    Expired,
    /// The source said so itself (TP3, C43).
    Source(ErrorCode),
}

/// Whether what is held is still right in spite of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It may be: the error is about reaching the source (C40).
    Transient,
    /// It is not: the error is about the resource (C41).
    Data,
}

impl Cause {
    /// Which column of the table this is (C40, C41).
    #[must_use]
    pub fn class(self) -> ErrorClass {
        match self {
            Self::Unreachable | Self::TimedOut => ErrorClass::Transient,
            Self::Source(code) if !code.is_data_error() => ErrorClass::Transient,
            _ => ErrorClass::Data,
        }
    }

    /// Whether the source itself takes the resource back.
    #[must_use]
    pub fn is_withdrawal(self) -> bool {
        self.class() == ErrorClass::Data && self != Self::Rejected
    }

    /// gRPC's code for it. Not for calls of the data plane, which fail with
    /// UNAVAILABLE whatever happened here (C45).
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Unreachable | Self::TimedOut => ErrorCode::Unavailable,
            Self::Rejected => ErrorCode::Other(3),
            Self::Deleted | Self::Silent | Self::Expired => ErrorCode::NotFound,
            Self::Source(code) => code,
        }
    }
}

impl WatchError {
    /// An error and its words.
    #[must_use]
    pub fn new(cause: Cause, message: impl Into<Arc<str>>) -> Self {
        Self {
            cause,
            message: message.into(),
        }
    }

    pub(super) fn deleted() -> Self {
        Self::new(Cause::Deleted, "the source says that it does not exist")
    }

    pub(super) fn expired() -> Self {
        Self::new(Cause::Expired, "not refreshed within its ttl")
    }
}

/// What one input brings about, as values: apply the changes, tell the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// For the owner's database, to take effect together.
    pub changes: Transaction,
    /// For those who watch, in order.
    pub events: Vec<Event>,
}
