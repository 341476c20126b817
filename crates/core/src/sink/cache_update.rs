//! Changes of the cache: resources that arrive, are rejected, or are removed.
//!
//! Every error goes through [`Cache::fail`], and so through the table of A88,
//! except an expired TTL, which always drops the resource (E10).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{Cache, CacheState, Deadline, Entry};
use super::effects::EffectCollector;
use super::error_policy::{self, Fate};
use super::event::{Cause, WatchError};
use super::interest_state::InterestState;
use crate::Moment;
use crate::kind::Kind;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, TypeUrl};

impl Cache {
    /// Stores an accepted resource under its name and under those of its
    /// aliases that are subscribed to (S36). Aliases that the resource has lost
    /// are deleted.
    pub(super) fn store(&mut self, resource: &Arc<Resource>, collector: &mut EffectCollector<'_>) {
        let old = self.held_variant(resource);
        self.store_under(&resource.name, resource, collector);
        for alias in subscribed_aliases(resource, collector.interest) {
            self.store_under(alias, resource, collector);
        }
        if let Some(old) = old {
            self.drop_lost_aliases(&old, collector);
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
    /// heartbeat for a version that is not cached has no effect.
    pub(super) fn apply_heartbeat(&mut self, type_url: &TypeUrl, beat: &Resource, now: Moment) {
        let held = self.held_variant(beat);
        if held.is_some_and(|held| held.version == beat.version) {
            self.refresh_ttl(type_url, beat, now);
        }
    }

    /// Returns the variant that `resource` replaces. `None` if there is none,
    /// or if the name is now an alias of another resource.
    fn held_variant(&self, resource: &Resource) -> Option<Arc<Resource>> {
        let entry = self.entries.get(&resource.name)?;
        entry
            .variant(resource.constraints.as_ref())
            .filter(|held| held.name == resource.name)
            .cloned()
    }

    /// Stores a resource in the entry of one of its names. This ends the fetch
    /// timer and the error of the name; the change for the database is
    /// collected under the resource's own name only.
    fn store_under(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        collector: &mut EffectCollector<'_>,
    ) {
        self.timers.cancel(&Deadline::Fetch(name.clone()));
        let entry = self.entries.entry(name.clone()).or_default();
        let had_value = !entry.held.is_empty();
        let old = entry.put(resource);
        let had_error = entry.error.take().is_some();
        entry.state = CacheState::Acked;
        entry.foreign = false;

        // C24: the same resource again is no change, unless it ends an error,
        // which the database may have (S61).
        let is_changed = had_error || old.as_ref() != Some(resource);
        if is_changed && *name == resource.name {
            collector.upsert(resource);
        }
        if had_error && had_value {
            collector.report_ambient(name, None);
        }
    }

    /// Deletes the aliases of the replaced variant `old` that no variant of the
    /// resource has any more.
    fn drop_lost_aliases(&mut self, old: &Resource, collector: &mut EffectCollector<'_>) {
        let entry = self.entries.get(&old.name);
        let variants = entry.into_iter().flat_map(|entry| entry.held.iter());
        let aliases = variants.flat_map(|held| held.aliases.iter().cloned());
        let kept: BTreeSet<Name> = aliases.collect();
        for alias in self.aliases_of(old) {
            if !kept.contains(&alias) {
                self.record_absent(&alias, collector);
            }
        }
    }

    /// Returns the aliases whose entries hold this resource. An alias that
    /// passed to another resource is not one of them.
    fn aliases_of(&self, resource: &Resource) -> Vec<Name> {
        let holds = |alias: &&Name| {
            let entry = self.entries.get(*alias);
            **alias != resource.name && entry.is_some_and(|entry| entry.holds(&resource.name))
        };
        resource.aliases.iter().filter(holds).cloned().collect()
    }

    /// Deletes a name of which the server says that it does not exist, and the
    /// aliases of its resource.
    pub(super) fn delete(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        for name in self.with_aliases(name) {
            self.record_absent(&name, collector);
        }
    }

    /// Records that a name does not exist, without its aliases.
    fn record_absent(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        let error = WatchError::deleted();
        self.fail(name, CacheState::DoesNotExist, error, collector);
    }

    /// Returns a name and the aliases whose entries hold its resource.
    fn with_aliases(&self, name: &Name) -> BTreeSet<Name> {
        let held = self.entries.get(name).filter(|entry| entry.holds(name));
        let held = held.into_iter().flat_map(|entry| entry.held.iter());
        let mut names: BTreeSet<Name> = held.flat_map(|held| self.aliases_of(held)).collect();
        names.insert(name.clone());
        names
    }

    /// Deletes the resources whose names are not in `present`, the names of a
    /// whole set (C29). A name without a resource stays if it is subscribed to,
    /// since the set may be older than the subscription (C30); others are
    /// evicted.
    pub(super) fn delete_absent(
        &mut self,
        present: &BTreeSet<&Name>,
        collector: &mut EffectCollector<'_>,
    ) {
        let is_absent = |(name, entry): &(&Name, &Entry)| {
            let resource_name = entry.held.first().map_or(*name, |held| &held.name);
            !present.contains(resource_name)
        };
        let absent = self.entries.iter().filter(is_absent);
        let absent: Vec<Name> = absent.map(|(name, _)| name.clone()).collect();

        for name in &absent {
            let entry = self.entries.get(name);
            if entry.is_some_and(|entry| !entry.held.is_empty()) {
                self.delete(name, collector);
            } else if !collector.interest.names_exactly(name) {
                self.entries.remove(name);
                collector.forget(name);
            }
        }
    }

    /// Deletes one variant of a name; with the last variant, the name. A
    /// variant that is not cached is ignored.
    pub(super) fn delete_variant(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        collector: &mut EffectCollector<'_>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let Ok(index) = entry.position(constraints) else {
            return;
        };

        if entry.held.len() == 1 {
            self.delete(name, collector);
        } else {
            let removed = entry.held.remove(index);
            self.timers.cancel(&Deadline::ttl(&removed));
            collector.remove_variant(&removed);
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
        if self.entries.get(name).is_some_and(|e| e.held.len() > 1) {
            return self.delete_variant(name, constraints, collector);
        }

        let state = CacheState::DoesNotExist;
        for name in self.with_aliases(name) {
            self.set_error(&name, state, WatchError::expired(), Fate::Drop, collector);
        }
    }

    /// Records an error of a name and ends its fetch timer. The policy for data
    /// errors decides what becomes of the cached resource (A88). The same error
    /// again is no change (C28); a name that nobody requested is ignored.
    pub(super) fn fail(
        &mut self,
        name: &Name,
        state: CacheState,
        error: WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        self.timers.cancel(&Deadline::Fetch(name.clone()));
        let Some(entry) = self.find_or_add_entry(name, error.cause, collector.interest) else {
            return;
        };

        if entry.error.as_ref() != Some(&error) {
            let fate = error_policy::fate(error.cause, !entry.held.is_empty(), collector.policy);
            self.set_error(name, state, error, fate, collector);
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
        let dropped = match fate {
            Fate::Drop => self.drop_contents(name),
            Fate::Value | Fate::Ambient => Vec::new(),
        };
        // That a name does not exist is a change for the database even if it
        // never existed.
        let is_absent = fate == Fate::Value && error.cause == Cause::Deleted;
        if !dropped.is_empty() || is_absent {
            collector.remove(name);
        }
        match fate {
            Fate::Ambient => collector.report_ambient(name, Some(error.clone())),
            Fate::Value | Fate::Drop => collector.report_failed(name, error.clone()),
        }

        if let Some(entry) = self.entries.get_mut(name) {
            entry.state = state;
            entry.error = Some(error);
        }
        if state == CacheState::DoesNotExist {
            self.evict(name, collector.interest);
        }
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
