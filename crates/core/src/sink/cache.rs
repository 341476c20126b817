//! What is held of one type, name by name, and until when.
//!
//! ```text
//!   Requested ──▶ Acked ⇄ Nacked, ReceivedError     a resource and an error
//!       │           │                               may both be there (C44)
//!       │ silence   │ withdrawn, or its ttl ran out
//!       ▼           ▼
//!   DoesNotExist, Timeout ──▶ Acked                 it may still appear (C34)
//! ```
//!
//! Not a database: it has what the rules of one stream need to answer "is this
//! news" and "what does a new watcher hear". Contents are shared with the
//! owner's database. How entries change is in [`super::cache_update`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effects::EffectCollector;
use super::event::{Cause, Event, WatchError};
use super::interest_state::InterestState;
use crate::Moment;
use crate::name::{Name, Selector};
use crate::params::Constraints;
use crate::resource::{Resource, TypeUrl, Version};
use crate::timer::Timers;

/// What is known of a name: CSDS's `ClientResourceStatus` (C44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Asked for, not answered.
    #[default]
    Requested,
    /// The source says so, or was silent for too long.
    DoesNotExist,
    /// The last answer was accepted.
    Acked,
    /// The last answer was rejected.
    Nacked,
    /// The last answer was an error of the source's own (C43).
    ReceivedError,
    /// No answer came in time, and that is taken for a passing failure (C35).
    Timeout,
}

/// What is known of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) state: CacheState,
    /// The variants held, sorted by constraints, all of one resource: the
    /// one of this name, or the one that has this name as an alias.
    pub(super) held: Vec<Arc<Resource>>,
    /// What was wrong last; told once (C28), gone when the resource arrives.
    pub(super) error: Option<WatchError>,
    /// What is held came from another server, to which its version is foreign (E9).
    pub(super) foreign: bool,
}

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deadline {
    /// An answer for the name (C32).
    Fetch(Name),
    /// The next refresh of one variant (E10).
    Ttl(Name, Option<Constraints>),
}

impl Deadline {
    pub(super) fn ttl(resource: &Resource) -> Self {
        Self::Ttl(resource.name.clone(), resource.constraints.clone())
    }
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) entries: BTreeMap<Name, Entry>,
    pub(super) timers: Timers<Deadline>,
}

impl Entry {
    /// Puts a variant in place of the one with equal constraints, which is returned.
    pub(super) fn put(&mut self, resource: &Arc<Resource>) -> Option<Arc<Resource>> {
        // An alias may pass from one resource to another.
        if self.held.first().is_some_and(|r| r.name != resource.name) {
            self.held.clear();
        }
        match self.position(resource.constraints.as_ref()) {
            Ok(at) => Some(std::mem::replace(&mut self.held[at], resource.clone())),
            Err(at) => {
                self.held.insert(at, resource.clone());
                None
            }
        }
    }

    pub(super) fn variant(&self, constraints: Option<&Constraints>) -> Option<&Arc<Resource>> {
        self.position(constraints).ok().map(|at| &self.held[at])
    }

    pub(super) fn position(&self, constraints: Option<&Constraints>) -> Result<usize, usize> {
        self.held
            .binary_search_by(|held| held.constraints.as_ref().cmp(&constraints))
    }

    /// Whether what is held is the resource of this name.
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.held.first().is_some_and(|held| held.name == *name)
    }

    /// The version to tell a new stream: of the only variant, if the source
    /// still believes that we have it.
    fn version(&self, name: &Name) -> Option<&Version> {
        let withdrawn = self.error.as_ref().is_some_and(|e| e.cause.is_withdrawal());
        match self.held.as_slice() {
            [only] if only.name == *name && !withdrawn && !self.foreign => Some(&only.version),
            _ => None,
        }
        .filter(|version| !version.as_str().is_empty())
    }
}

impl Cache {
    /// The name is asked for.
    pub(super) fn add_entry(&mut self, name: &Name) {
        self.entries.entry(name.clone()).or_default();
    }

    /// What is held under the names that this reaches, and perhaps under others.
    pub(super) fn held_for(&self, wanted: &Selector) -> Vec<Arc<Resource>> {
        match wanted {
            Selector::Name(name) => {
                let entry = self.entries.get(name);
                entry.map(|entry| entry.held.clone()).unwrap_or_default()
            }
            Selector::Wildcard | Selector::Glob(_) => {
                let entries = self.entries.values();
                entries.flat_map(|entry| entry.held.clone()).collect()
            }
        }
    }

    /// Whether the source said that the name does not exist.
    pub(super) fn knows_absent(&self, name: &Name) -> bool {
        let entry = self.entries.get(name);
        entry.is_some_and(|e| e.held.is_empty() && e.state == CacheState::DoesNotExist)
    }

    /// The name's time runs, unless there is an answer already (C33).
    pub(super) fn start_fetch_timer(&mut self, name: &Name, until: Moment) {
        let waits = |entry: &Entry| {
            entry.held.is_empty()
                && matches!(entry.state, CacheState::Requested | CacheState::Timeout)
        };
        if self.entries.get(name).is_some_and(waits) {
            self.timers.set(Deadline::Fetch(name.clone()), until);
        }
    }

    /// No name's time runs: a stream that is gone cannot answer (C33).
    pub(super) fn cancel_fetch_timers(&mut self) {
        self.timers
            .retain(|deadline| !matches!(deadline, Deadline::Fetch(_)));
    }

    /// Something is asked for no longer, and the source knows: what only that
    /// kept is evicted (C25).
    pub(super) fn forget_selector(&mut self, wanted: &Selector, interest: &InterestState) {
        let Selector::Name(name) = wanted else {
            let all: Vec<_> = self.entries.keys().cloned().collect();
            all.iter().for_each(|name| self.evict(name, interest));
            return;
        };
        let held = self.entries.get(name).and_then(|entry| entry.held.first());
        let base = held.map(|held| held.name.clone());
        self.evict(name, interest);
        // Under an alias, the resource itself may have been kept by it.
        if let Some(base) = base {
            self.evict(&base, interest);
        }
    }

    /// Lets go of a name unless something that is asked for keeps it.
    pub(super) fn evict(&mut self, name: &Name, interest: &InterestState) {
        let Some(entry) = self.entries.get(name) else {
            return;
        };
        let member = match entry.state {
            CacheState::Nacked | CacheState::ReceivedError if entry.held.is_empty() => {
                interest.is_requested(name)
            }
            _ => {
                entry.holds(name)
                    && entry
                        .held
                        .iter()
                        .any(|held| interest.is_resource_requested(held))
            }
        };
        if !interest.names_exactly(name) {
            self.timers.cancel(&Deadline::Fetch(name.clone()));
            if !member {
                self.drop_contents(name);
                self.entries.remove(name);
            }
        }
    }

    /// Drops what is held under a name, and its time to live if it is the resource's own.
    pub(super) fn drop_contents(&mut self, name: &Name) -> Vec<Arc<Resource>> {
        let Some(entry) = self.entries.get_mut(name) else {
            return Vec::new();
        };
        let held = std::mem::take(&mut entry.held);
        for resource in held.iter().filter(|held| held.name == *name) {
            self.timers.cancel(&Deadline::ttl(resource));
        }
        held
    }

    /// What a delta stream says at its start of the names it wants (E9).
    pub(super) fn versions(&self, interest: &InterestState, globs: bool) -> Vec<(Name, Version)> {
        let wanted = interest.wanted();
        let listed = |name: &Name| {
            globs
                || wanted.has_wildcard()
                || wanted.names_exactly(name)
                || !wanted.matches_glob(name)
        };
        let versions = self.entries.iter().filter(|(name, _)| listed(name));
        versions
            .filter_map(|(name, entry)| Some((name, entry.version(name)?)))
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect()
    }

    /// What is held came from a server that the next stream does not lead to.
    pub(super) fn mark_foreign(&mut self) {
        self.entries
            .values_mut()
            .for_each(|entry| entry.foreign = true);
    }

    /// Tells everyone who watches of an error that is nobody's in particular.
    pub(super) fn report_unreachable(
        &self,
        error: &WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        debug_assert_eq!(error.cause, Cause::Unreachable);
        for (name, entry) in &self.entries {
            // Transient, so the same under every policy (C40).
            match entry.held.is_empty() {
                true => collector.changed(name, Err(error.clone())),
                false => collector.ambient(name, Some(error.clone())),
            }
        }
    }

    /// The source can be reached again: each name is what it was before.
    pub(super) fn report_reachable(&self, collector: &mut EffectCollector<'_>) {
        for (name, entry) in &self.entries {
            match (entry.held.is_empty(), &entry.error) {
                (false, error) => collector.ambient(name, error.clone()),
                (true, Some(error)) => collector.changed(name, Err(error.clone())),
                (true, None) => {}
            }
        }
    }

    /// What a new watcher of the name hears: the value, then what is wrong (C23, C42).
    pub(super) fn replay(
        &self,
        type_url: &TypeUrl,
        name: &Name,
        unreachable: Option<&WatchError>,
    ) -> Vec<Event> {
        let Some(entry) = self.entries.get(name) else {
            return Vec::new();
        };
        let error = unreachable.or(entry.error.as_ref()).cloned();
        let changed = |value| Event::Changed(type_url.clone(), name.clone(), value);
        if entry.held.is_empty() {
            return error.map(Err).map(changed).into_iter().collect();
        }
        let values = entry.held.iter().cloned().map(Ok).map(changed);
        let ambient = |error| Event::Ambient(type_url.clone(), name.clone(), Some(error));
        values.chain(error.map(ambient)).collect()
    }
}
