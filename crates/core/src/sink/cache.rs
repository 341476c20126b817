//! The cache of one type: the state of each name, and its deadlines.
//!
//! ```text
//!   Requested ──▶ Acked ⇄ Nacked, ReceivedError     a resource and an error
//!       │           │                               may both be there (C44)
//!       │ timeout   │ removed, or its TTL ran out
//!       ▼           ▼
//!   DoesNotExist, Timeout ──▶ Acked                 it may still appear (C34)
//! ```
//!
//! It is not a database: it has what the rules of one stream need to tell
//! changes from repetitions. Resources are shared with the owner's database.
//! Changes of entries are in [`super::cache_update`].

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

/// The state of a name: CSDS's `ClientResourceStatus` (C44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Requested, and without a response.
    #[default]
    Requested,
    /// The server said so, or did not respond in time.
    DoesNotExist,
    /// The last response was ACKed.
    Acked,
    /// The last response was NACKed.
    Nacked,
    /// The server sent an error for the name (C43).
    ReceivedError,
    /// No response came in time, which counts as a transient error (C35).
    Timeout,
}

/// The state of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) state: CacheState,
    /// The variants of one resource, sorted by constraints. The resource has
    /// this name, or has it as an alias.
    pub(super) held: Vec<Arc<Resource>>,
    /// The last error; reported once (C28), and cleared when the resource
    /// arrives.
    pub(super) error: Option<WatchError>,
    /// The resource came from another server, where its version means nothing
    /// (E9).
    pub(super) foreign: bool,
}

/// The purpose of a deadline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deadline {
    /// A response for the name (C32).
    Fetch(Name),
    /// The TTL of one variant (E10).
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
    /// Stores a variant. Returns the variant with equal constraints that it
    /// replaces; `None` if it is new, or if another resource had the name.
    pub(super) fn put(&mut self, resource: &Arc<Resource>) -> Option<Arc<Resource>> {
        // An alias may pass from one resource to another.
        if self.held.first().is_some_and(|r| r.name != resource.name) {
            self.held.clear();
        }
        match self.position(resource.constraints.as_ref()) {
            Ok(index) => Some(std::mem::replace(&mut self.held[index], resource.clone())),
            Err(index) => {
                self.held.insert(index, resource.clone());
                None
            }
        }
    }

    pub(super) fn variant(&self, constraints: Option<&Constraints>) -> Option<&Arc<Resource>> {
        let index = self.position(constraints).ok()?;
        Some(&self.held[index])
    }

    /// Finds a variant: its index, or the index at which to insert it.
    pub(super) fn position(&self, constraints: Option<&Constraints>) -> Result<usize, usize> {
        self.held
            .binary_search_by(|held| held.constraints.as_ref().cmp(&constraints))
    }

    /// Returns whether the entry holds the resource of this name.
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.held.first().is_some_and(|held| held.name == *name)
    }

    /// Returns whether a wildcard or a glob covers the entry: one of its
    /// variants, or, if there is none, the name that was rejected or failed.
    fn is_covered(&self, name: &Name, interest: &InterestState) -> bool {
        match self.state {
            CacheState::Nacked | CacheState::ReceivedError if self.held.is_empty() => {
                interest.is_requested(name)
            }
            _ => {
                let mut held = self.held.iter();
                self.holds(name) && held.any(|held| interest.is_resource_requested(held))
            }
        }
    }

    /// Returns the version to send on a new stream: that of the only variant,
    /// if the server still believes that we have it. `None` for an alias, for
    /// several variants, and for a resource that the server withdrew, that
    /// another server sent, or that has no version.
    fn initial_version(&self, name: &Name) -> Option<&Version> {
        let error = self.error.as_ref();
        let is_withdrawn = error.is_some_and(|error| error.cause.is_withdrawal());
        let [only] = self.held.as_slice() else {
            return None;
        };

        let is_believed = only.name == *name && !is_withdrawn && !self.foreign;
        let has_version = !only.version.as_str().is_empty();
        (is_believed && has_version).then_some(&only.version)
    }
}

impl Cache {
    /// Adds an entry for a name that is subscribed to.
    pub(super) fn add_entry(&mut self, name: &Name) {
        self.entries.entry(name.clone()).or_default();
    }

    /// Returns the names with errors that a selector may cover. For a wildcard
    /// or a glob these are all of them, and the caller filters.
    pub(super) fn failed_names(&self, selector: &Selector) -> Vec<Name> {
        let has_error = |entry: &Entry| entry.error.is_some();
        match selector {
            Selector::Name(name) => {
                let is_failed = self.entries.get(name).is_some_and(has_error);
                is_failed.then(|| name.clone()).into_iter().collect()
            }
            Selector::Wildcard | Selector::Glob(_) => {
                let failed = self.entries.iter().filter(|(_, entry)| has_error(entry));
                failed.map(|(name, _)| name.clone()).collect()
            }
        }
    }

    /// Starts the fetch timer of a name, unless there is an answer already
    /// (C33).
    pub(super) fn start_fetch_timer(&mut self, name: &Name, until: Moment) {
        let is_unanswered = |entry: &Entry| {
            entry.held.is_empty()
                && matches!(entry.state, CacheState::Requested | CacheState::Timeout)
        };
        if self.entries.get(name).is_some_and(is_unanswered) {
            self.timers.set(Deadline::Fetch(name.clone()), until);
        }
    }

    /// Cancels all fetch timers: a stream that has ended cannot respond (C33).
    pub(super) fn cancel_fetch_timers(&mut self) {
        self.timers
            .retain(|deadline| !matches!(deadline, Deadline::Fetch(_)));
    }

    /// Evicts the names that only this selector covered, once the server was
    /// told of the unsubscription (C25). After a wildcard or a glob every name
    /// is looked at.
    pub(super) fn forget_selector(
        &mut self,
        selector: &Selector,
        collector: &mut EffectCollector<'_>,
    ) {
        let Selector::Name(name) = selector else {
            let names: Vec<_> = self.entries.keys().cloned().collect();
            names.iter().for_each(|name| self.forget(name, collector));
            return;
        };

        let held = self.entries.get(name).and_then(|entry| entry.held.first());
        let resource_name = held.map(|held| held.name.clone());
        self.forget(name, collector);
        // An alias may have been the only reason to keep the resource.
        if let Some(resource_name) = resource_name {
            self.forget(&resource_name, collector);
        }
    }

    /// Evicts a name, which its owner may drop, unless a selector covers it.
    pub(super) fn forget(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        if self.evict(name, collector.interest) {
            collector.forget(name);
        }
    }

    /// Evicts a name, and the timers with it, unless a selector covers it. A
    /// name that only a wildcard or a glob covers keeps its resource but not
    /// its fetch timer. Returns whether the name was evicted.
    pub(super) fn evict(&mut self, name: &Name, interest: &InterestState) -> bool {
        let Some(entry) = self.entries.get(name) else {
            return false;
        };
        if interest.names_exactly(name) {
            return false;
        }

        let is_covered = entry.is_covered(name, interest);
        self.timers.cancel(&Deadline::Fetch(name.clone()));
        if !is_covered {
            self.drop_contents(name);
            self.entries.remove(name);
        }
        !is_covered
    }

    /// Drops the resources of a name, and their TTL timers unless the name is
    /// an alias. Returns the resources.
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

    /// Returns the versions that a delta stream sends in its first request
    /// (E9). Names that only a glob covers are listed if `with_globs` is set.
    pub(super) fn initial_versions(
        &self,
        interest: &InterestState,
        with_globs: bool,
    ) -> Vec<(Name, Version)> {
        let desired = interest.desired();
        let is_listed = |name: &Name| {
            with_globs
                || desired.has_wildcard()
                || desired.names_exactly(name)
                || !desired.matches_glob(name)
        };

        let listed = self.entries.iter().filter(|(name, _)| is_listed(name));
        let versions = listed.filter_map(|(name, entry)| {
            let version = entry.initial_version(name)?;
            Some((name.clone(), version.clone()))
        });
        versions.collect()
    }

    /// Marks all resources as coming from another server than the next
    /// stream's.
    pub(super) fn mark_foreign(&mut self) {
        self.entries
            .values_mut()
            .for_each(|entry| entry.foreign = true);
    }

    /// Reports to every watcher that the server cannot be reached: as the value
    /// of a name without a resource, else beside the resource, which stays in
    /// use.
    pub(super) fn report_unreachable(
        &self,
        error: &WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        debug_assert_eq!(error.cause, Cause::Unreachable);
        for (name, entry) in &self.entries {
            // Transient, so the same under every policy (C40).
            match entry.held.is_empty() {
                true => collector.report_failed(name, error.clone()),
                false => collector.report_ambient(name, Some(error.clone())),
            }
        }
    }

    /// Reports that the server can be reached again: each name gets back the
    /// error that it had before.
    pub(super) fn report_reachable(&self, collector: &mut EffectCollector<'_>) {
        for (name, entry) in &self.entries {
            if !entry.held.is_empty() {
                collector.report_ambient(name, entry.error.clone());
            } else if let Some(error) = &entry.error {
                collector.report_failed(name, error.clone());
            }
        }
    }

    /// Reports the error of a name, if it has one.
    pub(super) fn report_error(&self, name: &Name, collector: &mut EffectCollector<'_>) {
        let entry = self.entries.get(name);
        let error = entry.and_then(|entry| entry.error.clone());
        match (error, entry.is_some_and(|entry| entry.held.is_empty())) {
            (Some(error), true) => collector.report_failed(name, error),
            (Some(error), false) => collector.report_ambient(name, Some(error)),
            (None, _) => {}
        }
    }

    /// Returns the error of a name for a new watcher, to be told after the
    /// value (C23, C42). `unreachable` hides the error of the name while it
    /// lasts.
    pub(super) fn replay(
        &self,
        type_url: &TypeUrl,
        name: &Name,
        unreachable: Option<&WatchError>,
    ) -> Option<Event> {
        let entry = self.entries.get(name)?;
        let error = unreachable.or(entry.error.as_ref())?.clone();
        let (type_url, name) = (type_url.clone(), name.clone());
        Some(match entry.held.is_empty() {
            true => Event::Failed(type_url, name, error),
            false => Event::Ambient(type_url, name, Some(error)),
        })
    }
}
