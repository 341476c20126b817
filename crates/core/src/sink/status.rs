//! The status of a sink.

use std::sync::Arc;

use super::Sink;
use super::cache::CacheState;
use super::event::{Event, WatchError};
use crate::interest::Interest;
use crate::name::{Name, Selector};
use crate::resource::{Resource, TypeUrl, Version};

/// The status of one name, for CSDS (C44).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// The name.
    pub name: &'a Name,
    /// The state of the name.
    pub state: CacheState,
    /// The cached resource, or its variants.
    pub held: &'a [Arc<Resource>],
    /// The error of the name.
    pub error: Option<&'a WatchError>,
}

impl Sink {
    /// The interest of one type.
    #[must_use]
    pub fn interest(&self, type_url: &TypeUrl) -> Option<&Interest> {
        let index = self.index(type_url)?;
        Some(self.types[index].interest.desired())
    }

    /// Returns whether the server was sent this selector on the present stream,
    /// and the cached resources are its answer: by a response, or by silence,
    /// since the version that the server was sent is still the newest. They
    /// stay current if the selector is removed and added again before the
    /// server is told.
    #[must_use]
    pub fn is_answered(&self, type_url: &TypeUrl, selector: &Selector) -> bool {
        let Some(index) = self.index(type_url) else {
            return false;
        };
        let type_state = &self.types[index];
        let has_answer = type_state.nonce.is_some() || type_state.version.is_some();
        has_answer && type_state.interest.sent().has_selector(selector)
    }

    /// Returns the error of a name, to be told to a new watcher after the value
    /// that the database has (C23, C42).
    #[must_use]
    pub fn replay(&self, type_url: &TypeUrl, name: &Name) -> Option<Event> {
        let cache = &self.types[self.index(type_url)?].cache;
        cache.replay(type_url, name, self.unreachable.as_ref())
    }

    /// Returns the status of every name, by type in order of first
    /// subscription, then by name.
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

    /// The version of the last set that was ACKed (SotW).
    #[must_use]
    pub fn version(&self, type_url: &TypeUrl) -> Option<&Version> {
        let index = self.index(type_url)?;
        self.types[index].version.as_ref()
    }
}
