//! Parts of snapshots, typed.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::WatchError;
use trunkline_core::tree::Content;

use super::held::{Held, RawPart};
use crate::client::raw::Raw;
use crate::client::state::{ErasedState, Loaded, State};

/// One resource in a snapshot, with everything below it. It never changes;
/// clones share it.
///
/// It has a resource or an error: there are no others in a snapshot (C51).
pub struct Part<T> {
    part: Arc<RawPart>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Part<T> {
    /// Makes the handle of a part.
    pub(super) fn new(part: &Arc<RawPart>) -> Self {
        Self {
            part: Arc::clone(part),
            value_type: PhantomData,
        }
    }

    /// Returns the name that is subscribed to.
    #[must_use]
    pub fn name(&self) -> &str {
        self.part.key.name.as_str()
    }

    /// Returns the type; `dns` for the addresses of a host.
    #[must_use]
    pub fn type_url(&self) -> &TypeUrl {
        &self.part.key.type_url
    }

    /// Returns the state of the resource. It is [`State::Pending`] only for a
    /// part that is none: a collection, and a host that was resolved by DNS.
    #[must_use]
    pub fn state(&self) -> State<T> {
        let value = match self.part.content.value() {
            Some(Held::Resource(held)) => Some((
                Arc::clone(&held.resource),
                Arc::clone(&held.value),
                held.origin,
            )),
            _ => None,
        };
        let state = ErasedState {
            value,
            error: self.error().cloned(),
            order: 0,
        };
        state.typed()
    }

    /// Returns the resource in use, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<Loaded<T>> {
        self.state().value().cloned()
    }

    /// Returns what is wrong, if anything is: with a resource it is an ambient
    /// error.
    #[must_use]
    pub fn error(&self) -> Option<&WatchError> {
        self.part.content.error()
    }

    /// Returns whether there is nothing to use.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self.part.content, Content::Failed(_))
    }

    /// Returns whether nothing differs at or below two parts: they are one. It
    /// costs the comparison of two pointers.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.part, &other.part)
    }

    /// Returns the addresses of a host that was resolved by DNS.
    #[must_use]
    pub fn addresses(&self) -> Option<&[SocketAddr]> {
        match self.part.content.value() {
            Some(Held::Addresses(addresses)) => Some(addresses),
            _ => None,
        }
    }

    /// Returns the resources that it refers to, of any type, by type and name.
    pub fn children(&self) -> impl Iterator<Item = Part<Raw>> {
        self.part.children.iter().map(Part::new)
    }

    /// Returns the same part, whatever its type is.
    #[must_use]
    pub fn raw(&self) -> Part<Raw> {
        self.typed()
    }

    /// Returns the same part with a type, if the caller knows it. With another
    /// one it has no value.
    #[must_use]
    pub fn typed<C: Send + Sync + 'static>(&self) -> Part<C> {
        Part::new(&self.part)
    }

    /// Returns the part as the engine has it.
    pub(super) fn inner(&self) -> &Arc<RawPart> {
        &self.part
    }

    /// Returns the resources of a type that it refers to.
    pub(super) fn of_type<C: Send + Sync + 'static>(
        &self,
        type_url: &str,
    ) -> impl Iterator<Item = Part<C>> {
        self.part.children.of_type(type_url).map(Part::new)
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        Self {
            part: Arc::clone(&self.part),
            value_type: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part")
            .field("type", &self.part.key.type_url)
            .field("name", &self.part.key.name)
            .field("error", &self.part.content.error())
            .finish_non_exhaustive()
    }
}
