//! The next push: worked out from the present state when it can be sent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::TypeStream;
use super::client_cache::{
    Advance, Answer, Cursor, PartialAdvance, PendingAck, Update, variant_of,
};
use super::evaluate::{Deferral, Evaluation};
use crate::database::{Database, SLICE};
use crate::limits::Limits;
use crate::moment::Moment;
use crate::name::Name;
use crate::order::Order;
use crate::resource::Resource;

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
    /// For an ACK.
    pub(crate) ack_timeout: Duration,
    /// For a reconnected client, to subscribe to all its types.
    pub(crate) resume_window: Duration,
    /// For a dependency of an addition.
    pub(crate) dependency_timeout: Duration,
    /// For a replaced resource, to drain.
    pub(crate) drain_time: Duration,
}

impl Push {
    pub(crate) fn is_empty(&self) -> bool {
        self.updates.is_empty()
            && self.answers.is_empty()
            && self.placeholders.is_empty()
            && self.refused.is_empty()
            && self.heartbeats.is_empty()
            && self.advances.iter().all(Advance::is_empty)
    }

    /// Whether there is more behind a partial advance: the rest of it, or
    /// changes since it began.
    pub(crate) fn has_more(&self, db: &Database) -> bool {
        let behind = |advance: &Advance| {
            advance
                .cursor
                .is_some_and(|cursor| db.head(cursor) != advance.to)
        };
        let more =
            |advance: &Advance| !advance.range.is_empty() && (!advance.is_last || behind(advance));
        self.advances.iter().any(more)
    }

    /// The resources of the push.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let single = self
            .updates
            .iter()
            .filter_map(|update| update.resource.as_ref());
        let items = self.advances.iter().flat_map(Advance::items);
        single.chain(items.filter_map(|(_, item)| item.as_ref()))
    }

    /// The changes to the client cache.
    pub(super) fn changes(&self) -> (&[Advance], &[Update]) {
        (&self.advances, &self.updates)
    }
}

/// NACKs in a row after which trials are slowed down: more than bisection needs
/// to find one bad resource among all that there can be.
const MAX_CONSECUTIVE_NACKS: u32 = 256;

/// The time between two trials then.
const TRIAL_PAUSE: Duration = Duration::from_millis(50);

impl TypeStream {
    /// Works out the next push; it is empty if there is nothing to send.
    pub(crate) fn select_push(&mut self, db: &mut Database, context: &PushContext<'_>) -> Push {
        let room = SLICE.saturating_sub(self.dirty.len());
        for (entry, _) in db.take_dirty(self.subscriber, room) {
            self.dirty.insert(db.name(self.type_id, entry).clone());
        }
        self.compare_set_again(db);
        if self
            .addition_deadlines
            .values()
            .any(|until| *until <= context.now)
        {
            self.mark_deferred_dirty();
        }
        let mut push = Push {
            heartbeats: self.due_heartbeats(db, context.now),
            ..Push::default()
        };
        if self.sends_whole_sets() {
            self.select_trial(db, context, &mut push);
            self.select_changes(db, context, &mut push);
        } else {
            if self.trial_turn {
                self.select_trial(db, context, &mut push);
                self.select_unreadable(db, context, &mut push);
            }
            if push.updates.is_empty() && !push.expects_nack {
                self.select_changes(db, context, &mut push);
            }
            if push.is_empty() {
                self.select_trial(db, context, &mut push);
            }
            self.select_unreadable(db, context, &mut push);
        }
        push.updates.sort_by(|a, b| a.variant.cmp(&b.variant));
        self.merge_aliases(&mut push);
        push
    }

    /// Selects the next group of suspects, as far as they are unchanged.
    fn select_trial(&mut self, db: &mut Database, context: &PushContext<'_>, push: &mut Push) {
        if self
            .next_trial_at()
            .is_some_and(|moment| context.now < moment)
        {
            return;
        }
        while let Some(group) = self.trials.pop_front() {
            let mut requested_names = Vec::new();
            for variant in group {
                let Some((version, requested_name)) = self.suspects.remove(&variant) else {
                    continue;
                };
                // A changed resource is no longer a suspect.
                match self.is_current(db, &requested_name, &variant, &version) {
                    true => requested_names.push(requested_name),
                    false => _ = self.dirty.insert(requested_name),
                }
            }
            requested_names.sort();
            requested_names.dedup();
            for name in requested_names {
                self.dirty.remove(&name);
                if self.is_host_paused(db, &name) {
                    self.deferred.insert(name);
                    continue;
                }
                let evaluation = self.evaluate(db, context, &name, false);
                if self.add_to_push(db, &name, evaluation, context, push) {
                    self.dirty.insert(name);
                }
            }
            if !push.updates.is_empty() {
                self.last_trial_at = context.now;
                return;
            }
        }
        self.forget_error();
    }

    /// When the next trial may be sent, if it has to wait: a client that NACKs
    /// everything gets a bounded share of the work (S69).
    fn next_trial_at(&self) -> Option<Moment> {
        let is_slow = self.consecutive_nacks > MAX_CONSECUTIVE_NACKS && !self.trials.is_empty();
        is_slow.then(|| self.last_trial_at + TRIAL_PAUSE)
    }

    fn select_changes(&mut self, db: &mut Database, context: &PushContext<'_>, push: &mut Push) {
        let mut budget = match self.sends_whole_sets() {
            true => usize::MAX,
            false => context.limits.response_bytes,
        };
        let placeholders = std::mem::take(&mut self.placeholders);
        push.placeholders.extend(placeholders);
        while budget > 0
            && !self.sends_unreadable()
            && let Some(name) = self.refused.pop_first()
        {
            budget = budget.saturating_sub(2 * name.as_str().len() + 16);
            push.refused.push(name);
        }
        self.mark_changed_exceptions(db);
        self.select_names(db, context, &mut budget, push);
        let cursor_ids: Vec<_> = self.client_cache.cursors().iter().map(|v| v.id).collect();
        for cursor in cursor_ids {
            if budget > 0 {
                self.select_advance(db, context, cursor, &mut budget, push);
            }
        }
        // Items that the client cannot take as they are.
        if !self.dirty.is_empty() {
            self.select_names(db, context, &mut budget, push);
        }
        self.defer_groups(db, push);
    }

    /// Evaluates names, as many as one response has room for. Removals get at
    /// most half of that: additions do not wait for them.
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
        let mut removals = *budget / 2;
        let mut later = BTreeSet::new();
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
            // Hosts that a client holds change together, however many: one may
            // have got a domain of another, and the client would NACK a domain
            // that is there twice.
            let together = self.kind.on_demand && self.holds_any(db, &name, &evaluation);
            let size = estimated_size(&evaluation);
            let only_removals = evaluation
                .updates
                .iter()
                .all(|update| update.resource.is_none())
                && evaluation.answers.is_empty();
            let room = match only_removals {
                true => &mut removals,
                false => budget,
            };
            let first = push.updates.is_empty() && push.answers.is_empty();
            let empty = evaluation.updates.is_empty() && evaluation.answers.is_empty();
            if !empty && !together && (*room == 0 || (size > *room && !first)) {
                later.insert(name);
                *room = 0;
                if !only_removals {
                    break;
                }
                continue;
            }
            *room = room.saturating_sub(size);
            if only_removals {
                *budget = budget.saturating_sub(size);
            }
            if self.add_to_push(db, &name, evaluation, context, push) {
                later.insert(name);
            }
        }
        self.dirty.append(&mut later);
    }

    /// Whether the client holds a resource that an evaluation is about.
    fn holds_any(&self, db: &mut Database, name: &Name, evaluation: &Evaluation) -> bool {
        let names = evaluation.updates.iter().map(|update| update.name());
        let mut names = names.chain([name]);
        names.any(|name| !self.client_cache.held(db, name).is_empty())
    }

    /// Adds the evaluation of a name to a push. Returns whether the name has to
    /// be evaluated again.
    #[must_use]
    fn add_to_push(
        &mut self,
        db: &mut Database,
        name: &Name,
        evaluation: Evaluation,
        context: &PushContext<'_>,
        push: &mut Push,
    ) -> bool {
        let Evaluation {
            updates,
            answers,
            deferral,
            awaits_trial,
        } = evaluation;
        let drops_host = self.kind.on_demand
            && answers.is_empty()
            && !updates.is_empty()
            && updates.iter().all(|update| update.resource.is_none());
        match deferral {
            Deferral::Addition => {
                let until = context.now + context.dependency_timeout;
                self.addition_deadlines.entry(name.clone()).or_insert(until);
                self.deferred.insert(name.clone());
                return false;
            }
            Deferral::Removal => _ = self.deferred.insert(name.clone()),
            Deferral::SeparateResponse => {
                push.updates.extend(updates);
                push.answers.extend(answers);
                return true;
            }
            Deferral::None => {}
        }
        if awaits_trial {
            self.deferred.insert(name.clone());
            self.clear_resend_of_sent(db, name, &updates, &answers);
            push.updates.extend(updates);
            push.answers.extend(answers);
            return false;
        }
        self.addition_deadlines.remove(name);
        self.resend_names.remove(name);
        let removes =
            deferral == Deferral::None && updates.iter().any(|update| update.resource.is_none());
        push.updates.extend(updates);
        push.answers.extend(answers);
        self.clear_resend(db, name, removes, drops_host)
    }

    /// Clears the resend flags of a name that was put into a push. A host whose
    /// old virtual host is removed first is answered after that. A name stays
    /// resumed until something of it is removed: its old referrers may be
    /// draining (S82).
    fn clear_resend(
        &mut self,
        db: &Database,
        name: &Name,
        removes: bool,
        drops_host: bool,
    ) -> bool {
        let mut more = false;
        for (key, subscription) in self.subscriptions_of(db, name) {
            if subscription.resend && drops_host {
                more = true;
            } else if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = false;
                subscription.is_resumed &= !removes;
            }
        }
        more
    }

    /// Clears the resend flags of a name that awaits a trial, for the
    /// subscriptions that are answered or get their resource: they are not
    /// resent with the next push.
    fn clear_resend_of_sent(
        &mut self,
        db: &mut Database,
        name: &Name,
        updates: &[Update],
        answers: &[Answer],
    ) {
        for (key, _) in self.subscriptions_of(db, name) {
            let target = self.resolve(db, key);
            let updated = target.resource().is_some_and(|resource| {
                let variant = variant_of(resource);
                updates.iter().any(|update| update.variant == variant)
            });
            let answered = answers.iter().any(|answer| answer.subscription == key);
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend &= !updated && !answered;
            }
        }
    }

    /// Marks exceptions dirty where their cursor changed. Their records may be
    /// ahead of the cursor's position, so the advance does not cover them.
    fn mark_changed_exceptions(&mut self, db: &Database) {
        let exceptions = self.client_cache.exceptions();
        if exceptions.is_empty() {
            return;
        }
        let mut found: Vec<Name> = Vec::new();
        for cursor in self.client_cache.cursors() {
            if db.has_forgotten_since(cursor.id, cursor.sent_position) {
                found.extend(
                    exceptions
                        .iter()
                        .filter(|name| cursor.covers(name))
                        .cloned(),
                );
            } else {
                let changed = db
                    .changed_names(cursor.id, cursor.sent_position)
                    .into_iter();
                found.extend(changed.filter(|name| exceptions.contains(name)));
            }
        }
        self.dirty.extend(found);
    }

    /// Whether a response may be sent: one at a time (S6, S77), unless the ACK
    /// of the last one is overdue.
    pub(crate) fn may_send(&self, now: Moment, ack_timeout: Duration) -> bool {
        let last = self.client_cache.pending_acks().back();
        last.is_none_or(|last| last.sent_at + ack_timeout <= now)
    }

    /// Whether there is nothing to send until something happens or a deadline
    /// passes.
    pub(crate) fn is_quiet(&self, db: &Database) -> bool {
        let is_at_head = |cursor: &Cursor| {
            !cursor.has_changes(db) && cursor.partial_advances.iter().all(PartialAdvance::is_sent)
        };
        !self.owes_response
            && self.dirty.is_empty()
            && self.trials.is_empty()
            && self.placeholders.is_empty()
            && self.refused.is_empty()
            && self.client_cache.cursors().iter().all(is_at_head)
            && db.dirty(self.subscriber).next().is_none()
    }

    /// Whether the database has changes for the client that were not evaluated.
    pub(crate) fn has_changes(&self, db: &Database) -> bool {
        let mut cursors = self.client_cache.cursors().iter();
        cursors.any(|cursor| cursor.has_changes(db)) || db.dirty(self.subscriber).next().is_some()
    }

    /// Records a response that is sent.
    pub(crate) fn record_sent(&mut self, db: &mut Database, pending_ack: PendingAck) {
        self.last_nonce = Some(pending_ack.nonce.clone());
        self.negative_counter = self.negative_counter.wrapping_add(1);
        self.client_cache.add_pending_ack(db, pending_ack);
    }

    /// The moments at which a push may be due although nothing happens.
    pub(crate) fn deadlines(&self, times: Timeouts) -> impl Iterator<Item = Moment> + '_ {
        let additions = self.addition_deadlines.values().copied();
        let last = self.client_cache.pending_acks().back();
        let overdue = last.map(|last| last.sent_at + times.ack_timeout);
        additions
            .chain(overdue)
            .chain(self.ttl_timers.next())
            .chain(self.next_trial_at())
            .chain(self.resume_deadlines(times))
    }
}

/// The approximate size of an evaluation in a response, in bytes.
fn estimated_size(evaluation: &Evaluation) -> usize {
    let of = |update: &Update| match &update.resource {
        Some(resource) => resource.wire_size(),
        None => update.name().as_str().len() + 8,
    };
    let updates: usize = evaluation.updates.iter().map(of).sum();
    let answers = evaluation
        .answers
        .iter()
        .filter(|answer| !answer.is_implicit);
    updates
        + answers
            .map(|answer| 2 * answer.name.as_str().len() + 16)
            .sum::<usize>()
}
