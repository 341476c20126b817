//! SotW: writes responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::client_cache::{
    Advance, CachedResource, Certainty, Cursor, PendingAck, Update, Variant, variant_of,
};
use super::{AnswerKind, Push, SubscriptionKey, TypeStream, negative};
use crate::database::{CursorId, Database};
use crate::kind::{self, NegativeForm};
use crate::message::{SotwResponse, WireResource};
use crate::name::Name;
use crate::resource::{Nonce, Resource, ResourceError, Version};
use crate::resource_list::ResourceList;

/// The most names that are reported as left out of a set.
const MOST_LEFT_OUT: usize = 100;
/// The most changes that are visited to find names that are left out: a set
/// that is sent for the first time has all names, and leaves out none.
const MOST_VISITED: usize = 1000;

/// A set that is being written.
type ResourceSet = BTreeMap<Variant, Arc<Resource>>;

impl TypeStream {
    /// Records for a subscription with the plain parameters whether the new
    /// list, which has its name `times` times, makes it by a plain name, by a
    /// locator, or by both (TP2). A subscription that only a locator made
    /// before, and a plain name makes now, is resent.
    pub(crate) fn update_origins(&mut self, db: &Database, name: &Name, times: usize) {
        let params = self.params;
        let is_located = self.located_names.remove(&(name.clone(), params));
        // A name that a locator brings as well is listed once more.
        let is_plain = times > usize::from(is_located);
        let Some(entry) = db.find(self.type_id, name) else {
            return;
        };
        let key = SubscriptionKey { entry, params };
        // A plain name that is new on the list is answered (S30).
        if is_plain
            && !self.subscriptions.is_plain(key)
            && let Some(subscription) = self.subscriptions.get_mut(key)
        {
            subscription.resend = true;
            self.dirty.insert(name.clone());
        }
        self.subscriptions.set_origins(key, is_plain, is_located);
    }

    /// Writes a response: a whole set, or for types without whole sets the
    /// changes. Returns `None` if there is nothing to write and the client does
    /// not wait for a response. `wrap` is whether the client reads wrapped
    /// resources (S58).
    pub(crate) fn write_sotw(
        &self,
        db: &mut Database,
        push: &Push,
        nonce: Nonce,
        wrap: bool,
    ) -> Option<SotwResponse> {
        let is_set_due = self.kind.whole_set && (self.owes_response || !push.is_empty());
        if let Some(cursor) = self.shared_set_cursor(push).filter(|_| is_set_due) {
            return Some(self.write_shared_set(db, cursor, push, nonce, wrap));
        }

        let resource_set = match self.kind.whole_set {
            true => self.whole_set(db, push),
            false => self.changed_resources(db, push),
        };
        let errors = self.sotw_errors(db, push);
        let is_empty = resource_set.is_empty() && errors.is_empty();
        if is_empty && !is_set_due && !self.owes_response {
            return None;
        }

        let sum = self.sum_after_push(db, push, &resource_set);
        let encode =
            |resource: Arc<Resource>| WireResource::for_sotw(resource, wrap, self.kind.ttl_in_sotw);
        Some(SotwResponse {
            type_url: self.type_url.clone(),
            version: Version::of_hash(sum),
            nonce,
            resources: resource_set
                .into_values()
                .map(encode)
                .collect::<Vec<_>>()
                .into(),
            errors,
            removed: self.omitted_names(push),
        })
    }

    /// Writes the whole set that a cursor lists. The list is made and encoded
    /// once for all clients at the head of the view.
    fn write_shared_set(
        &self,
        db: &mut Database,
        cursor: CursorId,
        push: &Push,
        nonce: Nonce,
        wrap: bool,
    ) -> SotwResponse {
        SotwResponse {
            type_url: self.type_url.clone(),
            version: Version::of_hash(db.fingerprint_sum(cursor)),
            nonce,
            resources: ResourceList::Shared(db.shared_list(cursor, wrap)),
            errors: Vec::new(),
            removed: self.omitted_names(push),
        }
    }

    /// Returns the names that a whole set does not list any more, for reports:
    /// at most [`MOST_LEFT_OUT`], and none of an advance that is too long to be
    /// visited. Empty for types without whole sets.
    fn omitted_names(&self, push: &Push) -> Vec<Name> {
        if !self.kind.whole_set {
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let short_advances = push
            .advances
            .iter()
            .filter(|advance| advance.range.len() <= MOST_VISITED);
        for advance in short_advances {
            let items = advance.items().filter(|(_, item)| item.is_none());
            names.extend(items.map(|(name, _)| name));
        }

        let is_removal = |update: &&Update| update.resource.is_none();
        names.extend(push.updates.iter().filter(is_removal).map(Update::name));
        // A name of which another variant is sent is not removed.
        for update in push.updates.iter().filter(|update| !is_removal(update)) {
            names.remove(update.name());
        }
        names.into_iter().take(MOST_LEFT_OUT).cloned().collect()
    }

    /// Returns the errors of a response (TP3): of names that failed, of names
    /// that no longer have a resource, and of refused names. Empty for a client
    /// that cannot read errors.
    fn sotw_errors(&self, db: &mut Database, push: &Push) -> Vec<(Name, Arc<ResourceError>)> {
        let mut errors = Vec::new();
        for answer in &push.answers {
            let error = match (&answer.error, answer.kind) {
                (Some(error), _) => Some(Arc::clone(error)),
                (None, AnswerKind::Absent) => {
                    let remaining_records =
                        self.client_cache
                            .held_after_push(db, &answer.name, push.changes());
                    self.absence_as_error(true)
                        .filter(|_| remaining_records.is_empty())
                }
                _ => None,
            };
            errors.extend(error.map(|error| (answer.name.clone(), error)));
        }

        let refused_names = push.refused.iter();
        errors.extend(
            refused_names.filter_map(|name| Some((name.clone(), self.refusal_as_error()?))),
        );
        errors
    }

    /// Returns the cursor whose view is everything that the client should hold,
    /// if the response has nothing else: every such client gets the same list.
    /// `None` otherwise.
    fn shared_set_cursor(&self, push: &Push) -> Option<CursorId> {
        let [cursor] = self.client_cache.cursors() else {
            return None;
        };
        let is_all = self.kind.whole_set
            && self.client_cache.exceptions().is_empty()
            && self.subscriptions.is_empty()
            && push.updates.is_empty()
            && push.answers.is_empty();
        is_all.then_some(cursor.id)
    }

    /// Returns the whole set that the client will hold once it has ACKed the
    /// response. In place of a resource that the client must not take yet, the
    /// set has the one that the client had (S12, S38).
    fn whole_set(&self, db: &mut Database, push: &Push) -> ResourceSet {
        // With the advances of the response, cursors are at their sent
        // positions.
        let pending_acks = self.client_cache.pending_acks().len();
        let mut set = self.set_after_acks(db, pending_acks, |db, cursor| db.list(cursor.id));
        for update in &push.updates {
            apply_update(&mut set, update);
        }
        for name in self.invalid_clusters(push) {
            set.entry((name.clone(), None))
                .or_insert_with(|| negative::invalid_cluster(&name));
        }
        set.retain(|_, resource| !self.is_withheld(resource));
        set
    }

    /// Returns the set that the client will hold once it has ACKed the first
    /// `pending_acks` of the pending responses, as far as bodies are known: the
    /// resources of cursors, the records, and then the responses in their
    /// order. `members` lists the resources of a cursor.
    pub(crate) fn set_after_acks(
        &self,
        db: &mut Database,
        pending_acks: usize,
        members: impl Fn(&mut Database, &Cursor) -> Vec<Arc<Resource>>,
    ) -> ResourceSet {
        let mut set = ResourceSet::new();
        for cursor in self.client_cache.cursors() {
            for resource in members(db, cursor) {
                let name = &resource.name;
                let owner = self.client_cache.covering_cursor(name);
                let is_owner = owner.is_some_and(|owner| owner.id == cursor.id);
                if is_owner && !self.client_cache.exceptions().contains(name) {
                    set.insert(variant_of(&resource), resource);
                }
            }
        }

        let records = self.client_cache.records();
        for record in records.filter(|record| !record.has_unknown_body()) {
            let (variant, resource) = (variant_of(&record.resource), Arc::clone(&record.resource));
            match record.certainty {
                Certainty::Accepted => _ = set.insert(variant, resource),
                Certainty::Resumed | Certainty::MaybeDropped => {
                    _ = set.entry(variant).or_insert(resource)
                }
                Certainty::MaybeTaken => {}
            }
        }

        for pending_ack in self.client_cache.pending_acks().iter().take(pending_acks) {
            self.apply_pending(db, pending_ack, &mut set);
        }
        set
    }

    /// Applies a pending response to a set: its updates, and the items of its
    /// advances that are exceptions. The other items are in the set by their
    /// cursors.
    fn apply_pending(&self, db: &Database, pending_ack: &PendingAck, set: &mut ResourceSet) {
        for advance in &pending_ack.advances {
            for (name, item) in advance.items() {
                if !self.client_cache.exceptions().contains(name) {
                    continue;
                }
                if let Some(constraints) = advance.replaced_variant_of(name) {
                    set.remove(&(name.clone(), constraints.clone()));
                }
                match item {
                    Some(resource) => _ = set.insert(variant_of(resource), Arc::clone(resource)),
                    None => _ = set.remove(&(name.clone(), None)),
                }
            }
        }

        for update in &pending_ack.updates {
            if self.has_interest(db, update.name()) {
                apply_update(set, update);
            }
        }
    }

    /// Returns whether sets list an invalid cluster for each cluster of unknown
    /// body, so that the client keeps its own (S82).
    pub(super) fn sends_invalid_clusters(&self) -> bool {
        self.type_url.as_str() == kind::CDS && self.sends_whole_sets()
    }

    /// Returns the names of clusters that an Envoy holds with unknown bodies,
    /// for which the set lists an invalid cluster: Envoy refuses that and keeps
    /// its own (S82). Clusters that were sent since, or are in the push, are
    /// not among them.
    pub(crate) fn invalid_clusters(&self, push: &Push) -> BTreeSet<Name> {
        if !self.sends_invalid_clusters() || !self.client_cache.has_unknown_bodies() {
            return BTreeSet::new();
        }

        let records = self.client_cache.records();
        let unknown_records = records.filter(|record| record.has_unknown_body());
        let mut names: BTreeSet<Name> = unknown_records
            .map(|record| record.resource.name.clone())
            .collect();
        let pending_acks = self.client_cache.pending_acks().iter();
        let sent_updates = pending_acks.flat_map(|pending_ack| &pending_ack.updates);
        for update in sent_updates.chain(&push.updates) {
            names.remove(update.name());
        }
        names
    }

    /// Returns the changed resources and negative answers, for types where a
    /// missing resource means nothing (S39). A name of which the client gets an
    /// error has no negative answer.
    fn changed_resources(&self, db: &mut Database, push: &Push) -> ResourceSet {
        let mut resources = ResourceSet::new();
        let mut add = |resource: Arc<Resource>| resources.insert(variant_of(&resource), resource);
        for update in &push.updates {
            let held_resources =
                self.client_cache
                    .held_after_push(db, update.name(), push.changes());
            // A response with some variants of a name replaces all of them
            // (TP2), so each of them is listed.
            if !held_resources.is_empty() {
                let accepted_records = held_resources
                    .into_iter()
                    .filter(|record| record.was_accepted() && !self.is_withheld(&record.resource));
                accepted_records.for_each(|record| _ = add(record.resource));
            } else if self.absence_as_error(true).is_none() {
                self.negative_resource(true, update.name()).map(&mut add);
            }
        }

        let answers = push.answers.iter();
        let absent_answers =
            answers.filter(|answer| answer.kind == AnswerKind::Absent && !answer.is_implicit);
        for answer in absent_answers.filter(|_| self.absence_as_error(false).is_none()) {
            self.negative_resource(false, &answer.name).map(&mut add);
        }
        let refused_names = push.refused.iter();
        for name in refused_names.filter(|_| self.refusal_as_error().is_none()) {
            self.negative_resource(false, name).map(&mut add);
        }

        let items = push.advances.iter().flat_map(Advance::items);
        for resource in items.filter_map(|(_, item)| item.as_ref()) {
            add(Arc::clone(resource));
        }
        resources
    }

    /// Returns the resource that says that a name does not exist; `None` if the
    /// type and the client have no such form in SotW.
    fn negative_resource(&self, is_held: bool, name: &Name) -> Option<Arc<Resource>> {
        match self.negative_form(is_held) {
            NegativeForm::EmptyBody => Some(negative::empty_body(name)),
            NegativeForm::Unreadable => Some(negative::unreadable(name)),
            // SotW has no form for these.
            NegativeForm::Removed | NegativeForm::Bodyless | NegativeForm::Silence => None,
        }
    }

    /// Returns the fingerprint sum of which `version_info` is made: that of the
    /// client's resources once it has ACKed the response and all before it. For a whole set that is the sum of
    /// `resource_set`, the set itself; else the present sum with the changes.
    fn sum_after_push(&self, db: &mut Database, push: &Push, resource_set: &ResourceSet) -> u128 {
        if self.kind.whole_set {
            return resource_set
                .values()
                .fold(0, |sum, resource| sum.wrapping_add(resource.fingerprint()));
        }

        let cursors = self.client_cache.cursors().iter();
        let sums = cursors.map(|cursor| db.fingerprint_sum(cursor.id));
        let mut sum = sums.fold(self.client_cache.fingerprint_sum(), u128::wrapping_add);

        let pending_acks = self.client_cache.pending_acks().iter();
        let pending_updates = pending_acks.flat_map(|pending_ack| &pending_ack.updates);
        let subscribed_updates =
            pending_updates.filter(|update| self.has_interest(db, update.name()));
        let names: BTreeSet<&Name> = subscribed_updates
            .chain(&push.updates)
            .map(Update::name)
            .collect();
        for name in names {
            let held_resources = self.client_cache.held_after_push(db, name, push.changes());
            sum = sum
                .wrapping_sub(sum_of(&self.client_cache.held(db, name)))
                .wrapping_add(sum_of(&held_resources));
        }

        // Zero is the sum of the empty set.
        match sum == 0 && self.may_hold_more(db, push) {
            true => u128::MAX,
            false => sum,
        }
    }

    /// Returns whether the client may hold resources after a push, although the
    /// sum of those that it ACKed is zero: then the version of the empty set
    /// would be wrong (S17, S82).
    fn may_hold_more(&self, db: &mut Database, push: &Push) -> bool {
        let mut names = self
            .client_cache
            .records()
            .map(|record| &record.resource.name);
        names.any(|name| {
            let held_resources = self.client_cache.held_after_push(db, name, push.changes());
            !held_resources.is_empty()
        })
    }
}

/// Returns the fingerprint sum of the accepted resources.
fn sum_of(held_resources: &[CachedResource]) -> u128 {
    let accepted_records = held_resources.iter().filter(|record| record.is_accepted());
    accepted_records.fold(0, |sum, record| {
        sum.wrapping_add(record.resource.fingerprint())
    })
}

/// Applies an update to a set: inserts the variant, or removes it.
fn apply_update(set: &mut ResourceSet, update: &Update) {
    match &update.resource {
        Some(resource) => _ = set.insert(update.variant.clone(), Arc::clone(resource)),
        None => _ = set.remove(&update.variant),
    }
}
