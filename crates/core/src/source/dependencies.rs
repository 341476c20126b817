//! What other types need to know of a conversation: what its peer holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::client_cache::Certainty;
use super::{CachedResource, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database};
use crate::facts::Reference;
use crate::name::Name;
use crate::resource::Resource;

/// How a name stands with the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// The peer does not ask for it.
    NotSubscribed,
    /// There is nothing to send: it does not exist, or was rejected.
    Unavailable,
    /// The peer accepted it, in this or an earlier version.
    Held,
    /// It will be sent, or its answer is awaited.
    Pending,
}

impl TypeStream {
    /// How a name stands with the peer.
    pub(crate) fn dependency_state(&self, db: &mut Database, name: &Name) -> DependencyState {
        let params = self.params;
        let selector = db
            .find(self.type_id, name)
            .map(|entry| SubscriptionKey { entry, params })
            .filter(|key| self.subscriptions.get(*key).is_some());
        let target = match selector {
            Some(selector) => self.resolve(db, selector),
            None => match self.cursor_choice(db, name) {
                Some(choice) => choice,
                None => return DependencyState::NotSubscribed,
            },
        };
        let given = target.resource().map_or(name, |resource| &resource.name);
        let holds = self
            .client_cache
            .held(db, given)
            .iter()
            .any(|held| held.is_accepted());
        let mut pending_acks = self.client_cache.pending_acks().iter();
        let stays = !pending_acks.any(|pending_ack| pending_ack.removes(given));
        match target {
            _ if holds && stays && !self.is_unverified(given) => DependencyState::Held,
            Choice::Unknown => DependencyState::Pending,
            Choice::Resource(resource) if !self.is_quarantined(&resource) => {
                DependencyState::Pending
            }
            _ => DependencyState::Unavailable,
        }
    }

    /// Whether a resource counts as accepted because the response that brought it
    /// was meant to be rejected, and a later response has yet to show whether that
    /// was the only reason.
    fn is_unverified(&self, name: &Name) -> bool {
        let mut own = self.unverified.range((name.clone(), None)..);
        let unverified = own.next().is_some_and(|((of, _), _)| of == name);
        unverified && !self.client_cache.pending_acks().is_empty()
    }

    /// Whether the peer holds something of which nothing is known but its name,
    /// if that: what it refers to is not known either.
    pub(crate) fn holds_unknown_bodies(&self) -> bool {
        let unknown_set = self.resumption.as_ref().is_some_and(|r| r.unknown_set);
        unknown_set || self.client_cache.has_unknown_bodies()
    }

    /// Visits each reference of a resource that the client may hold and that is
    /// about to be replaced by one without it. The cost is that of what is in
    /// progress, not of what is held.
    pub(crate) fn each_dropped_reference(
        &self,
        db: &mut Database,
        mut each: impl FnMut(&Reference),
    ) {
        for name in self.unsettled_names(db) {
            let wanted = self.desired_resources(db, &name);
            for held in self.client_cache.maybe_held(db, &name) {
                for reference in &held.facts().references {
                    if !wanted.iter().any(|new| new.facts().refers_to(reference)) {
                        each(reference);
                    }
                }
            }
        }
    }

    /// How many resources views list now.
    pub(crate) fn listed_count(&self, db: &mut Database) -> usize {
        let views = self.client_cache.cursors().iter();
        views.map(|view| db.list(view.id).len()).sum()
    }

    /// Whether something that the peer is meant to hold refers to a type.
    pub(crate) fn desires_reference_to(&self, db: &mut Database, url: &str) -> bool {
        let refers = |resource: &Arc<Resource>| {
            let mut references = resource.facts().references.iter();
            references.any(|reference| reference.type_url.as_str() == url)
        };
        let listed = self
            .client_cache
            .cursors()
            .iter()
            .map(|view| db.list(view.id));
        let mut listed: Vec<_> = listed.flatten().collect();
        for key in self.subscriptions.keys() {
            listed.extend(self.resolve(db, key).resource().cloned());
        }
        listed.iter().any(refers)
    }

    /// Hands over each reference of what the peer will hold and is meant to.
    pub(crate) fn each_reference(&self, db: &mut Database, mut each: impl FnMut(&Reference)) {
        let mut names: BTreeSet<Name> = self
            .subscriptions
            .keys()
            .map(|key| db.name(self.type_id, key.entry).clone())
            .collect();
        for view in self.client_cache.cursors() {
            names.extend(db.list(view.id).into_iter().map(|r| r.name.clone()));
        }
        for name in names {
            let after = self.client_cache.held_after_acks(db, &name);
            for wanted in self.desired_resources(db, &name) {
                let holds = |held: &CachedResource| {
                    held.is_accepted() && crate::database::same_resource(&held.resource, &wanted)
                };
                if after.iter().any(holds) {
                    wanted.facts().references.iter().for_each(&mut each);
                }
            }
        }
    }

    /// The names of which the peer may hold something else than it is meant to.
    fn unsettled_names(&self, db: &Database) -> BTreeSet<Name> {
        let mut names: BTreeSet<Name> = self.dirty.union(&self.deferred).cloned().collect();
        let rejected = self.suspects.keys().chain(self.quarantine.keys());
        names.extend(rejected.map(|(name, _)| name.clone()));
        for pending_ack in self.client_cache.pending_acks() {
            names.extend(
                pending_ack
                    .updates
                    .iter()
                    .map(|update| update.name().clone()),
            );
            let items = pending_ack
                .advances
                .iter()
                .flat_map(|advance| advance.items());
            names.extend(items.map(|(name, _)| name.clone()));
        }
        let dirty = db.dirty(self.subscriber);
        names.extend(dirty.map(|(entry, _)| db.name(self.type_id, entry).clone()));
        names.extend(self.client_cache.exceptions().iter().cloned());
        for view in self.client_cache.cursors() {
            names.extend(db.changed_names(view.id, view.position));
            let resumed = view.resume_point.iter().flat_map(|point| point.iter());
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
}

impl TypeStream {
    /// All that the peer was sent, accepted or not, and holds.
    pub(crate) fn sent_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut sent: BTreeMap<Name, _> = BTreeMap::new();
        for view in self.client_cache.cursors() {
            let held = view.held_resources(db).into_iter();
            let held = held.filter(|r| !self.client_cache.exceptions().contains(&r.name));
            sent.extend(held.map(|r| (r.name.clone(), r)));
        }
        let records = self
            .client_cache
            .records()
            .filter(|held| held.is_accepted());
        sent.extend(records.map(|held| (held.resource.name.clone(), held.resource.clone())));
        let pending_acks = self.client_cache.pending_acks().iter();
        let brought = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        sent.extend(brought.map(|r| (r.name.clone(), r.clone())));
        sent.into_values().collect()
    }

    /// Whole sets only: resources that every set lists again, because the
    /// client may have replaced them by something that it NACKed.
    pub(crate) fn relisted_after_nack(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let rejected = |held: &&CachedResource| {
            matches!(
                held.certainty,
                Certainty::MaybeDropped | Certainty::MaybeTaken
            )
        };
        let records = self
            .client_cache
            .records()
            .filter(|_| self.sends_whole_sets());
        let names = records.filter(rejected).map(|held| &held.resource.name);
        let listed = names.flat_map(|name| self.client_cache.records_of(name));
        listed
            .filter(|held| held.certainty != Certainty::MaybeTaken && !held.has_unknown_body())
            .map(|held| &held.resource)
    }
}
