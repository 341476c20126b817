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

/// What is to be said of one name.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    pub(super) updates: Vec<Update>,
    pub(super) answers: Vec<Answer>,
    /// What is not said now, and why.
    pub(super) deferral: Deferral,
    /// Something of it will be tried on its own: it is looked at again then.
    pub(super) awaits_trial: bool,
}

/// Why an update of a name is not sent now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deferral {
    /// Nothing waits.
    #[default]
    None,
    /// What is referred to comes first: not for ever (S73).
    Addition,
    /// Something still uses what goes, for as long as that takes (S73, S81).
    Removal,
    /// It needs a response of its own, or must not be in one.
    SeparateResponse,
}

impl TypeStream {
    /// Evaluates a name. `apart` is whether the response is one whose NACK is
    /// expected.
    pub(super) fn evaluate(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        apart: bool,
    ) -> Evaluation {
        let matching = self.matching_subscriptions(db, name);
        self.record_resumed_cluster(db, name, &matching);
        let mut part = Evaluation::default();
        if matching.iter().any(|s| s.choice == Choice::Unknown) {
            // A view that turns out not to list a name says nothing of it: what
            // the peer came back with is looked at until that is known (S51).
            let by_view = matching.iter().all(|s| s.named.is_none());
            if by_view && !self.client_cache.held_after_acks(db, name).is_empty() {
                part.deferral = Deferral::Removal;
            }
            return part;
        }
        let wanted = desired_by(&matching);
        self.forget_nacks(name, &wanted);
        let mut blocked = Vec::new();
        for resource in &wanted {
            let resolving = matching.iter().filter(|s| resolves_to(s, resource));
            let resolving: Vec<&MatchingSubscription> = resolving.collect();
            if self.evaluate_resource(db, context, name, resource, &resolving, &mut part) {
                blocked.push(Arc::clone(resource));
            }
        }
        if part.deferral != Deferral::None {
            part.updates.clear();
            part.answers.clear();
            return part;
        }
        let drops = self.surplus(db, name, &matching, &wanted, &part);
        let in_doubt =
            (!drops.is_empty() || !part.updates.is_empty()) && self.is_uncertain(db, name);
        if in_doubt || self.has_unanswered_absence(&matching) {
            self.add_all_variants(name, &wanted, &blocked, &mut part);
        }
        let drops = self.keep_for_undeliverable(db, &matching, blocked, drops, &mut part);
        self.evaluate_removals(db, context, name, &matching, drops, &mut part);
        self.evaluate_absence(db, context, name, &matching, &mut part);
        self.separate_unreadable(apart, &mut part);
        part
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
                // A failure that is not about the data leaves what is held alone (S61).
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
            let own = matching.iter().any(|s| {
                let (key, _) = s.named.unzip();
                key.is_some_and(|key| key.params == self.params)
            });
            // A plain name asks for what the view brings of it.
            if !own {
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
        part: &mut Evaluation,
    ) -> bool {
        let key = variant_of(resource);
        if self.suspects.contains_key(&key) {
            part.awaits_trial = true;
            return true;
        }
        if self.is_quarantined(resource) {
            self.answer_quarantined(db, name, resource, resolving, part);
            return true;
        }
        let held = self.client_cache.held_after_acks(db, &resource.name);
        let forced = resolving.iter().any(|s| s.resend);
        // Who waits for a host, or asked by another name, waits to be told.
        let told = self.kind.on_demand || resource.name != *name;
        let resolved_name = (resource.name != *name).then_some(&resource.name);
        let unheard = |s: &&MatchingSubscription| match told {
            true => !self.was_answered_with(s, resolved_name),
            false => self.has_recovered(s),
        };
        let unheard: Vec<_> = resolving.iter().copied().filter(unheard).collect();
        let failed = self.evaluate_errors(name, resolving, part);
        if !forced && unheard.is_empty() && is_held_exactly(self.kind.on_demand, &held, resource) {
            return false;
        }
        // What stays although it cannot be had anew is held already, mostly (S61).
        if failed && is_held_exactly(self.kind.on_demand, &held, resource) {
            return false;
        }
        let until = self.addition_deadlines.get(name);
        let overdue = until.is_some_and(|until| *until <= context.now);
        if !overdue && context.order.must_defer_addition(db, &self.kind, resource) {
            part.deferral = Deferral::Addition;
            return false;
        }
        let requested_name = (resource.name != *name).then(|| name.clone());
        let subscriptions = resolving.iter().filter_map(|s| s.named);
        let answers = subscriptions.filter(|(key, subscription)| {
            let other = !matches!(
                subscription.acked_answer,
                AnswerKind::Unanswered | AnswerKind::Resource
            );
            told || other || self.subscriptions.resolved_name(*key).is_some()
        });
        part.answers.extend(answers.map(|(subscription, _)| Answer {
            subscription,
            name: name.clone(),
            kind: AnswerKind::Resource,
            resolved_name: requested_name.as_ref().map(|_| resource.name.clone()),
            error: None,
            is_implicit: true,
        }));
        part.updates.push(Update::upsert(resource, requested_name));
        false
    }

    /// Whether a SotW list has a locator that matches no variant and was not
    /// answered. It is answered by all other variants of the name (S30, TP2):
    /// the client may still hold one that it gave up for this.
    fn has_unanswered_absence(&self, matching: &[MatchingSubscription]) -> bool {
        let in_vain = |(key, subscription): (SubscriptionKey, Subscription)| {
            let mut pending_acks = self.client_cache.pending_acks().iter();
            let told = pending_acks.any(|pending_ack| pending_ack.answer_to(key).is_some());
            subscription.acked_answer == AnswerKind::Unanswered && !told
        };
        let nothing = |s: &&MatchingSubscription| s.choice == Choice::Absent;
        let mut nothing = matching.iter().filter(nothing).filter_map(|s| s.named);
        self.mode == Mode::Sotw && !self.kind.on_demand && nothing.any(in_vain)
    }

    /// Whether a want has heard, or will have, that it leads to this resource.
    fn was_answered_with(
        &self,
        matching: &MatchingSubscription,
        resolved_name: Option<&Name>,
    ) -> bool {
        let Some((key, subscription)) = matching.named else {
            return true;
        };
        let mut pending_acks = self.client_cache.pending_acks().iter().rev();
        let (heard, to) = match pending_acks.find_map(|pending_ack| pending_ack.answer_to(key)) {
            Some(answer) => (answer.kind, answer.resolved_name.as_ref()),
            None => (
                subscription.acked_answer,
                self.subscriptions.resolved_name(key),
            ),
        };
        heard == AnswerKind::Resource && to == resolved_name
    }

    /// Whether the client was told that a resource cannot be had, and it can
    /// again: only the resource itself says so (S61).
    fn has_recovered(&self, matching: &MatchingSubscription) -> bool {
        let Some((key, subscription)) = matching.named else {
            return false;
        };
        let mut pending_acks = self.client_cache.pending_acks().iter().rev();
        let answer = pending_acks.find_map(|pending_ack| pending_ack.answer_to(key));
        let heard = answer.map_or(subscription.acked_answer, |answer| answer.kind);
        heard == AnswerKind::Error && !matches!(matching.choice, Choice::Failed(..))
    }

    /// Answers subscriptions whose resource is in quarantine. Each gets what
    /// the client accepted before; if there is none it is told that the name
    /// does not exist, unless the client may hold something of unknown body
    /// (S12).
    fn answer_quarantined(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Arc<Resource>,
        resolving: &[&MatchingSubscription],
        part: &mut Evaluation,
    ) {
        let led = resolving.iter().filter_map(|s| s.named);
        let led = led.filter_map(|(key, _)| self.subscriptions.resolved_name(key).cloned());
        let mut held = self.client_cache.held_after_acks(db, &resource.name);
        for other in led {
            held.extend(self.client_cache.held_after_acks(db, &other));
        }
        if resource.name != *name {
            held.extend(self.client_cache.held_after_acks(db, name));
        }
        // That the name is gone would take away what the peer may hold of it beside.
        let other = |held: &CachedResource| !self.is_quarantined(&held.resource);
        let others = !self.kind.on_demand && held.iter().any(other);
        // Of several subscriptions each gets what is for it.
        let subscriptions = self.subscriptions_of(db, name);
        let beside = subscriptions
            .iter()
            .all(|(key, _)| key.params != self.params);
        let by_view = beside && self.client_cache.covering_cursor(name).is_some();
        let asked = subscriptions.iter().map(|(key, _)| key.params);
        let asked: Vec<_> = asked.chain(by_view.then_some(self.params)).collect();
        let several = !self.kind.on_demand && asked.len() > 1;
        for matching in resolving {
            let unheard = matching.named.is_some_and(|(_, subscription)| {
                subscription.acked_answer == AnswerKind::Unanswered
            });
            let from_before = |held: &&CachedResource| {
                held.certainty == Certainty::Resumed && !held.has_unknown_body()
            };
            let same = |held: &&CachedResource| {
                from_before(held) && same_variant(&held.resource, resource)
            };
            let stands_in = held.iter().find(same);
            let stands_in = stands_in.or_else(|| held.iter().find(from_before));
            let stands_in = stands_in.filter(|_| self.sends_whole_sets());
            // Who waits for a host waits for an answer, whatever it rejected.
            let sure = |held: &CachedResource| {
                held.certainty != Certainty::MaybeTaken || !self.kind.on_demand
            };
            let deferral = unheard && !held.iter().any(sure);
            if !matching.resend && !deferral && stands_in.is_none() {
                continue;
            }
            let good = |held: &&CachedResource| {
                held.was_accepted() && !self.is_quarantined(&held.resource)
            };
            let own = |held: &&CachedResource| good(held) && same_variant(&held.resource, resource);
            let fits = |held: &&CachedResource| {
                good(held)
                    && (!several || self.variant_matches(db, matching, &variant_of(&held.resource)))
            };
            let accepted = held.iter().find(own).or_else(|| held.iter().find(fits));
            let accepted = accepted.or(stands_in);
            if let Some(accepted) = accepted {
                self.restore_accepted(db, name, (accepted, &held), &asked, part);
            } else if !held.iter().any(CachedResource::has_unknown_body) {
                match matching.named {
                    Some((key, _)) => part.answers.push(absent_answer(key, name, others)),
                    // Another subscription may have taken it.
                    None if resolving.iter().any(|s| s.named.is_some()) => {}
                    None => part
                        .updates
                        .push(Update::remove(variant_of(resource), None)),
                }
            }
        }
    }

    /// Tells why something cannot be had, to who reads of it (S61). Returns
    /// whether there is such a reason.
    pub(super) fn evaluate_errors(
        &self,
        name: &Name,
        resolving: &[&MatchingSubscription],
        part: &mut Evaluation,
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
            let told =
                match pending_acks.find_map(|pending_ack| pending_ack.answer_to(subscription)) {
                    Some(answer) => answer.error.as_ref(),
                    None => self.subscriptions.error(subscription),
                };
            if told != Some(error) || state.resend {
                part.answers.push(Answer {
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

    /// What a peer must reject goes alone, and nothing else with it.
    fn separate_unreadable(&self, apart: bool, part: &mut Evaluation) {
        let unreadable = self.absence_as_error(false).is_none()
            && self.negative_form(false) == NegativeForm::Unreadable;
        let expects_nack = |answer: &Answer| {
            unreadable && answer.kind == AnswerKind::Absent && !answer.is_implicit
        };
        let answers = std::mem::take(&mut part.answers).into_iter();
        let (baits, others): (Vec<_>, Vec<_>) = answers.partition(expects_nack);
        let left = match apart {
            true => {
                let left = !part.updates.is_empty() || !others.is_empty();
                part.updates.clear();
                part.answers = baits;
                left
            }
            false => {
                part.answers = others;
                !baits.is_empty()
            }
        };
        if left {
            part.deferral = Deferral::SeparateResponse;
        }
    }
}

pub(super) fn absent_answer(subscription: SubscriptionKey, name: &Name, silent: bool) -> Answer {
    Answer {
        subscription,
        name: name.clone(),
        kind: AnswerKind::Absent,
        resolved_name: None,
        error: None,
        is_implicit: silent,
    }
}

/// Whether a want, or a view, is for this resource.
pub(super) fn resolves_to(matching: &MatchingSubscription, resource: &Arc<Resource>) -> bool {
    let own = matching.choice.resource();
    own.is_some_and(|own| same_variant(own, resource))
}

/// The resources that are wanted, each variant once.
fn desired_by(matching: &[MatchingSubscription]) -> Vec<Arc<Resource>> {
    let mut wanted: Vec<Arc<Resource>> = Vec::new();
    for resource in matching.iter().filter_map(|s| s.choice.resource()) {
        if !wanted.iter().any(|other| same_variant(other, resource)) {
            wanted.push(Arc::clone(resource));
        }
    }
    wanted
}

/// Whether the client surely holds this version of the variant, and no other.
/// Aliases of a virtual host do not count: each host that resolves to it adds
/// one.
fn is_held_exactly(on_demand: bool, held: &[CachedResource], resource: &Arc<Resource>) -> bool {
    let same = |held: &Arc<Resource>| match on_demand {
        true => held.version == resource.version && held.ttl == resource.ttl,
        false => same_resource(held, resource),
    };
    let mut own = held
        .iter()
        .filter(|held| same_variant(&held.resource, resource));
    let sure = own
        .next()
        .is_some_and(|held| held.is_accepted() && same(&held.resource));
    sure && own.next().is_none() && !held.iter().any(CachedResource::has_unknown_body)
}
