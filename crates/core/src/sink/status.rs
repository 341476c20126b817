//! What can be seen from outside without changing anything.

use std::sync::Arc;

use super::Sink;
use super::cache::CacheState;
use super::event::{Event, WatchError};
use crate::interest::Interest;
use crate::name::{Name, Selector};
use crate::resource::{Resource, TypeUrl, Version};

/// What is known of one name, for CSDS (C44).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// The name.
    pub name: &'a Name,
    /// What the last answer was.
    pub state: CacheState,
    /// What is held: one resource, or some variants of it.
    pub held: &'a [Arc<Resource>],
    /// What is wrong, if something is.
    pub error: Option<&'a WatchError>,
}

impl Sink {
    /// What is asked for, of one type.
    #[must_use]
    pub fn interest(&self, type_url: &TypeUrl) -> Option<&Interest> {
        let index = self.index(type_url)?;
        Some(self.types[index].interest.wanted())
    }

    /// Whether the source was told of this on the present stream, and what is
    /// held is its answer: a response, or the silence that says that a version
    /// is still the newest. What is asked for again before the source heard
    /// otherwise is then still current.
    #[must_use]
    pub fn is_answered(&self, type_url: &TypeUrl, selector: &Selector) -> bool {
        self.index(type_url).is_some_and(|index| {
            let type_state = &self.types[index];
            let answered = type_state.nonce.is_some() || type_state.version.is_some();
            type_state.interest.sent().has_selector(selector) && answered
        })
    }

    /// What a new watcher of a name hears first (C23, C42).
    #[must_use]
    pub fn replay(&self, type_url: &TypeUrl, name: &Name) -> Vec<Event> {
        let Some(index) = self.index(type_url) else {
            return Vec::new();
        };
        let cache = &self.types[index].cache;
        cache.replay(type_url, name, self.unreachable.as_ref())
    }

    /// Everything that is known, by type in order of first subscription, then by name.
    pub fn states(&self) -> impl Iterator<Item = Status<'_>> {
        self.types.iter().flat_map(|type_state| {
            let entries = type_state.cache.entries.iter();
            entries.map(|(name, entry)| Status {
                type_url: &type_state.type_url,
                name,
                state: entry.state,
                held: &entry.held,
                error: entry.error.as_ref(),
            })
        })
    }

    /// The last state of a type that was accepted as a whole (SotW).
    #[must_use]
    pub fn version(&self, type_url: &TypeUrl) -> Option<&Version> {
        let index = self.index(type_url)?;
        self.types[index].version.as_ref()
    }
}
