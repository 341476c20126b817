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
    /// Returns the state of a name at the client, by a plain subscription or
    /// else by the cursor that covers the name. A resource counts as held only
    /// if no pending response removes it.
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

    /// Returns whether the client accepted a resource of a name, no pending
    /// response removes it, and it need not be verified by a later one.
    fn surely_holds(&self, db: &mut Database, name: &Name) -> bool {
        let held_resources = self.client_cache.held(db, name);
        let mut pending_acks = self.client_cache.pending_acks().iter();
        held_resources.iter().any(CachedResource::is_accepted)
            && !pending_acks.any(|pending_ack| pending_ack.removes(name))
            && !self.is_unverified(name)
    }

    /// Returns whether a resource of a name counts as accepted because the NACK
    /// of its response was expected, and a later response has yet to show
    /// whether that was the only reason.
    fn is_unverified(&self, name: &Name) -> bool {
        // The variants of a name follow one another, the one without
        // constraints first.
        let mut later_variants = self.unverified.range((name.clone(), None)..);
        let is_listed = later_variants
            .next()
            .is_some_and(|((next, _), _)| next == name);
        is_listed && !self.client_cache.pending_acks().is_empty()
    }

    /// Returns whether the client holds resources of unknown body, whose
    /// references are unknown, too.
    pub(crate) fn holds_unknown_bodies(&self) -> bool {
        let unknown_set = self
            .resumption
            .as_ref()
            .is_some_and(|resumption| resumption.unknown_set);
        unknown_set || self.client_cache.has_unknown_bodies()
    }

    /// Calls `visit` with each reference that is about to be dropped: a
    /// resource at the client may have it, and the desired resources of that
    /// name have not. The cost depends on the unsettled names, not on the size
    /// of the client cache.
    pub(crate) fn visit_dropped_references(
        &self,
        db: &mut Database,
        mut visit: impl FnMut(&Reference),
    ) {
        for name in self.unsettled_names(db) {
            let desired = self.desired_resources(db, &name);
            for resource in self.client_cache.maybe_held(db, &name) {
                for reference in &resource.facts().references {
                    let mut successors = desired.iter();
                    if !successors.any(|successor| successor.facts().refers_to(reference)) {
                        visit(reference);
                    }
                }
            }
        }
    }

    /// Returns the number of resources in the views of all cursors. A resource
    /// that several views list counts for each of them.
    pub(crate) fn listed_count(&self, db: &Database) -> usize {
        let cursors = self.client_cache.cursors().iter();
        cursors.map(|cursor| db.listed_len(cursor.id)).sum()
    }

    /// Returns whether a desired resource refers to a type.
    pub(crate) fn desires_reference_to(&self, db: &mut Database, url: &str) -> bool {
        let refers = |resource: &Arc<Resource>| {
            let mut references = resource.facts().references.iter();
            references.any(|reference| reference.type_url.as_str() == url)
        };
        self.all_desired_resources(db).iter().any(refers)
    }

    /// Returns all desired resources: those that cursors list, and those that
    /// subscriptions resolve to. A resource may occur twice.
    pub(super) fn all_desired_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let cursors = self.client_cache.cursors().iter();
        let mut resources: Vec<_> = cursors.flat_map(|cursor| db.list(cursor.id)).collect();
        for key in self.subscriptions.keys() {
            resources.extend(self.resolve(db, key).resource().cloned());
        }
        resources
    }

    /// Calls `visit` with each reference of the resources that the client will
    /// hold once it has ACKed every response that was sent, as far as they are
    /// desired unchanged.
    pub(crate) fn visit_references(&self, db: &mut Database, mut visit: impl FnMut(&Reference)) {
        let mut names: BTreeSet<Name> = self
            .subscriptions
            .keys()
            .map(|key| db.name(self.type_id, key.entry).clone())
            .collect();
        for cursor in self.client_cache.cursors() {
            names.extend(
                db.list(cursor.id)
                    .into_iter()
                    .map(|resource| resource.name.clone()),
            );
        }

        for name in names {
            let held_resources = self.client_cache.held_after_acks(db, &name);
            for resource in self.desired_resources(db, &name) {
                let is_desired = |record: &CachedResource| {
                    record.is_accepted() && same_resource(&record.resource, &resource)
                };
                if held_resources.iter().any(is_desired) {
                    resource.facts().references.iter().for_each(&mut visit);
                }
            }
        }
    }

    /// Returns the names of which the client may hold another resource than the
    /// desired one: names that are dirty, NACKed, sent without an ACK, changed,
    /// or not covered by the position of a cursor; and the names that they
    /// resolve to.
    fn unsettled_names(&self, db: &Database) -> BTreeSet<Name> {
        let mut names: BTreeSet<Name> = self.dirty.union(&self.deferred).cloned().collect();
        let nacked_variants = self.suspects.keys().chain(self.quarantine.keys());
        names.extend(nacked_variants.map(|(name, _)| name.clone()));

        for pending_ack in self.client_cache.pending_acks() {
            let updated_names = pending_ack.updates.iter().map(Update::name);
            names.extend(updated_names.cloned());
            let items = pending_ack.advances.iter().flat_map(Advance::items);
            names.extend(items.map(|(name, _)| name.clone()));
        }

        let dirty = db.dirty(self.subscriber);
        names.extend(dirty.map(|(entry, _)| db.name(self.type_id, entry).clone()));
        names.extend(self.client_cache.exceptions().iter().cloned());
        for cursor in self.client_cache.cursors() {
            names.extend(db.changed_names(cursor.id, cursor.position));
            let resumed_names = cursor.resume_point.iter().flat_map(|point| point.iter());
            names.extend(resumed_names.map(|(name, _)| name.clone()));
        }

        let resolved_names: Vec<Name> = names
            .iter()
            .flat_map(|name| self.subscriptions_of(db, name))
            .filter_map(|(key, _)| self.subscriptions.resolved_name(key).cloned())
            .collect();
        names.extend(resolved_names);
        names
    }

    /// Returns the resources that the client was sent and holds, ACKed or not:
    /// one of each name, the last that was sent.
    pub(crate) fn sent_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut sent_resources: BTreeMap<Name, _> = BTreeMap::new();
        for cursor in self.client_cache.cursors() {
            let held_resources = cursor.held_resources(db).into_iter();
            let resources = held_resources
                .filter(|resource| !self.client_cache.exceptions().contains(&resource.name));
            sent_resources.extend(resources.map(|resource| (resource.name.clone(), resource)));
        }

        let records = self
            .client_cache
            .records()
            .filter(|record| record.is_accepted());
        sent_resources
            .extend(records.map(|record| (record.resource.name.clone(), record.resource.clone())));

        let pending_acks = self.client_cache.pending_acks().iter();
        let pending_resources = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        sent_resources
            .extend(pending_resources.map(|resource| (resource.name.clone(), resource.clone())));
        sent_resources.into_values().collect()
    }

    /// Returns the resources that every whole set lists again, because the
    /// client may have replaced them by something that it NACKed; none for
    /// types without whole sets.
    pub(crate) fn relisted_after_nack(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let is_uncertain = |record: &&CachedResource| {
            matches!(
                record.certainty,
                Certainty::MaybeDropped | Certainty::MaybeTaken
            )
        };
        let records = self
            .client_cache
            .records()
            .filter(|_| self.sends_whole_sets());

        let names = records
            .filter(is_uncertain)
            .map(|record| &record.resource.name);
        // A name may have an uncertain record and the accepted one beside it.
        let candidates = names.flat_map(|name| self.client_cache.records_of(name));
        candidates
            .filter(|record| {
                record.certainty != Certainty::MaybeTaken && !record.has_unknown_body()
            })
            .map(|record| &record.resource)
    }
}
