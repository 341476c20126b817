//! The subscriptions that concern a name: those by name, and the cursor that
//! covers it.

use std::sync::Arc;

use super::client_cache::same_variant;
use super::{Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database};
use crate::name::Name;
use crate::resource::Resource;

/// A subscription that concerns a name: a subscription by name, or a cursor
/// that covers the name.
pub(super) struct MatchingSubscription {
    /// The subscription by name; `None` for a cursor.
    pub(super) named: Option<(SubscriptionKey, Subscription)>,
    pub(super) choice: Choice,
    pub(super) resend: bool,
}

impl MatchingSubscription {
    /// Returns whether the subscription is by name and was in the first request
    /// of a client that reconnected.
    pub(super) fn is_resumed(&self) -> bool {
        let subscription = self.named.map(|(_, subscription)| subscription);
        subscription.is_some_and(|subscription| subscription.is_resumed)
    }
}

impl TypeStream {
    /// Returns the subscriptions of a name, and the cursor that covers it. The
    /// cursor is left out beside a plain name, which matches the same resource.
    pub(super) fn matching_subscriptions(
        &self,
        db: &mut Database,
        name: &Name,
    ) -> Vec<MatchingSubscription> {
        let mut subscriptions = Vec::new();
        for (key, subscription) in self.subscriptions_of(db, name) {
            subscriptions.push(MatchingSubscription {
                named: Some((key, subscription)),
                choice: self.choice_without_error(db, key),
                resend: subscription.resend,
            });
        }

        if let Some(choice) = self.cursor_choice(db, name) {
            let mut keys = subscriptions
                .iter()
                .filter_map(|subscription| Some(subscription.named?.0));
            let has_plain = keys.any(|key| key.params == self.params);
            if !has_plain {
                subscriptions.push(MatchingSubscription {
                    named: None,
                    choice,
                    resend: self.resend_names.contains(name),
                });
            }
        }
        subscriptions
    }

    /// Returns what the database has for a subscription, as its client can be
    /// told. An error stays an error only for a client that reads errors. For
    /// another client a transient error leaves its resource unchanged, and a
    /// lasting one means that there is none (S61).
    fn choice_without_error(&self, db: &mut Database, key: SubscriptionKey) -> Choice {
        match self.resolve(db, key) {
            Choice::Failed(error, None) if !self.supports_resource_errors => {
                match error.code.is_data_error() {
                    true => Choice::Absent,
                    false => Choice::Unknown,
                }
            }
            choice => choice,
        }
    }
}

/// Returns whether a subscription, or a cursor, resolves to this resource.
pub(super) fn resolves_to(matching: &MatchingSubscription, resource: &Arc<Resource>) -> bool {
    let chosen_resource = matching.choice.resource();
    chosen_resource.is_some_and(|chosen| same_variant(chosen, resource))
}

/// Returns the resources that these subscriptions resolve to, each variant
/// once.
pub(super) fn desired_by(matching: &[MatchingSubscription]) -> Vec<Arc<Resource>> {
    let mut desired_resources: Vec<Arc<Resource>> = Vec::new();
    let chosen_resources = matching
        .iter()
        .filter_map(|subscription| subscription.choice.resource());
    for resource in chosen_resources {
        let mut others = desired_resources.iter();
        if !others.any(|other| same_variant(other, resource)) {
            desired_resources.push(Arc::clone(resource));
        }
    }
    desired_resources
}
