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
    /// Those that exist, or that the client holds.
    present: BTreeSet<Name>,
    /// Those of which an error has to be written.
    absent: BTreeSet<Name>,
}

impl SortedNames {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.present.len() + self.absent.len()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.present.contains(name) || self.absent.contains(name)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.present.remove(name);
        self.absent.remove(name);
    }
}

impl TypeStream {
    /// Sorts a slice of the dirty names, if they are more than that. Returns
    /// whether nothing can be sent before the rest is sorted.
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

    /// Marks sorted names dirty again: all that are present, and a slice of the
    /// others.
    fn return_sorted(&mut self) {
        if self.sorted.is_empty() {
            return;
        }
        self.dirty.append(&mut self.sorted.present);
        for _ in 0..SLICE {
            self.dirty.extend(self.sorted.absent.pop_first());
        }
    }

    /// Answers a name that neither exists nor is held, or lets it wait.
    fn sort_name(&mut self, db: &mut Database, context: &PushContext<'_>, name: Name) {
        let Some(subscriptions) = self.absent_subscriptions(db, &name) else {
            self.sorted.present.insert(name);
            return;
        };
        if self.absence_as_error(true).is_some() {
            self.sorted.absent.insert(name);
            return;
        }
        self.note_withheld(&name, &[]);
        let is_owed = |(_, subscription): &&(SubscriptionKey, Subscription)| {
            subscription.resend || subscription.acked_answer != AnswerKind::Absent
        };
        let mut owed = subscriptions.iter().filter(is_owed);
        let is_withheld = owed.any(|(_, s)| self.withholds_absence(db, context, &name, *s));
        self.owes_response |= !is_withheld && subscriptions.iter().any(|s| is_owed(&s));
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

    /// The subscriptions of a name, if an evaluation would find nothing but that
    /// it does not exist; else `None`.
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
        let mut nacked = self.suspects.values().chain(self.quarantine.values());
        if nacked.any(|(_, requested)| requested == name) {
            return None;
        }
        let may_be_held = |subscription: &Subscription| {
            let resumed = self.resumption.as_ref();
            subscription.is_resumed && resumed.is_some_and(|r| r.may_hold_unknown(name))
        };
        let subscriptions = self.subscriptions_of(db, name);
        let mut is_absent = |(key, subscription): &(SubscriptionKey, Subscription)| {
            !may_be_held(subscription)
                && self.subscriptions.resolved_name(*key).is_none()
                && client_cache.pending_answer(*key).is_none()
                && self.resolve(db, *key) == Choice::Absent
        };
        let is_plain = !subscriptions.is_empty() && subscriptions.iter().all(&mut is_absent);
        is_plain.then_some(subscriptions)
    }
}
