//! Events for the watchers of a name (C39).
//!
//! There are two: the value changed, or there is an error that does not stop
//! its use. [`super::error_policy`] decides which of them an error becomes.

use std::sync::Arc;

use crate::change::Transaction;
use crate::name::Name;
use crate::resource::{ErrorCode, Resource, TypeUrl};

/// An event for the watchers of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The new value, or why there is none.
    Changed(TypeUrl, Name, Result<Arc<Resource>, WatchError>),
    /// The error while the value stays in use; `None` if it has ended.
    Ambient(TypeUrl, Name, Option<WatchError>),
}

/// Why a name has no value, or only an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchError {
    /// The cause of the error.
    pub cause: Cause,
    /// For people only (S64).
    pub message: Arc<str>,
}

/// The cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server cannot be reached: no stream lived until a response (C36).
    Unreachable,
    /// The owner rejected the resource.
    Rejected,
    /// The server says that the resource does not exist.
    Deleted,
    /// The server did not respond in time: the name does not exist (C34).
    Silent,
    /// The server did not respond in time, for unknown reasons (C35).
    TimedOut,
    /// The server did not renew the TTL of the resource (E10).
    Expired,
    /// The server sent an error for the name (TP3, C43).
    Source(ErrorCode),
}

/// Whether a cached resource may still be valid in spite of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// It may be: the error is about reaching the server (C40).
    Transient,
    /// It is not: the error is about the resource (C41).
    Data,
}

impl Cause {
    /// Returns the class of the error in A88's table (C40, C41).
    #[must_use]
    pub(crate) fn class(self) -> ErrorClass {
        match self {
            Self::Unreachable | Self::TimedOut => ErrorClass::Transient,
            Self::Source(code) if !code.is_data_error() => ErrorClass::Transient,
            _ => ErrorClass::Data,
        }
    }

    /// Returns whether the server itself withdraws the resource.
    #[must_use]
    pub(crate) fn is_withdrawal(self) -> bool {
        self.class() == ErrorClass::Data && self != Self::Rejected
    }
}

impl WatchError {
    /// Makes an error with a message for people.
    #[must_use]
    pub(crate) fn new(cause: Cause, message: impl Into<Arc<str>>) -> Self {
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

/// The effects of one input, as values: changes to apply, and events to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Changes for the owner's database, to be applied together.
    pub changes: Transaction,
    /// Events for watchers, in order.
    pub events: Vec<Event>,
}
