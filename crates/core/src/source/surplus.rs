//! The surplus of a name (resources that the client holds and that are not
//! desired), and the answers to subscriptions that resolve to no resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client_cache::{CachedResource, Update, same_variant, variant_of};
use super::evaluate::{Deferral, Evaluation, absent_answer};
use super::matching::{MatchingSubscription, resolves_to};
use super::{AnswerKind, PushContext, Subscription, SubscriptionKey, TypeStream, Variant};
use crate::database::Database;
use crate::name::Name;
use crate::order::Removal;
use crate::resource::Resource;

impl TypeStream {
    /// Returns the surplus of a name, and of the names that its subscriptions
    /// resolved to, as removals. `desired` are its desired resources, and
    /// `evaluation` has the updates so far. A resource that is desired on
    /// account of another name is no surplus.
    pub(super) fn surplus(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        desired: &[Arc<Resource>],
        evaluation: &Evaluation,
    ) -> Vec<Update> {
        let keys = matching
            .iter()
            .filter_map(|subscription| Some(subscription.named?.0));
        let resolved_names = keys.filter_map(|key| self.subscriptions.resolved_name(key));
        let other_names: BTreeSet<&Name> = resolved_names
            .filter(|resolved_name| *resolved_name != name)
            .collect();
        let names: Vec<&Name> = other_names.into_iter().chain([name]).collect();

        let mut removals: Vec<Update> = Vec::new();
        for held_name in &names {
            // A resource of the same name replaces one of unknown body.
            let is_name_desired = desired.iter().any(|resource| resource.name == **held_name);
            for record in self.client_cache.held_after_acks(db, held_name) {
                let variant = variant_of(&record.resource);
                let is_desired = desired
                    .iter()
                    .any(|resource| same_variant(resource, &record.resource));
                let is_replaced = is_name_desired && record.has_unknown_body();
                let is_removed = removals.iter().any(|update| update.variant == variant);
                if !is_desired
                    && !is_replaced
                    && !is_removed
                    && !self.is_desired_elsewhere(db, name, &record.resource)
                {
                    let requested_name = (*held_name != name).then(|| name.clone());
                    removals.push(Update::remove(variant, requested_name));
                }
            }
        }

        if !evaluation.updates.is_empty() || !removals.is_empty() {
            self.remove_pending_variants(db, &names, desired, evaluation, &mut removals);
        }
        removals
    }

    /// Adds removals of variants that the client may hold from pending
    /// responses, whether it ACKs or NACKs these. The evaluation sends the
    /// other variants of `names` anew.
    fn remove_pending_variants(
        &self,
        db: &mut Database,
        names: &[&Name],
        desired: &[Arc<Resource>],
        evaluation: &Evaluation,
        removals: &mut Vec<Update>,
    ) {
        if self.client_cache.pending_acks().is_empty() {
            return;
        }

        for name in names {
            for record in self.client_cache.maybe_held(db, name) {
                let variant = variant_of(&record);
                let is_desired = desired
                    .iter()
                    .any(|resource| same_variant(resource, &record));
                let is_removed = removals.iter().any(|update| update.variant == variant);
                if !is_desired && !is_removed && !evaluation.updates_variant(&variant) {
                    removals.push(Update::remove(variant, None));
                }
            }
        }
    }

    /// Returns whether a pending response removes a variant of the name, or
    /// replaces a resource of unknown body. The client may NACK it, so every
    /// later response about the name has to contain all its variants.
    pub(super) fn is_uncertain(&self, db: &mut Database, name: &Name) -> bool {
        if self.kind.on_demand {
            return false;
        }
        let held_resources = self.client_cache.held(db, name);
        let mut pending_acks = self.client_cache.pending_acks().iter();
        pending_acks.any(|pending_ack| pending_ack.removes(name))
            || held_resources.iter().any(CachedResource::has_unknown_body)
    }

    /// Keeps the resources that an `undeliverable` one would have replaced, and
    /// takes upserts out of the evaluation that would be a second variant
    /// beside them for some subscription (TP2). Returns the removals that
    /// remain.
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

        // Each upsert that is withheld is undeliverable, too, and may keep more.
        let mut kept_removals: Vec<Update> = Vec::new();
        while !undeliverable.is_empty() {
            let is_affected = |subscription: &&MatchingSubscription| {
                undeliverable
                    .iter()
                    .any(|resource| resolves_to(subscription, resource))
            };
            let affected_subscriptions: Vec<_> = matching.iter().filter(is_affected).collect();
            let stays = |update: &mut Update| {
                let mut affected_subscriptions = affected_subscriptions.iter();
                affected_subscriptions
                    .any(|subscription| self.variant_matches(db, subscription, &update.variant))
                    && !self.is_second_beside_held(db, matching, &update.variant)
            };
            kept_removals.extend(removals.extract_if(.., stays));
            undeliverable = self.withhold_second_variant(db, matching, &kept_removals, evaluation);
        }

        removals.extend(self.release_redundant_removals(db, matching, &mut kept_removals));
        removals
    }

    /// Returns whether a variant would be a second one for a subscription that
    /// matches it, and that resolves to another variant which the client has
    /// accepted (TP2). This is possible after the parameters of a client
    /// changed.
    fn is_second_beside_held(
        &self,
        db: &mut Database,
        matching: &[MatchingSubscription],
        variant: &Variant,
    ) -> bool {
        let held_resources = self.client_cache.held_after_acks(db, &variant.0);
        let is_held = |resource: &Arc<Resource>| {
            let resolved_variant = variant_of(resource);
            let mut accepted_records = held_resources.iter().filter(|record| record.is_accepted());
            resolved_variant != *variant
                && accepted_records.any(|record| record.is_variant(&resolved_variant))
        };
        let mut subscriptions = matching.iter();
        subscriptions.any(|subscription| {
            subscription.choice.resource().is_some_and(is_held)
                && self.variant_matches(db, subscription, variant)
        })
    }

    /// Takes out of `kept_removals`, which are withheld, the removals of
    /// variants that no subscription needs: each subscription that matches such
    /// a variant has another kept one, which the client surely holds. Returns
    /// them, to be sent after all. There are such removals only after the
    /// parameters of a client changed.
    fn release_redundant_removals(
        &self,
        db: &mut Database,
        matching: &[MatchingSubscription],
        kept_removals: &mut Vec<Update>,
    ) -> Vec<Update> {
        let names: BTreeSet<&Name> = kept_removals.iter().map(Update::name).collect();
        let records = names
            .into_iter()
            .flat_map(|name| self.client_cache.held_after_acks(db, name));
        // A whole set lists resources that may have been dropped, too.
        let is_sure = |record: &CachedResource| {
            record.is_accepted() || (self.sends_whole_sets() && record.was_accepted())
        };
        let held_resources: Vec<CachedResource> = records.filter(is_sure).collect();

        let mut redundant_removals = Vec::new();
        let mut index = 0;
        while let Some(update) = kept_removals.get(index) {
            let mut users = matching
                .iter()
                .filter(|subscription| self.variant_matches(db, subscription, &update.variant))
                .peekable();
            let has_other = |matching: &MatchingSubscription| {
                let mut other_removals = kept_removals
                    .iter()
                    .filter(|other_removal| other_removal.variant != update.variant);
                other_removals.any(|other_removal| {
                    let is_held = held_resources
                        .iter()
                        .any(|record| record.is_variant(&other_removal.variant));
                    is_held && self.variant_matches(db, matching, &other_removal.variant)
                })
            };

            match users.peek().is_some() && users.all(has_other) {
                true => redundant_removals.push(kept_removals.remove(index)),
                false => index += 1,
            }
        }
        redundant_removals
    }

    /// Takes out of an evaluation the upserts that would be a second variant
    /// for some subscription, beside a variant whose removal is in
    /// `kept_removals` and thus withheld. Returns their resources, which are
    /// undeliverable now, too.
    fn withhold_second_variant(
        &self,
        db: &Database,
        matching: &[MatchingSubscription],
        kept_removals: &[Update],
        evaluation: &mut Evaluation,
    ) -> Vec<Arc<Resource>> {
        if self.kind.on_demand {
            return Vec::new();
        }
        let keeps_another = |matching: &MatchingSubscription| {
            let mut kept_removals = kept_removals.iter();
            kept_removals.any(|removal| self.variant_matches(db, matching, &removal.variant))
        };

        let is_second = |update: &mut Update| {
            update.resource.as_ref().is_some_and(|resource| {
                let mut resolving_subscriptions = matching
                    .iter()
                    .filter(|subscription| resolves_to(subscription, resource));
                resolving_subscriptions.any(keeps_another)
            })
        };

        let withheld_updates = evaluation.updates.extract_if(.., is_second);
        withheld_updates
            .filter_map(|update| update.resource)
            .collect()
    }

    /// Evaluates removals: they are sent now, or deferred until the resource is
    /// no longer in use. Only the removal of a whole name is deferred; its
    /// subscriptions are answered in the meantime.
    pub(super) fn evaluate_removals(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        removals: Vec<Update>,
        evaluation: &mut Evaluation,
    ) {
        let is_desired = matching
            .iter()
            .any(|subscription| subscription.choice.resource().is_some());
        let removes_name =
            !is_desired && !self.kind.on_demand && matching.len() <= 1 && !removals.is_empty();
        if removes_name && self.removal_waits(db, context, name, matching) {
            evaluation.deferral = Deferral::Removal;
            self.answer_with_kept_resource(db, name, matching, evaluation);
            return;
        }
        evaluation.updates.extend(removals);
    }

    /// Returns whether the removal of a name waits: as the order of types says
    /// ([`crate::order::Order::must_defer_removal`]), but not for a client that
    /// resumed with a referrer of the name, since the referrer waits for an
    /// answer about it (S82).
    fn removal_waits(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
    ) -> bool {
        let order = context.order;
        // A referrer waits for the answer about this name.
        let is_awaited = matching.iter().any(MatchingSubscription::is_resumed)
            && order.is_referenced(db, &self.type_url, name);
        let held_resources = self.client_cache.held(db, name);
        let removal = Removal {
            type_url: &self.type_url,
            name,
            by_name: matching
                .iter()
                .any(|subscription| subscription.named.is_some()),
            has_invalid_cluster: self.sends_invalid_clusters()
                && held_resources.iter().all(CachedResource::has_unknown_body),
        };
        !is_awaited && order.must_defer_removal(db, removal)
    }

    /// Returns whether a resource that the client holds is desired on account
    /// of another name than `evaluated_name`: a subscription to that name
    /// resolves to the resource, or a cursor covers it.
    fn is_desired_elsewhere(
        &self,
        db: &mut Database,
        evaluated_name: &Name,
        held_resource: &Resource,
    ) -> bool {
        let name = &held_resource.name;
        let evaluated_subscriptions = self.subscriptions_of(db, evaluated_name);
        let is_other = |key: &SubscriptionKey| {
            let mut subscriptions = evaluated_subscriptions.iter();
            !subscriptions.any(|(evaluated_key, _)| evaluated_key == key)
        };
        // A resource without a body stands for any of its name.
        let is_held = |resource: &Arc<Resource>| {
            same_variant(resource, held_resource)
                || (held_resource.body.is_none() && resource.name == *name)
        };

        let candidates = self
            .subscriptions_that_may_resolve_to(db, held_resource)
            .into_iter();
        let mut choices = candidates.filter(is_other).map(|key| self.resolve(db, key));
        let is_desired = choices.any(|choice| choice.resource().is_some_and(is_held));
        let is_other_name = name != evaluated_name;
        is_desired || (is_other_name && self.client_cache.covering_cursor(name).is_some())
    }

    /// Returns the subscriptions that may resolve to a held resource. A host
    /// may resolve to a virtual host that does not list it, by a wildcard
    /// domain, so these may be all hosts.
    fn subscriptions_that_may_resolve_to(
        &self,
        db: &Database,
        resource: &Resource,
    ) -> Vec<SubscriptionKey> {
        let matches_any = resource.facts().domains.have_wildcards() || resource.body.is_none();
        if self.kind.on_demand && matches_any {
            return self.subscriptions.keys().collect();
        }
        let names = resource.other_names().chain([resource.name.clone()]);
        let subscriptions = names.flat_map(|name| self.subscriptions_of(db, &name));
        let named_keys = subscriptions.map(|(key, _)| key);
        let resolving_keys = self.subscriptions.keys_resolving_to(&resource.name);
        named_keys.chain(resolving_keys).collect()
    }

    /// Answers the subscriptions that resolve to no resource: with an error, or
    /// with the absence of the name. The whole name is deferred while the
    /// client must not be told of its absence (S81, S82).
    pub(super) fn evaluate_absence(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let absent_subscriptions: Vec<&MatchingSubscription> = matching
            .iter()
            .filter(|subscription| subscription.choice.resource().is_none())
            .collect();
        if absent_subscriptions.is_empty() || evaluation.deferral != Deferral::None {
            return;
        }
        if self.evaluate_errors(name, &absent_subscriptions, evaluation) {
            return;
        }

        let owed_subscriptions = self.subscriptions_owed_absence(&absent_subscriptions, evaluation);
        // While another variant is left, the name itself is not removed (S41).
        let has_variant_left = matching.len() > absent_subscriptions.len();
        let mut subscriptions = owed_subscriptions
            .iter()
            .map(|(_, subscription)| *subscription);
        if !has_variant_left
            && subscriptions
                .any(|subscription| self.withholds_absence(db, context, name, subscription))
        {
            evaluation.clear();
            evaluation.deferral = Deferral::Removal;
            return self.answer_with_kept_resource(db, name, matching, evaluation);
        }

        self.answer_absent(name, owed_subscriptions, has_variant_left, evaluation);
    }

    /// Selects the subscriptions by name that are owed the answer that the name
    /// does not exist: they were told something else last, are to be answered
    /// again, or the evaluation removes what they have.
    fn subscriptions_owed_absence(
        &self,
        absent_subscriptions: &[&MatchingSubscription],
        evaluation: &Evaluation,
    ) -> Vec<(SubscriptionKey, Subscription)> {
        let removes = evaluation.removes_any();
        let is_owed = |(key, subscription): &(SubscriptionKey, Subscription)| {
            let last_answer = self.last_answer(*key, *subscription);
            removes || subscription.resend || last_answer != AnswerKind::Absent
        };
        let named_subscriptions = absent_subscriptions
            .iter()
            .filter_map(|subscription| subscription.named);
        named_subscriptions.filter(is_owed).collect()
    }

    /// Adds the answers that a name does not exist to these subscriptions. An
    /// answer is implicit if another variant is left, or if the removals of the
    /// evaluation say it.
    fn answer_absent(
        &self,
        name: &Name,
        owed_subscriptions: Vec<(SubscriptionKey, Subscription)>,
        has_variant_left: bool,
        evaluation: &mut Evaluation,
    ) {
        let removes = evaluation.removes_any();
        for (key, subscription) in owed_subscriptions {
            // A client that requests a host waits for more than the removal of
            // its old one.
            if removes && subscription.resend && self.kind.on_demand {
                continue;
            }
            // A client that never had a resource waits for a separate answer.
            let last_answer = self.last_answer(key, subscription);
            let had_resource = !self.kind.on_demand || last_answer == AnswerKind::Resource;
            let is_implicit = has_variant_left || (removes && had_resource);
            evaluation
                .answers
                .push(absent_answer(key, name, is_implicit));
        }
    }
}
