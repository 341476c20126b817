//! Trials: suspects of a NACK are sent again in halves until one fails alone.
//!
//! The one that fails alone is the rejected resource. It goes to the quarantine,
//! and is not sent again unchanged (S12). All others are delivered on the way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::client_cache::{
    CachedResource, Update, Variant, error_mentions, same_variant, variant_of,
};
use super::{AnswerKind, Push, PushContext, TypeStream};
use crate::database::Database;
use crate::message::{ErrorDetail, Mode};
use crate::moment::Moment;
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

/// The number of NACKs in a row after which trials are slowed down: more than
/// bisection needs to find one bad resource among all that are possible.
const MAX_CONSECUTIVE_NACKS: u32 = 256;

/// The time between two trials after so many NACKs.
const TRIAL_PAUSE: Duration = Duration::from_millis(50);

impl TypeStream {
    /// Returns whether the resource was NACKed alone in this version (S12).
    pub(crate) fn is_quarantined(&self, resource: &Resource) -> bool {
        let entry = self.quarantine.get(&variant_of(resource));
        entry.is_some_and(|(version, _)| *version == resource.version)
    }

    /// Schedules trials of the suspects of a NACK. A suspect that was NACKed
    /// alone goes into quarantine instead, and is returned. There is no trial
    /// if a suspect is in quarantine already: that one is the reason, and the
    /// others are sent again as changes.
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
        let is_indivisible = upsert_count == 1
            || (upsert_count == suspects.len() && self.is_variant_swap(db, &suspects));
        if self.resend_unless_quarantined(&suspects) {
            return Vec::new();
        }

        // A suspect that has changed is not tried.
        self.drop_changed_suspects(db, &mut suspects);
        let is_complete = suspects.len() == upsert_count;
        if !is_indivisible {
            self.add_trials(db, suspects, is_complete, error);
            return Vec::new();
        }
        if !is_complete {
            // Without the one that changed, the client may accept the others.
            let requested_names = suspects.iter().map(Update::requested_name);
            self.dirty.extend(requested_names.cloned());
            return Vec::new();
        }

        self.clear_accepted(db, &mut suspects);
        if let [first, _, ..] = &suspects[..] {
            self.quarantined_together
                .insert(first.requested_name().clone());
        }
        let quarantined = suspects
            .into_iter()
            .filter_map(|update| self.quarantine_update(db, update));
        quarantined.collect()
    }

    /// Clears suspects that the client accepted before in the same version,
    /// since another one must be the reason of the NACK. If there is no other,
    /// all stay.
    fn clear_accepted(&mut self, db: &mut Database, suspects: &mut Vec<Update>) {
        let is_new = |update: &Update| {
            let held_resources = self.client_cache.held(db, update.name());
            let mut accepted_records = held_resources.iter().filter(|record| record.is_accepted());
            let suspect = update.resource.as_ref();
            !accepted_records.any(|record| {
                record.is_variant(&update.variant)
                    && suspect.is_some_and(|suspect| suspect.version == record.resource.version)
            })
        };
        let new_flags: Vec<bool> = suspects.iter().map(is_new).collect();
        if new_flags.contains(&true) {
            let mut new_flags = new_flags.into_iter();
            suspects.retain(|_| new_flags.next().unwrap_or(true));
        }
    }

    /// Looks for suspects that are in quarantine already: they are the reason
    /// of the NACK. If there are any, marks the names of the other suspects
    /// dirty, so that these are sent again. Returns whether there are any.
    fn resend_unless_quarantined(&mut self, suspects: &[Update]) -> bool {
        let is_quarantined = |update: &&Update| {
            let resource = update.resource.as_ref();
            resource.is_some_and(|resource| self.is_quarantined(resource))
        };
        let (quarantined_updates, other_updates): (Vec<&Update>, Vec<&Update>) =
            suspects.iter().partition(is_quarantined);
        if quarantined_updates.is_empty() {
            return false;
        }
        let requested_names = other_updates.into_iter().map(Update::requested_name);
        self.dirty.extend(requested_names.cloned());
        true
    }

    /// Records suspects, and adds two trials with half of them each before all
    /// other trials. `is_complete` is whether they are all resources of the
    /// NACKed response.
    fn add_trials(
        &mut self,
        db: &mut Database,
        mut suspects: Vec<Update>,
        is_complete: bool,
        error: &ErrorDetail,
    ) {
        suspects.sort_by(|left, right| left.variant.cmp(&right.variant));
        let halves = self.bisect(db, &suspects, is_complete, error);
        for half in halves.into_iter().rev() {
            self.trials.push_front(half);
        }

        for update in suspects {
            let requested_name = update.requested_name().clone();
            if let Some(resource) = update.resource {
                let suspect = (resource.version.clone(), requested_name);
                self.suspects.insert(update.variant, suspect);
            }
        }
    }

    /// Adds the next trial that still has something to send to a push. Suspects
    /// that have changed since are sent as changes, not here. Adds nothing
    /// before the pause between two trials is over.
    pub(super) fn select_trial(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        push: &mut Push,
    ) {
        let paused_until = self.next_trial_at();
        if paused_until.is_some_and(|moment| context.now < moment) {
            return;
        }

        while let Some(trial) = self.trials.pop_front() {
            for name in self.take_suspects(db, trial) {
                self.dirty.remove(&name);
                if self.is_host_paused(db, &name) {
                    self.deferred.insert(name);
                    continue;
                }
                let evaluation = self.evaluate(db, context, &name, false);
                if self.add_to_push(db, &name, evaluation, context, push) {
                    self.dirty.insert(name);
                }
            }
            if !push.updates.is_empty() {
                self.last_trial_at = context.now;
                return;
            }
        }
        self.forget_error();
    }

    /// Takes the variants of a trial out of the suspects. Returns the requested
    /// names of those that are unchanged; the others are no longer suspects,
    /// and their names become dirty.
    fn take_suspects(&mut self, db: &mut Database, trial: Vec<Variant>) -> BTreeSet<Name> {
        let mut unchanged_names = BTreeSet::new();
        for variant in trial {
            let Some((version, requested_name)) = self.suspects.remove(&variant) else {
                continue;
            };
            match self.is_current(db, &requested_name, &variant, &version) {
                true => unchanged_names.insert(requested_name),
                false => self.dirty.insert(requested_name),
            };
        }
        unchanged_names
    }

    /// Returns the moment until which the next trial waits; `None` if it need
    /// not wait, or if there is none. Only a client that NACKs again and again
    /// has to wait, so that it gets a bounded share of the work (S69).
    pub(super) fn next_trial_at(&self) -> Option<Moment> {
        let is_slow = self.consecutive_nacks > MAX_CONSECUTIVE_NACKS && !self.trials.is_empty();
        is_slow.then(|| self.last_trial_at + TRIAL_PAUSE)
    }

    /// Drops suspects that have changed since, with all variants of their
    /// names, because these are sent together. Their names become dirty.
    fn drop_changed_suspects(&mut self, db: &mut Database, suspects: &mut Vec<Update>) {
        let is_changed = |update: &&Update| {
            let resource = update.resource.as_ref();
            !resource.is_some_and(|resource| {
                self.is_current(
                    db,
                    update.requested_name(),
                    &update.variant,
                    &resource.version,
                )
            })
        };
        let changed_suspects = suspects.iter().filter(is_changed);
        let changed_names: BTreeSet<Name> = changed_suspects
            .map(|update| update.name().clone())
            .collect();

        let dropped_suspects =
            suspects.extract_if(.., |update| changed_names.contains(update.name()));
        self.dirty
            .extend(dropped_suspects.map(|update| update.requested_name().clone()));
    }

    /// Makes the suspects of a name ordinary resources again if they are sent
    /// with the next update of the name anyway. This is so in SotW, and where
    /// the client holds a resource of unknown body: there an update replaces
    /// all resources of the name. Without a new variant there is no such
    /// update. In all other cases the suspects wait for their trial.
    pub(super) fn merge_suspects(&mut self, db: &mut Database, name: &Name) {
        if self.kind.on_demand {
            return;
        }
        let later_suspects = self.suspects.range((name.clone(), None)..);
        let suspected_variants: Vec<Variant> = later_suspects
            .map(|(variant, _)| variant.clone())
            .take_while(|variant| variant.0 == *name)
            .collect();
        if suspected_variants.is_empty() {
            return;
        }

        let held_resources = self.client_cache.held(db, name);
        let replaces_all =
            self.mode == Mode::Sotw || held_resources.iter().any(CachedResource::has_unknown_body);
        if replaces_all && self.desires_new_variant(db, name) {
            for variant in &suspected_variants {
                self.suspects.remove(variant);
            }
        }
    }

    /// Returns whether a desired variant of a name is no suspect, can be
    /// delivered, and was not sent yet.
    fn desires_new_variant(&self, db: &mut Database, name: &Name) -> bool {
        let held_resources = self.client_cache.held_after_acks(db, name);
        let is_new = |resource: &Arc<Resource>| {
            let is_sent = |record: &CachedResource| {
                let same_version = record.resource.version == resource.version;
                same_version && same_variant(&record.resource, resource)
            };
            let is_suspect = self.suspects.contains_key(&variant_of(resource));
            !is_suspect && !self.is_undeliverable(resource) && !held_resources.iter().any(is_sent)
        };
        self.desired_resources(db, name).iter().any(is_new)
    }

    /// Returns whether suspects are variants of one name that replace another
    /// one together (TP2).
    fn is_variant_swap(&self, db: &mut Database, suspects: &[Update]) -> bool {
        let Some(name) = suspects.first().map(|update| update.name().clone()) else {
            return false;
        };
        let have_one_name = suspects.iter().all(|update| *update.name() == name);
        if !have_one_name || self.kind.on_demand {
            return false;
        }

        let desired_resources = self.desired_resources(db, &name);
        let is_replaced = |record: &CachedResource| {
            let stays = desired_resources
                .iter()
                .any(|resource| same_variant(resource, &record.resource));
            !record.has_unknown_body() && !stays
        };
        self.client_cache.held(db, &name).iter().any(is_replaced)
    }

    /// Returns whether this version of a variant would be sent again: it is
    /// still desired, by the subscriptions of the requested name or by a
    /// cursor, or a whole set lists it as the client's own (S82).
    fn is_current(
        &self,
        db: &mut Database,
        requested_name: &Name,
        variant: &Variant,
        version: &Version,
    ) -> bool {
        let subscriptions = self.subscriptions_of(db, requested_name).into_iter();
        let mut choices: Vec<_> = subscriptions
            .map(|(key, _)| self.resolve(db, key))
            .collect();
        choices.extend(self.cursor_choice(db, &variant.0));
        let own_resources = self.own_resources(db, &variant.0);
        let desired_resources = choices.iter().filter_map(|choice| choice.resource());
        let mut sent_resources = desired_resources.chain(&own_resources);
        sent_resources
            .any(|resource| variant_of(resource) == *variant && resource.version == *version)
    }

    /// Bisects suspects. If the text of the NACK mentions some of them, these
    /// and the others are the two halves: the text decides the order of trials,
    /// never who is to blame (S64). Updates of one group stay in one half,
    /// unless one group is everything that was NACKed (`is_complete`). One
    /// suspect makes one half.
    fn bisect(
        &self,
        db: &mut Database,
        suspects: &[Update],
        is_complete: bool,
        error: &ErrorDetail,
    ) -> Vec<Vec<Variant>> {
        let mut groups = self.group_updates(db, suspects);
        if groups.len() == 1 && is_complete {
            groups = (0..suspects.len()).map(|index| vec![index]).collect();
        }
        let variants = |groups: &[Vec<usize>]| -> Vec<Variant> {
            let indexes = groups.iter().flatten();
            indexes
                .map(|index| suspects[*index].variant.clone())
                .collect()
        };

        let is_mentioned = |index: &usize| error_mentions(error, suspects[*index].name());
        let (mentioned_groups, other_groups): (Vec<_>, Vec<_>) = groups
            .iter()
            .cloned()
            .partition(|group| group.iter().any(is_mentioned));
        if !mentioned_groups.is_empty() && !other_groups.is_empty() {
            return vec![variants(&other_groups), variants(&mentioned_groups)];
        }

        let right = groups.split_off(groups.len() / 2);
        let halves = [variants(&groups), variants(&right)];
        halves.into_iter().filter(|half| !half.is_empty()).collect()
    }

    /// Puts a resource that was NACKed alone into quarantine: its subscriptions
    /// get an answer in its place. Returns `None` if the update is a removal.
    fn quarantine_update(&mut self, db: &mut Database, update: Update) -> Option<Quarantined> {
        let requested_name = update.requested_name().clone();
        let resource = update.resource?;
        let entry = (resource.version.clone(), requested_name.clone());
        self.quarantine.insert(update.variant, entry);
        if self.kind.on_demand {
            self.resend_waiting(db, &requested_name);
        }
        self.dirty.insert(requested_name);
        Some(Quarantined {
            name: resource.name.clone(),
            version: resource.version.clone(),
        })
    }

    /// Resends the subscriptions of a host that have no answer, or none that
    /// the client still holds: a request of the client waits for them. A
    /// virtual host with the name of the host may be the answer for another
    /// host.
    fn resend_waiting(&mut self, db: &mut Database, host: &Name) {
        for (key, subscription) in self.subscriptions_of(db, host) {
            let resolved_name = self.subscriptions.resolved_name(key).unwrap_or(host);
            let held_resources = self.client_cache.held(db, resolved_name);
            let waits = match subscription.acked_answer {
                AnswerKind::Absent => false,
                AnswerKind::Resource => !held_resources.iter().any(CachedResource::is_accepted),
                AnswerKind::Unanswered | AnswerKind::Error => true,
            };
            if let Some(subscription) = self.subscriptions.get_mut(key).filter(|_| waits) {
                subscription.resend = true;
            }
        }
    }
}
