//! Trials: suspects of a NACK are sent again in halves until one fails alone.
//!
//! The one that fails alone goes to the quarantine, and is not sent again
//! unchanged (S12). All others are delivered on the way.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client_cache::{CachedResource, Update, Variant, error_names, same_variant, variant_of};
use super::{AnswerKind, TypeStream};
use crate::database::Database;
use crate::message::{ErrorDetail, Mode};
use crate::name::Name;
use crate::resource::{Resource, Version};

/// A resource that was NACKed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

/// The resources that may be the reason of a NACK.
pub(super) struct Suspects {
    pub(super) updates: Vec<Update>,
    /// The number of resources in the NACKed response.
    pub(super) upsert_count: usize,
}

impl TypeStream {
    /// Schedules trials of suspects; one that was NACKed alone goes into
    /// quarantine.
    pub(super) fn schedule_trials(
        &mut self,
        db: &mut Database,
        suspects: Suspects,
        error: &ErrorDetail,
    ) -> Vec<Quarantined> {
        let Suspects {
            updates: mut suspects,
            upsert_count,
        } = suspects;
        // Variants that replace another one together cannot be tried one by
        // one.
        let alone = upsert_count == 1
            || (upsert_count == suspects.len() && self.is_variant_swap(db, &suspects));
        // A resource that is known to be bad is the reason.
        let quarantined = |update: &Update| {
            update
                .resource
                .as_ref()
                .is_some_and(|sent| self.is_quarantined(sent))
        };
        if suspects.iter().any(quarantined) {
            let rest = suspects.iter().filter(|update| !quarantined(update));
            let requested_names: Vec<Name> =
                rest.map(|update| update.requested_name().clone()).collect();
            self.dirty.extend(requested_names);
            return Vec::new();
        }
        self.drop_changed_suspects(db, &mut suspects);
        if alone && suspects.len() < upsert_count {
            // Without the one that changed, the client may accept the others.
            let requested_names = suspects
                .iter()
                .map(|update| update.requested_name().clone());
            self.dirty.extend(requested_names);
            return Vec::new();
        }
        if alone {
            if let [first, _, ..] = &suspects[..] {
                self.quarantined_together
                    .insert(first.requested_name().clone());
            }
            let quarantined = suspects
                .into_iter()
                .filter_map(|update| self.quarantine_update(db, update));
            return quarantined.collect();
        }
        suspects.sort_by(|a, b| a.variant.cmp(&b.variant));
        let complete = suspects.len() == upsert_count;
        let groups = self.bisect(db, &suspects, complete, error);
        for group in groups.into_iter().rev() {
            self.trials.push_front(group);
        }
        for update in suspects {
            let requested_name = update.requested_name().clone();
            let Some(sent) = update.resource else {
                continue;
            };
            self.suspects
                .insert(update.variant, (sent.version.clone(), requested_name));
        }
        Vec::new()
    }

    /// Drops suspects that have changed since, with all variants of their
    /// names, which are sent together.
    fn drop_changed_suspects(&mut self, db: &mut Database, suspects: &mut Vec<Update>) {
        let is_changed = |update: &&Update| {
            let sent = update.resource.as_ref();
            !sent.is_some_and(|sent| {
                self.is_current(db, update.requested_name(), &update.variant, &sent.version)
            })
        };
        let changed: BTreeSet<Name> = suspects
            .iter()
            .filter(is_changed)
            .map(|update| update.name().clone())
            .collect();
        let dropped = suspects.extract_if(.., |update| changed.contains(update.name()));
        self.dirty
            .extend(dropped.map(|update| update.requested_name().clone()));
    }

    /// Merges the suspects of a name into its update where the update replaces
    /// all that is held of the name: in SotW, and where the client holds
    /// something of unknown body.
    pub(super) fn merge_suspects(&mut self, db: &mut Database, name: &Name) {
        if self.kind.on_demand || self.suspects.is_empty() {
            return;
        }
        let suspected = self.suspects.range((name.clone(), None)..);
        let suspected = suspected.map(|(variant, _)| variant.clone());
        let suspected: Vec<Variant> = suspected.take_while(|(of, _)| of == name).collect();
        if suspected.is_empty() {
            return;
        }
        let replaces = self.mode == Mode::Sotw
            || self
                .client_cache
                .held(db, name)
                .iter()
                .any(CachedResource::has_unknown_body);
        let after = self.client_cache.held_after_acks(db, name);
        let is_new = |new: &Arc<Resource>| {
            let held = |held: &CachedResource| {
                let same = held.resource.version == new.version;
                same && same_variant(&held.resource, new)
            };
            let is_suspect = self.suspects.contains_key(&variant_of(new));
            !is_suspect && !self.is_quarantined(new) && !after.iter().any(held)
        };
        if replaces && self.desired_resources(db, name).iter().any(is_new) {
            for variant in &suspected {
                self.suspects.remove(variant);
            }
        }
    }

    /// Whether suspects are variants of one name that replace another one
    /// together (TP2).
    fn is_variant_swap(&self, db: &mut Database, suspects: &[Update]) -> bool {
        let Some(name) = suspects.first().map(|update| update.name().clone()) else {
            return false;
        };
        let one = suspects.iter().all(|update| *update.name() == name);
        let desired = self.desired_resources(db, &name);
        let is_replaced = |held: &CachedResource| {
            let stays = desired.iter().any(|new| same_variant(new, &held.resource));
            !held.has_unknown_body() && !stays
        };
        one && !self.kind.on_demand && self.client_cache.held(db, &name).iter().any(is_replaced)
    }

    /// Whether this version of a variant is still desired.
    pub(super) fn is_current(
        &self,
        db: &mut Database,
        requested_name: &Name,
        sent: &Variant,
        version: &Version,
    ) -> bool {
        let subscriptions = self.subscriptions_of(db, requested_name).into_iter();
        let mut choices: Vec<_> = subscriptions
            .map(|(key, _)| self.resolve(db, key))
            .collect();
        choices.extend(self.cursor_choice(db, &sent.0));
        let mut desired = choices.iter().filter_map(|choice| choice.resource());
        desired.any(|new| variant_of(new) == *sent && new.version == *version)
    }

    /// Bisects suspects. If the text of the NACK names some of them, those and
    /// the rest are the two halves: the text decides the order of trials, never
    /// who is to blame (S64). Groups are split only if they are all that was
    /// NACKed.
    fn bisect(
        &self,
        db: &mut Database,
        suspects: &[Update],
        complete: bool,
        error: &ErrorDetail,
    ) -> Vec<Vec<Variant>> {
        let mut groups = self.group_updates(db, suspects);
        if groups.len() == 1 && complete {
            groups = (0..suspects.len()).map(|index| vec![index]).collect();
        }
        let variants = |groups: &[Vec<usize>]| -> Vec<Variant> {
            let all = groups.iter().flatten();
            all.map(|index| suspects[*index].variant.clone()).collect()
        };
        let is_named = |index: &usize| error_names(error, suspects[*index].name());
        let (named, rest): (Vec<_>, Vec<_>) = groups
            .iter()
            .cloned()
            .partition(|group| group.iter().any(is_named));
        if !named.is_empty() && !rest.is_empty() {
            return vec![variants(&rest), variants(&named)];
        }
        let right = groups.split_off(groups.len() / 2);
        let halves = [variants(&groups), variants(&right)];
        halves.into_iter().filter(|half| !half.is_empty()).collect()
    }

    /// Puts a resource that was NACKed alone into quarantine. A virtual host
    /// that a client waits for gets a negative answer.
    fn quarantine_update(&mut self, db: &mut Database, update: Update) -> Option<Quarantined> {
        let requested_name = update.requested_name().clone();
        let resource = update.resource?;
        self.quarantine.insert(
            update.variant,
            (resource.version.clone(), requested_name.clone()),
        );
        if self.kind.on_demand {
            for (key, subscription) in self.subscriptions_of(db, &requested_name) {
                let resolved_name = self
                    .subscriptions
                    .resolved_name(key)
                    .unwrap_or(&requested_name);
                let holds = self
                    .client_cache
                    .held(db, resolved_name)
                    .iter()
                    .any(CachedResource::is_accepted);
                if !holds
                    && subscription.acked_answer != AnswerKind::Absent
                    && let Some(subscription) = self.subscriptions.get_mut(key)
                {
                    subscription.resend = true;
                }
            }
            self.dirty.insert(requested_name);
        } else {
            // The subscriptions get an answer instead.
            self.dirty.insert(requested_name);
        }
        Some(Quarantined {
            name: resource.name.clone(),
            version: resource.version.clone(),
        })
    }
}
