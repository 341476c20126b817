//! Evaluates one name: the difference between what is desired of it and what
//! the client will hold once it has ACKed all that was sent.
//!
//! All variants of a name are evaluated together, and so are the virtual hosts
//! that a host resolved to before and resolves to now: they replace each other
//! in one response.

use std::sync::Arc;

use super::client_cache::{Answer, CachedResource, Certainty, Update, same_variant, variant_of};
use super::{AnswerKind, PushContext, Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database, same_resource};
use crate::kind::NegativeForm;
use crate::message::Mode;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// A subscription that concerns a name: one by name, or a cursor that covers
/// it.
pub(super) struct MatchingSubscription {
    pub(super) named: Option<(SubscriptionKey, Subscription)>,
    pub(super) choice: Choice,
    pub(super) resend: bool,
}

/// The result of evaluating one name.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    pub(super) updates: Vec<Update>,
    pub(super) answers: Vec<Answer>,
    /// Why some of it is not sent now.
    pub(super) deferral: Deferral,
    /// Some of it will be sent in a trial: the name is evaluated again then.
    pub(super) awaits_trial: bool,
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
    /// It needs a separate response, or must not be in one.
    SeparateResponse,
}

impl TypeStream {
    /// Evaluates a name. `expects_nack` is whether the response is one whose
    /// NACK is expected.
    pub(super) fn evaluate(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        expects_nack: bool,
    ) -> Evaluation {
        let matching = self.matching_subscriptions(db, name);
        self.record_resumed_cluster(db, name, &matching);
        let mut evaluation = Evaluation::default();
        if matching.iter().any(|s| s.choice == Choice::Unknown) {
            // A view that turns out not to list a name gives no answer about
            // it: resources that the client resumed with are evaluated once
            // that is known (S51).
            let by_cursor = matching.iter().all(|s| s.named.is_none());
            if by_cursor && !self.client_cache.held_after_acks(db, name).is_empty() {
                evaluation.deferral = Deferral::Removal;
            }
            return evaluation;
        }
        let desired = desired_by(&matching);
        self.forget_nacks(name, &desired);
        let mut undeliverable = Vec::new();
        for resource in &desired {
            let resolving = matching.iter().filter(|s| resolves_to(s, resource));
            let resolving: Vec<&MatchingSubscription> = resolving.collect();
            if self.evaluate_resource(db, context, name, resource, &resolving, &mut evaluation) {
                undeliverable.push(Arc::clone(resource));
            }
        }
        if evaluation.deferral != Deferral::None {
            evaluation.updates.clear();
            evaluation.answers.clear();
            return evaluation;
        }
        let removals = self.surplus(db, name, &matching, &desired, &evaluation);
        let uncertain =
            (!removals.is_empty() || !evaluation.updates.is_empty()) && self.is_uncertain(db, name);
        if uncertain || self.has_unanswered_absence(&matching) {
            self.add_all_variants(name, &desired, &undeliverable, &mut evaluation);
        }
        let removals =
            self.keep_for_undeliverable(db, &matching, undeliverable, removals, &mut evaluation);
        self.evaluate_removals(db, context, name, &matching, removals, &mut evaluation);
        self.evaluate_absence(db, context, name, &matching, &mut evaluation);
        self.separate_unreadable(expects_nack, &mut evaluation);
        evaluation
    }

    /// Records a cluster that the client resumed with, and that left the
    /// contents before the first push, as one of unknown body (S82).
    fn record_resumed_cluster(
        &mut self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
    ) {
        let resumed = self.resumption.as_ref();
        let unknown = resumed.is_some_and(|r| r.may_hold_unknown(name));
        let left = |s: &MatchingSubscription| {
            let resumed = s
                .named
                .is_some_and(|(_, subscription)| subscription.is_resumed);
            resumed && s.choice == Choice::Absent
        };
        if unknown
            && self.sends_invalid_clusters()
            && matching.iter().any(left)
            && self.client_cache.held_after_acks(db, name).is_empty()
        {
            let held = CachedResource::unknown_body(name.clone(), Version::new(""));
            self.client_cache.record(db, held);
        }
    }

    fn matching_subscriptions(&self, db: &mut Database, name: &Name) -> Vec<MatchingSubscription> {
        let mut matching = Vec::new();
        for (key, subscription) in self.subscriptions_of(db, name) {
            let choice = match self.resolve(db, key) {
                // A transient error leaves the client's resource alone (S61).
                Choice::Failed(error, None)
                    if !self.supports_resource_errors && !error.code.is_data_error() =>
                {
                    Choice::Unknown
                }
                Choice::Failed(_, None) if !self.supports_resource_errors => Choice::Absent,
                choice => choice,
            };
            matching.push(MatchingSubscription {
                named: Some((key, subscription)),
                choice,
                resend: subscription.resend,
            });
        }
        if let Some(choice) = self.cursor_choice(db, name) {
            let has_plain = matching.iter().any(|s| {
                let (key, _) = s.named.unzip();
                key.is_some_and(|key| key.params == self.params)
            });
            // A plain name matches the resource that the cursor lists.
            if !has_plain {
                matching.push(MatchingSubscription {
                    named: None,
                    choice,
                    resend: self.resend_names.contains(name),
                });
            }
        }
        matching
    }

    /// Evaluates one desired resource. Returns whether it cannot be delivered,
    /// so that what it would replace has to stay.
    fn evaluate_resource(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        resource: &Arc<Resource>,
        resolving: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) -> bool {
        let key = variant_of(resource);
        if self.suspects.contains_key(&key) {
            evaluation.awaits_trial = true;
            return true;
        }
        if self.is_quarantined(resource) {
            self.answer_quarantined(db, name, resource, resolving, evaluation);
            return true;
        }
        let held = self.client_cache.held_after_acks(db, &resource.name);
        let resend = resolving.iter().any(|s| s.resend);
        // A client that waits for a host, or requested another name, needs an
        // answer.
        let needs_answer = self.kind.on_demand || resource.name != *name;
        let resolved_name = (resource.name != *name).then_some(&resource.name);
        let unanswered = |s: &&MatchingSubscription| match needs_answer {
            true => !self.was_answered_with(s, resolved_name),
            false => self.has_recovered(s),
        };
        let unanswered: Vec<_> = resolving.iter().copied().filter(unanswered).collect();
        let failed = self.evaluate_errors(name, resolving, evaluation);
        if !resend && unanswered.is_empty() && is_held_exactly(self.kind.on_demand, &held, resource)
        {
            return false;
        }
        // A resource that stays in use after an error is mostly held already
        // (S61).
        if failed && is_held_exactly(self.kind.on_demand, &held, resource) {
            return false;
        }
        let until = self.addition_deadlines.get(name);
        let overdue = until.is_some_and(|until| *until <= context.now);
        if !overdue && context.order.must_defer_addition(db, &self.kind, resource) {
            evaluation.deferral = Deferral::Addition;
            return false;
        }
        let requested_name = (resource.name != *name).then(|| name.clone());
        let subscriptions = resolving.iter().filter_map(|s| s.named);
        let answers = subscriptions.filter(|(key, subscription)| {
            let other = !matches!(
                subscription.acked_answer,
                AnswerKind::Unanswered | AnswerKind::Resource
            );
            needs_answer || other || self.subscriptions.resolved_name(*key).is_some()
        });
        evaluation
            .answers
            .extend(answers.map(|(subscription, _)| Answer {
                subscription,
                name: name.clone(),
                kind: AnswerKind::Resource,
                resolved_name: requested_name.as_ref().map(|_| resource.name.clone()),
                error: None,
                is_implicit: true,
            }));
        evaluation
            .updates
            .push(Update::upsert(resource, requested_name));
        false
    }

    /// Whether a SotW list has a locator that matches no variant and was not
    /// answered. It is answered by all other variants of the name (S30, TP2):
    /// the client may still hold one that it unsubscribed from for this.
    fn has_unanswered_absence(&self, matching: &[MatchingSubscription]) -> bool {
        let unanswered = |(key, subscription): (SubscriptionKey, Subscription)| {
            let mut pending_acks = self.client_cache.pending_acks().iter();
            let is_pending = pending_acks.any(|pending_ack| pending_ack.answer_to(key).is_some());
            subscription.acked_answer == AnswerKind::Unanswered && !is_pending
        };
        let nothing = |s: &&MatchingSubscription| s.choice == Choice::Absent;
        let mut nothing = matching.iter().filter(nothing).filter_map(|s| s.named);
        self.mode == Mode::Sotw && !self.kind.on_demand && nothing.any(unanswered)
    }

    /// Whether a subscription was answered, or is about to be, with this
    /// resource.
    fn was_answered_with(
        &self,
        matching: &MatchingSubscription,
        resolved_name: Option<&Name>,
    ) -> bool {
        let Some((key, subscription)) = matching.named else {
            return true;
        };
        let mut pending_acks = self.client_cache.pending_acks().iter().rev();
        let (last_answer, last_name) =
            match pending_acks.find_map(|pending_ack| pending_ack.answer_to(key)) {
                Some(answer) => (answer.kind, answer.resolved_name.as_ref()),
                None => (
                    subscription.acked_answer,
                    self.subscriptions.resolved_name(key),
                ),
            };
        last_answer == AnswerKind::Resource && last_name == resolved_name
    }

    /// Whether the client was sent an error of a resource that is available
    /// again: only the resource itself says so (S61).
    fn has_recovered(&self, matching: &MatchingSubscription) -> bool {
        let Some((key, subscription)) = matching.named else {
            return false;
        };
        let mut pending_acks = self.client_cache.pending_acks().iter().rev();
        let answer = pending_acks.find_map(|pending_ack| pending_ack.answer_to(key));
        let last_answer = answer.map_or(subscription.acked_answer, |answer| answer.kind);
        last_answer == AnswerKind::Error && !matches!(matching.choice, Choice::Failed(..))
    }

    /// Answers subscriptions whose resource is in quarantine. Each gets the
    /// resource that the client accepted before; if there is none it gets a
    /// negative answer, unless the client may hold something of unknown body
    /// (S12).
    fn answer_quarantined(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Arc<Resource>,
        resolving: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let resolved_names = resolving.iter().filter_map(|s| s.named);
        let resolved_names =
            resolved_names.filter_map(|(key, _)| self.subscriptions.resolved_name(key).cloned());
        let mut held = self.client_cache.held_after_acks(db, &resource.name);
        for other in resolved_names {
            held.extend(self.client_cache.held_after_acks(db, &other));
        }
        if resource.name != *name {
            held.extend(self.client_cache.held_after_acks(db, name));
        }
        // A removal of the name would remove other variants that the client may
        // hold.
        let other = |held: &CachedResource| !self.is_quarantined(&held.resource);
        let others = !self.kind.on_demand && held.iter().any(other);
        // Each of several subscriptions gets the resource that matches it.
        let subscriptions = self.subscriptions_of(db, name);
        let all_located = subscriptions
            .iter()
            .all(|(key, _)| key.params != self.params);
        let by_cursor = all_located && self.client_cache.covering_cursor(name).is_some();
        let subscribed_params = subscriptions.iter().map(|(key, _)| key.params);
        let subscribed_params: Vec<_> = subscribed_params
            .chain(by_cursor.then_some(self.params))
            .collect();
        let several = !self.kind.on_demand && subscribed_params.len() > 1;
        for matching in resolving {
            let unanswered = matching.named.is_some_and(|(_, subscription)| {
                subscription.acked_answer == AnswerKind::Unanswered
            });
            let from_before = |held: &&CachedResource| {
                held.certainty == Certainty::Resumed && !held.has_unknown_body()
            };
            let same = |held: &&CachedResource| {
                from_before(held) && same_variant(&held.resource, resource)
            };
            let resumed = held.iter().find(same);
            let resumed = resumed.or_else(|| held.iter().find(from_before));
            let resumed = resumed.filter(|_| self.sends_whole_sets());
            // A client that waits for a host needs an answer, whatever it
            // NACKed.
            let sure = |held: &CachedResource| {
                held.certainty != Certainty::MaybeTaken || !self.kind.on_demand
            };
            let lacks_answer = unanswered && !held.iter().any(sure);
            if !matching.resend && !lacks_answer && resumed.is_none() {
                continue;
            }
            let good = |held: &&CachedResource| {
                held.was_accepted() && !self.is_quarantined(&held.resource)
            };
            let same_good =
                |held: &&CachedResource| good(held) && same_variant(&held.resource, resource);
            let matches = |held: &&CachedResource| {
                good(held)
                    && (!several || self.variant_matches(db, matching, &variant_of(&held.resource)))
            };
            let accepted = held
                .iter()
                .find(same_good)
                .or_else(|| held.iter().find(matches));
            let accepted = accepted.or(resumed);
            if let Some(accepted) = accepted {
                self.restore_accepted(db, name, (accepted, &held), &subscribed_params, evaluation);
            } else if !held.iter().any(CachedResource::has_unknown_body) {
                match matching.named {
                    Some((key, _)) => evaluation.answers.push(absent_answer(key, name, others)),
                    // Another subscription may have taken it.
                    None if resolving.iter().any(|s| s.named.is_some()) => {}
                    None => evaluation
                        .updates
                        .push(Update::remove(variant_of(resource), None)),
                }
            }
        }
    }

    /// Answers with the error of a resource that is not available, for a client
    /// that reads errors (S61). Returns whether there is one.
    pub(super) fn evaluate_errors(
        &self,
        name: &Name,
        resolving: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) -> bool {
        let mut any = false;
        for matching in resolving {
            let (Some((subscription, state)), Choice::Failed(error, _)) =
                (matching.named, &matching.choice)
            else {
                continue;
            };
            any = true;
            let mut pending_acks = self.client_cache.pending_acks().iter().rev();
            let last_error =
                match pending_acks.find_map(|pending_ack| pending_ack.answer_to(subscription)) {
                    Some(answer) => answer.error.as_ref(),
                    None => self.subscriptions.error(subscription),
                };
            if last_error != Some(error) || state.resend {
                evaluation.answers.push(Answer {
                    subscription,
                    name: name.clone(),
                    kind: AnswerKind::Error,
                    resolved_name: None,
                    error: Some(Arc::clone(error)),
                    is_implicit: false,
                });
            }
        }
        any
    }

    /// Separates a body that the client must NACK from all other updates.
    fn separate_unreadable(&self, expects_nack: bool, evaluation: &mut Evaluation) {
        let unreadable = self.absence_as_error(false).is_none()
            && self.negative_form(false) == NegativeForm::Unreadable;
        let is_unreadable = |answer: &Answer| {
            unreadable && answer.kind == AnswerKind::Absent && !answer.is_implicit
        };
        let answers = std::mem::take(&mut evaluation.answers).into_iter();
        let (expected_nacks, others): (Vec<_>, Vec<_>) = answers.partition(is_unreadable);
        let left = match expects_nack {
            true => {
                let left = !evaluation.updates.is_empty() || !others.is_empty();
                evaluation.updates.clear();
                evaluation.answers = expected_nacks;
                left
            }
            false => {
                evaluation.answers = others;
                !expected_nacks.is_empty()
            }
        };
        if left {
            evaluation.deferral = Deferral::SeparateResponse;
        }
    }
}

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

/// Whether a subscription, or a cursor, resolves to this resource.
pub(super) fn resolves_to(matching: &MatchingSubscription, resource: &Arc<Resource>) -> bool {
    let chosen = matching.choice.resource();
    chosen.is_some_and(|chosen| same_variant(chosen, resource))
}

/// The desired resources, each variant once.
fn desired_by(matching: &[MatchingSubscription]) -> Vec<Arc<Resource>> {
    let mut desired: Vec<Arc<Resource>> = Vec::new();
    for resource in matching.iter().filter_map(|s| s.choice.resource()) {
        if !desired.iter().any(|other| same_variant(other, resource)) {
            desired.push(Arc::clone(resource));
        }
    }
    desired
}

/// Whether the client surely holds this version of the variant, and no other.
/// Aliases of a virtual host do not count: each host that resolves to it adds
/// one.
fn is_held_exactly(on_demand: bool, held: &[CachedResource], resource: &Arc<Resource>) -> bool {
    let same = |held: &Arc<Resource>| match on_demand {
        true => held.version == resource.version && held.ttl == resource.ttl,
        false => same_resource(held, resource),
    };
    let mut of_variant = held
        .iter()
        .filter(|held| same_variant(&held.resource, resource));
    let sure = of_variant
        .next()
        .is_some_and(|held| held.is_accepted() && same(&held.resource));
    sure && of_variant.next().is_none() && !held.iter().any(CachedResource::has_unknown_body)
}
