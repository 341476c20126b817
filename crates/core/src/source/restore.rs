//! Restores a resource that the client accepted before, where the desired one
//! is in quarantine or its removal has to wait (S12, S23).

use std::sync::Arc;

use super::client_cache::{CachedResource, Certainty, Update, same_variant, variant_of};
use super::evaluate::{Evaluation, MatchingSubscription, absent_answer};
use super::params::resource_matches;
use super::{AnswerKind, TypeStream};
use crate::database::Database;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

impl TypeStream {
    /// Answers subscriptions whose resource cannot be delivered. Each gets the
    /// resource that the client accepted before; if there is none it gets a
    /// negative answer, unless the client may hold something of unknown body
    /// (S12).
    pub(super) fn answer_quarantined(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Arc<Resource>,
        resolving: &[&MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let held = self.held_instead(db, name, resource, resolving);
        // A removal of the name would remove other variants that the client may
        // hold.
        let may_use = |held: &CachedResource| !self.is_undeliverable(&held.resource);
        let has_others = !self.kind.on_demand && held.iter().any(may_use);
        let subscribed_params = self.subscribed_params(db, name);
        // Each of several subscriptions gets the resource that matches it.
        let has_several = !self.kind.on_demand && subscribed_params.len() > 1;

        for matching in resolving {
            let resumed = self.find_resumed(resource, &held);
            let is_owed = matching.resend || self.awaits_answer(matching, &held);
            if !is_owed && resumed.is_none() {
                continue;
            }

            let accepted = self.find_accepted(resource, &held, |held| {
                !has_several || self.variant_matches(db, matching, &variant_of(&held.resource))
            });
            if let Some(accepted) = accepted.or(resumed) {
                self.restore_accepted(db, name, accepted, &held, &subscribed_params, evaluation);
            } else if !held.iter().any(CachedResource::has_unknown_body) {
                match matching.named {
                    Some((key, _)) => {
                        let answer = absent_answer(key, name, has_others);
                        evaluation.answers.push(answer);
                    }
                    // Another subscription may have taken it.
                    None if resolving.iter().any(|s| s.named.is_some()) => {}
                    None => {
                        let removal = Update::remove(variant_of(resource), None);
                        evaluation.updates.push(removal);
                    }
                }
            }
        }
    }

    /// Resources that the client may use instead of one in quarantine: of its
    /// name, of the requested name, and of the names that the subscriptions
    /// resolved to before.
    fn held_instead(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Resource,
        resolving: &[&MatchingSubscription],
    ) -> Vec<CachedResource> {
        let mut held = self.client_cache.held_after_acks(db, &resource.name);
        for (key, _) in resolving.iter().filter_map(|s| s.named) {
            if let Some(resolved_name) = self.subscriptions.resolved_name(key) {
                held.extend(self.client_cache.held_after_acks(db, resolved_name));
            }
        }
        if resource.name != *name {
            held.extend(self.client_cache.held_after_acks(db, name));
        }
        held
    }

    /// Whether a subscription has no answer and the client has no resource to
    /// use. One that it may have taken from a NACKed response is no answer for
    /// a host. A cursor awaits none.
    fn awaits_answer(&self, matching: &MatchingSubscription, held: &[CachedResource]) -> bool {
        let is_unanswered = matching
            .named
            .is_some_and(|(_, subscription)| subscription.acked_answer == AnswerKind::Unanswered);
        let is_usable =
            |held: &CachedResource| held.certainty != Certainty::MaybeTaken || !self.kind.on_demand;
        is_unanswered && !held.iter().any(is_usable)
    }

    /// The resource that a client resumed with, of the same variant if there is
    /// one. Whole sets only: these list it again (S82).
    fn find_resumed<'h>(
        &self,
        resource: &Resource,
        held: &'h [CachedResource],
    ) -> Option<&'h CachedResource> {
        let is_resumed =
            |held: &&CachedResource| is_known_resumed(held) && !self.is_withheld(&held.resource);
        let mut resumed = held.iter().filter(is_resumed);
        let first = resumed.clone().next().filter(|_| self.sends_whole_sets())?;
        let same = resumed.find(|held| same_variant(&held.resource, resource));
        Some(same.unwrap_or(first))
    }

    /// The resource that a client accepted and may be sent again: one of the
    /// same variant, or else one that `matches`.
    fn find_accepted<'h>(
        &self,
        resource: &Resource,
        held: &'h [CachedResource],
        matches: impl Fn(&CachedResource) -> bool,
    ) -> Option<&'h CachedResource> {
        let mut accepted = held.iter().filter(|held| self.is_restorable(held));
        let same = accepted
            .clone()
            .find(|held| same_variant(&held.resource, resource));
        same.or_else(|| accepted.find(|held| matches(held)))
    }

    /// Whether the client accepted a resource once, and it may be sent again
    /// now.
    fn is_restorable(&self, held: &CachedResource) -> bool {
        held.was_accepted() && !self.is_undeliverable(&held.resource)
    }

    /// Resends a resource that the client accepted (`restored`), and removes
    /// those of the `held` ones that it may have taken instead from a response
    /// that it NACKed. `subscribed_params` are the parameters of its
    /// subscriptions of the name. Another subscription may have used a removed
    /// variant: it, too, gets back what it had.
    pub(super) fn restore_accepted(
        &self,
        db: &Database,
        name: &Name,
        restored: &CachedResource,
        held: &[CachedResource],
        subscribed_params: &[ParamsId],
        evaluation: &mut Evaluation,
    ) {
        let accepted = &restored.resource;
        if !evaluation.updates_variant(&variant_of(accepted)) {
            let requested_name = (accepted.name != *name).then(|| name.clone());
            let upsert = Update::upsert(accepted, requested_name);
            evaluation.updates.push(upsert);
        }

        let removed = self.taken_instead(db, accepted, held, subscribed_params);
        for other in &removed {
            let variant = variant_of(other);
            if !evaluation.updates_variant(&variant) {
                evaluation.updates.push(Update::remove(variant, None));
            }
        }

        for params in subscribed_params {
            let matches = |resource: &Resource| resource_matches(db, *params, resource);
            let loses_variant = !matches(accepted) && removed.iter().any(|other| matches(other));
            if !loses_variant {
                continue;
            }
            let mut before = held.iter().filter(|held| self.is_restorable(held));
            // Each call adds an update, so this ends.
            let before = before
                .find(|held| held.resource.name == accepted.name && matches(&held.resource))
                .filter(|held| !evaluation.updates_variant(&variant_of(&held.resource)));
            if let Some(before) = before {
                self.restore_accepted(db, name, before, held, subscribed_params, evaluation);
            }
        }
    }

    /// Variants of the name of an accepted resource that the client may have
    /// taken from a NACKed response and must not keep. A client with several
    /// subscriptions of the name matches variants by itself: only what one of
    /// them would see as a second variant goes. A client with one may not
    /// match, and uses whatever it has, so all others go.
    fn taken_instead<'h>(
        &self,
        db: &Database,
        accepted: &Resource,
        held: &'h [CachedResource],
        subscribed_params: &[ParamsId],
    ) -> Vec<&'h Arc<Resource>> {
        if self.kind.on_demand {
            return Vec::new();
        }
        let is_second = |other: &Resource| {
            let match_both = |params: &ParamsId| {
                resource_matches(db, *params, other) && resource_matches(db, *params, accepted)
            };
            subscribed_params.len() < 2 || subscribed_params.iter().any(match_both)
        };

        let maybe_taken = held
            .iter()
            .filter(|held| held.certainty == Certainty::MaybeTaken);
        let taken = maybe_taken.map(|held| &held.resource);
        let of_name = taken.filter(|other| other.name == accepted.name);
        of_name.filter(|other| is_second(other)).collect()
    }

    /// The resources of a name that a whole set lists as the client's own,
    /// since it resumed with them (S82). None for types without whole sets.
    pub(super) fn own_resources(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        if !self.sends_whole_sets() {
            return Vec::new();
        }
        let held = self.client_cache.held(db, name).into_iter();
        let own = held.filter(is_known_resumed);
        own.map(|held| held.resource).collect()
    }

    /// Answers the subscriptions of a name with a resource that is to be
    /// removed, while it is kept (S23), if they wait for an answer or the
    /// client resumed with it. A suspect waits for its trial.
    pub(super) fn answer_while_kept(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        evaluation: &mut Evaluation,
    ) {
        let held = self.client_cache.held_after_acks(db, name);
        let resend = matching.iter().any(|s| s.resend);
        // A whole set lists the client's own resources, which is an answer
        // (S82).
        let is_own = |held: &CachedResource| self.sends_whole_sets() && is_known_resumed(held);
        let is_answer = |held: &&CachedResource| {
            let is_suspect = self.suspects.contains_key(&variant_of(&held.resource));
            !is_suspect && ((held.was_accepted() && resend) || is_own(held))
        };

        if let Some(kept) = held.iter().find(is_answer) {
            let subscribed_params = matching.iter().map(|s| self.params_of_subscription(s));
            let subscribed_params: Vec<ParamsId> = subscribed_params.collect();
            self.restore_accepted(db, name, kept, &held, &subscribed_params, evaluation);
        }
    }
}

/// Whether the client resumed with a resource, and its body is known.
fn is_known_resumed(held: &CachedResource) -> bool {
    held.certainty == Certainty::Resumed && !held.has_unknown_body()
}
