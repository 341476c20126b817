//! What a peer rejected.
//!
//! A NACK says nothing about which resource of a response is bad, nor about
//! which took effect. So the resources are sent again in halves until one fails
//! alone, and only that one is parked (S12). What goes, and names that do not
//! exist, are no reason to reject anything: they are said again beside.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client_cache::{
    Answer, CachedResource, Certainty, PendingAck, Update, Variant, error_names, same_variant,
    variant_of,
};
use super::{AnswerKind, TypeStream};
use crate::database::Database;
use crate::message::{ErrorDetail, Mode};
use crate::name::Name;
use crate::resource::{Nonce, Resource, Version};

/// One resource that failed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

/// What may be the reason of a rejection.
struct Suspects {
    updates: Vec<Update>,
    /// How many resources the rejected response brought.
    upsert_count: usize,
}

/// A resource that counts as accepted although its response was NACKed, since
/// that NACK was expected.
#[derive(Debug)]
pub(crate) struct Unverified {
    resource: Arc<Resource>,
    /// What the peer has if it did not take it.
    before: Option<CachedResource>,
}

/// Rejected sets whose versions are remembered.
const MAX_NACKED_VERSIONS: usize = 4;

impl TypeStream {
    /// The peer rejected the response. Returns what failed alone.
    pub(crate) fn handle_nack(
        &mut self,
        db: &mut Database,
        nonce: &Nonce,
        error: &ErrorDetail,
    ) -> Vec<Quarantined> {
        if let Some((updates, answers)) = self.client_cache.take_merged(nonce) {
            let mut suspects = self.suspects_among(db, updates, answers, error);
            self.repeat_in_later_pending(&suspects.updates);
            // What was in the response itself is not known: one that is left of
            // several did not fail alone.
            suspects.upsert_count = 0;
            return self.schedule_trials(db, suspects, error);
        }
        let pending_acks = self.client_cache.pending_acks();
        let Some(place) = pending_acks.iter().position(|f| f.nonce == *nonce) else {
            return Vec::new();
        };
        // What was sent before and is not answered is as good as accepted: the
        // peer works in order, and would have said otherwise.
        if let Some(before) = place.checked_sub(1) {
            let nonce = pending_acks[before].nonce.clone();
            self.handle_ack(db, &nonce);
        }
        let Some(pending_ack) = self.client_cache.take_oldest_pending() else {
            return Vec::new();
        };
        self.fall_back_to_named_set(db);
        self.nacked_versions.extend(pending_ack.version.clone());
        if self.nacked_versions.len() > MAX_NACKED_VERSIONS {
            self.nacked_versions.pop_front();
        }
        let suspects = self.suspects_of(db, pending_ack, error);
        self.repeat_in_later_pending(&suspects.updates);
        self.consecutive_nacks = self.consecutive_nacks.saturating_add(1);
        self.trial_turn = !self.trial_turn;
        let quarantined = self.schedule_trials(db, suspects, error);
        self.drop_redundant_exceptions(db);
        quarantined
    }

    /// Everything that a rejected response brought, with what the peer may hold
    /// of it noted. What it took away, and what it answered, is said again.
    fn suspects_of(
        &mut self,
        db: &mut Database,
        pending_ack: PendingAck,
        error: &ErrorDetail,
    ) -> Suspects {
        let mut updates = pending_ack.updates;
        for advance in pending_ack.advances {
            let items: Vec<_> = advance.items().cloned().collect();
            for (name, item) in items {
                self.client_cache.make_exception(db, &name);
                let left = advance
                    .replaced_variant_of(&name)
                    .filter(|_| item.is_some());
                let left = left.map(|left| (name.clone(), left.clone()));
                updates.extend(left.map(|left| Update::remove(left, None)));
                updates.push(match &item {
                    Some(new) => Update::upsert(new, None),
                    None => {
                        let left = advance
                            .replaced_variant_of(&name)
                            .cloned()
                            .unwrap_or_default();
                        Update::remove((name, left), None)
                    }
                });
            }
            self.client_cache.advance_cursor(db, &advance);
        }
        // What was suspected once is not the reason again, unless there is no other.
        let brings = updates.iter().any(|update| update.resource.is_some());
        for (variant, new) in std::mem::take(&mut self.unverified) {
            match brings && self.was_suspected(&variant, &new.resource) {
                true => _ = self.unverified.insert(variant, new),
                false => {
                    updates.push(Update::upsert(&new.resource, None));
                    self.suspect_unverified(db, variant, new);
                }
            }
        }
        self.suspects_among(db, updates, pending_ack.answers, error)
    }

    fn suspects_among(
        &mut self,
        db: &mut Database,
        updates: Vec<Update>,
        answers: Vec<Answer>,
        error: &ErrorDetail,
    ) -> Suspects {
        let brought = updates
            .iter()
            .filter(|update| update.resource.is_some())
            .count();
        let brings = brought > 0;
        for answer in answers {
            self.repeat_answer(answer, brings);
        }
        let mut suspects = Vec::new();
        for update in updates {
            match &update.resource {
                Some(resource)
                    if self.has_interest(db, update.name())
                        || self.has_interest(db, update.requested_name()) =>
                {
                    if update.removed_earlier {
                        // The removal in between was not rejected, maybe.
                        let name = update.name().clone();
                        let gone = |held: &CachedResource| {
                            held.is_accepted() && held.is_variant(&update.variant)
                        };
                        self.client_cache
                            .edit_records(db, &name, |held| held.retain(|held| !gone(held)));
                    }
                    let blamed = brought == 1 || error_names(error, &resource.name);
                    self.record_maybe_taken(db, resource, blamed);
                    suspects.push(update);
                }
                // The peer gave it up meanwhile. A set that went out since lists it,
                // and what that takes away is not all that it says.
                Some(_) => self.repeat_in_later_pending(&[update]),
                None if brings => {
                    self.record_maybe_dropped(db, &update);
                    self.repeat_in_later_pending(&[update]);
                }
                // A removal that is rejected on its own has nothing to park.
                None => {
                    let name = update.name().clone();
                    self.client_cache
                        .edit_records(db, &name, |held| update.apply(held));
                }
            }
        }
        Suspects {
            updates: suspects,
            upsert_count: brought,
        }
    }

    /// Adds the updates of a NACKed SotW response to the pending ones after it,
    /// which contain them too.
    fn repeat_in_later_pending(&mut self, updates: &[Update]) {
        if self.mode == Mode::Sotw {
            let whole = self.kind.whole_set;
            self.client_cache.repeat_in_later_pending(updates, whole);
        }
    }

    /// The peer may have taken what it rejected (S17). What it was given because
    /// it had it before stays what it has, unless that is `blamed`.
    fn record_maybe_taken(&mut self, db: &mut Database, resource: &Arc<Resource>, blamed: bool) {
        let had = |held: &CachedResource| {
            held.certainty == Certainty::Resumed
                && held.resource.version == resource.version
                && same_variant(&held.resource, resource)
        };
        let name = resource.name.clone();
        if !blamed && self.client_cache.held(db, &name).iter().any(had) {
            return;
        }
        // What failed alone was not taken.
        let quarantined = self.quarantine.get(&variant_of(resource)).cloned();
        let failed = |held: &CachedResource| {
            let version = quarantined.as_ref().map(|(version, _)| version);
            held.certainty == Certainty::MaybeTaken
                && same_variant(&held.resource, resource)
                && version == Some(&held.resource.version)
        };
        self.client_cache.edit_records(db, &name, |held| {
            held.retain(|held| !had(held) && !failed(held));
        });
        self.client_cache
            .record(db, CachedResource::maybe_taken(Arc::clone(resource)));
    }

    /// The peer may have dropped what a rejected response took away, or not
    /// (S17). It is said again.
    fn record_maybe_dropped(&mut self, db: &mut Database, update: &Update) {
        let name = update.name().clone();
        self.client_cache.edit_records(db, &name, |held| {
            let own: Vec<CachedResource> = held
                .extract_if(.., |held| held.is_variant(&update.variant))
                .collect();
            // One is enough to say it again: best what was accepted.
            let accepted = own.iter().find(|held| held.was_accepted());
            let state = match accepted {
                Some(_) => Certainty::MaybeDropped,
                None => Certainty::MaybeTaken,
            };
            let known = accepted.or(own.first()).map(|held| &held.resource);
            held.extend(known.or(update.earlier_resource.as_ref()).map(|resource| {
                CachedResource {
                    resource: Arc::clone(resource),
                    certainty: state,
                }
            }));
        });
        self.dirty.insert(update.requested_name().clone());
    }

    /// Repeats an answer of a NACKed response. One that came without any
    /// resource counts as ACKed, or it would be repeated for ever.
    fn repeat_answer(&mut self, answer: Answer, brings: bool) {
        if !brings {
            return self.record_answer(answer);
        }
        if let Some(subscription) = self.subscriptions.get_mut(answer.subscription) {
            subscription.resend |= answer.kind != AnswerKind::Resource && !answer.is_implicit;
            self.dirty.insert(answer.name);
        }
    }

    /// Sends suspects again in groups; one that failed alone is parked.
    fn schedule_trials(
        &mut self,
        db: &mut Database,
        suspects: Suspects,
        error: &ErrorDetail,
    ) -> Vec<Quarantined> {
        let Suspects {
            updates: mut suspects,
            upsert_count: brought,
        } = suspects;
        // Variants that take the place of another cannot be tried one by one.
        let alone =
            brought == 1 || (brought == suspects.len() && self.is_variant_swap(db, &suspects));
        // Where one is known to be bad, that is why.
        let quarantined = |update: &Update| {
            update
                .resource
                .as_ref()
                .is_some_and(|sent| self.is_quarantined(sent))
        };
        if suspects.iter().any(quarantined) {
            let rest = suspects.iter().filter(|update| !quarantined(update));
            let requested_names: Vec<Name> =
                rest.map(|update| update.requested_name().clone()).collect();
            self.dirty.extend(requested_names);
            return Vec::new();
        }
        self.drop_changed_suspects(db, &mut suspects);
        if alone && suspects.len() < brought {
            // Without the one that changed, the others may be accepted.
            let requested_names = suspects
                .iter()
                .map(|update| update.requested_name().clone());
            self.dirty.extend(requested_names);
            return Vec::new();
        }
        if alone {
            if let [first, _, ..] = &suspects[..] {
                self.quarantined_together
                    .insert(first.requested_name().clone());
            }
            let quarantined = suspects
                .into_iter()
                .filter_map(|update| self.quarantine_update(db, update));
            return quarantined.collect();
        }
        suspects.sort_by(|a, b| a.variant.cmp(&b.variant));
        let complete = suspects.len() == brought;
        let groups = self.bisect(db, &suspects, complete, error);
        for group in groups.into_iter().rev() {
            self.trials.push_front(group);
        }
        for update in suspects {
            let requested_name = update.requested_name().clone();
            let Some(sent) = update.resource else {
                continue;
            };
            self.suspects
                .insert(update.variant, (sent.version.clone(), requested_name));
        }
        Vec::new()
    }

    /// What has changed since is news, not a suspect; and with it all variants of
    /// its name, which are said together.
    fn drop_changed_suspects(&mut self, db: &mut Database, suspects: &mut Vec<Update>) {
        let is_changed = |update: &&Update| {
            let sent = update.resource.as_ref();
            !sent.is_some_and(|sent| {
                self.is_current(db, update.requested_name(), &update.variant, &sent.version)
            })
        };
        let changed: BTreeSet<Name> = suspects
            .iter()
            .filter(is_changed)
            .map(|update| update.name().clone())
            .collect();
        let news = suspects.extract_if(.., |update| changed.contains(update.name()));
        self.dirty
            .extend(news.map(|update| update.requested_name().clone()));
    }

    /// Merges the suspects of a name into its update where the update replaces
    /// all that is held of the name: in SotW, and where the client holds
    /// something of unknown body.
    pub(super) fn merge_suspects(&mut self, db: &mut Database, name: &Name) {
        if self.kind.on_demand || self.suspects.is_empty() {
            return;
        }
        let own = self.suspects.range((name.clone(), None)..);
        let own = own.map(|(variant, _)| variant.clone());
        let own: Vec<Variant> = own.take_while(|(of, _)| of == name).collect();
        if own.is_empty() {
            return;
        }
        let replaces = self.mode == Mode::Sotw
            || self
                .client_cache
                .held(db, name)
                .iter()
                .any(CachedResource::has_unknown_body);
        let after = self.client_cache.held_after_acks(db, name);
        let is_news = |new: &Arc<Resource>| {
            let held = |held: &CachedResource| {
                let same = held.resource.version == new.version;
                same && same_variant(&held.resource, new)
            };
            let suspected = self.suspects.contains_key(&variant_of(new));
            !suspected && !self.is_quarantined(new) && !after.iter().any(held)
        };
        if replaces && self.desired_resources(db, name).iter().any(is_news) {
            for variant in &own {
                self.suspects.remove(variant);
            }
        }
    }

    /// Whether suspects are variants of one name that take the place of another
    /// together (TP2).
    fn is_variant_swap(&self, db: &mut Database, suspects: &[Update]) -> bool {
        let Some(name) = suspects.first().map(|update| update.name().clone()) else {
            return false;
        };
        let one = suspects.iter().all(|update| *update.name() == name);
        let wanted = self.desired_resources(db, &name);
        let gives_way = |held: &CachedResource| {
            let stays = wanted.iter().any(|new| same_variant(new, &held.resource));
            !held.has_unknown_body() && !stays
        };
        one && !self.kind.on_demand && self.client_cache.held(db, &name).iter().any(gives_way)
    }

    /// Whether the peer is still meant to hold this.
    pub(super) fn is_current(
        &self,
        db: &mut Database,
        requested_name: &Name,
        sent: &Variant,
        version: &Version,
    ) -> bool {
        let requested_name = self.subscriptions_of(db, requested_name).into_iter();
        let mut wanted: Vec<_> = requested_name
            .map(|(key, _)| self.resolve(db, key))
            .collect();
        wanted.extend(self.cursor_choice(db, &sent.0));
        let mut wanted = wanted.iter().filter_map(|choice| choice.resource());
        wanted.any(|new| variant_of(new) == *sent && new.version == *version)
    }

    /// Bisects suspects. If the text of the NACK names some of them, those and
    /// the rest are the two halves: the text decides the order of trials, never
    /// who is to blame (S64). Groups are split only if they are all that was
    /// NACKed.
    fn bisect(
        &self,
        db: &mut Database,
        suspects: &[Update],
        complete: bool,
        error: &ErrorDetail,
    ) -> Vec<Vec<Variant>> {
        let mut groups = self.group_updates(db, suspects);
        if groups.len() == 1 && complete {
            groups = (0..suspects.len()).map(|index| vec![index]).collect();
        }
        let variants = |groups: &[Vec<usize>]| -> Vec<Variant> {
            let all = groups.iter().flatten();
            all.map(|index| suspects[*index].variant.clone()).collect()
        };
        let is_named = |index: &usize| error_names(error, suspects[*index].name());
        let (named, rest): (Vec<_>, Vec<_>) = groups
            .iter()
            .cloned()
            .partition(|group| group.iter().any(is_named));
        if !named.is_empty() && !rest.is_empty() {
            return vec![variants(&rest), variants(&named)];
        }
        let right = groups.split_off(groups.len() / 2);
        let halves = [variants(&groups), variants(&right)];
        halves.into_iter().filter(|half| !half.is_empty()).collect()
    }

    /// A resource failed alone: it is not sent again unchanged. A virtual host
    /// that a request waits for is answered in the negative.
    fn quarantine_update(&mut self, db: &mut Database, update: Update) -> Option<Quarantined> {
        let requested_name = update.requested_name().clone();
        let resource = update.resource?;
        self.quarantine.insert(
            update.variant,
            (resource.version.clone(), requested_name.clone()),
        );
        if self.kind.on_demand {
            for (key, subscription) in self.subscriptions_of(db, &requested_name) {
                let led = self
                    .subscriptions
                    .resolved_name(key)
                    .unwrap_or(&requested_name);
                let holds = self
                    .client_cache
                    .held(db, led)
                    .iter()
                    .any(CachedResource::is_accepted);
                if !holds
                    && subscription.acked_answer != AnswerKind::Absent
                    && let Some(subscription) = self.subscriptions.get_mut(key)
                {
                    subscription.resend = true;
                }
            }
            self.dirty.insert(requested_name);
        } else {
            // Who asks is told what there is instead.
            self.dirty.insert(requested_name);
        }
        Some(Quarantined {
            name: resource.name.clone(),
            version: resource.version.clone(),
        })
    }

    /// Handles a NACK that was expected: the other resources of the response
    /// count as accepted, and are suspects of the next NACK unless the client
    /// had them before.
    pub(crate) fn handle_expected_nack(&mut self, db: &mut Database, nonce: &Nonce) {
        let mut pending_acks = self.client_cache.pending_acks().iter();
        let pending_ack = pending_acks
            .find(|pending_ack| pending_ack.nonce == *nonce && pending_ack.expects_nack);
        let Some(pending_ack) = pending_ack else {
            return;
        };
        let brought: Vec<_> = pending_ack.resources().cloned().collect();
        for resource in brought {
            let held = self.client_cache.held(db, &resource.name);
            let own = |held: &&CachedResource| {
                let same = held.has_unknown_body() || same_variant(&held.resource, &resource);
                same && held.certainty != Certainty::MaybeTaken
            };
            let own: Vec<&CachedResource> = held.iter().filter(own).collect();
            let had = |held: &&CachedResource| held.resource.version == resource.version;
            if own.iter().any(had) {
                continue;
            }
            let accepted = own.iter().find(|held| held.is_accepted());
            let before = accepted.or(own.first()).copied();
            let key = variant_of(&resource);
            let before = match self.unverified.remove(&key) {
                Some(older) => older.before,
                None => before.cloned(),
            };
            self.unverified.insert(key, Unverified { resource, before });
        }
    }

    /// Whether something was suspected after it had counted as accepted.
    fn was_suspected(&self, variant: &Variant, resource: &Resource) -> bool {
        let sent = (variant.clone(), resource.version.clone());
        self.suspected_once.contains(&sent)
    }

    /// What counted as accepted, and may not have been, is suspected: the peer may
    /// have what it had before.
    fn suspect_unverified(&mut self, db: &mut Database, variant: Variant, new: Unverified) {
        let Unverified { resource, before } = new;
        self.client_cache.edit_records(db, &variant.0, |held| {
            held.retain(|held| {
                !held.is_variant(&variant) || held.resource.version != resource.version
            });
        });
        if let Some(before) = before.filter(|_| self.has_interest(db, &variant.0)) {
            self.client_cache.record(db, before);
        }
        self.suspected_once
            .insert((variant, resource.version.clone()));
    }

    /// Ends the doubts about unverified resources when a response that expects
    /// no NACK is ACKed.
    pub(super) fn clear_unverified(&mut self, pending_ack: &PendingAck) {
        if !pending_ack.expects_nack {
            self.unverified.clear();
            self.suspected_once.clear();
        }
    }
}
