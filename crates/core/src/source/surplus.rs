//! The surplus of a name (resources that the client holds and that are not
//! desired), and the answers to subscriptions that resolve to nothing.

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
    /// What the peer holds by this name and is not meant to, as what goes.
    pub(super) fn surplus(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        wanted: &[Arc<Resource>],
        part: &Evaluation,
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
        let mut drops: Vec<Update> = Vec::new();
        for other in names() {
            let replaced = wanted.iter().any(|new| new.name == *other);
            for held in self.client_cache.held_after_acks(db, other) {
                let kept = wanted.iter().any(|new| same_variant(new, &held.resource));
                let unknown = replaced && held.has_unknown_body();
                let key = variant_of(&held.resource);
                if !kept
                    && !unknown
                    && !drops.iter().any(|update| update.variant == key)
                    && !self.is_desired_elsewhere(db, name, &held.resource)
                {
                    let requested_name = (other != name).then(|| name.clone());
                    drops.push(Update::remove(key, requested_name));
                }
            }
        }
        self.remove_pending_variants(db, names(), wanted, part, &mut drops);
        drops
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

    /// Says all that a name has and that can be had.
    pub(super) fn add_all_variants(
        &self,
        name: &Name,
        wanted: &[Arc<Resource>],
        blocked: &[Arc<Resource>],
        part: &mut Evaluation,
    ) {
        for new in wanted.iter().filter(|new| new.name == *name) {
            let blocked = blocked.iter().any(|other| same_variant(other, new));
            let updated = part
                .updates
                .iter()
                .any(|update| update.variant == variant_of(new));
            if !blocked && !updated {
                part.updates.push(Update::upsert(new, None));
            }
        }
    }

    /// Sends again what the client accepted, and removes what it may have taken
    /// instead from a response that it NACKed. `asked` are the parameters of
    /// its subscriptions of the name. A client with several matches variants by
    /// itself: only what one of them would see as a second variant is removed.
    /// A client with one may not match, and uses whatever it has, so everything
    /// else is removed.
    pub(super) fn restore_accepted(
        &self,
        db: &Database,
        name: &Name,
        (good, held): (&CachedResource, &[CachedResource]),
        asked: &[ParamsId],
        part: &mut Evaluation,
    ) {
        let to = &good.resource;
        let requested_name = (to.name != *name).then(|| name.clone());
        let updated = |part: &Evaluation, key: &Variant| {
            part.updates.iter().any(|update| update.variant == *key)
        };
        if !updated(part, &variant_of(to)) {
            part.updates.push(Update::upsert(to, requested_name));
        }
        let beside = |other: &Resource| {
            let both =
                |params| resource_matches(db, params, other) && resource_matches(db, params, to);
            asked.len() < 2 || asked.iter().any(|params| both(*params))
        };
        let mut dropped: Vec<&Resource> = Vec::new();
        for other in held.iter().filter(|_| !self.kind.on_demand) {
            let other = (other.certainty == Certainty::MaybeTaken).then_some(&other.resource);
            let other = other.filter(|other| other.name == to.name && !same_variant(other, to));
            let Some(other) = other.filter(|other| beside(other)) else {
                continue;
            };
            let key = variant_of(other);
            if !updated(part, &key) {
                part.updates.push(Update::remove(key, None));
            }
            dropped.push(other);
        }
        // Another subscription may have used what goes: it, too, gets what it had.
        for params in asked {
            let loses = dropped
                .iter()
                .any(|other| resource_matches(db, *params, other));
            let had = |held: &&CachedResource| {
                let good = held.was_accepted() && !self.is_quarantined(&held.resource);
                good && held.resource.name == to.name
                    && resource_matches(db, *params, &held.resource)
            };
            let had = held.iter().find(had);
            let had = had.filter(|_| loses && !resource_matches(db, *params, to));
            if let Some(had) = had.filter(|had| !updated(part, &variant_of(&had.resource))) {
                self.restore_accepted(db, name, (had, held), asked, part);
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
        mut blocked: Vec<Arc<Resource>>,
        mut drops: Vec<Update>,
        part: &mut Evaluation,
    ) -> Vec<Update> {
        if blocked.is_empty() {
            return drops;
        }
        // A peer that does not match by itself uses the one that it has.
        if self.kind.on_demand || matching.len() == 1 {
            self.withhold_second_variant(db, matching, &drops, part);
            return Vec::new();
        }
        let mut kept: Vec<Update> = Vec::new();
        while !blocked.is_empty() {
            let resolving =
                |s: &&MatchingSubscription| blocked.iter().any(|new| resolves_to(s, new));
            let resolving: Vec<&MatchingSubscription> = matching.iter().filter(resolving).collect();
            let stays = |update: &mut Update| {
                resolving
                    .iter()
                    .any(|s| self.variant_matches(db, s, &update.variant))
            };
            kept.extend(drops.extract_if(.., stays));
            blocked = self.withhold_second_variant(db, matching, &kept, part);
        }
        drops.extend(self.drop_redundant_kept(db, matching, &mut kept));
        drops
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
        // A whole set lists what may have been dropped, too.
        let sure = |held: &CachedResource| {
            held.is_accepted() || (self.sends_whole_sets() && held.was_accepted())
        };
        let held: Vec<CachedResource> = held.filter(sure).collect();
        let mut second = Vec::new();
        let mut place = 0;
        while let Some(update) = kept.get(place) {
            let mut own = matching
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
            match own.peek().is_some() && own.all(others) {
                true => second.push(kept.remove(place)),
                false => place += 1,
            }
        }
        second
    }

    /// Takes out of what is said what would be a second variant for somebody,
    /// beside what stays.
    fn withhold_second_variant(
        &self,
        db: &Database,
        matching: &[MatchingSubscription],
        kept: &[Update],
        part: &mut Evaluation,
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
        let held_back = part.updates.extract_if(.., second);
        held_back.filter_map(|update| update.resource).collect()
    }

    /// Whether a variant is for the parameters of a subject.
    pub(super) fn variant_matches(
        &self,
        db: &Database,
        matching: &MatchingSubscription,
        variant: &Variant,
    ) -> bool {
        let constraints = variant.1.as_ref();
        constraints.is_none_or(|c| c.matches(db.params(self.params_of_subscription(matching))))
    }

    /// The parameters that a subject asks with.
    fn params_of_subscription(&self, matching: &MatchingSubscription) -> ParamsId {
        matching.named.map_or(self.params, |(key, _)| key.params)
    }

    /// What goes, now or when nothing uses it any more.
    pub(super) fn evaluate_removals(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        drops: Vec<Update>,
        part: &mut Evaluation,
    ) {
        let named = matching.iter().any(|s| s.named.is_some());
        let wanted = matching.iter().any(|s| s.choice.resource().is_some());
        let several = matching.len() > 1;
        let goes = !wanted && !self.kind.on_demand && !several && !drops.is_empty();
        // Only a name that is gone altogether can be missed; and who came back
        // and holds what leads to it waits for a word on it (S82).
        let resumed = |s: &MatchingSubscription| {
            s.named
                .is_some_and(|(_, subscription)| subscription.is_resumed)
        };
        let dangles = goes
            && matching.iter().any(resumed)
            && context.order.is_referenced(db, &self.type_url, name);
        let order = context.order;
        let refused = self.sends_invalid_clusters()
            && self
                .client_cache
                .held(db, name)
                .iter()
                .all(CachedResource::has_unknown_body);
        let deferral = |db| order.must_defer_removal(db, &self.type_url, name, (named, refused));
        if goes && !dangles && deferral(db) {
            part.deferral = Deferral::Removal;
            self.answer_while_kept(db, name, matching, part);
            return;
        }
        part.updates.extend(drops);
    }

    /// A peer that asks for what is about to go gets it, while it stays (S23).
    fn answer_while_kept(
        &self,
        db: &mut Database,
        name: &Name,
        matching: &[MatchingSubscription],
        part: &mut Evaluation,
    ) {
        let held = self.client_cache.held_after_acks(db, name);
        let forced = matching.iter().any(|s| s.resend);
        // A set lists what a client has from before, and so says it (S82).
        let listed =
            |held: &CachedResource| self.sends_whole_sets() && held.certainty == Certainty::Resumed;
        let updated = |held: &&CachedResource| {
            !held.has_unknown_body() && ((held.was_accepted() && forced) || listed(held))
        };
        if let Some(good) = held.iter().find(updated) {
            let asked = matching.iter().map(|s| self.params_of_subscription(s));
            let asked: Vec<ParamsId> = asked.collect();
            self.restore_accepted(db, name, (good, &held), &asked, part);
        }
    }

    /// Adds removals of variants that the client may hold from pending
    /// responses, if anything else of the name is sent.
    fn remove_pending_variants<'n>(
        &self,
        db: &mut Database,
        names: impl Iterator<Item = &'n Name>,
        wanted: &[Arc<Resource>],
        part: &Evaluation,
        drops: &mut Vec<Update>,
    ) {
        if self.client_cache.pending_acks().is_empty()
            || (part.updates.is_empty() && drops.is_empty())
        {
            return;
        }
        for name in names {
            for held in self.client_cache.maybe_held(db, name) {
                let key = variant_of(&held);
                let kept = wanted.iter().any(|new| same_variant(new, &held));
                let updated = drops
                    .iter()
                    .chain(&part.updates)
                    .any(|update| update.variant == key);
                if !kept && !updated {
                    drops.push(Update::remove(key, None));
                }
            }
        }
    }

    /// Whether another subscription or cursor resolves to a resource. A host
    /// may resolve to a virtual host that does not list it, by a wildcard
    /// domain.
    fn is_desired_elsewhere(&self, db: &mut Database, but: &Name, held: &Resource) -> bool {
        let name = &held.name;
        let own = self
            .subscriptions_of(db, but)
            .into_iter()
            .map(|(key, _)| key);
        let own: Vec<SubscriptionKey> = own.collect();
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
        let others = keys.into_iter().filter(|key| !own.contains(key));
        let mut targets = others.map(|key| self.resolve(db, key));
        let led = targets.any(|target| {
            let resource = target.resource();
            resource
                .is_some_and(|r| same_variant(r, held) || (held.body.is_none() && r.name == *name))
        });
        led || (name != but && self.client_cache.covering_cursor(name).is_some())
    }

    /// Wants for which there is nothing.
    pub(super) fn evaluate_absence(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        matching: &[MatchingSubscription],
        part: &mut Evaluation,
    ) {
        let nothing = matching.iter().filter(|s| s.choice.resource().is_none());
        let nothing: Vec<&MatchingSubscription> = nothing.collect();
        if nothing.is_empty() || part.deferral != Deferral::None {
            return;
        }
        if self.evaluate_errors(name, &nothing, part) {
            return;
        }
        // While another variant of it is left, the name itself is not gone (S41).
        let left = matching.len() > nothing.len();
        let drops = part.updates.iter().any(|update| update.resource.is_none());
        let mut withheld = false;
        for matching in nothing {
            let Some((key, subscription)) = matching.named else {
                continue;
            };
            let mut pending_acks = self.client_cache.pending_acks().iter().rev();
            let heard = pending_acks.find_map(|pending_ack| pending_ack.answer_to(key));
            let heard = heard.map_or(subscription.acked_answer, |answer| answer.kind);
            let owed = subscription.resend || heard != AnswerKind::Absent;
            if !owed && !drops {
                continue;
            }
            if !left && self.withholds_absence(db, context, name, subscription) {
                withheld = true;
                continue;
            }
            // Who asks for a host waits for more than the removal of what it had.
            if drops && subscription.resend && self.kind.on_demand {
                continue;
            }
            // Who never had one waits for an answer of its own.
            let had = !self.kind.on_demand || heard == AnswerKind::Resource;
            part.answers
                .push(absent_answer(key, name, left || (drops && had)));
        }
        if withheld {
            part.updates.clear();
            part.answers.clear();
            part.deferral = Deferral::Removal;
            self.answer_while_kept(db, name, matching, part);
        }
    }
}

/// Whether a resource is for who asks with these parameters.
fn resource_matches(db: &Database, params: ParamsId, resource: &Resource) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|c| c.matches(db.params(params)))
}
