//! The effects of a sink: changes of contents, errors of names (C39), and how
//! much of a subscription is known.
//!
//! Values are in the owner's database, and events have the errors beside them.
//! [`super::error_policy`] decides what an error does to a value.

use std::fmt;
use std::sync::Arc;

use crate::change::{Change, Transaction};
use crate::interest::Subscription;
use crate::name::Name;
use crate::resource::{ErrorCode, ResourceError, TypeUrl};

/// An error of a name, for its watchers. That one variant of several is gone,
/// or never was, is no error: the database tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// No value is in use, and the error stands in its place until one arrives.
    Failed(TypeUrl, Name, WatchError),
    /// The error is beside the value, which stays in use; `None` if it has
    /// ended.
    Ambient(TypeUrl, Name, Option<WatchError>),
}

impl Event {
    /// Returns the name that the event is about.
    pub(super) fn subject(&self) -> (TypeUrl, Name) {
        let (Self::Failed(type_url, name, _) | Self::Ambient(type_url, name, _)) = self;
        (type_url.clone(), name.clone())
    }
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

    /// Returns whether the error is about the resource, and not about reaching
    /// the server (C41).
    #[must_use]
    pub(crate) fn is_data_error(self) -> bool {
        self.class() == ErrorClass::Data
    }

    /// Returns whether the name is known to have no resource: the server said
    /// so, or was silent for too long, or its last resource has expired.
    /// Otherwise it may have one.
    #[must_use]
    pub fn is_definite(self) -> bool {
        self.is_withdrawal()
    }

    /// Returns whether the server itself withdraws the resource.
    #[must_use]
    pub(crate) fn is_withdrawal(self) -> bool {
        self.class() == ErrorClass::Data && self != Self::Rejected
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WatchError {}

impl WatchError {
    /// Makes an error with a message for people.
    #[must_use]
    pub(crate) fn new(cause: Cause, message: impl Into<Arc<str>>) -> Self {
        Self {
            cause,
            message: message.into(),
        }
    }

    /// Makes the error that the server says that there is no resource.
    pub(crate) fn deleted() -> Self {
        Self::new(Cause::Deleted, "the source says that it does not exist")
    }

    /// Returns the error that the server has sent for a name (TP3).
    pub(crate) fn of_source(error: &ResourceError) -> Self {
        Self::new(Cause::Source(error.code), &*error.message)
    }

    /// Makes the error of a resource that the owner's database does not take,
    /// since it contradicts others there (S62). It is a rejection: the server
    /// has the resource, and it is the owner that cannot use it.
    pub(crate) fn of_contradiction(error: impl fmt::Display) -> Self {
        Self::new(Cause::Rejected, error.to_string())
    }

    /// Makes the error that the server did not renew the TTL of the resource.
    pub(crate) fn expired() -> Self {
        Self::new(Cause::Expired, "not refreshed within its ttl")
    }
}

/// The effects of inputs, as values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Changes for the owner's database, to be applied together.
    pub changes: Transaction,
    /// Errors for watchers, in order.
    pub events: Vec<Event>,
    /// Subscriptions that the server has answered: a wildcard or a glob of
    /// which it has sent all; a name of which it has sent a resource, a removal
    /// or an error, or of which its silence means that it does not exist (C34).
    /// Until then a name that the database does not have is unknown (S51).
    pub complete: Vec<(TypeUrl, Subscription)>,
    /// Names that the owner may drop, before it applies the changes: nobody was
    /// subscribed to them, and the server was told so (C25).
    pub forgotten: Vec<(TypeUrl, Name)>,
}

impl Effects {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes back the changes and events of a name, which is forgotten before
    /// they are taken.
    pub(super) fn take_back(&mut self, type_url: &TypeUrl, name: &Name) {
        let is_other = |change_type: &TypeUrl, change_name: &Name| {
            change_type != type_url || change_name != name
        };
        self.changes.retain(|change| match change {
            Change::Upsert(change_type, resource) => is_other(change_type, &resource.name),
            Change::Remove(change_type, change_name)
            | Change::RemoveVariant(change_type, change_name, _)
            | Change::Fail(change_type, change_name, _) => is_other(change_type, change_name),
            Change::ReplaceAll(..) => true,
        });
        self.events.retain(|event| match event {
            Event::Failed(change_type, change_name, _)
            | Event::Ambient(change_type, change_name, _) => is_other(change_type, change_name),
        });
    }
}
