//! Applies an ACK: the updates of a response go into the client cache.

use std::sync::Arc;

use super::client_cache::{Advance, Answer, CachedResource, PendingAck, Update, apply_item};
use super::{AnswerKind, Dialect, TypeStream};
use crate::database::Database;
use crate::name::Name;
use crate::resource::{Nonce, Resource};

/// A resource that the client held, and the ones that replace it.
pub(crate) type Replacement = (Arc<Resource>, Vec<Arc<Resource>>);

/// The effects of an ACK on other types.
#[derive(Debug, Default)]
pub(crate) struct AckEffects {
    pub(crate) replacements: Vec<Replacement>,
    /// The ACK replaced a resource of unknown body, whose references are not
    /// known either.
    pub(crate) replaced_unknown: bool,
}

impl TypeStream {
    /// Handles an ACK, of this response and all before it: writes their updates
    /// into the client cache, and moves cursors. Returns its effects on other
    /// types. They list replaced resources only for a type whose references
    /// drain (S73). The nonce must be that of a pending response, or all
    /// pending responses would count as ACKed.
    pub(crate) fn handle_ack(&mut self, db: &mut Database, nonce: &Nonce) -> AckEffects {
        let mut effects = AckEffects::default();
        let had_unknown_bodies = self.client_cache.has_unknown_bodies();
        while let Some(pending_ack) = self.client_cache.take_oldest_pending() {
            let is_last = pending_ack.nonce == *nonce;
            // gRPC requests the clusters of a route after it ACKed it, and uses
            // the old ones until it has the new (S73).
            if self.kind.drains || self.dialect == Dialect::Standard {
                self.collect_replacements(db, &pending_ack, &mut effects.replacements);
            }

            self.clear_unverified(&pending_ack);
            self.acked_version = pending_ack
                .version
                .clone()
                .or_else(|| self.acked_version.take());
            self.apply_acked(db, pending_ack);
            if is_last {
                break;
            }
        }

        self.forget_named_set();
        if let Some(resumption) = &mut self.resumption {
            effects.replaced_unknown |= std::mem::take(&mut resumption.unknown_set);
        }
        self.consecutive_nacks = 0;
        self.trial_turn = !self.trial_turn;
        self.retry_quarantined();
        self.drop_redundant_exceptions(db);
        effects.replaced_unknown |= had_unknown_bodies && !self.client_cache.has_unknown_bodies();
        effects
    }

    /// Returns the resources that the client held and that pending responses
    /// may have replaced, those of earlier pending responses included.
    pub(crate) fn pending_replacements(&self, db: &mut Database) -> Vec<Replacement> {
        let mut replacements = Vec::new();
        let mut earlier_upserts: Vec<Arc<Resource>> = Vec::new();
        for pending_ack in self.client_cache.pending_acks() {
            self.collect_replacements(db, pending_ack, &mut replacements);

            // A response replaces resources of the responses before it, too.
            for upsert in &earlier_upserts {
                let mut held_resources = vec![CachedResource::accepted(upsert)];
                self.apply_pending_to(pending_ack, &upsert.name, &mut held_resources);
                let successors = held_resources
                    .into_iter()
                    .map(|record| record.resource)
                    .collect();
                replacements.push((Arc::clone(upsert), successors));
            }
            earlier_upserts.extend(pending_ack.resources().cloned());
        }
        replacements
    }

    /// Returns whether a pending response may have replaced a resource of
    /// unknown body.
    pub(crate) fn may_replace_unknown(&self) -> bool {
        !self.client_cache.pending_acks().is_empty() && self.holds_unknown_bodies()
    }

    /// Adds to `replacements` the resources that the client holds and that a
    /// pending response replaces or removes.
    fn collect_replacements(
        &self,
        db: &mut Database,
        pending_ack: &PendingAck,
        replacements: &mut Vec<Replacement>,
    ) {
        let mut names: Vec<&Name> = pending_ack.updates.iter().map(Update::name).collect();
        names.dedup();

        for name in names {
            // The response may replace what the client holds now, and what a
            // pending response before it brought.
            let mut held_resources = self.client_cache.held(db, name);
            let mut replaced_resources: Vec<_> = held_resources
                .iter()
                .map(|record| record.resource.clone())
                .collect();
            let updates = pending_ack.updates_of(name).iter();
            replaced_resources.extend(updates.filter_map(|update| update.earlier_resource.clone()));

            self.apply_pending_to(pending_ack, name, &mut held_resources);
            let successors: Vec<_> = held_resources
                .into_iter()
                .map(|record| record.resource)
                .collect();
            replacements.extend(
                replaced_resources
                    .into_iter()
                    .map(|resource| (resource, successors.clone())),
            );
        }

        for advance in &pending_ack.advances {
            self.collect_advance_replacements(db, advance, replacements);
        }
    }

    /// Adds to `replacements` the resources that an advance replaces. Those of
    /// an open cursor are the same for all clients. Of a closed cursor's
    /// resources the client may have dropped some, so only those that it still
    /// holds are added.
    fn collect_advance_replacements(
        &self,
        db: &mut Database,
        advance: &Advance,
        replacements: &mut Vec<Replacement>,
    ) {
        if advance.cursor.is_some() {
            for (resource, successor) in advance.replacements() {
                replacements.push((
                    Arc::clone(resource),
                    successor.cloned().into_iter().collect(),
                ));
            }
            return;
        }

        for (name, item) in advance.items() {
            for record in self.client_cache.held(db, name) {
                replacements.push((record.resource, item.iter().cloned().collect()));
            }
        }
    }

    /// Applies a pending response to a list of the resources that the client
    /// holds of a name. The client cache itself is not changed.
    fn apply_pending_to(
        &self,
        pending_ack: &PendingAck,
        name: &Name,
        held_resources: &mut Vec<CachedResource>,
    ) {
        let cursor = self.client_cache.covering_cursor(name);
        pending_ack.apply(cursor.map(|cursor| cursor.id), name, held_resources);
    }

    /// Applies an ACKed response: records its answers, moves its cursors, and
    /// writes its updates into the client cache as far as the client is still
    /// subscribed to them. The client drops the other resources by itself.
    fn apply_acked(&mut self, db: &mut Database, pending_ack: PendingAck) {
        for answer in pending_ack.answers {
            self.record_answer(answer);
        }
        for advance in &pending_ack.advances {
            self.record_advance(db, advance);
        }

        // A proxy keeps hosts although it unsubscribes from them (S23).
        let keeps_hosts = self.kind.on_demand && self.wildcard.is_on();
        for update in pending_ack.updates {
            let has_interest = self.has_interest(db, update.name());
            if !has_interest && keeps_hosts {
                self.dirty.insert(update.name().clone());
            }
            if update.is_removal() || has_interest || keeps_hosts {
                self.mark_if_outdated(db, &update);
                let name = update.name().clone();
                self.client_cache
                    .edit_records(db, &name, |records| update.apply(records));
                // The client may have ended the subscription that the variant
                // matched (TP2).
                if update.variant.1.is_some() {
                    self.mark_unmatched(db, &name);
                }
            }
        }

        for advance in &pending_ack.advances {
            self.client_cache.advance_cursor(db, advance);
        }
    }

    /// Marks the name of an ACKed upsert dirty if the covering cursor does not
    /// list it: it was sent along a cursor that was closed and opened again
    /// since.
    fn mark_if_outdated(&mut self, db: &mut Database, update: &Update) {
        let Some(choice) = self.cursor_choice(db, update.name()) else {
            return;
        };
        if !update.is_removal() && choice.resource().is_none() {
            self.dirty.insert(update.name().clone());
        }
    }

    /// Records an answer that the client ACKed, if its subscription still
    /// exists. A name that it was the last to resolve to becomes dirty.
    pub(super) fn record_answer(&mut self, answer: Answer) {
        let Answer {
            subscription,
            kind,
            resolved_name,
            error,
            ..
        } = answer;
        if self.subscriptions.get(subscription).is_none() {
            return;
        }

        let unresolved_name = match kind {
            // An error leaves the resource in use.
            AnswerKind::Error => None,
            _ => self
                .subscriptions
                .set_resolved_name(subscription, resolved_name),
        };
        // A name that nothing resolves to any more was removed in the same
        // response, or is next.
        self.dirty.extend(unresolved_name);
        self.subscriptions.record_answer(subscription, kind, error);
    }

    /// Writes the items of an ACKed advance into the client cache, except those
    /// that the cursor's position covers. Left are names that became exceptions
    /// in the meantime, and names of a closed cursor that the client subscribed
    /// to again.
    fn record_advance(&mut self, db: &mut Database, advance: &Advance) {
        let is_closed = advance.cursor.is_none();
        if !is_closed && self.client_cache.exceptions().is_empty() {
            return;
        }

        let items: Vec<_> = advance.items().cloned().collect();
        for (name, item) in items {
            let is_recorded = match is_closed {
                true => self.has_interest(db, &name),
                false => self.client_cache.exceptions().contains(&name),
            };
            if !is_recorded {
                continue;
            }

            // The view of the present cursor lists the name, and may not list
            // it any more when the cursor gets there.
            let present_choice = self.cursor_choice(db, &name).filter(|_| is_closed);
            if present_choice.is_some_and(|choice| choice.resource().is_some()) {
                if let Some(resource) = item {
                    self.client_cache
                        .record(db, CachedResource::maybe_taken(resource));
                    self.dirty.insert(name);
                }
                continue;
            }

            self.client_cache.edit_records(db, &name, |records| {
                apply_item(advance, &name, item.as_ref(), records)
            });
            if is_closed {
                self.mark_unmatched(db, &name);
                self.dirty.insert(name);
            }
        }
    }

    /// Applies the updates and answers of a push that needs no response, as if
    /// the client had ACKed it.
    pub(crate) fn apply_silently(
        &mut self,
        db: &mut Database,
        updates: Vec<Update>,
        answers: Vec<Answer>,
    ) {
        for answer in answers {
            self.record_answer(answer);
        }
        for update in updates {
            let name = update.name().clone();
            self.client_cache
                .edit_records(db, &name, |records| update.apply(records));
        }
        self.drop_redundant_exceptions(db);
    }

    /// Drops exceptions whose records agree with their cursor again. Names that
    /// are to be evaluated, were NACKed, or have a subscription stay. If hardly
    /// any exception can go, none is looked at.
    pub(super) fn drop_redundant_exceptions(&mut self, db: &mut Database) {
        // If nearly all exceptions have a reason, checking each costs more than
        // keeping the few that have none: a client that NACKs thousands of
        // resources sends thousands of NACKs.
        let reason_count =
            self.dirty.len() + self.deferred.len() + self.quarantine.len() + self.suspects.len();
        if self.client_cache.exceptions().len() <= reason_count + reason_count / 8 {
            return;
        }

        let nacked_variants = self.quarantine.values().chain(self.suspects.values());
        let nacked_names: hashbrown::HashSet<&Name> = nacked_variants
            .map(|(_, requested_name)| requested_name)
            .collect();
        // The closure must not borrow the client cache, which is edited.
        let (dirty, deferred) = (&self.dirty, &self.deferred);
        let (subscriptions, type_id) = (&self.subscriptions, self.type_id);
        let withheld = &self.withheld;
        self.client_cache.drop_redundant_exceptions(db, |db, name| {
            let is_subscribed = |entry| subscriptions.iter_of_entry(entry).next().is_some();
            let entry = db.find(type_id, name);
            dirty.contains(name)
                || deferred.contains(name)
                || nacked_names.contains(name)
                || withheld.contains(name)
                || entry.is_some_and(is_subscribed)
        });
    }
}
