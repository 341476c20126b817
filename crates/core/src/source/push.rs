//! The next push: worked out from the present state when it can be sent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::TypeStream;
use super::client_cache::{
    Advance, Answer, Cursor, PartialAdvance, PendingAck, Update, resources_of, variant_of,
};
use super::evaluate::{Deferral, Evaluation};
use crate::database::{Database, SLICE};
use crate::limits::Limits;
use crate::moment::Moment;
use crate::name::Name;
use crate::order::Order;
use crate::resource::Resource;
use crate::timer::EarliestDeadline;

/// The most refused names that one response answers, unless it is a whole set.
const REFUSED_AT_ONCE: usize = 10 * SLICE;

/// The updates and answers of one response, before it is written.
#[derive(Debug, Default)]
pub(crate) struct Push {
    /// Sorted by variant once it is complete.
    pub(crate) updates: Vec<Update>,
    pub(crate) answers: Vec<Answer>,
    /// Advances of cursors.
    pub(crate) advances: Vec<Advance>,
    /// Names that never exist, sent as removed (S76).
    pub(crate) placeholders: Vec<Name>,
    /// Refused names, answered as absent.
    pub(crate) refused: Vec<Name>,
    /// Resources whose TTL is renewed (S59).
    pub(crate) heartbeats: Vec<Arc<Resource>>,
    /// Whether the client is expected to NACK this, so that nothing else is in
    /// it.
    pub(crate) expects_nack: bool,
}

/// The surroundings in which a push is made.
pub(crate) struct PushContext<'a> {
    pub(crate) order: &'a Order<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) dependency_timeout: Duration,
    pub(crate) drain_time: Duration,
    pub(crate) resume_window: Duration,
    pub(crate) now: Moment,
}

/// The timeouts of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// How long an ACK may take.
    pub(crate) ack_timeout: Duration,
    /// How long a reconnected client may take to subscribe to all its types.
    pub(crate) resume_window: Duration,
    /// How long an addition waits for a dependency.
    pub(crate) dependency_timeout: Duration,
    /// How long a replaced resource may drain.
    pub(crate) drain_time: Duration,
}

impl Push {
    /// Returns whether the push has nothing that has to be written. It may
    /// still have advances without items, which move cursors.
    pub(crate) fn is_empty(&self) -> bool {
        self.has_only_advances() && self.advances.iter().all(Advance::is_empty)
    }

    /// Returns whether the push has nothing but advances of cursors.
    pub(super) fn has_only_advances(&self) -> bool {
        self.updates.is_empty()
            && self.answers.is_empty()
            && self.placeholders.is_empty()
            && self.refused.is_empty()
            && self.heartbeats.is_empty()
    }

    /// Returns whether another push can follow at once: an advance was sent in
    /// part, or its view changed since it began.
    pub(crate) fn has_more(&self, db: &Database) -> bool {
        let is_behind = |advance: &Advance| {
            let cursor = advance.cursor;
            cursor.is_some_and(|cursor| db.head(cursor) != advance.to)
        };
        let mut advances = self
            .advances
            .iter()
            .filter(|advance| !advance.range.is_empty());
        advances.any(|advance| !advance.is_last || is_behind(advance))
    }

    /// Returns the resources of the push.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        resources_of(&self.updates, &self.advances)
    }

    /// Returns the changes to the client cache.
    pub(super) fn changes(&self) -> (&[Advance], &[Update]) {
        (&self.advances, &self.updates)
    }
}

/// The bytes that are left of a response. Removals get at most half of them, so
/// that additions do not wait for removals.
struct Room<'b> {
    budget: &'b mut usize,
    removal_budget: usize,
}

impl<'b> Room<'b> {
    /// Makes the room of a response of which nothing is used yet; `budget` is
    /// its size in bytes, and what is left of it.
    fn new(budget: &'b mut usize) -> Self {
        let removal_budget = *budget / 2;
        Self {
            budget,
            removal_budget,
        }
    }

    /// Reserves the bytes of an evaluation. Returns whether it fits. If not,
    /// nothing is reserved, and no later evaluation of its kind, removals or
    /// others, fits either. The first evaluation of a push fits whatever its
    /// size is.
    fn reserve(&mut self, evaluation: &Evaluation, is_first: bool) -> bool {
        let size = estimated_size(evaluation);
        let budget = match evaluation.only_removes() {
            true => &mut self.removal_budget,
            false => &mut *self.budget,
        };
        if *budget == 0 || (size > *budget && !is_first) {
            *budget = 0;
            return false;
        }
        self.charge(evaluation);
        true
    }

    /// Charges the budget with the estimated size of an evaluation that is sent
    /// whether it fits or not.
    fn charge(&mut self, evaluation: &Evaluation) {
        let size = estimated_size(evaluation);
        *self.budget = self.budget.saturating_sub(size);
        if evaluation.only_removes() {
            self.removal_budget = self.removal_budget.saturating_sub(size);
        }
    }
}

impl TypeStream {
    /// Works out the next push, which is empty if there is nothing to send. A
    /// whole set has a trial and the changes together, since it lists all
    /// resources anyway.
    pub(crate) fn select_push(&mut self, db: &mut Database, context: &PushContext<'_>) -> Push {
        self.collect_dirty(db);
        let mut push = Push {
            heartbeats: self.take_due_heartbeats(db, context.now),
            ..Push::default()
        };
        if self.sends_whole_sets() {
            self.select_trial(db, context, &mut push);
            self.select_changes(db, context, &mut push);
        } else {
            self.select_trial_or_changes(db, context, &mut push);
        }
        push.updates
            .sort_by(|left, right| left.variant.cmp(&right.variant));
        Self::merge_updates_of_variants(&mut push);
        push
    }

    /// Marks the names dirty that have changed in the database, at most one
    /// slice of them, so that other streams do not wait long (S85).
    fn collect_dirty(&mut self, db: &mut Database) {
        let room = SLICE.saturating_sub(self.dirty.len());
        for (entry, _) in db.take_dirty(self.subscriber, room) {
            self.dirty.insert(db.name(self.type_id, entry).clone());
        }
        self.compare_set_again(db);
    }

    /// Selects a trial, changes, or answers whose NACK is expected, in separate
    /// responses: a resource beside a suspect would become a suspect, too. They
    /// take turns, so that none starves.
    fn select_trial_or_changes(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        push: &mut Push,
    ) {
        if self.trial_turn {
            self.select_trial(db, context, push);
            self.select_unreadable(db, context, push);
        }
        if push.updates.is_empty() && !push.expects_nack {
            self.select_changes(db, context, push);
        }
        if push.is_empty() {
            self.select_trial(db, context, push);
        }
        self.select_unreadable(db, context, push);
    }

    /// Selects placeholders, refusals, dirty names and advances, as many as one
    /// response has room for. A whole set has room for all of them.
    fn select_changes(&mut self, db: &mut Database, context: &PushContext<'_>, push: &mut Push) {
        let mut budget = match self.sends_whole_sets() {
            true => usize::MAX,
            false => context.limits.response_bytes,
        };

        if !self.placeholders.is_empty() {
            let placeholders = std::mem::take(&mut self.placeholders);
            push.placeholders.extend(placeholders);
        }
        while budget > 0
            && (push.refused.len() < REFUSED_AT_ONCE || self.sends_whole_sets())
            && !self.sends_unreadable()
            && let Some(name) = self.refused.pop_first()
        {
            budget = budget.saturating_sub(answer_size(&name));
            push.refused.push(name);
        }

        self.mark_changed_exceptions(db);
        self.select_names(db, context, &mut budget, push);
        // An advance opens and closes no cursor.
        for index in 0..self.client_cache.cursors().len() {
            let cursor = self.client_cache.cursors()[index].id;
            if budget > 0 {
                self.select_advance(db, context, cursor, &mut budget, push);
            }
        }
        // Items that the client cannot take as they are became dirty names.
        if !self.dirty.is_empty() {
            self.select_names(db, context, &mut budget, push);
        }
        self.defer_groups(db, push);
    }

    /// Adds dirty names to a push, as many as one response has room for, and at
    /// most one slice of them unless it is a whole set. The others stay dirty.
    pub(super) fn select_names(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        budget: &mut usize,
        push: &mut Push,
    ) {
        let slice = match self.sends_whole_sets() {
            true => usize::MAX,
            false => SLICE,
        };

        let mut room = Room::new(budget);
        let mut still_dirty = BTreeSet::new();
        for _ in 0..slice {
            let Some(name) = self.dirty.pop_first() else {
                break;
            };
            if self.is_host_paused(db, &name) {
                self.deferred.insert(name);
                continue;
            }

            self.merge_suspects(db, &name);
            let evaluation = self.evaluate(db, context, &name, push.expects_nack);
            let is_first = push.updates.is_empty() && push.answers.is_empty();
            if evaluation.is_empty() || self.replaces_held_host(db, &name, &evaluation) {
                room.charge(&evaluation);
            } else if !room.reserve(&evaluation, is_first) {
                still_dirty.insert(name);
                // Additions may have room where removals have none left.
                match evaluation.only_removes() {
                    true => continue,
                    false => break,
                }
            }

            if self.add_to_push(db, &name, evaluation, context, push) {
                still_dirty.insert(name);
            }
        }
        // An append would visit all dirty names.
        self.dirty.extend(still_dirty);
    }

    /// Returns whether an evaluation is about a virtual host that the client
    /// holds. Such hosts change together, however many they are: one may have
    /// got a domain of another, and the client would NACK a domain that occurs
    /// twice.
    fn replaces_held_host(&self, db: &mut Database, name: &Name, evaluation: &Evaluation) -> bool {
        let names = evaluation.updates.iter().map(|update| update.name());
        let mut names = names.chain([name]);
        self.kind.on_demand && names.any(|name| !self.client_cache.held(db, name).is_empty())
    }

    /// Adds the updates and answers of a name to a push. If its addition waits
    /// for a dependency the name is deferred instead, for one timeout from the
    /// first time (S73). Returns whether the name stays dirty because a part of
    /// it needs another response.
    #[must_use]
    pub(super) fn add_to_push(
        &mut self,
        db: &mut Database,
        name: &Name,
        evaluation: Evaluation,
        context: &PushContext<'_>,
        push: &mut Push,
    ) -> bool {
        if evaluation.deferral == Deferral::Addition {
            let deadline = context.now + context.dependency_timeout;
            self.addition_deadlines
                .entry(name.clone())
                .or_insert(deadline);
            self.deferred.insert(name.clone());
            return false;
        }
        let stays_dirty = self.update_send_state(db, name, &evaluation);
        push.updates.extend(evaluation.updates);
        push.answers.extend(evaluation.answers);
        stays_dirty
    }

    /// Defers the part that an evaluation of a name leaves out, and clears
    /// deadlines and resend flags of the part that it contains. Returns whether
    /// the name stays dirty because a part of it needs another response.
    fn update_send_state(
        &mut self,
        db: &mut Database,
        name: &Name,
        evaluation: &Evaluation,
    ) -> bool {
        if evaluation.deferral == Deferral::SeparateResponse {
            return true;
        }
        if evaluation.deferral == Deferral::Removal || evaluation.awaits_trial {
            self.deferred.insert(name.clone());
        }
        if evaluation.awaits_trial {
            self.clear_resend_of_sent(db, name, evaluation);
            return false;
        }

        self.addition_deadlines.remove(name);
        self.resend_names.remove(name);
        self.clear_resend(db, name, evaluation)
    }

    /// Clears the resend flags of a name. Returns whether the name stays dirty,
    /// which is so for a host whose old virtual host is removed first: the host
    /// is answered after that. A subscription stays resumed until one of its
    /// resources is removed, since its old referrers may be draining (S82).
    fn clear_resend(&mut self, db: &Database, name: &Name, evaluation: &Evaluation) -> bool {
        let removes_host = self.kind.on_demand && evaluation.only_removes();
        let removes = evaluation.deferral == Deferral::None && evaluation.removes_any();
        let mut stays_dirty = false;
        for (key, subscription) in self.subscriptions_of(db, name) {
            if subscription.resend && removes_host {
                stays_dirty = true;
            } else if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = false;
                subscription.is_resumed &= !removes;
            }
        }
        stays_dirty
    }

    /// Clears the resend flags of a name that awaits a trial, for the
    /// subscriptions that are answered or get their resource, so that they are
    /// not resent with the next push.
    fn clear_resend_of_sent(&mut self, db: &mut Database, name: &Name, evaluation: &Evaluation) {
        for (key, _) in self.subscriptions_of(db, name) {
            let choice = self.resolve(db, key);
            let mut resources = choice.resource().into_iter();
            let is_updated =
                resources.any(|resource| evaluation.updates_variant(&variant_of(resource)));
            let mut answers = evaluation.answers.iter();
            let is_answered = answers.any(|answer| answer.subscription == key);
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend &= !is_updated && !is_answered;
            }
        }
    }

    /// Marks exceptions dirty whose cursor has changes of their names. Their
    /// records may be ahead of the cursor's position, so the advance does not
    /// cover them. If the view has forgotten its changes, all exceptions of the
    /// cursor are marked.
    fn mark_changed_exceptions(&mut self, db: &Database) {
        let exceptions = self.client_cache.exceptions();
        if exceptions.is_empty() {
            return;
        }

        let mut changed_exceptions: Vec<Name> = Vec::new();
        for cursor in self.client_cache.cursors() {
            let position = cursor.sent_position;
            if db.has_forgotten_since(cursor.id, position) {
                let covered_names = exceptions.iter().filter(|name| cursor.covers(name));
                changed_exceptions.extend(covered_names.cloned());
            } else {
                let changed_names = db.changed_names(cursor.id, position).into_iter();
                changed_exceptions.extend(changed_names.filter(|name| exceptions.contains(name)));
            }
        }
        self.dirty.extend(changed_exceptions);
    }

    /// Returns whether a response may be sent now: one at a time (S6, S77),
    /// unless the ACK of the last one is overdue.
    pub(crate) fn may_send(&self, now: Moment, ack_timeout: Duration) -> bool {
        let last_response = self.client_cache.pending_acks().back();
        last_response.is_none_or(|last| last.sent_at + ack_timeout <= now)
    }

    /// Returns whether there is nothing to send until something happens or a
    /// deadline passes.
    pub(crate) fn is_quiet(&self, db: &Database) -> bool {
        let is_at_head = |cursor: &Cursor| {
            !cursor.has_changes(db) && cursor.partial_advances.iter().all(PartialAdvance::is_sent)
        };
        !self.owes_response
            && self.dirty.is_empty()
            && self.sorted.is_empty()
            && self.trials.is_empty()
            && self.placeholders.is_empty()
            && self.refused.is_empty()
            && self.client_cache.cursors().iter().all(is_at_head)
            && db.dirty(self.subscriber).next().is_none()
    }

    /// Returns whether the database has changes for the client that were not
    /// evaluated.
    pub(crate) fn has_changes(&self, db: &Database) -> bool {
        let mut cursors = self.client_cache.cursors().iter();
        cursors.any(|cursor| cursor.has_changes(db)) || db.dirty(self.subscriber).next().is_some()
    }

    /// Returns the names whose addition waits for a dependency (S73), in order.
    pub(crate) fn deferred_additions(&self) -> impl Iterator<Item = &Name> {
        let deferred_names = self.deferred.iter();
        deferred_names.filter(|name| self.addition_deadlines.contains_key(*name))
    }

    /// Records a response that is sent: its ACK is pending, and the next
    /// negative answers have another version.
    pub(crate) fn record_sent(&mut self, db: &mut Database, pending_ack: PendingAck) {
        self.last_nonce = Some(pending_ack.nonce.clone());
        self.negative_counter = self.negative_counter.wrapping_add(1);
        self.client_cache.add_pending_ack(db, pending_ack);
    }

    /// Adds the moments at which a push may be due although nothing happens:
    /// the deadline of an addition, an overdue ACK, a TTL, a trial, a
    /// resumption.
    pub(crate) fn add_deadlines(&self, timeouts: &Timeouts, earliest: &mut EarliestDeadline) {
        for deadline in self.addition_deadlines.values() {
            earliest.add(*deadline);
        }
        let last_response = self.client_cache.pending_acks().back();
        earliest.add(last_response.map(|last| last.sent_at + timeouts.ack_timeout));
        earliest.add(self.ttl_timers.next());
        earliest.add(self.next_trial_at());
        if let Some(resumption) = &self.resumption {
            self.add_resume_deadlines(resumption, timeouts, earliest);
        }
    }
}

/// Returns the approximate size of an evaluation in a response, in bytes.
/// Implicit answers are not written.
fn estimated_size(evaluation: &Evaluation) -> usize {
    let update_size = |update: &Update| match &update.resource {
        Some(resource) => resource.wire_size(),
        None => update.name().as_str().len() + 8,
    };
    let updates: usize = evaluation.updates.iter().map(update_size).sum();
    let written_answers = evaluation
        .answers
        .iter()
        .filter(|answer| !answer.is_implicit);
    let answers: usize = written_answers
        .map(|answer| answer_size(&answer.name))
        .sum();
    updates + answers
}

/// Returns the approximate size of a negative answer or an error, in bytes: it
/// may have the name twice.
fn answer_size(name: &Name) -> usize {
    2 * name.as_str().len() + 16
}

#[cfg(test)]
mod tests;
