//! Applies a NACK to the client cache, and makes suspects of its resources.
//!
//! A NACK says nothing about which resource of a response is bad, nor about
//! which took effect. So the resources become suspects, which `trials.rs` sends
//! again (S12). Removals and negative answers are no reason for a NACK: they
//! are resent at once.

use std::sync::Arc;

use super::client_cache::{
    Advance, Answer, CachedResource, Certainty, PendingAck, Update, Variant, error_mentions,
    same_variant, variant_of,
};
use super::trials::{Quarantined, Suspects};
use super::{AnswerKind, TypeStream};
use crate::database::Database;
use crate::message::{ErrorDetail, Mode};
use crate::resource::{Nonce, Resource};

/// A resource that counts as accepted although its response was NACKed, since
/// that NACK was expected.
#[derive(Debug)]
pub(crate) struct Unverified {
    resource: Arc<Resource>,
    /// The resource that the client has if it did not take the unverified one.
    previous: Option<CachedResource>,
}

/// Versions of NACKed sets that are remembered.
pub(super) const MAX_NACKED_VERSIONS: usize = 4;

impl TypeStream {
    /// Handles a NACK: its resources become suspects, to be sent again in
    /// trials, and responses before it count as ACKed. Returns the resources
    /// that were NACKed alone, and went into quarantine: while
    /// [`Self::is_quarantined`] says so, a rejected resource is not sent again
    /// unchanged (S12). The NACK of a response that is not pending is ignored.
    pub(crate) fn handle_nack(
        &mut self,
        db: &mut Database,
        nonce: &Nonce,
        error: &ErrorDetail,
    ) -> Vec<Quarantined> {
        if let Some((updates, answers)) = self.client_cache.take_merged(nonce) {
            let mut suspects = self.select_suspects(db, updates, answers, error);
            self.repeat_in_later_pending(&suspects.updates);
            // Which of the updates were in this response is not known: one of
            // several that is left was not NACKed alone.
            suspects.upsert_count = 0;
            return self.schedule_trials(db, suspects, error);
        }

        let Some(pending_ack) = self.take_nacked_response(db, nonce) else {
            return Vec::new();
        };
        self.fall_back_to_named_set(db);
        self.nacked_versions.extend(pending_ack.version.clone());
        if self.nacked_versions.len() > MAX_NACKED_VERSIONS {
            self.nacked_versions.pop_front();
        }

        let suspects = self.make_suspects(db, pending_ack, error);
        self.repeat_in_later_pending(&suspects.updates);
        self.consecutive_nacks = self.consecutive_nacks.saturating_add(1);
        self.trial_turn = !self.trial_turn;
        let quarantined = self.schedule_trials(db, suspects, error);
        self.drop_redundant_exceptions(db);
        quarantined
    }

    /// Removes and returns the pending ACK of a NACKed response; `None` if
    /// there is no such response. The responses before it count as ACKed: the
    /// client handles responses in order, and would have NACKed them.
    fn take_nacked_response(&mut self, db: &mut Database, nonce: &Nonce) -> Option<PendingAck> {
        let pending_acks = self.client_cache.pending_acks();
        let index = pending_acks
            .iter()
            .position(|pending_ack| pending_ack.nonce == *nonce)?;

        if let Some(previous) = index.checked_sub(1) {
            let previous_nonce = pending_acks[previous].nonce.clone();
            self.handle_ack(db, &previous_nonce);
        }

        // Now the NACKed one is the oldest.
        self.client_cache.take_oldest_pending()
    }

    /// Makes suspects of the resources of a NACKed response, and records that
    /// the client may have taken them. Unverified resources become suspects,
    /// too. Removals and answers of the response are repeated.
    fn make_suspects(
        &mut self,
        db: &mut Database,
        pending_ack: PendingAck,
        error: &ErrorDetail,
    ) -> Suspects {
        let mut updates = pending_ack.updates;
        for advance in pending_ack.advances {
            updates.extend(self.take_nacked_items(db, &advance));
            self.client_cache.advance_cursor(db, &advance);
        }

        // A resource that was suspected once is not the reason again, unless
        // there is no other.
        let has_upserts = !updates.iter().all(Update::is_removal);
        for (variant, unverified) in std::mem::take(&mut self.unverified) {
            match has_upserts && self.was_suspected(&variant, &unverified.resource) {
                true => _ = self.unverified.insert(variant, unverified),
                false => {
                    updates.push(Update::upsert(&unverified.resource, None));
                    self.suspect_unverified(db, variant, unverified);
                }
            }
        }
        self.select_suspects(db, updates, pending_ack.answers, error)
    }

    /// Makes the names of a NACKed advance exceptions, since the client may
    /// have taken some of its items. Returns the items as updates.
    fn take_nacked_items(&mut self, db: &mut Database, advance: &Advance) -> Vec<Update> {
        let mut updates = Vec::new();
        for (name, item) in advance.items() {
            self.client_cache.make_exception(db, name);
            let removed_variant = advance.removed_variant(name, item.as_ref());
            updates.extend(removed_variant.map(|variant| Update::remove(variant, None)));
            updates.extend(item.as_ref().map(|resource| Update::upsert(resource, None)));
        }
        updates
    }

    /// Selects the suspects among the `updates` of a NACKed response, and
    /// records that the client may have taken them. Resources that the client
    /// has unsubscribed from are none. Answers and removals are repeated.
    fn select_suspects(
        &mut self,
        db: &mut Database,
        updates: Vec<Update>,
        answers: Vec<Answer>,
        error: &ErrorDetail,
    ) -> Suspects {
        let upsert_count = updates.iter().filter(|update| !update.is_removal()).count();
        let has_upserts = upsert_count > 0;
        for answer in answers {
            self.handle_nacked_answer(answer, has_upserts);
        }

        let mut suspects = Vec::new();
        for update in updates {
            let Some(resource) = &update.resource else {
                self.handle_nacked_removal(db, update, has_upserts);
                continue;
            };
            let is_unsubscribed = !self.has_interest(db, update.name())
                && !self.has_interest(db, update.requested_name());
            if is_unsubscribed {
                // The client unsubscribed meanwhile. A set that was sent since
                // lists the resource, and removals are not its only updates.
                self.repeat_in_later_pending(&[update]);
                continue;
            }

            if update.removed_earlier {
                self.drop_accepted(db, &update.variant);
            }
            let is_blamed = upsert_count == 1 || error_mentions(error, &resource.name);
            self.record_maybe_taken(db, resource, is_blamed);
            suspects.push(update);
        }
        Suspects {
            updates: suspects,
            upsert_count,
        }
    }

    /// Handles a removal of a NACKed response. It is repeated if the response
    /// had resources, since the client may not have applied it (S17). Without
    /// resources it counts as ACKed, or it would be repeated for ever.
    fn handle_nacked_removal(&mut self, db: &mut Database, update: Update, has_upserts: bool) {
        if has_upserts {
            self.record_maybe_dropped(db, &update);
            self.repeat_in_later_pending(&[update]);
        } else {
            let name = update.name().clone();
            self.client_cache
                .edit_records(db, &name, |records| update.apply(records));
        }
    }

    /// Drops the accepted record of a variant, because a response before the
    /// NACKed one removed the variant and may have been applied.
    pub(super) fn drop_accepted(&mut self, db: &mut Database, variant: &Variant) {
        self.client_cache.edit_records(db, &variant.0, |records| {
            records.retain(|record| !(record.is_accepted() && record.is_variant(variant)));
        });
    }

    /// Adds the updates of a NACKed SotW response to the later pending ones,
    /// which contain the same resources.
    fn repeat_in_later_pending(&mut self, updates: &[Update]) {
        if self.mode == Mode::Sotw {
            let is_whole_set = self.kind.whole_set;
            self.client_cache
                .repeat_in_later_pending(updates, is_whole_set);
        }
    }

    /// Records that the client may have taken a NACKed resource (S17). A
    /// resource that it resumed with in the same version, and was sent for that
    /// reason, stays recorded as resumed unless it is `blamed`.
    fn record_maybe_taken(&mut self, db: &mut Database, resource: &Arc<Resource>, blamed: bool) {
        let is_resumed = |record: &CachedResource| {
            record.certainty == Certainty::Resumed
                && record.resource.version == resource.version
                && same_variant(&record.resource, resource)
        };
        let name = resource.name.clone();
        if !blamed && self.client_cache.held(db, &name).iter().any(is_resumed) {
            return;
        }

        // A resource that was NACKed alone was not taken.
        let quarantine_entry = self.quarantine.get(&variant_of(resource));
        let quarantined_version = quarantine_entry.map(|(version, _)| version.clone());
        let was_nacked_alone = |record: &CachedResource| {
            record.certainty == Certainty::MaybeTaken
                && same_variant(&record.resource, resource)
                && quarantined_version.as_ref() == Some(&record.resource.version)
        };
        self.client_cache.edit_records(db, &name, |records| {
            records.retain(|record| !is_resumed(record) && !was_nacked_alone(record));
        });
        self.client_cache
            .record(db, CachedResource::maybe_taken(Arc::clone(resource)));
    }

    /// Records that the client may have dropped a resource that a NACKed
    /// response removes (S17). The removal is repeated.
    fn record_maybe_dropped(&mut self, db: &mut Database, update: &Update) {
        let name = update.name().clone();
        self.client_cache.edit_records(db, &name, |records| {
            let variant_records: Vec<CachedResource> = records
                .extract_if(.., |record| record.is_variant(&update.variant))
                .collect();

            // One record is enough to repeat the removal: best an accepted one.
            let accepted_record = variant_records.iter().find(|record| record.was_accepted());
            let certainty = match accepted_record {
                Some(_) => Certainty::MaybeDropped,
                None => Certainty::MaybeTaken,
            };
            let recorded_resource = accepted_record
                .or(variant_records.first())
                .map(|record| &record.resource);
            if let Some(resource) = recorded_resource.or(update.earlier_resource.as_ref()) {
                let resource = Arc::clone(resource);
                records.push(CachedResource {
                    resource,
                    certainty,
                });
            }
        });
        self.dirty.insert(update.requested_name().clone());
    }

    /// Handles an answer of a NACKed response. It is repeated if the response
    /// had resources and the answer is not one of them. Without resources it
    /// counts as ACKed, or it would be repeated for ever.
    fn handle_nacked_answer(&mut self, answer: Answer, has_upserts: bool) {
        if !has_upserts {
            return self.record_answer(answer);
        }
        if let Some(subscription) = self.subscriptions.get_mut(answer.subscription) {
            subscription.resend |= answer.kind != AnswerKind::Resource && !answer.is_implicit;
            self.dirty.insert(answer.name);
        }
    }

    /// Handles the NACK of a response that has a resource which the client must
    /// reject (S35, S82). The NACK says nothing about the other resources. So
    /// they count as accepted, but become unverified, and suspects of the next
    /// NACK, unless the client had them before. The caller then handles the
    /// NACK as an ACK. The NACK of a response that is not pending is ignored.
    pub(crate) fn handle_expected_nack(&mut self, db: &mut Database, nonce: &Nonce) {
        let pending_acks = self.client_cache.pending_acks();
        // A nonce that is not pending is of a response that was judged before.
        let Some(index) = pending_acks
            .iter()
            .position(|pending_ack| pending_ack.nonce == *nonce)
        else {
            return;
        };

        let earlier_acks = pending_acks.range(..index);
        let earlier_resources: Vec<Arc<Resource>> = earlier_acks
            .flat_map(PendingAck::resources)
            .cloned()
            .collect();
        let resources: Vec<_> = pending_acks[index].resources().cloned().collect();
        for resource in resources {
            self.add_unverified(db, resource, &earlier_resources);
        }
    }

    /// Makes a resource unverified, unless the client had it before.
    /// `earlier_resources` are those of the responses before this one, which
    /// count as ACKed with it. Where an earlier version is unverified already,
    /// the version before that is the one that the client may still have.
    fn add_unverified(
        &mut self,
        db: &mut Database,
        resource: Arc<Resource>,
        earlier_resources: &[Arc<Resource>],
    ) {
        let held_resources = self.client_cache.held(db, &resource.name);
        let is_replaced = |record: &&CachedResource| {
            let may_be_variant =
                record.has_unknown_body() || same_variant(&record.resource, &resource);
            may_be_variant && record.certainty != Certainty::MaybeTaken
        };
        let replaced_records: Vec<&CachedResource> =
            held_resources.iter().filter(is_replaced).collect();
        let is_same = |record: &&CachedResource| record.resource.version == resource.version;
        if replaced_records.iter().any(is_same) {
            return;
        }

        let accepted_record = replaced_records.iter().find(|record| record.is_accepted());
        let mut latest_first = earlier_resources.iter().rev();
        let earlier_version = latest_first.find(|earlier| same_variant(earlier, &resource));
        let replaced_record = match (accepted_record, earlier_version) {
            (Some(accepted_record), _) => Some((*accepted_record).clone()),
            (None, Some(earlier_version)) => Some(CachedResource::accepted(earlier_version)),
            (None, None) => replaced_records.first().copied().cloned(),
        };

        let variant = variant_of(&resource);
        let previous = match self.unverified.remove(&variant) {
            Some(replaced_unverified) => replaced_unverified.previous,
            None => replaced_record,
        };
        let unverified = Unverified { resource, previous };
        self.unverified.insert(variant, unverified);
    }

    /// Returns whether a resource became a suspect after it had counted as
    /// accepted.
    fn was_suspected(&self, variant: &Variant, resource: &Resource) -> bool {
        let key = (variant.clone(), resource.version.clone());
        self.suspected_once.contains(&key)
    }

    /// Takes an unverified resource, which becomes a suspect, out of the client
    /// cache. The resource that the client had before is recorded again if the
    /// client is still subscribed to it, since the client may have kept it.
    fn suspect_unverified(&mut self, db: &mut Database, variant: Variant, unverified: Unverified) {
        let Unverified { resource, previous } = unverified;
        self.client_cache.edit_records(db, &variant.0, |records| {
            records.retain(|record| {
                !record.is_variant(&variant) || record.resource.version != resource.version
            });
        });
        if let Some(previous) = previous.filter(|_| self.has_interest(db, &variant.0)) {
            self.client_cache.record(db, previous);
        }
        self.suspected_once
            .insert((variant, resource.version.clone()));
    }

    /// Makes all unverified resources accepted ones if the ACKed response
    /// expected no NACK: the ACK shows that the client takes what it is sent.
    /// Does nothing for a response that expected a NACK.
    pub(super) fn clear_unverified(&mut self, pending_ack: &PendingAck) {
        if !pending_ack.expects_nack {
            self.unverified.clear();
            self.suspected_once.clear();
        }
    }
}
