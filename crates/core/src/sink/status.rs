//! The status of a sink.

use super::Sink;
use super::cache::Deadline;
use super::entry::{CacheState, Held};
use super::event::{Event, WatchError};
use crate::Moment;
use crate::interest::Interest;
use crate::name::Name;
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
    /// The variants that the database has; of an alias, those of its resource.
    pub held: &'a [Held],
    /// The error of the name.
    pub error: Option<&'a WatchError>,
}

impl Sink {
    /// Returns the interest of one type; `None` if nothing of it was ever
    /// subscribed to.
    #[must_use]
    pub fn interest(&self, type_url: &TypeUrl) -> Option<&Interest> {
        let index = self.index(type_url)?;
        Some(self.types[index].interest.desired())
    }

    /// Returns the error of a name, to be told to a new watcher after the value
    /// that the database has (C23, C42).
    #[must_use]
    pub fn replay(&self, type_url: &TypeUrl, name: &Name) -> Option<Event> {
        let cache = &self.types[self.index(type_url)?].cache;
        cache.replay(type_url, name, self.unreachable_error.as_ref())
    }

    /// Returns when the TTL of a resource runs out, if it has one (E10).
    #[must_use]
    pub(crate) fn expires_at(&self, type_url: &TypeUrl, resource: &Resource) -> Option<Moment> {
        let cache = &self.types[self.index(type_url)?].cache;
        cache.timers.get(&Deadline::ttl(resource))
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
                held: type_state.cache.variants(entry),
                error: entry.error.as_deref(),
            })
        })
    }

    /// Returns the version of the last set of a type that was ACKed; `None` in
    /// delta, or if none counts any more.
    #[must_use]
    pub fn version(&self, type_url: &TypeUrl) -> Option<&Version> {
        let index = self.index(type_url)?;
        self.types[index].version.as_ref()
    }
}
