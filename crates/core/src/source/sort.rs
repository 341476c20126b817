//! Sorts the dirty names of a client whose responses are whole sets, where they
//! are many.
//!
//! A whole set lists all that the client will hold, so all its dirty names are
//! evaluated for one response (S38). A client can subscribe to a million names
//! of which none exists. Such names are sorted out in slices, for which nobody
//! else has to wait (S85):
//!
//! ```text
//!   dirty ─▶ exists, or is held ───▶ sorted ─▶ dirty again, all for one push
//!        └─▶ does not exist ─┬─────▶ answered: the next set lacks it; or
//!                            │       deferred, if the client must not be told
//!                            └─────▶ absent ─▶ dirty again, a slice for each
//!                                    push: the client reads errors (TP3)
//! ```

use std::collections::BTreeSet;

use super::evaluate::absent_answer;
use super::{AnswerKind, PushContext, Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database, SLICE};
use crate::name::Name;

/// Dirty names that were sorted, and wait for the others.
#[derive(Debug, Default)]
pub(crate) struct SortedNames {
    /// Names that exist, or that the client holds.
    present: BTreeSet<Name>,
    /// Names whose absence has to be written as an error.
    absent: BTreeSet<Name>,
}

impl SortedNames {
    /// Returns whether no name waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    /// Returns the number of names that wait.
    pub(super) fn len(&self) -> usize {
        self.present.len() + self.absent.len()
    }

    /// Returns whether a name waits.
    pub(super) fn contains(&self, name: &Name) -> bool {
        self.present.contains(name) || self.absent.contains(name)
    }

    /// Drops a name.
    pub(super) fn remove(&mut self, name: &Name) {
        self.present.remove(name);
        self.absent.remove(name);
    }
}

impl TypeStream {
    /// Sorts one slice of the dirty names, if there are more than one slice of
    /// them. Returns whether names are left to sort: nothing can be sent before
    /// the next call. Does nothing for types without whole sets.
    pub(crate) fn sort_slice(&mut self, db: &mut Database, context: &PushContext<'_>) -> bool {
        if !self.sends_whole_sets() {
            return false;
        }
        if self.dirty.len() <= SLICE {
            self.return_sorted();
            return false;
        }
        for _ in 0..SLICE {
            let Some(name) = self.dirty.pop_first() else {
                break;
            };
            self.sort_name(db, context, name);
        }
        true
    }

    /// Marks sorted names dirty again: all that are present, and one slice of
    /// the absent ones, as many as one push answers.
    fn return_sorted(&mut self) {
        if self.sorted.is_empty() {
            return;
        }
        self.dirty.append(&mut self.sorted.present);
        for _ in 0..SLICE {
            self.dirty.extend(self.sorted.absent.pop_first());
        }
    }

    /// Answers a name that neither exists nor is held, if the client reads no
    /// errors: the next set, which is owed then, lacks it. Such a name is
    /// deferred if the client must not be told yet. Any other name is added to
    /// those that wait for the end of the sorting.
    fn sort_name(&mut self, db: &mut Database, context: &PushContext<'_>, name: Name) {
        let Some(subscriptions) = self.absent_subscriptions(db, &name) else {
            self.sorted.present.insert(name);
            return;
        };
        if self.absence_as_error(true).is_some() {
            self.sorted.absent.insert(name);
            return;
        }

        // The name has no resource that could be withheld.
        self.note_withheld(&name, &[]);
        let is_owed = |(_, subscription): &&(SubscriptionKey, Subscription)| {
            subscription.resend || subscription.acked_answer != AnswerKind::Absent
        };
        let mut owed_subscriptions = subscriptions.iter().filter(is_owed);
        let is_withheld = owed_subscriptions
            .any(|(_, subscription)| self.withholds_absence(db, context, &name, *subscription));
        self.owes_response |= !is_withheld
            && subscriptions
                .iter()
                .any(|subscription| is_owed(&subscription));

        for (key, _) in subscriptions {
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = false;
            }
            if !is_withheld {
                self.record_answer(absent_answer(key, &name, true));
            }
        }

        if is_withheld {
            self.deferred.insert(name);
        }
    }

    /// Returns the subscriptions of a name if an evaluation would find only
    /// that the name does not exist; else `None`.
    fn absent_subscriptions(
        &self,
        db: &mut Database,
        name: &Name,
    ) -> Option<Vec<(SubscriptionKey, Subscription)>> {
        let client_cache = &self.client_cache;
        if client_cache.covering_cursor(name).is_some()
            || !client_cache.held_after_acks(db, name).is_empty()
            || !client_cache.maybe_held(db, name).is_empty()
        {
            return None;
        }

        let mut nacked_variants = self.suspects.values().chain(self.quarantine.values());
        if nacked_variants.any(|(_, requested_name)| requested_name == name) {
            return None;
        }
        let may_be_held = |subscription: &Subscription| {
            let resumption = self.resumption.as_ref();
            subscription.is_resumed
                && resumption.is_some_and(|resumption| resumption.may_hold_unknown(name))
        };

        let subscriptions = self.subscriptions_of(db, name);
        let mut is_absent = |(key, subscription): &(SubscriptionKey, Subscription)| {
            !may_be_held(subscription)
                && self.subscriptions.resolved_name(*key).is_none()
                && client_cache.pending_answer(*key).is_none()
                && self.resolve(db, *key) == Choice::Absent
        };

        let are_absent = !subscriptions.is_empty() && subscriptions.iter().all(&mut is_absent);
        are_absent.then_some(subscriptions)
    }
}
