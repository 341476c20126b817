//! Restores a resource that the client accepted before on the same stream,
//! where the desired one is in quarantine or its removal has to wait (S12,
//! S23). A client that reconnects is the concern of `resume`.

use std::sync::Arc;

use super::client_cache::{CachedResource, Certainty, Update, same_variant, variant_of};
use super::evaluate::{Evaluation, absent_answer};
use super::matching::MatchingSubscription;
use super::params::resource_matches;
use super::{AnswerKind, TypeStream};
use crate::database::Database;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

impl TypeStream {
    /// Answers the subscriptions that resolve to a resource which cannot be
    /// delivered. Each gets the resource that the client accepted before. If
    /// there is none it gets a negative answer, unless the client may hold a
    /// resource of unknown body (S12).
    pub(super) fn answer_quarantined(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Arc<Resource>,
        resolving_subscriptions: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let held_resources = self.find_substitutes(db, name, resource, resolving_subscriptions);
        // A removal of the name would remove other variants that the client may
        // hold.
        let may_use = |record: &CachedResource| !self.is_undeliverable(&record.resource);
        let has_others = !self.kind.on_demand && held_resources.iter().any(may_use);
        let subscribed_params = self.subscribed_params(db, name);
        // Each of several subscriptions gets the resource that matches it.
        let has_several = !self.kind.on_demand && subscribed_params.len() > 1;

        for matching in resolving_subscriptions {
            let resumed_record = self.find_resumed(resource, &held_resources);
            let is_owed = matching.resend || self.awaits_answer(matching, &held_resources);
            if !is_owed && resumed_record.is_none() {
                continue;
            }

            let accepted_record = self.find_accepted(resource, &held_resources, |record| {
                !has_several || self.variant_matches(db, matching, &variant_of(&record.resource))
            });
            // An accepted resource comes before a resumed one, and any resource
            // before a negative answer.
            if let Some(accepted_record) = accepted_record.or(resumed_record) {
                self.restore_accepted(
                    db,
                    name,
                    accepted_record,
                    &held_resources,
                    &subscribed_params,
                    evaluation,
                );
            } else if !held_resources.iter().any(CachedResource::has_unknown_body) {
                match matching.named {
                    Some((key, _)) => {
                        let answer = absent_answer(key, name, has_others);
                        evaluation.answers.push(answer);
                    }
                    None => remove_for_cursor(resource, resolving_subscriptions, evaluation),
                }
            }
        }
    }

    /// Returns the resources that the client may use instead of one in
    /// quarantine: those of its name, of the requested name, and of the names
    /// that the subscriptions resolved to before.
    fn find_substitutes(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Resource,
        resolving_subscriptions: &[&MatchingSubscription],
    ) -> Vec<CachedResource> {
        let mut held_resources = self.client_cache.held_after_acks(db, &resource.name);
        let named_subscriptions = resolving_subscriptions
            .iter()
            .filter_map(|subscription| subscription.named);
        for (key, _) in named_subscriptions {
            if let Some(resolved_name) = self.subscriptions.resolved_name(key) {
                held_resources.extend(self.client_cache.held_after_acks(db, resolved_name));
            }
        }

        if resource.name != *name {
            held_resources.extend(self.client_cache.held_after_acks(db, name));
        }
        held_resources
    }

    /// Returns whether a subscription has no answer and the client has no
    /// resource to use. For a host, a resource that the client may have taken
    /// from a NACKed response is no answer. A cursor awaits none.
    fn awaits_answer(
        &self,
        matching: &MatchingSubscription,
        held_resources: &[CachedResource],
    ) -> bool {
        let is_unanswered = matching
            .named
            .is_some_and(|(_, subscription)| subscription.acked_answer == AnswerKind::Unanswered);
        let is_usable = |record: &CachedResource| {
            record.certainty != Certainty::MaybeTaken || !self.kind.on_demand
        };
        is_unanswered && !held_resources.iter().any(is_usable)
    }

    /// Returns the resource that a client resumed with, of the same variant if
    /// there is one. `None` unless responses are whole sets: these list it
    /// again (S82).
    fn find_resumed<'h>(
        &self,
        resource: &Resource,
        held_resources: &'h [CachedResource],
    ) -> Option<&'h CachedResource> {
        let is_resumed = |record: &&CachedResource| {
            is_known_resumed(record) && !self.is_withheld(&record.resource)
        };
        let mut resumed_records = held_resources.iter().filter(is_resumed);
        let first_record = resumed_records
            .clone()
            .next()
            .filter(|_| self.sends_whole_sets())?;
        let matching_record =
            resumed_records.find(|record| same_variant(&record.resource, resource));
        Some(matching_record.unwrap_or(first_record))
    }

    /// Returns the resource that a client accepted and that may be sent again:
    /// one of the same variant, or else one that `matches`. `None` if there is
    /// neither.
    fn find_accepted<'h>(
        &self,
        resource: &Resource,
        held_resources: &'h [CachedResource],
        matches: impl Fn(&CachedResource) -> bool,
    ) -> Option<&'h CachedResource> {
        let mut accepted_records = held_resources
            .iter()
            .filter(|record| self.is_restorable(record));
        let matching_record = accepted_records
            .clone()
            .find(|record| same_variant(&record.resource, resource));
        matching_record.or_else(|| accepted_records.find(|record| matches(record)))
    }

    /// Returns whether the client accepted a resource once, and it may be sent
    /// again now.
    fn is_restorable(&self, record: &CachedResource) -> bool {
        record.was_accepted() && !self.is_undeliverable(&record.resource)
    }

    /// Resends the resource of `restored_record`, which the client accepted,
    /// and removes the held resources that the client may have taken instead
    /// from a NACKed response. If a removed variant was in use by another
    /// subscription, that subscription gets its accepted resource back, too.
    /// `subscribed_params` are the parameters of the client's subscriptions of
    /// the name.
    pub(super) fn restore_accepted(
        &self,
        db: &Database,
        name: &Name,
        restored_record: &CachedResource,
        held_resources: &[CachedResource],
        subscribed_params: &[ParamsId],
        evaluation: &mut Evaluation,
    ) {
        let accepted_resource = &restored_record.resource;
        if !evaluation.updates_variant(&variant_of(accepted_resource)) {
            let requested_name = (accepted_resource.name != *name).then(|| name.clone());
            let upsert = Update::upsert(accepted_resource, requested_name);
            evaluation.updates.push(upsert);
        }

        let removed_resources =
            self.find_taken_variants(db, accepted_resource, held_resources, subscribed_params);
        for resource in &removed_resources {
            let variant = variant_of(resource);
            if !evaluation.updates_variant(&variant) {
                evaluation.updates.push(Update::remove(variant, None));
            }
        }

        // Other subscriptions may have used what was removed.
        for params in subscribed_params {
            let matches = |resource: &Resource| resource_matches(db, *params, resource);
            let loses_variant = !matches(accepted_resource)
                && removed_resources.iter().any(|resource| matches(resource));
            if !loses_variant {
                continue;
            }

            let previous = self.find_previous(&accepted_resource.name, held_resources, matches);
            // Each call adds an update, so this ends.
            if let Some(previous) = previous
                && !evaluation.updates_variant(&variant_of(&previous.resource))
            {
                self.restore_accepted(
                    db,
                    name,
                    previous,
                    held_resources,
                    subscribed_params,
                    evaluation,
                );
            }
        }
    }

    /// Returns the first resource of a name that the client accepted, that may
    /// be sent again, and that `matches`; `None` if there is none.
    fn find_previous<'h>(
        &self,
        name: &Name,
        held_resources: &'h [CachedResource],
        matches: impl Fn(&Resource) -> bool,
    ) -> Option<&'h CachedResource> {
        held_resources.iter().find(|record| {
            record.resource.name == *name && matches(&record.resource) && self.is_restorable(record)
        })
    }

    /// Returns the variants that the client may have taken from a NACKed
    /// response, and must not keep beside the `accepted` resource of their
    /// name. A client with several subscriptions of the name matches variants
    /// by itself, so only a variant that would be a second one for some
    /// subscription is removed. A client with one subscription may not match,
    /// and uses whatever it has, so all others are removed.
    fn find_taken_variants<'h>(
        &self,
        db: &Database,
        accepted: &Resource,
        held_resources: &'h [CachedResource],
        subscribed_params: &[ParamsId],
    ) -> Vec<&'h Arc<Resource>> {
        if self.kind.on_demand {
            return Vec::new();
        }
        let is_second = |resource: &Resource| {
            let match_both = |params: &ParamsId| {
                resource_matches(db, *params, resource) && resource_matches(db, *params, accepted)
            };
            subscribed_params.len() < 2 || subscribed_params.iter().any(match_both)
        };

        let taken_records = held_resources
            .iter()
            .filter(|record| record.certainty == Certainty::MaybeTaken);
        let taken_resources = taken_records.map(|record| &record.resource);
        let variants = taken_resources.filter(|resource| resource.name == accepted.name);
        variants.filter(|resource| is_second(resource)).collect()
    }

    /// Returns the resources of a name that a whole set lists as the client's
    /// own, since the client resumed with them (S82). Empty for types without
    /// whole sets.
    pub(super) fn own_resources(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        if !self.sends_whole_sets() {
            return Vec::new();
        }
        let held_resources = self.client_cache.held(db, name).into_iter();
        let resumed_records = held_resources.filter(is_known_resumed);
        resumed_records.map(|record| record.resource).collect()
    }

    /// Answers the subscriptions of a name whose removal is deferred with the
    /// resource that is kept (S23), if they wait for an answer or the client
    /// resumed with it. A suspect waits for its trial.
    pub(super) fn answer_with_kept_resource(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let held_resources = self.client_cache.held_after_acks(db, name);
        let resend = matching.iter().any(|subscription| subscription.resend);
        // A whole set lists the client's own resources, which is an answer
        // (S82).
        let is_own = |record: &CachedResource| self.sends_whole_sets() && is_known_resumed(record);
        let is_answer = |record: &&CachedResource| {
            let is_suspect = self.suspects.contains_key(&variant_of(&record.resource));
            !is_suspect && ((record.was_accepted() && resend) || is_own(record))
        };

        if let Some(kept_record) = held_resources.iter().find(is_answer) {
            let subscribed_params: Vec<ParamsId> = matching
                .iter()
                .map(|subscription| self.params_of_subscription(subscription))
                .collect();
            self.restore_accepted(
                db,
                name,
                kept_record,
                &held_resources,
                &subscribed_params,
                evaluation,
            );
        }
    }
}

/// Adds the removal of an undeliverable resource for the cursor that lists it,
/// unless a subscription by name resolves to it, too: that one may have taken
/// it.
fn remove_for_cursor(
    resource: &Resource,
    resolving_subscriptions: &[&MatchingSubscription],
    evaluation: &mut Evaluation,
) {
    let is_named = |subscription: &&MatchingSubscription| subscription.named.is_some();
    if !resolving_subscriptions.iter().any(is_named) {
        let removal = Update::remove(variant_of(resource), None);
        evaluation.updates.push(removal);
    }
}

/// Returns whether the client resumed with a resource, and its body is known.
fn is_known_resumed(record: &CachedResource) -> bool {
    record.certainty == Certainty::Resumed && !record.has_unknown_body()
}
