//! The parameters of a type stream: which variants match them, and how they
//! change (TP2).

use std::collections::BTreeSet;
use std::vec::IntoIter;

use super::client_cache::{CachedResource, Certainty, Variant};
use super::matching::MatchingSubscription;
use super::{Subscription, SubscriptionKey, TypeStream};
use crate::database::{Database, name_weight};
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

/// Plain subscriptions whose parameters are not changed yet.
#[derive(Debug)]
pub(crate) struct ParamsChange(IntoIter<SubscriptionKey>);

/// Returns whether a resource matches these parameters.
pub(super) fn resource_matches(db: &Database, params: ParamsId, resource: &Resource) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|constraints| constraints.matches(db.params(params)))
}

impl TypeStream {
    /// Returns whether a variant matches the parameters of a subscription.
    pub(super) fn variant_matches(
        &self,
        db: &Database,
        matching: &MatchingSubscription,
        (_, constraints): &Variant,
    ) -> bool {
        let params = db.params(self.params_of_subscription(matching));
        constraints
            .as_ref()
            .is_none_or(|constraints| constraints.matches(params))
    }

    /// Returns the parameters of a subscription, or of a cursor.
    pub(super) fn params_of_subscription(&self, matching: &MatchingSubscription) -> ParamsId {
        matching.named.map_or(self.params, |(key, _)| key.params)
    }

    /// Returns the parameters of all subscriptions of a name, and of the cursor
    /// that covers it.
    pub(super) fn subscribed_params(&self, db: &Database, name: &Name) -> Vec<ParamsId> {
        let subscriptions = self.subscriptions_of(db, name).into_iter();
        let mut params: Vec<ParamsId> = subscriptions.map(|(key, _)| key.params).collect();
        let is_covered = self.client_cache.covering_cursor(name).is_some();
        if is_covered && !params.contains(&self.params) {
            params.push(self.params);
        }
        params
    }

    /// Returns the parameters of this type on a stream with the parameters
    /// `stream`: those that came with a wildcard or glob take precedence.
    pub(crate) fn next_params(&self, stream: ParamsId) -> ParamsId {
        self.scope_params.unwrap_or(stream)
    }

    /// Returns whether [`Self::apply_params`] would change something now: the
    /// parameters differ and no ACK is pending, or a change is under way.
    pub(crate) fn may_change_params(&self, params: ParamsId) -> bool {
        let may_begin = self.params != params && self.client_cache.pending_acks().is_empty();
        may_begin || self.is_changing_params()
    }

    /// Returns whether a change of parameters is not yet applied to all names.
    /// Nothing is sent in the meantime.
    pub(crate) fn is_changing_params(&self) -> bool {
        self.params_change.is_some()
    }

    /// Changes the parameters of plain names and cursors if they differ (TP2).
    /// Located subscriptions keep theirs. The client cache does not change: its
    /// difference from the desired resources is sent in one response. Nothing
    /// changes while an ACK is pending, since its response was made with the
    /// old parameters.
    ///
    /// Visits at most `budget` names, and subtracts them from it, so that other
    /// streams do not wait for all of them (S85). Returns whether the change is
    /// complete.
    pub(crate) fn apply_params(
        &mut self,
        db: &mut Database,
        params: ParamsId,
        budget: &mut usize,
    ) -> bool {
        loop {
            // The first round begins the change, unless it has to wait.
            let Some(change) = &mut self.params_change else {
                if self.params == params || !self.client_cache.pending_acks().is_empty() {
                    return true;
                }
                self.params = params;
                let plain_keys = self.subscriptions.set_plain_params(params);
                self.params_change = Some(ParamsChange(plain_keys.into_iter()));
                continue;
            };

            if *budget == 0 {
                return false;
            }
            let Some(key) = change.0.next() else {
                self.end_params_change(db);
                continue;
            };

            *budget -= 1;
            let name = db.name(self.type_id, key.entry).clone();
            self.change_subscription_params(db, key, self.params);
            self.mark_unmatched(db, &name);
            self.resend_unconfirmed(db, &name);
        }
    }

    /// Ends a change of parameters, once all plain subscriptions have the new
    /// ones: cursors get them, too. All names that cursors list before or after
    /// that become dirty.
    fn end_params_change(&mut self, db: &mut Database) {
        self.params_change = None;
        self.subscriptions.end_params_change();
        let names: BTreeSet<Name> = self
            .change_cursor_params(db, self.params)
            .into_iter()
            .collect();
        for name in names {
            self.mark_unmatched(db, &name);
            self.resend_unconfirmed(db, &name);
        }
    }

    /// Resends the subscriptions of a name to a client that resumed with one
    /// set of parameters and changed them before the first response: the client
    /// does not know which variant it should have (TP2). Other clients are sent
    /// differences only.
    fn resend_unconfirmed(&mut self, db: &Database, name: &Name) {
        if self.resumption.is_some() && self.last_nonce.is_none() {
            self.resend_subscriptions(db, name);
        }
    }

    /// Marks as maybe dropped the variants of a name that no subscription
    /// matches any more. A client that matches variants itself drops them,
    /// another keeps them until they are removed (TP2).
    pub(super) fn mark_unmatched(&mut self, db: &mut Database, name: &Name) {
        let params = self.subscribed_params(db, name);
        let is_unmatched = |record: &CachedResource| {
            let mut params = params.iter();
            record.is_accepted()
                && record.resource.constraints.is_some()
                && !params.any(|params| resource_matches(db, *params, &record.resource))
        };

        let mut records: Vec<CachedResource> =
            self.client_cache.records_of(name).cloned().collect();
        for record in &mut records {
            if is_unmatched(record) {
                record.certainty = Certainty::MaybeDropped;
            }
        }

        let mut certainties = records.iter().map(|record| record.certainty);
        if certainties.any(|certainty| certainty == Certainty::MaybeDropped) {
            self.client_cache
                .edit_records(db, name, |cached| *cached = records);
        }
    }

    /// Changes the parameters of a plain subscription, which keeps its last
    /// answer and its resolved name. If a locator made a subscription with the
    /// new parameters, the two become one. If a locator made the old one as
    /// well, the old one stays, and the new one begins without an answer.
    fn change_subscription_params(
        &mut self,
        db: &mut Database,
        old: SubscriptionKey,
        params: ParamsId,
    ) {
        let resolved_name = self.subscriptions.resolved_name(old).cloned();
        let error = self.subscriptions.error(old).cloned();
        let name = db.name(self.type_id, old.entry).clone();
        let entry = db.subscribe(self.subscriber, &name, params);
        let key = SubscriptionKey { entry, params };

        let subscription = match self.subscriptions.unmark_plain_and_located(old) {
            // The locator's subscription stays.
            true => {
                self.subscriptions.index_located(old);
                Subscription::default()
            }
            false => {
                let Some((subscription, _)) = self.subscriptions.remove(old, name_weight(&name))
                else {
                    return;
                };
                db.unsubscribe(self.subscriber, old.entry, old.params);
                subscription
            }
        };

        let weight = name_weight(&name);
        self.dirty.insert(name);
        match self.subscriptions.get_mut(key) {
            Some(other) => {
                other.resend |= subscription.resend;
                self.subscriptions.mark_plain_and_located(key);
            }
            None => {
                self.subscriptions.insert(key, subscription, weight);
                self.subscriptions.set_resolved_name(key, resolved_name);
                self.subscriptions
                    .record_answer(key, subscription.acked_answer, error);
            }
        }
    }
}
