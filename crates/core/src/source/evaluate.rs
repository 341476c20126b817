//! Evaluates one name: the difference between what is desired of it and what
//! the client will hold once it has ACKed all that was sent.
//!
//! All variants of a name are evaluated together, and so are the virtual hosts
//! that a host resolved to before and resolves to now: they replace each other
//! in one response.

use std::sync::Arc;

use super::client_cache::{Answer, CachedResource, Update, Variant, same_variant, variant_of};
use super::matching::{MatchingSubscription, desired_by, resolves_to};
use super::{AnswerKind, PushContext, Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database, same_resource};
use crate::kind::NegativeForm;
use crate::message::Mode;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// The result of evaluating one name.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    pub(super) updates: Vec<Update>,
    pub(super) answers: Vec<Answer>,
    /// Why a part of the updates is not sent now.
    pub(super) deferral: Deferral,
    /// Whether a part will be sent in a trial: the name is evaluated again
    /// then.
    pub(super) awaits_trial: bool,
}

impl Evaluation {
    /// Returns whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.answers.is_empty()
    }

    /// Returns whether a variant is removed.
    pub(super) fn removes_any(&self) -> bool {
        self.updates.iter().any(Update::is_removal)
    }

    /// Returns whether there are removals, and nothing else.
    pub(super) fn only_removes(&self) -> bool {
        self.removes_any() && self.updates.iter().all(Update::is_removal) && self.answers.is_empty()
    }

    /// Returns whether there is an update of a variant.
    pub(super) fn updates_variant(&self, variant: &Variant) -> bool {
        self.updates.iter().any(|update| update.variant == *variant)
    }

    /// Drops all updates and answers that would be sent.
    pub(super) fn clear(&mut self) {
        self.updates.clear();
        self.answers.clear();
    }
}

/// Why an update of a name is not sent now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deferral {
    /// Nothing is deferred.
    #[default]
    None,
    /// A dependency goes first, within a timeout (S73).
    Addition,
    /// The client still uses a resource that is to be removed, for as long as
    /// that takes (S73, S81).
    Removal,
    /// The update needs a separate response, or must not be in one.
    SeparateResponse,
}

impl TypeStream {
    /// Evaluates a name for a push; `expects_nack` is whether the NACK of that
    /// push is expected. The evaluation is empty while the database does not
    /// know whether the name exists, and while one of its resources waits for a
    /// dependency. Records nothing as sent; NACKs of resources that have
    /// changed since are forgotten.
    pub(super) fn evaluate(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        expects_nack: bool,
    ) -> Evaluation {
        let subscriptions = self.matching_subscriptions(db, name);
        self.record_resumed_cluster(db, name, &subscriptions);
        let mut choices = subscriptions.iter().map(|matching| &matching.choice);
        if choices.any(|choice| *choice == Choice::Unknown) {
            return Self::evaluate_unknown(&subscriptions);
        }

        let desired_resources = desired_by(&subscriptions);
        self.note_withheld(name, &desired_resources);
        self.forget_outdated_nacks(db, name, &desired_resources);

        let (mut evaluation, undeliverable) =
            self.evaluate_desired(db, context, name, &subscriptions, &desired_resources);
        if evaluation.deferral != Deferral::None {
            evaluation.clear();
            return evaluation;
        }

        let removals = self.surplus(db, name, &subscriptions, &desired_resources, &evaluation);
        let is_changed = !removals.is_empty() || !evaluation.updates.is_empty();
        let is_corrected = is_changed && self.is_uncertain(db, name);
        if is_corrected || self.has_unanswered_absence(&subscriptions) {
            add_all_variants(name, &desired_resources, &undeliverable, &mut evaluation);
        }

        let removals = self.keep_for_undeliverable(
            db,
            &subscriptions,
            undeliverable,
            removals,
            &mut evaluation,
        );
        self.evaluate_removals(db, context, name, &subscriptions, removals, &mut evaluation);
        self.evaluate_absence(db, context, name, &subscriptions, &mut evaluation);
        self.separate_unreadable(expects_nack, &mut evaluation);
        evaluation
    }

    /// Forgets the NACKs of a name (S83), except those of resources that would
    /// be sent again as they were NACKed: the `desired` resources, and in whole
    /// sets the client's own.
    fn forget_outdated_nacks(&mut self, db: &mut Database, name: &Name, desired: &[Arc<Resource>]) {
        if self.quarantine.is_empty() && self.suspects.is_empty() {
            return self.forget_nacks(name, &[]);
        }
        let mut sent_resources = self.own_resources(db, name);
        sent_resources.extend_from_slice(desired);
        self.forget_nacks(name, &sent_resources);
    }

    /// Evaluates a name of which the database does not know whether it exists:
    /// nothing is sent. A view that turns out not to list the name gives no
    /// answer about it, so the name's resources at the client are evaluated
    /// again once that is known (S51).
    fn evaluate_unknown(matching: &[MatchingSubscription]) -> Evaluation {
        let only_cursor = matching
            .iter()
            .all(|subscription| subscription.named.is_none());
        let deferral = match only_cursor {
            true => Deferral::Removal,
            false => Deferral::None,
        };
        Evaluation {
            deferral,
            ..Evaluation::default()
        }
    }

    /// Records a cluster that the client resumed with as one of unknown body,
    /// if the cluster left the contents before the first push (S82).
    fn record_resumed_cluster(
        &mut self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
    ) {
        let resumption = self.resumption.as_ref();
        let may_hold = resumption.is_some_and(|resumption| resumption.may_hold_unknown(name));
        let is_absent = |subscription: &MatchingSubscription| {
            subscription.is_resumed() && subscription.choice == Choice::Absent
        };
        if may_hold
            && self.sends_invalid_clusters()
            && matching.iter().any(is_absent)
            && self.client_cache.held_after_acks(db, name).is_empty()
        {
            let record = CachedResource::unknown_body(name.clone(), Version::unknown());
            self.client_cache.record(db, record);
        }
    }

    /// Evaluates the desired resources of a name one by one. Returns those that
    /// cannot be delivered beside the evaluation.
    fn evaluate_desired(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        subscriptions: &[MatchingSubscription],
        desired: &[Arc<Resource>],
    ) -> (Evaluation, Vec<Arc<Resource>>) {
        let mut evaluation = Evaluation::default();
        let mut undeliverable = Vec::new();
        for resource in desired {
            let matching: Vec<&MatchingSubscription> = subscriptions
                .iter()
                .filter(|subscription| resolves_to(subscription, resource))
                .collect();
            if self.evaluate_resource(db, context, name, resource, &matching, &mut evaluation) {
                undeliverable.push(Arc::clone(resource));
            }
        }
        (evaluation, undeliverable)
    }

    /// Evaluates one desired resource: adds its upsert and the answers, or
    /// defers it. Returns whether the resource cannot be delivered, because the
    /// client NACKed it or may not have it: the resource that it would replace
    /// has to stay then.
    fn evaluate_resource(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        resource: &Arc<Resource>,
        resolving_subscriptions: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) -> bool {
        if self.suspects.contains_key(&variant_of(resource)) {
            evaluation.awaits_trial = true;
            return true;
        }
        if self.is_undeliverable(resource) {
            self.answer_quarantined(db, name, resource, resolving_subscriptions, evaluation);
            return true;
        }

        let held_resources = self.client_cache.held_after_acks(db, &resource.name);
        let mut subscriptions = resolving_subscriptions.iter();
        let is_owed = subscriptions.any(|subscription| {
            subscription.resend || self.lacks_answer(subscription, name, resource)
        });
        let has_error = self.evaluate_errors(name, resolving_subscriptions, evaluation);
        // A resource that stays in use after an error is mostly held already
        // (S61).
        let is_held = is_held_exactly(self.kind.on_demand, &held_resources, resource);
        if is_held && (has_error || !is_owed) {
            return false;
        }

        if self.addition_waits(db, context, name, resource) {
            evaluation.deferral = Deferral::Addition;
            return false;
        }

        self.answer_with_resource(name, resource, resolving_subscriptions, evaluation);
        let requested_name = (resource.name != *name).then(|| name.clone());
        evaluation
            .updates
            .push(Update::upsert(resource, requested_name));
        false
    }

    /// Returns whether the addition of a resource of this name waits for a
    /// dependency: as the order of types says, for one timeout from the first
    /// time that it was deferred (S73).
    fn addition_waits(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        resource: &Resource,
    ) -> bool {
        let first_deadline = context.now + context.dependency_timeout;
        let deadline = self.addition_deadlines.get(name);
        let is_overdue = *deadline.unwrap_or(&first_deadline) <= context.now;
        !is_overdue && context.order.must_defer_addition(db, &self.kind, resource)
    }

    /// Returns whether a subscription has to be answered with a resource even
    /// if the client holds it: a client waits for the answer to a host, to a
    /// name other than the resource's, and after an error.
    fn lacks_answer(
        &self,
        matching: &MatchingSubscription,
        name: &Name,
        resource: &Resource,
    ) -> bool {
        let resolved_name = (resource.name != *name).then_some(&resource.name);
        match self.kind.on_demand || resolved_name.is_some() {
            true => !self.was_answered_with(matching, resolved_name),
            false => self.has_recovered(matching),
        }
    }

    /// Adds the answers to subscriptions that resolve to a resource; all are
    /// implicit, since the resource is in the response. A subscription by the
    /// resource's own name that had no other answer needs none.
    fn answer_with_resource(
        &self,
        name: &Name,
        resource: &Resource,
        resolving_subscriptions: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let resolved_name = (resource.name != *name).then(|| resource.name.clone());
        let named_subscriptions = resolving_subscriptions
            .iter()
            .filter_map(|matching| matching.named);
        for (key, subscription) in named_subscriptions {
            // The ACKed answer was an error, an absence or another name.
            let is_changed = !matches!(
                subscription.acked_answer,
                AnswerKind::Unanswered | AnswerKind::Resource
            ) || self.subscriptions.resolved_name(key).is_some();

            if self.kind.on_demand || resolved_name.is_some() || is_changed {
                evaluation.answers.push(Answer {
                    subscription: key,
                    name: name.clone(),
                    kind: AnswerKind::Resource,
                    resolved_name: resolved_name.clone(),
                    error: None,
                    is_implicit: true,
                });
            }
        }
    }

    /// Returns whether a SotW list has a locator that matches no variant and
    /// was not answered. The answer consists of all other variants of the name
    /// (S30, TP2), because the client may still hold one that it unsubscribed
    /// from with the same request.
    fn has_unanswered_absence(&self, matching: &[MatchingSubscription]) -> bool {
        let is_unanswered = |(key, subscription): (SubscriptionKey, Subscription)| {
            subscription.acked_answer == AnswerKind::Unanswered
                && self.client_cache.pending_answer(key).is_none()
        };
        let absent_subscriptions = matching
            .iter()
            .filter(|subscription| subscription.choice == Choice::Absent);
        let mut absent_subscriptions =
            absent_subscriptions.filter_map(|subscription| subscription.named);
        self.mode == Mode::Sotw && !self.kind.on_demand && absent_subscriptions.any(is_unanswered)
    }

    /// Returns whether a subscription was answered, or is about to be, with the
    /// resource named `resolved_name`, or `None` for the requested name. Always
    /// true of a cursor, which needs no answer.
    fn was_answered_with(
        &self,
        matching: &MatchingSubscription,
        resolved_name: Option<&Name>,
    ) -> bool {
        let Some((key, subscription)) = matching.named else {
            return true;
        };
        let (last_answer, last_name) = match self.client_cache.pending_answer(key) {
            Some(answer) => (answer.kind, answer.resolved_name.as_ref()),
            None => (
                subscription.acked_answer,
                self.subscriptions.resolved_name(key),
            ),
        };
        last_answer == AnswerKind::Resource && last_name == resolved_name
    }

    /// Returns whether the client was sent an error of a resource that is
    /// available again: only the resource itself says so (S61).
    fn has_recovered(&self, matching: &MatchingSubscription) -> bool {
        matching.named.is_some_and(|(key, subscription)| {
            self.last_answer(key, subscription) == AnswerKind::Error
                && !matches!(matching.choice, Choice::Failed(..))
        })
    }

    /// Returns the kind of the last answer that a subscription was sent, ACKed
    /// or not.
    pub(super) fn last_answer(
        &self,
        key: SubscriptionKey,
        subscription: Subscription,
    ) -> AnswerKind {
        let pending = self.client_cache.pending_answer(key);
        pending.map_or(subscription.acked_answer, |answer| answer.kind)
    }

    /// Adds the errors of resources that are not available, for a client that
    /// reads errors, unless the client was sent the same error before (S61).
    /// Returns whether there is an error, whether it is sent now or was before.
    pub(super) fn evaluate_errors(
        &self,
        name: &Name,
        resolving_subscriptions: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) -> bool {
        let mut has_error = false;
        for matching in resolving_subscriptions {
            let (Some((key, subscription)), Choice::Failed(error, _)) =
                (matching.named, &matching.choice)
            else {
                continue;
            };
            has_error = true;

            let last_error = match self.client_cache.pending_answer(key) {
                Some(answer) => answer.error.as_ref(),
                None => self.subscriptions.error(key),
            };
            if last_error != Some(error) || subscription.resend {
                evaluation.answers.push(Answer {
                    subscription: key,
                    name: name.clone(),
                    kind: AnswerKind::Error,
                    resolved_name: None,
                    error: Some(Arc::clone(error)),
                    is_implicit: false,
                });
            }
        }
        has_error
    }

    /// Splits an evaluation, since answers that the client must NACK are sent
    /// alone. If the NACK of the push is expected, these answers stay, and
    /// otherwise everything else. If a part is left out, the deferral says that
    /// it needs a separate response.
    fn separate_unreadable(&self, expects_nack: bool, evaluation: &mut Evaluation) {
        let unreadable = self.absence_as_error(false).is_none()
            && self.negative_form(false) == NegativeForm::Unreadable;
        let is_unreadable = |answer: &Answer| {
            unreadable && answer.kind == AnswerKind::Absent && !answer.is_implicit
        };

        let answers = std::mem::take(&mut evaluation.answers).into_iter();
        let (expected_nacks, others): (Vec<_>, Vec<_>) = answers.partition(is_unreadable);
        let has_other_part = match expects_nack {
            true => {
                let has_other_part = !evaluation.updates.is_empty() || !others.is_empty();
                evaluation.updates.clear();
                evaluation.answers = expected_nacks;
                has_other_part
            }
            false => {
                evaluation.answers = others;
                !expected_nacks.is_empty()
            }
        };
        if has_other_part {
            evaluation.deferral = Deferral::SeparateResponse;
        }
    }
}

/// Makes the answer that a name does not exist. It is implicit, and not
/// written, if something else in the response says so.
pub(super) fn absent_answer(
    subscription: SubscriptionKey,
    name: &Name,
    is_implicit: bool,
) -> Answer {
    Answer {
        subscription,
        name: name.clone(),
        kind: AnswerKind::Absent,
        resolved_name: None,
        error: None,
        is_implicit,
    }
}

/// Adds upserts of the desired variants of a name that can be delivered and
/// that the evaluation does not have yet.
fn add_all_variants(
    name: &Name,
    desired: &[Arc<Resource>],
    undeliverable: &[Arc<Resource>],
    evaluation: &mut Evaluation,
) {
    for variant in desired.iter().filter(|resource| resource.name == *name) {
        let mut undeliverable = undeliverable.iter();
        let is_undeliverable = undeliverable.any(|other| same_variant(other, variant));
        if !is_undeliverable && !evaluation.updates_variant(&variant_of(variant)) {
            evaluation.updates.push(Update::upsert(variant, None));
        }
    }
}

/// Returns whether the client surely holds this version of the variant, and no
/// other. Of an `on_demand` type the aliases are not compared: each host that
/// resolves to a virtual host adds one.
fn is_held_exactly(
    on_demand: bool,
    held_resources: &[CachedResource],
    resource: &Arc<Resource>,
) -> bool {
    let is_same = |record: &Arc<Resource>| match on_demand {
        true => record.version == resource.version && record.ttl == resource.ttl,
        false => same_resource(record, resource),
    };
    let mut variant_records = held_resources
        .iter()
        .filter(|record| same_variant(&record.resource, resource));
    let first_record = variant_records.next();
    let is_sure =
        first_record.is_some_and(|record| record.is_accepted() && is_same(&record.resource));
    let is_only = variant_records.next().is_none();
    is_sure && is_only && !held_resources.iter().any(CachedResource::has_unknown_body)
}
