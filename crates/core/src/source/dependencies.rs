//! The state of a type stream, as far as other types depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::client_cache::{Advance, Certainty, Update};
use super::{CachedResource, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database, same_resource};
use crate::facts::Reference;
use crate::name::Name;
use crate::resource::Resource;

/// The state of a name at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// The client is not subscribed to it.
    NotSubscribed,
    /// There is nothing to send: it does not exist, is in quarantine, or is
    /// withheld.
    Unavailable,
    /// The client ACKed it, in this or an earlier version.
    Held,
    /// It will be sent, or its ACK is pending.
    Pending,
}

impl TypeStream {
    /// The state of a name at the client: by a plain subscription, or else by
    /// the cursor that covers it. It counts as held only if no pending response
    /// removes it.
    pub(crate) fn dependency_state(&self, db: &mut Database, name: &Name) -> DependencyState {
        let params = self.params;
        let entry = db.find(self.type_id, name);
        let key = entry.map(|entry| SubscriptionKey { entry, params });
        let choice = match key.filter(|key| self.subscriptions.get(*key).is_some()) {
            Some(key) => Some(self.resolve(db, key)),
            None => self.cursor_choice(db, name),
        };
        let Some(choice) = choice else {
            return DependencyState::NotSubscribed;
        };

        let resolved_name = choice.resource().map_or(name, |resource| &resource.name);
        if self.surely_holds(db, resolved_name) {
            return DependencyState::Held;
        }
        match choice {
            Choice::Unknown => DependencyState::Pending,
            Choice::Resource(resource) if !self.is_undeliverable(&resource) => {
                DependencyState::Pending
            }
            _ => DependencyState::Unavailable,
        }
    }

    /// Whether the client accepted a resource of a name, no pending response
    /// removes it, and it need not be verified by a later one.
    fn surely_holds(&self, db: &mut Database, name: &Name) -> bool {
        let held = self.client_cache.held(db, name);
        let mut pending_acks = self.client_cache.pending_acks().iter();
        held.iter().any(CachedResource::is_accepted)
            && !pending_acks.any(|pending_ack| pending_ack.removes(name))
            && !self.is_unverified(name)
    }

    /// Whether a resource of a name counts as accepted because the NACK of its
    /// response was expected, and a later response has yet to show whether that
    /// was the only reason.
    fn is_unverified(&self, name: &Name) -> bool {
        // The variants of a name follow one another, the one without
        // constraints first.
        let mut following = self.unverified.range((name.clone(), None)..);
        let is_listed = following.next().is_some_and(|((next, _), _)| next == name);
        is_listed && !self.client_cache.pending_acks().is_empty()
    }

    /// Whether the client holds resources of unknown body, whose references are
    /// unknown, too.
    pub(crate) fn holds_unknown_bodies(&self) -> bool {
        let unknown_set = self.resumption.as_ref().is_some_and(|r| r.unknown_set);
        unknown_set || self.client_cache.has_unknown_bodies()
    }

    /// Visits each reference that a resource at the client may have and that
    /// the desired resources of its name have not: it is about to go. The cost
    /// depends on the unsettled names, not on the size of the client cache.
    pub(crate) fn each_dropped_reference(
        &self,
        db: &mut Database,
        mut each: impl FnMut(&Reference),
    ) {
        for name in self.unsettled_names(db) {
            let desired = self.desired_resources(db, &name);
            for held in self.client_cache.maybe_held(db, &name) {
                for reference in &held.facts().references {
                    if !desired.iter().any(|new| new.facts().refers_to(reference)) {
                        each(reference);
                    }
                }
            }
        }
    }

    /// The number of resources in the views of all cursors.
    pub(crate) fn listed_count(&self, db: &Database) -> usize {
        let cursors = self.client_cache.cursors().iter();
        cursors.map(|cursor| db.listed_len(cursor.id)).sum()
    }

    /// Whether a desired resource refers to a type.
    pub(crate) fn desires_reference_to(&self, db: &mut Database, url: &str) -> bool {
        let refers = |resource: &Arc<Resource>| {
            let mut references = resource.facts().references.iter();
            references.any(|reference| reference.type_url.as_str() == url)
        };
        self.all_desired_resources(db).iter().any(refers)
    }

    /// All desired resources: those that cursors list, and those that
    /// subscriptions resolve to. May have one twice.
    pub(super) fn all_desired_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let cursors = self.client_cache.cursors().iter();
        let mut desired: Vec<_> = cursors.flat_map(|cursor| db.list(cursor.id)).collect();
        for key in self.subscriptions.keys() {
            desired.extend(self.resolve(db, key).resource().cloned());
        }
        desired
    }

    /// Visits each reference of the resources that the client will hold once it
    /// has ACKed all that was sent, as far as they are desired unchanged.
    pub(crate) fn each_reference(&self, db: &mut Database, mut each: impl FnMut(&Reference)) {
        let mut names: BTreeSet<Name> = self
            .subscriptions
            .keys()
            .map(|key| db.name(self.type_id, key.entry).clone())
            .collect();
        for cursor in self.client_cache.cursors() {
            names.extend(db.list(cursor.id).into_iter().map(|r| r.name.clone()));
        }

        for name in names {
            let held = self.client_cache.held_after_acks(db, &name);
            for desired in self.desired_resources(db, &name) {
                let is_desired = |held: &CachedResource| {
                    held.is_accepted() && same_resource(&held.resource, &desired)
                };
                if held.iter().any(is_desired) {
                    desired.facts().references.iter().for_each(&mut each);
                }
            }
        }
    }

    /// The names of which the client may hold another resource than the desired
    /// one: those to be evaluated, NACKed, sent without an ACK, changed, or not
    /// covered by the position of a cursor. Resolved names go with them.
    fn unsettled_names(&self, db: &Database) -> BTreeSet<Name> {
        let mut names: BTreeSet<Name> = self.dirty.union(&self.deferred).cloned().collect();
        let nacked = self.suspects.keys().chain(self.quarantine.keys());
        names.extend(nacked.map(|(name, _)| name.clone()));

        for pending_ack in self.client_cache.pending_acks() {
            let updated = pending_ack.updates.iter().map(Update::name);
            names.extend(updated.cloned());
            let items = pending_ack.advances.iter().flat_map(Advance::items);
            names.extend(items.map(|(name, _)| name.clone()));
        }

        let dirty = db.dirty(self.subscriber);
        names.extend(dirty.map(|(entry, _)| db.name(self.type_id, entry).clone()));
        names.extend(self.client_cache.exceptions().iter().cloned());
        for cursor in self.client_cache.cursors() {
            names.extend(db.changed_names(cursor.id, cursor.position));
            let resumed = cursor.resume_point.iter().flat_map(|point| point.iter());
            names.extend(resumed.map(|(name, _)| name.clone()));
        }

        let resolved_names: Vec<Name> = names
            .iter()
            .flat_map(|name| self.subscriptions_of(db, name))
            .filter_map(|(key, _)| self.subscriptions.resolved_name(key).cloned())
            .collect();
        names.extend(resolved_names);
        names
    }

    /// The resources that the client was sent and holds, ACKed or not: one of
    /// each name, the last that was sent.
    pub(crate) fn sent_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut sent: BTreeMap<Name, _> = BTreeMap::new();
        for cursor in self.client_cache.cursors() {
            let held = cursor.held_resources(db).into_iter();
            let held = held.filter(|r| !self.client_cache.exceptions().contains(&r.name));
            sent.extend(held.map(|r| (r.name.clone(), r)));
        }

        let records = self
            .client_cache
            .records()
            .filter(|held| held.is_accepted());
        sent.extend(records.map(|held| (held.resource.name.clone(), held.resource.clone())));

        let pending_acks = self.client_cache.pending_acks().iter();
        let pending = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        sent.extend(pending.map(|r| (r.name.clone(), r.clone())));
        sent.into_values().collect()
    }

    /// Whole sets only: resources that every set lists again, because the
    /// client may have replaced them by something that it NACKed.
    pub(crate) fn relisted_after_nack(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let is_uncertain = |held: &&CachedResource| {
            matches!(
                held.certainty,
                Certainty::MaybeDropped | Certainty::MaybeTaken
            )
        };
        let records = self
            .client_cache
            .records()
            .filter(|_| self.sends_whole_sets());

        let names = records.filter(is_uncertain).map(|held| &held.resource.name);
        let listed = names.flat_map(|name| self.client_cache.records_of(name));
        listed
            .filter(|held| held.certainty != Certainty::MaybeTaken && !held.has_unknown_body())
            .map(|held| &held.resource)
    }
}
