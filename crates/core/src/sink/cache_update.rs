//! Changes of the cache: resources that arrive, are rejected, or are removed.
//!
//! Every error goes through [`Cache::fail`], and so through the table of A88,
//! except an expired TTL, which always drops the resource (E10), and a variant
//! that is refused, which never does (TP2).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{Cache, Deadline};
use super::effects::EffectCollector;
use super::entry::{CacheState, Carried, Contents, Entry, Held};
use super::error_policy::{self, Fate};
use super::event::{Cause, WatchError};
use super::interest_state::InterestState;
use super::overlap;
use crate::Moment;
use crate::interest::Subscription;
use crate::kind::Kind;
use crate::name::{Name, Selector};
use crate::params::{Constraints, Params};
use crate::resource::{Resource, TypeUrl};

impl Cache {
    /// Stores an accepted resource under its name and under those of its
    /// aliases that are subscribed to (S36). Aliases that the resource has lost
    /// are deleted, and so are variants that it shows to be outdated.
    pub(super) fn store(&mut self, resource: &Arc<Resource>, collector: &mut EffectCollector<'_>) {
        let name = &resource.name;
        self.drop_outdated(resource, collector);
        let replaced_variant = self.store_variant(resource, collector);
        let is_new = replaced_variant.is_none();
        for alias in subscribed_aliases(resource, collector.interest) {
            self.store_alias(alias, name, collector);
        }

        let constraints = resource.constraints.as_ref();
        let aliases = subscribed_aliases(resource, collector.interest);
        for name in std::iter::once(name).chain(aliases) {
            self.cancel_fetch(name, constraints, collector.interest);
            if is_new {
                collector.complete_name(name, constraints);
            }
        }
        if let Some(replaced) = replaced_variant.filter(|variant| !variant.aliases.is_empty()) {
            self.drop_lost_aliases(name, &replaced.aliases, collector);
        }
    }

    /// Restarts the TTL timer of a resource, or cancels it if the resource has
    /// no TTL (E10). A resource of an on-demand type never expires: its client
    /// would not request it again (S66).
    pub(super) fn refresh_ttl(&mut self, type_url: &TypeUrl, resource: &Resource, now: Moment) {
        match resource.ttl {
            Some(ttl) if !Kind::of(type_url).on_demand => {
                self.timers.set(Deadline::ttl(resource), now + ttl);
            }
            _ => {
                self.timers.cancel(&Deadline::ttl(resource));
            }
        }
    }

    /// Renews the TTL of a resource for a heartbeat, which has no body (E10). A
    /// heartbeat for a version that is not held has no effect.
    pub(super) fn apply_heartbeat(
        &mut self,
        type_url: &TypeUrl,
        heartbeat: &Resource,
        now: Moment,
    ) {
        let entry = self.entries.get(&heartbeat.name);
        let variant =
            entry.and_then(|entry| entry.contents.variant(heartbeat.constraints.as_ref()));
        if variant.is_some_and(|variant| variant.version == heartbeat.version) {
            self.refresh_ttl(type_url, heartbeat, now);
        }
    }

    /// Drops the variants of a name that an update shows to be outdated: those
    /// from an earlier stream that it contradicts or leaves out, and those that
    /// no subscription has the parameters for any more.
    fn drop_outdated(&mut self, update: &Resource, collector: &mut EffectCollector<'_>) {
        let name = &update.name;
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let carried = std::mem::take(&mut entry.carried);
        let constraints = update.constraints.as_ref();
        let has_locators = collector.interest.has_locators();
        let is_kept = |variant: &Held| {
            let own_constraints = variant.constraints.as_ref();
            let is_current = match carried {
                Carried::No => true,
                Carried::Told => !overlap::is_ambiguous(own_constraints, constraints, has_locators),
                Carried::Untold | Carried::Mentioned => false,
            };
            own_constraints == constraints
                || (is_current && variant.is_requested(name, collector.interest))
        };

        for variant in entry.contents.drop_unless(is_kept) {
            let ttl = Deadline::Ttl(name.clone(), variant.constraints.clone());
            self.timers.cancel(&ttl);
            collector.remove_variant(name, variant.constraints.as_ref());
        }
    }

    /// Stores a variant under its own name, which ends an error of the name.
    /// Returns the variant that it replaces, if there is one.
    fn store_variant(
        &mut self,
        resource: &Arc<Resource>,
        collector: &mut EffectCollector<'_>,
    ) -> Option<Held> {
        let variant = Held::of(resource);
        let entry = self.entries.entry(resource.name.clone()).or_default();
        let had_error = entry.end_error(&resource.name, collector);
        entry.is_foreign = false;
        // C24: the same resource again is no change, unless it ends an error,
        // which the database may have (S61).
        let is_changed =
            had_error || entry.contents.variant(variant.constraints.as_ref()) != Some(&variant);
        let replaced_variant = entry.contents.put(variant);
        if is_changed {
            collector.upsert(resource);
        }
        replaced_variant
    }

    /// Makes a name an alias of a resource, which ends an error of the name.
    fn store_alias(&mut self, alias: &Name, name: &Name, collector: &mut EffectCollector<'_>) {
        let entry = self.entries.entry(alias.clone()).or_default();
        entry.end_error(alias, collector);
        entry.contents = Contents::Alias(name.clone());
    }

    /// Deletes the former aliases of the resource `name` that no variant of it
    /// has any more.
    fn drop_lost_aliases(
        &mut self,
        name: &Name,
        former_aliases: &[Name],
        collector: &mut EffectCollector<'_>,
    ) {
        let entry = self.entries.get(name);
        let variants = entry
            .into_iter()
            .flat_map(|entry| entry.contents.variants());
        let kept_aliases: BTreeSet<Name> = variants
            .flat_map(|variant| variant.aliases.iter().cloned())
            .collect();
        for alias in self.aliases_of(name, former_aliases) {
            if !kept_aliases.contains(&alias) {
                self.record_absent(&alias, collector);
            }
        }
    }

    /// Selects the candidates that are aliases of a resource now. An alias that
    /// passed to another resource is not one of them.
    fn aliases_of(&self, name: &Name, candidates: &[Name]) -> Vec<Name> {
        let is_alias = |alias: &&Name| {
            let entry = self.entries.get(*alias);
            entry.is_some_and(|entry| entry.is_alias_of(name))
        };
        candidates.iter().filter(is_alias).cloned().collect()
    }

    /// Deletes a name of which the server says that it does not exist, and the
    /// aliases of its resource.
    pub(super) fn delete(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        for name in self.name_with_aliases(name) {
            self.record_absent(&name, collector);
        }
    }

    /// Records that a name does not exist, without its aliases.
    fn record_absent(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        let error = WatchError::deleted();
        self.fail(name, CacheState::DoesNotExist, error, collector);
    }

    /// Returns a name and the aliases of its resource.
    fn name_with_aliases(&self, name: &Name) -> BTreeSet<Name> {
        let entry = self.entries.get(name);
        let variants = entry
            .into_iter()
            .flat_map(|entry| entry.contents.variants());
        let aliases = variants.flat_map(|variant| self.aliases_of(name, &variant.aliases));
        let mut names: BTreeSet<Name> = aliases.collect();
        names.insert(name.clone());
        names
    }

    /// Deletes the resources whose names are not in `present_names`, the names
    /// of a whole set (C29). A name without a resource stays if it is
    /// subscribed to, since the set may be older than the subscription (C30);
    /// others are evicted.
    pub(super) fn delete_absent(
        &mut self,
        present_names: &BTreeSet<&Name>,
        collector: &mut EffectCollector<'_>,
    ) {
        let is_absent = |(name, entry): &(&Name, &Entry)| {
            let resource_name = match &entry.contents {
                Contents::Alias(owner) => owner,
                _ => *name,
            };
            !present_names.contains(resource_name)
        };
        let absent_entries = self.entries.iter().filter(is_absent);
        let absent_names: Vec<Name> = absent_entries.map(|(name, _)| name.clone()).collect();

        for name in &absent_names {
            let entry = self.entries.get(name);
            if entry.is_some_and(Entry::has_value) {
                self.delete(name, collector);
            } else if !collector.interest.names_exactly(name) {
                self.entries.remove(name);
                collector.forget(name);
            }
        }
    }

    /// Deletes names that are gone from complete wildcards and globs
    /// (`scopes`): the server has sent all of a scope without the name. It was
    /// not told of these names when the stream began (E9), so it could not say
    /// that they are gone. A name that was rejected and has no value is one of
    /// them: it would be sent, and rejected, again.
    pub(super) fn drop_unlisted(
        &mut self,
        scopes: &[Subscription],
        collector: &mut EffectCollector<'_>,
    ) {
        if scopes.is_empty() {
            // Most responses complete nothing, and cost nothing here.
            return;
        }

        let covers = |name: &Name| scopes.iter().any(|scope| scope.selector.covers(name));
        let is_unlisted = |(name, entry): &(&Name, &Entry)| {
            let was_sent = entry.has_value() || entry.state == CacheState::Nacked;
            let is_member = entry.carried == Carried::Untold && was_sent;
            is_member && !collector.interest.names_exactly(name) && covers(name)
        };
        let unlisted_entries = self.entries.iter().filter(is_unlisted);
        let unlisted_names: Vec<Name> = unlisted_entries.map(|(name, _)| name.clone()).collect();
        unlisted_names
            .iter()
            .for_each(|name| self.delete(name, collector));
    }

    /// Deletes one variant of a name; with the last variant, the name. A
    /// variant that is not held is ignored.
    pub(super) fn delete_variant(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        collector: &mut EffectCollector<'_>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };

        match entry.contents.variants() {
            [only_variant] if only_variant.constraints.as_ref() == constraints => {
                self.delete(name, collector);
            }
            _ => {
                let is_kept = |variant: &Held| variant.constraints.as_ref() != constraints;
                for variant in entry.contents.drop_unless(is_kept) {
                    let ttl = Deadline::Ttl(name.clone(), variant.constraints);
                    self.timers.cancel(&ttl);
                    collector.remove_variant(name, constraints);
                }
            }
        }
    }

    /// Removes a variant whose TTL ran out, whatever the policy for data errors
    /// (E10); with the last variant, the name and its aliases.
    pub(super) fn expire(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        collector: &mut EffectCollector<'_>,
    ) {
        let entry = self.entries.get(name);
        if entry.is_some_and(|entry| entry.contents.variants().len() > 1) {
            return self.delete_variant(name, constraints, collector);
        }

        let state = CacheState::DoesNotExist;
        for name in self.name_with_aliases(name) {
            self.set_error(&name, state, WatchError::expired(), Fate::Drop, collector);
        }
    }

    /// Records an error of a name and ends its fetch timers. The policy for
    /// data errors decides what becomes of the value (A88). The same error
    /// again is no change (C28); a name that nobody requested is ignored.
    pub(super) fn fail(
        &mut self,
        name: &Name,
        state: CacheState,
        error: WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        self.cancel_fetch(name, None, collector.interest);
        let Some(entry) = self.find_or_add_entry(name, error.cause, collector.interest) else {
            return;
        };

        entry.note_mention();
        if entry.is_unanswered() && state != CacheState::Timeout {
            collector.complete_name(name, None);
        }
        if entry.error.as_deref() != Some(&error) {
            let fate = error_policy::fate(error.cause, entry.has_value(), collector.policy);
            self.set_error(name, state, error, fate, collector);
        }
    }

    /// Records that no response came for a subscription to a name. If the name
    /// has a value for other parameters, that is no error of the name: there is
    /// no variant for these parameters.
    pub(super) fn time_out(
        &mut self,
        name: &Name,
        params: Params,
        state: CacheState,
        error: WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        let entry = self.entries.get(name);
        if !entry.is_some_and(Entry::has_value) {
            self.fail(name, state, error, collector);
        } else if state == CacheState::DoesNotExist {
            collector.complete([Subscription::new(Selector::Name(name.clone()), params)]);
        }
    }

    /// Records that a variant of a name is refused (TP2). The others stay in
    /// use, whatever the policy for data errors.
    pub(super) fn refuse_variant(
        &mut self,
        name: &Name,
        error: WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        let Some(entry) = self.find_or_add_entry(name, error.cause, collector.interest) else {
            return;
        };
        entry.note_mention();
        if entry.error.as_deref() != Some(&error) {
            let fate = match entry.has_value() {
                true => Fate::Ambient,
                false => Fate::Value,
            };
            self.set_error(name, CacheState::Nacked, error, fate, collector);
        }
    }

    /// Returns the entry of a name that has an error. An entry is added for a
    /// name that a wildcard or a glob covers and that was never seen, unless
    /// the error is that it does not exist. `None` for a name that nobody
    /// requested.
    fn find_or_add_entry(
        &mut self,
        name: &Name,
        cause: Cause,
        interest: &InterestState,
    ) -> Option<&mut Entry> {
        if !self.entries.contains_key(name) {
            if cause == Cause::Deleted || !interest.is_requested(name) {
                return None;
            }
            self.add_entry(name);
        }
        self.entries.get_mut(name)
    }

    /// Sets the error and the state of a name, and collects the effects of the
    /// error's `fate`. A name that does not exist is evicted unless it is
    /// subscribed to.
    fn set_error(
        &mut self,
        name: &Name,
        state: CacheState,
        error: WatchError,
        fate: Fate,
        collector: &mut EffectCollector<'_>,
    ) {
        let is_dropped = fate == Fate::Drop && self.drop_contents(name);
        // That a name does not exist is a change for the database even if it
        // never existed.
        let is_absent = fate == Fate::Value && error.cause == Cause::Deleted;
        if is_dropped || is_absent {
            collector.remove(name);
        }
        match fate {
            Fate::Ambient => collector.report_ambient(name, Some(error.clone())),
            Fate::Value | Fate::Drop => collector.report_failed(name, error.clone()),
        }

        if let Some(entry) = self.entries.get_mut(name) {
            entry.state = state;
            entry.error = Some(Box::new(error));
        }
        if state == CacheState::DoesNotExist {
            self.evict(name, collector.interest);
        }
    }
}

impl Entry {
    /// Ends the error of a name that gets a value. Its state is ACKed now.
    /// Returns whether there was an error. Watchers are told if it stood beside
    /// a value.
    fn end_error(&mut self, name: &Name, collector: &mut EffectCollector<'_>) -> bool {
        self.state = CacheState::Acked;
        let had_error = self.error.take().is_some();
        if had_error && self.has_value() {
            collector.report_ambient(name, None);
        }
        had_error
    }
}

/// Returns the aliases of a resource that are subscribed to by name.
fn subscribed_aliases<'a>(
    resource: &'a Resource,
    interest: &'a InterestState,
) -> impl Iterator<Item = &'a Name> {
    let is_subscribed = |alias: &&Name| **alias != resource.name && interest.names_exactly(alias);
    resource.aliases.iter().filter(is_subscribed)
}
