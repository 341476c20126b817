//! How a cache changes: a resource arrives, is found bad, or goes.
//!
//! Every way to an error leads through [`Cache::fail`], and so through the
//! table of A88.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{Cache, CacheState, Deadline, Entry};
use super::effects::EffectCollector;
use super::error_policy::{self, Fate};
use super::event::{Cause, WatchError};
use super::interest_state::InterestState;
use crate::Moment;
use crate::kind;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

impl Cache {
    /// An accepted resource: it stands under its name and under those of its
    /// aliases that someone asks for (S36).
    pub(super) fn receive(
        &mut self,
        resource: &Arc<Resource>,
        collector: &mut EffectCollector<'_>,
    ) {
        let old = self.held_variant(resource);
        self.store_under(&resource.name, resource, collector);
        for alias in asked_aliases(resource, collector.interest) {
            self.store_under(alias, resource, collector);
        }
        if let Some(old) = old {
            self.drop_lost_aliases(&old, collector);
        }
    }

    /// Starts its time to live again, or ends it if it has none (E10).
    pub(super) fn refresh(
        &mut self,
        resource: &Resource,
        now: Moment,
        collector: &EffectCollector<'_>,
    ) {
        match resource.ttl {
            // Hosts learned on demand do not run out: nobody would ask again.
            Some(ttl) if collector.type_url.as_str() != kind::VHDS => {
                self.timers.set(Deadline::ttl(resource), now + ttl);
            }
            _ => {
                self.timers.cancel(&Deadline::ttl(resource));
            }
        }
    }

    /// A resource without its body: what is held at this version lives on (E10).
    pub(super) fn heartbeat(
        &mut self,
        beat: &Resource,
        now: Moment,
        collector: &EffectCollector<'_>,
    ) {
        let current = |held: &Arc<Resource>| held.version == beat.version;
        if self.held_variant(beat).as_ref().is_some_and(current) {
            self.refresh(beat, now, collector);
        }
    }

    /// The variant that this one would replace.
    fn held_variant(&self, resource: &Resource) -> Option<Arc<Resource>> {
        let entry = self.entries.get(&resource.name)?;
        entry
            .variant(resource.constraints.as_ref())
            .filter(|held| held.name == resource.name)
            .cloned()
    }

    fn store_under(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        collector: &mut EffectCollector<'_>,
    ) {
        self.timers.cancel(&Deadline::Fetch(name.clone()));
        let entry = self.entries.entry(name.clone()).or_default();
        let old = entry.put(resource);
        let had_error = entry.error.take().is_some();
        entry.state = CacheState::Acked;
        entry.foreign = false;
        if *name == resource.name && (had_error || old.as_ref() != Some(resource)) {
            collector.upsert(resource);
        }
        // C24: the same again is no news, unless it ends an error.
        if had_error || old.is_none_or(|old| !same_contents(&old, resource)) {
            collector.changed(name, Ok(resource.clone()));
        }
    }

    /// Aliases that no variant of the resource has any more do not exist.
    fn drop_lost_aliases(&mut self, old: &Resource, collector: &mut EffectCollector<'_>) {
        let kept: BTreeSet<Name> = self
            .entries
            .get(&old.name)
            .into_iter()
            .flat_map(|entry| entry.held.iter().flat_map(|held| held.aliases.iter()))
            .cloned()
            .collect();
        for alias in self.aliases_of(old) {
            if !kept.contains(&alias) {
                self.fail(
                    &alias,
                    CacheState::DoesNotExist,
                    WatchError::deleted(),
                    collector,
                );
            }
        }
    }

    /// The entries that hold this resource under another name.
    fn aliases_of(&self, resource: &Resource) -> Vec<Name> {
        let holds = |alias: &&Name| {
            let entry = self.entries.get(*alias);
            **alias != resource.name && entry.is_some_and(|entry| entry.holds(&resource.name))
        };
        resource.aliases.iter().filter(holds).cloned().collect()
    }

    /// The source says that the name does not exist.
    pub(super) fn delete(&mut self, name: &Name, collector: &mut EffectCollector<'_>) {
        for name in self.with_aliases(name) {
            self.fail(
                &name,
                CacheState::DoesNotExist,
                WatchError::deleted(),
                collector,
            );
        }
    }

    /// A name, and the entries that hold its resource as an alias.
    fn with_aliases(&self, name: &Name) -> BTreeSet<Name> {
        let held = self.entries.get(name).filter(|entry| entry.holds(name));
        let held = held.into_iter().flat_map(|entry| entry.held.iter());
        let mut names: BTreeSet<Name> = held.flat_map(|held| self.aliases_of(held)).collect();
        names.insert(name.clone());
        names
    }

    /// What a whole set leaves out is gone if it was held (C29). If it was only
    /// asked for, nothing is proved: the set may be older than the asking (C30).
    pub(super) fn delete_absent(
        &mut self,
        present: &BTreeSet<&Name>,
        collector: &mut EffectCollector<'_>,
    ) {
        let absent = |(name, entry): &(&Name, &Entry)| {
            let held = entry.held.first().map_or(*name, |held| &held.name);
            !present.contains(held)
        };
        let absent: Vec<Name> = self
            .entries
            .iter()
            .filter(absent)
            .map(|(name, _)| name.clone())
            .collect();
        for name in &absent {
            match self.entries.get(name).is_some_and(|e| !e.held.is_empty()) {
                true => self.delete(name, collector),
                false if !collector.interest.names_exactly(name) => drop(self.entries.remove(name)),
                false => {}
            }
        }
    }

    /// One variant goes; with the last of them the name.
    pub(super) fn delete_variant(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        collector: &mut EffectCollector<'_>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        match (entry.position(constraints), entry.held.len()) {
            (Err(_), _) => {}
            (Ok(_), 1) => self.delete(name, collector),
            (Ok(at), _) => {
                let gone = entry.held.remove(at);
                self.timers.cancel(&Deadline::ttl(&gone));
                collector.remove_variant(&gone);
            }
        }
    }

    /// A time to live ran out: removed, whatever the policy (E10).
    pub(super) fn expire(
        &mut self,
        name: &Name,
        constraints: Option<&Constraints>,
        collector: &mut EffectCollector<'_>,
    ) {
        if self.entries.get(name).is_some_and(|e| e.held.len() > 1) {
            return self.delete_variant(name, constraints, collector);
        }
        for name in self.with_aliases(name) {
            let error = WatchError::expired();
            self.set_error(
                &name,
                CacheState::DoesNotExist,
                error,
                Fate::Drop,
                collector,
            );
        }
    }

    /// Something is wrong with a name. The same error again is no news (C28).
    pub(super) fn fail(
        &mut self,
        name: &Name,
        state: CacheState,
        error: WatchError,
        collector: &mut EffectCollector<'_>,
    ) {
        self.timers.cancel(&Deadline::Fetch(name.clone()));
        let Some(entry) = self.entry_for(name, error.cause, collector.interest) else {
            return;
        };
        if entry.error.as_ref() != Some(&error) {
            let fate = error_policy::fate(error.cause, !entry.held.is_empty(), collector.policy);
            self.set_error(name, state, error, fate, collector);
        }
    }

    /// The entry of a name, made if it is a member of something asked for that
    /// was never seen. One that is said not to exist need not be remembered.
    fn entry_for(
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
        // That a name does not exist is worth knowing even if it never did.
        if fate == Fate::Drop || (fate == Fate::Value && error.cause == Cause::Deleted) {
            collector.remove(name, dropped.first().map(Arc::as_ref));
        }
        match fate {
            Fate::Ambient => collector.ambient(name, Some(error.clone())),
            Fate::Value | Fate::Drop => collector.changed(name, Err(error.clone())),
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

/// The aliases under which someone asks for the resource by name.
fn asked_aliases<'a>(
    resource: &'a Resource,
    interest: &'a InterestState,
) -> impl Iterator<Item = &'a Name> {
    let asked = |alias: &&Name| **alias != resource.name && interest.names_exactly(alias);
    resource.aliases.iter().filter(asked)
}

/// Whether a watcher would see no difference.
fn same_contents(old: &Resource, new: &Resource) -> bool {
    old.body == new.body && old.aliases == new.aliases
}
