//! What a watcher is told: the state of a resource.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::client::Origin;
use trunkline_core::resource::{Resource, Version};
use trunkline_core::sink::WatchError;

use super::raw::Raw;

/// The state of a resource (C39-C42).
#[derive(Debug, Default)]
pub enum State<T> {
    /// Nothing is known yet.
    #[default]
    Pending,
    /// The resource.
    Ready(Loaded<T>),
    /// The resource stays in use in spite of an ambient error: the control
    /// plane cannot be reached, or it has sent something that was rejected.
    Stale(Loaded<T>, WatchError),
    /// There is no resource, and why. [`Cause::is_definite`] tells whether it
    /// does not exist or may yet come.
    ///
    /// [`Cause::is_definite`]: trunkline_core::sink::Cause::is_definite
    Failed(WatchError),
}

impl<T> State<T> {
    /// Returns the resource in use, if there is one.
    pub fn value(&self) -> Option<&Loaded<T>> {
        match self {
            Self::Ready(value) | Self::Stale(value, _) => Some(value),
            Self::Pending | Self::Failed(_) => None,
        }
    }

    /// Returns what is wrong, if anything is.
    pub fn error(&self) -> Option<&WatchError> {
        match self {
            Self::Stale(_, error) | Self::Failed(error) => Some(error),
            Self::Pending | Self::Ready(_) => None,
        }
    }

    /// Returns whether nothing is known yet.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }
}

impl<T> Clone for State<T> {
    /// Clones the state by hand: a derived `Clone` would need a `T` that is
    /// one.
    fn clone(&self) -> Self {
        match self {
            Self::Pending => Self::Pending,
            Self::Ready(value) => Self::Ready(value.clone()),
            Self::Stale(value, error) => Self::Stale(value.clone(), error.clone()),
            Self::Failed(error) => Self::Failed(error.clone()),
        }
    }
}

/// A resource as its type, with the bytes that were received. Clones share
/// both.
#[derive(Debug)]
pub struct Loaded<T> {
    value: Arc<T>,
    resource: Arc<Resource>,
    origin: Origin,
}

impl<T> Clone for Loaded<T> {
    fn clone(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
            resource: Arc::clone(&self.resource),
            origin: self.origin,
        }
    }
}

impl<T> Deref for Loaded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Loaded<T> {
    /// Returns the message.
    #[must_use]
    pub fn value(&self) -> &Arc<T> {
        &self.value
    }

    /// Returns the resource as the engine has it: name, version, variant,
    /// bytes.
    #[must_use]
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Returns the version of the resource: the control plane's, or one made
    /// from the bytes in state of the world, where only whole responses have
    /// versions.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.resource.version
    }

    /// Returns the bytes that were received.
    #[must_use]
    pub fn body(&self) -> Bytes {
        // A resource without a body is a negative answer, and no value.
        self.resource.body.clone().unwrap_or_default()
    }

    /// Returns where it is from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// A value of a type that only the watcher knows.
pub(super) type ErasedValue = Arc<dyn Any + Send + Sync>;

/// A state whose type only the watcher knows.
#[derive(Clone, Default)]
pub(super) struct ErasedState {
    pub(super) value: Option<(Arc<Resource>, ErasedValue, Origin)>,
    pub(super) error: Option<WatchError>,
    /// The place of the news in the order of all news of a client.
    pub(super) order: u64,
}

impl ErasedState {
    /// Returns the state with a value of type `T`. A watcher of [`Raw`] accepts
    /// any type. For any other type that is not that of the value, the state
    /// has no value: that happens only if the type was registered twice.
    pub(super) fn typed<T: Send + Sync + 'static>(&self) -> State<T> {
        let value = self.value.as_ref().and_then(|(resource, value, origin)| {
            let as_raw = || (Arc::new(Raw) as ErasedValue).downcast::<T>();
            let value = Arc::clone(value)
                .downcast::<T>()
                .or_else(|_| as_raw())
                .ok()?;
            Some(Loaded {
                value,
                resource: Arc::clone(resource),
                origin: *origin,
            })
        });
        match (value, self.error.clone()) {
            (None, None) => State::Pending,
            (Some(value), None) => State::Ready(value),
            (Some(value), Some(error)) => State::Stale(value, error),
            (None, Some(error)) => State::Failed(error),
        }
    }
}
