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

/// One resource that failed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

/// What may be the reason of a rejection.
pub(super) struct Suspects {
    pub(super) updates: Vec<Update>,
    /// How many resources the rejected response brought.
    pub(super) upsert_count: usize,
}

impl TypeStream {
    /// Sends suspects again in groups; one that failed alone is parked.
    pub(super) fn schedule_trials(
        &mut self,
        db: &mut Database,
        suspects: Suspects,
        error: &ErrorDetail,
    ) -> Vec<Quarantined> {
        let Suspects {
            updates: mut suspects,
            upsert_count: brought,
        } = suspects;
        // Variants that take the place of another cannot be tried one by one.
        let alone =
            brought == 1 || (brought == suspects.len() && self.is_variant_swap(db, &suspects));
        // Where one is known to be bad, that is why.
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
        if alone && suspects.len() < brought {
            // Without the one that changed, the others may be accepted.
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
        let complete = suspects.len() == brought;
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

    /// What has changed since is news, not a suspect; and with it all variants of
    /// its name, which are said together.
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
        let news = suspects.extract_if(.., |update| changed.contains(update.name()));
        self.dirty
            .extend(news.map(|update| update.requested_name().clone()));
    }

    /// Merges the suspects of a name into its update where the update replaces
    /// all that is held of the name: in SotW, and where the client holds
    /// something of unknown body.
    pub(super) fn merge_suspects(&mut self, db: &mut Database, name: &Name) {
        if self.kind.on_demand || self.suspects.is_empty() {
            return;
        }
        let own = self.suspects.range((name.clone(), None)..);
        let own = own.map(|(variant, _)| variant.clone());
        let own: Vec<Variant> = own.take_while(|(of, _)| of == name).collect();
        if own.is_empty() {
            return;
        }
        let replaces = self.mode == Mode::Sotw
            || self
                .client_cache
                .held(db, name)
                .iter()
                .any(CachedResource::has_unknown_body);
        let after = self.client_cache.held_after_acks(db, name);
        let is_news = |new: &Arc<Resource>| {
            let held = |held: &CachedResource| {
                let same = held.resource.version == new.version;
                same && same_variant(&held.resource, new)
            };
            let suspected = self.suspects.contains_key(&variant_of(new));
            !suspected && !self.is_quarantined(new) && !after.iter().any(held)
        };
        if replaces && self.desired_resources(db, name).iter().any(is_news) {
            for variant in &own {
                self.suspects.remove(variant);
            }
        }
    }

    /// Whether suspects are variants of one name that take the place of another
    /// together (TP2).
    fn is_variant_swap(&self, db: &mut Database, suspects: &[Update]) -> bool {
        let Some(name) = suspects.first().map(|update| update.name().clone()) else {
            return false;
        };
        let one = suspects.iter().all(|update| *update.name() == name);
        let wanted = self.desired_resources(db, &name);
        let gives_way = |held: &CachedResource| {
            let stays = wanted.iter().any(|new| same_variant(new, &held.resource));
            !held.has_unknown_body() && !stays
        };
        one && !self.kind.on_demand && self.client_cache.held(db, &name).iter().any(gives_way)
    }

    /// Whether the peer is still meant to hold this.
    pub(super) fn is_current(
        &self,
        db: &mut Database,
        requested_name: &Name,
        sent: &Variant,
        version: &Version,
    ) -> bool {
        let requested_name = self.subscriptions_of(db, requested_name).into_iter();
        let mut wanted: Vec<_> = requested_name
            .map(|(key, _)| self.resolve(db, key))
            .collect();
        wanted.extend(self.cursor_choice(db, &sent.0));
        let mut wanted = wanted.iter().filter_map(|choice| choice.resource());
        wanted.any(|new| variant_of(new) == *sent && new.version == *version)
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

    /// A resource failed alone: it is not sent again unchanged. A virtual host
    /// that a request waits for is answered in the negative.
    fn quarantine_update(&mut self, db: &mut Database, update: Update) -> Option<Quarantined> {
        let requested_name = update.requested_name().clone();
        let resource = update.resource?;
        self.quarantine.insert(
            update.variant,
            (resource.version.clone(), requested_name.clone()),
        );
        if self.kind.on_demand {
            for (key, subscription) in self.subscriptions_of(db, &requested_name) {
                let led = self
                    .subscriptions
                    .resolved_name(key)
                    .unwrap_or(&requested_name);
                let holds = self
                    .client_cache
                    .held(db, led)
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
            // Who asks is told what there is instead.
            self.dirty.insert(requested_name);
        }
        Some(Quarantined {
            name: resource.name.clone(),
            version: resource.version.clone(),
        })
    }
}
