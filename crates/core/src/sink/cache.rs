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
//! changes from repetitions. Changes of entries are in [`super::cache_update`].

use std::collections::BTreeMap;

use super::effects::EffectCollector;
use super::entry::{CacheState, Carried, Contents, Entry, Held};
use super::event::{Cause, Event, WatchError};
use super::interest_state::InterestState;
use crate::Moment;
use crate::interest::Subscription;
use crate::name::{Name, Selector};
use crate::params::{Constraints, Params};
use crate::resource::{Resource, TypeUrl, Version};
use crate::timer::Timers;

/// The purpose of a deadline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deadline {
    /// A response for the name with these parameters (C32).
    Fetch(Name, Params),
    /// The TTL of one variant (E10).
    Ttl(Name, Option<Constraints>),
    /// The silence after which wildcards and globs are complete.
    Silence,
}

impl Deadline {
    /// Makes the deadline for the TTL of a resource.
    pub(super) fn ttl(resource: &Resource) -> Self {
        Self::Ttl(resource.name.clone(), resource.constraints.clone())
    }
}

/// The states of all names of one type; see the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) entries: BTreeMap<Name, Entry>,
    pub(super) timers: Timers<Deadline>,
}

impl Cache {
    /// Adds an entry for a name, unless there is one.
    pub(super) fn add_entry(&mut self, name: &Name) {
        self.entries.entry(name.clone()).or_default();
    }

    /// Returns the variants of a name, or of the resource that it is an alias
    /// of.
    pub(super) fn variants<'a>(&'a self, entry: &'a Entry) -> &'a [Held] {
        match &entry.contents {
            Contents::Alias(resource_name) => self
                .entries
                .get(resource_name)
                .map_or(&[], |entry| entry.contents.variants()),
            contents => contents.variants(),
        }
    }

    /// Returns whether the server has answered a subscription to a name with
    /// these parameters: by a variant that is for them, or, if there is no
    /// variant or the server does not read locators, by anything.
    pub(super) fn is_answered(
        &self,
        name: &Name,
        params: &Params,
        interest: &InterestState,
    ) -> bool {
        let Some(entry) = self.entries.get(name) else {
            return false;
        };

        let variants = self.variants(entry);
        if variants.is_empty() || !interest.has_locators() {
            return !entry.is_unanswered();
        }
        let params = interest.effective_params(params);
        let mut constraints = variants.iter().map(|variant| variant.constraints.as_ref());
        constraints
            .any(|constraints| constraints.is_none_or(|constraints| constraints.matches(params)))
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
                let failed_entries = self.entries.iter().filter(|(_, entry)| has_error(entry));
                failed_entries.map(|(name, _)| name.clone()).collect()
            }
        }
    }

    /// Starts the fetch timer of a subscription to a name, unless there is an
    /// answer already (C33).
    pub(super) fn start_fetch_timer(
        &mut self,
        name: &Name,
        params: &Params,
        interest: &InterestState,
        deadline_at: Moment,
    ) {
        if self.entries.contains_key(name) && !self.is_answered(name, params, interest) {
            let deadline = Deadline::Fetch(name.clone(), params.clone());
            self.timers.set(deadline, deadline_at);
        }
    }

    /// Cancels all fetch timers: a stream that has ended cannot respond (C33).
    pub(super) fn cancel_fetch_timers(&mut self) {
        self.timers
            .retain(|deadline| !matches!(deadline, Deadline::Fetch(..)));
    }

    /// Cancels the fetch timers of the subscriptions to a name that a variant
    /// with these constraints answers. Without constraints, or if the server
    /// does not read locators, that is all of them.
    pub(super) fn cancel_fetch(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        interest: &InterestState,
    ) {
        for interest_set in [interest.desired(), interest.sent()] {
            for params in interest_set.params_of_name(name) {
                let clients = constraints.filter(|_| interest.has_locators());
                let effective_params = interest.effective_params(params);
                if clients.is_none_or(|clients| clients.matches(effective_params)) {
                    let deadline = Deadline::Fetch(name.clone(), params.clone());
                    self.timers.cancel(&deadline);
                }
            }
        }
    }

    /// Forgets the names and variants that only this subscription covered, once
    /// the server was told of the unsubscription (C25). After a wildcard or a
    /// glob every name is looked at.
    pub(super) fn forget_subscription(
        &mut self,
        subscription: &Subscription,
        collector: &mut EffectCollector<'_>,
    ) {
        let Selector::Name(name) = &subscription.selector else {
            let names: Vec<_> = self.entries.keys().cloned().collect();
            names.iter().for_each(|name| self.forget(name, collector));
            return;
        };

        let fetch = Deadline::Fetch(name.clone(), subscription.params.clone());
        self.timers.cancel(&fetch);

        let entry = self.entries.get(name);
        let resource_name = entry.and_then(|entry| match &entry.contents {
            Contents::Alias(owner) => Some(owner.clone()),
            _ => None,
        });
        self.forget(name, collector);
        // An alias may have been the only reason to keep the resource.
        if let Some(resource_name) = resource_name {
            self.forget(&resource_name, collector);
        }
    }

    /// Evicts a name and tells the owner to drop it, unless a selector covers
    /// it. If one does, only the variants that are for no subscription are
    /// dropped, and the name with the last of them.
    fn forget(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        if self.evict(name, collector.interest) {
            collector.forget(name);
        } else if self.drop_unrequested(name, collector) {
            // The rest of the name is unknown, and not absent.
            collector.forget(name);
        }
    }

    /// Drops the variants of a name that are for no subscription, and reports
    /// their removal, unless these are all. Returns whether they are all: then
    /// the caller reports it. A server that does not read locators has no such
    /// variants.
    pub(super) fn drop_unrequested(
        &mut self,
        name: &Name,
        collector: &mut EffectCollector<'_>,
    ) -> bool {
        let interest = collector.interest;
        let Some(entry) = self.entries.get_mut(name) else {
            return false;
        };
        if !interest.has_locators() {
            return false;
        }

        let is_requested = |variant: &Held| variant.is_requested(name, interest);
        let dropped_variants = entry.contents.drop_unless(is_requested);
        let is_last = !dropped_variants.is_empty() && !entry.has_value();
        if is_last && entry.error.is_none() {
            entry.state = CacheState::Requested;
        }
        for variant in &dropped_variants {
            let ttl = Deadline::Ttl(name.clone(), variant.constraints.clone());
            self.timers.cancel(&ttl);
            if !is_last {
                collector.remove_variant(name, variant.constraints.as_ref());
            }
        }
        is_last
    }

    /// Removes the entry of a name, and its TTL timers, unless a selector
    /// covers it. A name that only a wildcard or a glob covers keeps its
    /// resource. Returns whether the entry was removed. The owner is not told.
    pub(super) fn evict(&mut self, name: &Name, interest: &InterestState) -> bool {
        let Some(entry) = self.entries.get(name) else {
            return false;
        };
        if interest.names_exactly(name) {
            return false;
        }

        let is_covered = entry.is_covered(name, interest);
        if !is_covered {
            self.drop_contents(name);
            self.entries.remove(name);
        }
        !is_covered
    }

    /// Drops the variants of a name, and their TTL timers. Returns whether it
    /// had a value.
    pub(super) fn drop_contents(&mut self, name: &Name) -> bool {
        let Some(entry) = self.entries.get_mut(name) else {
            return false;
        };
        let had_value = entry.has_value();
        for variant in entry.contents.drop_unless(|_| false) {
            self.timers
                .cancel(&Deadline::Ttl(name.clone(), variant.constraints));
        }
        entry.contents = Contents::Nothing;
        had_value
    }

    /// Returns the versions that a delta stream sends in its first request
    /// (E9), and records for each name whether the server was told. Names that
    /// only a glob covers are listed if `with_globs` is set. Called for the
    /// first request of a stream only.
    pub(super) fn tell_versions(
        &mut self,
        interest: &InterestState,
        with_globs: bool,
    ) -> Vec<(Name, Version)> {
        let desired_interest = interest.desired();
        let is_listed = |name: &Name| {
            with_globs
                || desired_interest.has_wildcard()
                || desired_interest.names_exactly(name)
                || !desired_interest.matches_glob(name)
        };

        let mut versions = Vec::new();
        for (name, entry) in &mut self.entries {
            // If subscriptions have different parameters, a version does not
            // tell which of them it is for. Without it the server sends all
            // variants.
            let mut params = desired_interest.params_covering(name);
            let first_params = params.next();
            let have_same_params = params.all(|other| Some(other) == first_params);

            let initial_version = entry.initial_version();
            let told_version = initial_version.filter(|_| have_same_params && is_listed(name));
            let carried = match told_version {
                Some(_) => Carried::Told,
                None => Carried::Untold,
            };
            versions.extend(told_version.map(|version| (name.clone(), version.clone())));
            entry.carried = carried;
        }
        versions
    }

    /// Marks all resources as coming from another server than the next
    /// stream's.
    pub(super) fn mark_foreign(&mut self) {
        self.entries
            .values_mut()
            .for_each(|entry| entry.is_foreign = true);
    }

    /// Reports to every watcher that the server cannot be reached. The error
    /// takes the place of a missing value; a value that is there stays in use,
    /// with the error beside it.
    pub(super) fn report_unreachable(
        &self,
        error: &WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        debug_assert_eq!(error.cause, Cause::Unreachable);
        for (name, entry) in &self.entries {
            // Transient, so the same under every policy (C40).
            match entry.has_value() {
                false => collector.report_failed(name, error.clone()),
                true => collector.report_ambient(name, Some(error.clone())),
            }
        }
    }

    /// Reports that the server can be reached again: each name gets back the
    /// error that it had before, or none, unless `is_told` says that an event
    /// tells of a newer state.
    pub(super) fn report_reachable(
        &self,
        is_told: impl Fn(&Name) -> bool,
        collector: &mut EffectCollector<'_>,
    ) {
        for (name, entry) in self.entries.iter().filter(|(name, _)| !is_told(name)) {
            match entry.has_value() && entry.error.is_none() {
                true => collector.report_ambient(name, None),
                false => self.report_error(name, collector),
            }
        }
    }

    /// Reports the error of a name to its watchers, in place of a value or
    /// beside it. Does nothing if the name has none.
    pub(super) fn report_error(&self, name: &Name, collector: &mut EffectCollector<'_>) {
        let Some(entry) = self.entries.get(name) else {
            return;
        };
        let Some(error) = entry.error.as_deref().cloned() else {
            return;
        };
        match entry.has_value() {
            false => collector.report_failed(name, error),
            true => collector.report_ambient(name, Some(error)),
        }
    }

    /// Returns the error of a name as an event for a new watcher, to be told
    /// after the value (C23, C42); `None` if it has none. While the server is
    /// unreachable, that is the error.
    pub(super) fn replay(
        &self,
        type_url: &TypeUrl,
        name: &Name,
        unreachable_error: Option<&WatchError>,
    ) -> Option<Event> {
        let entry = self.entries.get(name)?;
        let error = unreachable_error.or(entry.error.as_deref())?.clone();
        let (type_url, name) = (type_url.clone(), name.clone());
        Some(match entry.has_value() {
            false => Event::Failed(type_url, name, error),
            true => Event::Ambient(type_url, name, Some(error)),
        })
    }
}
