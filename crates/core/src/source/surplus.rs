//! The surplus of a name (resources that the client holds and that are not
//! desired), and the answers to subscriptions that resolve to no resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client_cache::{CachedResource, Certainty, Update, Variant, same_variant, variant_of};
use super::evaluate::{Deferral, Evaluation, MatchingSubscription, absent_answer, resolves_to};
use super::{AnswerKind, PushContext, SubscriptionKey, TypeStream};
use crate::database::Database;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

impl TypeStream {
    /// The surplus of a name, as removals.
    pub(super) fn surplus(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        desired: &[Arc<Resource>],
        evaluation: &Evaluation,
    ) -> Vec<Update> {
        let keys = matching.iter().filter_map(|s| Some(s.named?.0));
        let resolved_names = keys.filter_map(|key| self.subscriptions.resolved_name(key));
        let mut resolved_names: Vec<Name> = resolved_names
            .filter(|other| *other != name)
            .cloned()
            .collect();
        resolved_names.sort();
        resolved_names.dedup();
        let names = || resolved_names.iter().chain([name]);
        let mut removals: Vec<Update> = Vec::new();
        for other in names() {
            let replaced = desired.iter().any(|new| new.name == *other);
            for held in self.client_cache.held_after_acks(db, other) {
                let kept = desired.iter().any(|new| same_variant(new, &held.resource));
                let unknown = replaced && held.has_unknown_body();
                let key = variant_of(&held.resource);
                if !kept
                    && !unknown
                    && !removals.iter().any(|update| update.variant == key)
                    && !self.is_desired_elsewhere(db, name, &held.resource)
                {
                    let requested_name = (other != name).then(|| name.clone());
                    removals.push(Update::remove(key, requested_name));
                }
            }
        }
        self.remove_pending_variants(db, names(), desired, evaluation, &mut removals);
        removals
    }

    /// Whether a pending response removes something of the name, or replaces a
    /// resource of unknown body. The client may NACK it, so whatever else is
    /// sent of the name has to contain all its variants.
    pub(super) fn is_uncertain(&self, db: &mut Database, name: &Name) -> bool {
        let pending_acks = self.client_cache.pending_acks();
        if self.kind.on_demand || pending_acks.is_empty() {
            return false;
        }
        let removes = pending_acks
            .iter()
            .any(|pending_ack| pending_ack.removes(name));
        removes
            || self
                .client_cache
                .held(db, name)
                .iter()
                .any(CachedResource::has_unknown_body)
    }

    /// Adds upserts for all desired variants of a name that can be delivered.
    pub(super) fn add_all_variants(
        &self,
        name: &Name,
        desired: &[Arc<Resource>],
        undeliverable: &[Arc<Resource>],
        evaluation: &mut Evaluation,
    ) {
        for new in desired.iter().filter(|new| new.name == *name) {
            let undeliverable = undeliverable.iter().any(|other| same_variant(other, new));
            let updated = evaluation
                .updates
                .iter()
                .any(|update| update.variant == variant_of(new));
            if !undeliverable && !updated {
                evaluation.updates.push(Update::upsert(new, None));
            }
        }
    }

    /// Resends a resource that the client accepted, and removes resources that
    /// it may have taken instead from a response that it NACKed.
    /// `subscribed_params` are the parameters of its subscriptions of the name.
    /// A client with several matches variants by itself: only what one of them
    /// would see as a second variant is removed. A client with one may not
    /// match, and uses whatever it has, so everything else is removed.
    pub(super) fn restore_accepted(
        &self,
        db: &Database,
        name: &Name,
        (good, held): (&CachedResource, &[CachedResource]),
        subscribed_params: &[ParamsId],
        evaluation: &mut Evaluation,
    ) {
        let accepted = &good.resource;
        let requested_name = (accepted.name != *name).then(|| name.clone());
        let updated = |evaluation: &Evaluation, key: &Variant| {
            evaluation
                .updates
                .iter()
                .any(|update| update.variant == *key)
        };
        if !updated(evaluation, &variant_of(accepted)) {
            evaluation
                .updates
                .push(Update::upsert(accepted, requested_name));
        }
        let is_second = |other: &Resource| {
            let both = |params| {
                resource_matches(db, params, other) && resource_matches(db, params, accepted)
            };
            subscribed_params.len() < 2 || subscribed_params.iter().any(|params| both(*params))
        };
        let mut dropped: Vec<&Resource> = Vec::new();
        for other in held.iter().filter(|_| !self.kind.on_demand) {
            let other = (other.certainty == Certainty::MaybeTaken).then_some(&other.resource);
            let other =
                other.filter(|other| other.name == accepted.name && !same_variant(other, accepted));
            let Some(other) = other.filter(|other| is_second(other)) else {
                continue;
            };
            let key = variant_of(other);
            if !updated(evaluation, &key) {
                evaluation.updates.push(Update::remove(key, None));
            }
            dropped.push(other);
        }
        // Another subscription may have used a removed variant: it, too, gets
        // back what it had.
        for params in subscribed_params {
            let loses = dropped
                .iter()
                .any(|other| resource_matches(db, *params, other));
            let had = |held: &&CachedResource| {
                let good = held.was_accepted() && !self.is_quarantined(&held.resource);
                good && held.resource.name == accepted.name
                    && resource_matches(db, *params, &held.resource)
            };
            let had = held.iter().find(had);
            let had = had.filter(|_| loses && !resource_matches(db, *params, accepted));
            if let Some(had) = had.filter(|had| !updated(evaluation, &variant_of(&had.resource))) {
                self.restore_accepted(db, name, (had, held), subscribed_params, evaluation);
            }
        }
    }

    /// Keeps what an undeliverable resource would have replaced, and withholds
    /// every upsert that would be a second variant beside it for some
    /// subscription (TP2). Returns the removals that remain.
    pub(super) fn keep_for_undeliverable(
        &self,
        db: &mut Database,
        matching: &[MatchingSubscription],
        mut undeliverable: Vec<Arc<Resource>>,
        mut removals: Vec<Update>,
        evaluation: &mut Evaluation,
    ) -> Vec<Update> {
        if undeliverable.is_empty() {
            return removals;
        }
        // A client that does not match constraints itself uses the variant that
        // it has.
        if self.kind.on_demand || matching.len() == 1 {
            self.withhold_second_variant(db, matching, &removals, evaluation);
            return Vec::new();
        }
        let mut kept: Vec<Update> = Vec::new();
        while !undeliverable.is_empty() {
            let resolving =
                |s: &&MatchingSubscription| undeliverable.iter().any(|new| resolves_to(s, new));
            let resolving: Vec<&MatchingSubscription> = matching.iter().filter(resolving).collect();
            let stays = |update: &mut Update| {
                resolving
                    .iter()
                    .any(|s| self.variant_matches(db, s, &update.variant))
            };
            kept.extend(removals.extract_if(.., stays));
            undeliverable = self.withhold_second_variant(db, matching, &kept, evaluation);
        }
        removals.extend(self.drop_redundant_kept(db, matching, &mut kept));
        removals
    }

    /// Of several kept variants that one client matches, since its parameters
    /// changed, removes those for which each matching subscription has another
    /// that is surely held.
    fn drop_redundant_kept(
        &self,
        db: &mut Database,
        matching: &[MatchingSubscription],
        kept: &mut Vec<Update>,
    ) -> Vec<Update> {
        let names = kept.iter().map(|update| update.name().clone());
        let names: BTreeSet<Name> = names.collect();
        let held = names
            .iter()
            .flat_map(|name| self.client_cache.held_after_acks(db, name));
        // A whole set lists resources that may have been dropped, too.
        let sure = |held: &CachedResource| {
            held.is_accepted() || (self.sends_whole_sets() && held.was_accepted())
        };
        let held: Vec<CachedResource> = held.filter(sure).collect();
        let mut second = Vec::new();
        let mut index = 0;
        while let Some(update) = kept.get(index) {
            let mut users = matching
                .iter()
                .filter(|s| self.variant_matches(db, s, &update.variant))
                .peekable();
            let others = |matching: &MatchingSubscription| {
                let mut others = kept.iter().filter(|other| other.variant != update.variant);
                others.any(|other| {
                    let sure = held.iter().any(|held| held.is_variant(&other.variant));
                    sure && self.variant_matches(db, matching, &other.variant)
                })
            };
            match users.peek().is_some() && users.all(others) {
                true => second.push(kept.remove(index)),
                false => index += 1,
            }
        }
        second
    }

    /// Withholds updates that would be a second variant for some subscription,
    /// beside a kept one.
    fn withhold_second_variant(
        &self,
        db: &Database,
        matching: &[MatchingSubscription],
        kept: &[Update],
        evaluation: &mut Evaluation,
    ) -> Vec<Arc<Resource>> {
        if self.kind.on_demand {
            return Vec::new();
        }
        let twice = |new: &Arc<Resource>| {
            let mut resolving = matching.iter().filter(|s| resolves_to(s, new));
            resolving.any(|matching| {
                kept.iter()
                    .any(|old| self.variant_matches(db, matching, &old.variant))
            })
        };
        let second = |update: &mut Update| update.resource.as_ref().is_some_and(twice);
        let withheld = evaluation.updates.extract_if(.., second);
        withheld.filter_map(|update| update.resource).collect()
    }

    /// Whether a variant matches the parameters of a subscription.
    pub(super) fn variant_matches(
        &self,
        db: &Database,
        matching: &MatchingSubscription,
        variant: &Variant,
    ) -> bool {
        let constraints = variant.1.as_ref();
        constraints.is_none_or(|c| c.matches(db.params(self.params_of_subscription(matching))))
    }

    /// The parameters of a subscription.
    fn params_of_subscription(&self, matching: &MatchingSubscription) -> ParamsId {
        matching.named.map_or(self.params, |(key, _)| key.params)
    }

    /// Evaluates removals: they are sent now, or once the resource is no
    /// longer in use.
    pub(super) fn evaluate_removals(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        removals: Vec<Update>,
        evaluation: &mut Evaluation,
    ) {
        let named = matching.iter().any(|s| s.named.is_some());
        let desired = matching.iter().any(|s| s.choice.resource().is_some());
        let several = matching.len() > 1;
        let removes = !desired && !self.kind.on_demand && !several && !removals.is_empty();
        // Only an absent name leaves a client waiting; and a client that
        // resumed with a referrer waits for an answer about the name (S82).
        let resumed = |s: &MatchingSubscription| {
            s.named
                .is_some_and(|(_, subscription)| subscription.is_resumed)
        };
        let is_missed = removes
            && matching.iter().any(resumed)
            && context.order.is_referenced(db, &self.type_url, name);
        let order = context.order;
        let refused = self.sends_invalid_clusters()
            && self
                .client_cache
                .held(db, name)
                .iter()
                .all(CachedResource::has_unknown_body);
        let must_defer = |db| order.must_defer_removal(db, &self.type_url, name, (named, refused));
        if removes && !is_missed && must_defer(db) {
            evaluation.deferral = Deferral::Removal;
            self.answer_while_kept(db, name, matching, evaluation);
            return;
        }
        evaluation.updates.extend(removals);
    }

    /// Answers a subscription with a resource that is to be removed, while it
    /// is kept (S23).
    fn answer_while_kept(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let held = self.client_cache.held_after_acks(db, name);
        let resend = matching.iter().any(|s| s.resend);
        // A whole set lists resources that the client resumed with, which is an
        // answer (S82).
        let listed =
            |held: &CachedResource| self.sends_whole_sets() && held.certainty == Certainty::Resumed;
        let updated = |held: &&CachedResource| {
            !held.has_unknown_body() && ((held.was_accepted() && resend) || listed(held))
        };
        if let Some(good) = held.iter().find(updated) {
            let subscribed_params = matching.iter().map(|s| self.params_of_subscription(s));
            let subscribed_params: Vec<ParamsId> = subscribed_params.collect();
            self.restore_accepted(db, name, (good, &held), &subscribed_params, evaluation);
        }
    }

    /// Adds removals of variants that the client may hold from pending
    /// responses, if anything else of the name is sent.
    fn remove_pending_variants<'n>(
        &self,
        db: &mut Database,
        names: impl Iterator<Item = &'n Name>,
        desired: &[Arc<Resource>],
        evaluation: &Evaluation,
        removals: &mut Vec<Update>,
    ) {
        if self.client_cache.pending_acks().is_empty()
            || (evaluation.updates.is_empty() && removals.is_empty())
        {
            return;
        }
        for name in names {
            for held in self.client_cache.maybe_held(db, name) {
                let key = variant_of(&held);
                let kept = desired.iter().any(|new| same_variant(new, &held));
                let updated = removals
                    .iter()
                    .chain(&evaluation.updates)
                    .any(|update| update.variant == key);
                if !kept && !updated {
                    removals.push(Update::remove(key, None));
                }
            }
        }
    }

    /// Whether another subscription or cursor resolves to a resource. A host
    /// may resolve to a virtual host that does not list it, by a wildcard
    /// domain.
    fn is_desired_elsewhere(&self, db: &mut Database, but: &Name, held: &Resource) -> bool {
        let name = &held.name;
        let of_name = self
            .subscriptions_of(db, but)
            .into_iter()
            .map(|(key, _)| key);
        let of_name: Vec<SubscriptionKey> = of_name.collect();
        let wide = held.facts().domains.have_wildcards() || held.body.is_none();
        let keys: Vec<SubscriptionKey> = match self.kind.on_demand && wide {
            true => self.subscriptions.keys().collect(),
            false => {
                let names = held.other_names().chain([name.clone()]);
                let subscriptions = names.flat_map(|name| self.subscriptions_of(db, &name));
                let subscriptions = subscriptions.map(|(key, _)| key);
                subscriptions
                    .chain(self.subscriptions.resolving_to(name))
                    .collect()
            }
        };
        let others = keys.into_iter().filter(|key| !of_name.contains(key));
        let mut targets = others.map(|key| self.resolve(db, key));
        let is_desired = targets.any(|target| {
            let resource = target.resource();
            resource
                .is_some_and(|r| same_variant(r, held) || (held.body.is_none() && r.name == *name))
        });
        is_desired || (name != but && self.client_cache.covering_cursor(name).is_some())
    }

    /// Answers the subscriptions that resolve to no resource.
    pub(super) fn evaluate_absence(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let absent = matching.iter().filter(|s| s.choice.resource().is_none());
        let absent: Vec<&MatchingSubscription> = absent.collect();
        if absent.is_empty() || evaluation.deferral != Deferral::None {
            return;
        }
        if self.evaluate_errors(name, &absent, evaluation) {
            return;
        }
        // While another variant is left, the name itself is not removed (S41).
        let left = matching.len() > absent.len();
        let removals = evaluation
            .updates
            .iter()
            .any(|update| update.resource.is_none());
        let mut withheld = false;
        for matching in absent {
            let Some((key, subscription)) = matching.named else {
                continue;
            };
            let mut pending_acks = self.client_cache.pending_acks().iter().rev();
            let last_answer = pending_acks.find_map(|pending_ack| pending_ack.answer_to(key));
            let last_answer = last_answer.map_or(subscription.acked_answer, |answer| answer.kind);
            let owed = subscription.resend || last_answer != AnswerKind::Absent;
            if !owed && !removals {
                continue;
            }
            if !left && self.withholds_absence(db, context, name, subscription) {
                withheld = true;
                continue;
            }
            // A client that requests a host waits for more than the removal of
            // its old one.
            if removals && subscription.resend && self.kind.on_demand {
                continue;
            }
            // A client that never had one waits for a separate answer.
            let had = !self.kind.on_demand || last_answer == AnswerKind::Resource;
            evaluation
                .answers
                .push(absent_answer(key, name, left || (removals && had)));
        }
        if withheld {
            evaluation.updates.clear();
            evaluation.answers.clear();
            evaluation.deferral = Deferral::Removal;
            self.answer_while_kept(db, name, matching, evaluation);
        }
    }
}

/// Whether a resource matches these parameters.
fn resource_matches(db: &Database, params: ParamsId, resource: &Resource) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|c| c.matches(db.params(params)))
}
