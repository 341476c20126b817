//! Collects effects, and decides which names have any.
//!
//! A name that nobody is subscribed to any more is kept current in the database
//! until the server was told so ([`InterestState::is_requested`]), but it makes
//! no events.

use std::sync::Arc;

use super::config::{DataErrors, SinkConfig};
use super::event::{Effects, Event, WatchError};
use super::interest_state::InterestState;
use crate::change::Change;
use crate::interest::Subscription;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, ResourceError, TypeUrl};

/// Collects the effects of one input on one type.
pub(super) struct EffectCollector<'a> {
    pub(super) type_url: &'a TypeUrl,
    pub(super) interest: &'a InterestState,
    pub(super) policy: DataErrors,
    pub(super) effects: &'a mut Effects,
}

impl<'a> EffectCollector<'a> {
    /// Makes a collector that adds the effects on a type to `effects`.
    pub(super) fn new(
        type_url: &'a TypeUrl,
        interest: &'a InterestState,
        config: &SinkConfig,
        effects: &'a mut Effects,
    ) -> Self {
        Self {
            type_url,
            interest,
            policy: config.data_errors,
            effects,
        }
    }

    /// Adds the event that a name has an error and no value, if the name is
    /// subscribed to.
    pub(super) fn report_failed(&mut self, name: &Name, error: WatchError) {
        if self.interest.is_desired(name) {
            let event = Event::Failed(self.type_url.clone(), name.clone(), error);
            self.effects.events.push(event);
        }
    }

    /// Adds the event that the error beside the value of a name has changed, if
    /// the name is subscribed to; `None` if the error has ended.
    pub(super) fn report_ambient(&mut self, name: &Name, error: Option<WatchError>) {
        if self.interest.is_desired(name) {
            let event = Event::Ambient(self.type_url.clone(), name.clone(), error);
            self.effects.events.push(event);
        }
    }

    /// Adds the change of a resource that arrived. Without locators it is for
    /// all subscriptions of its name, whatever their parameters.
    pub(super) fn upsert(&mut self, resource: &Arc<Resource>) {
        let mut resource = Arc::clone(resource);
        if resource.constraints.is_some() && !self.interest.has_locators() {
            Arc::make_mut(&mut resource).constraints = None;
        }
        let change = Change::Upsert(self.type_url.clone(), resource);
        self.effects.changes.push(change);
    }

    /// Adds the removal of all variants of a name.
    pub(super) fn remove(&mut self, name: &Name) {
        let change = Change::Remove(self.type_url.clone(), name.clone());
        self.effects.changes.push(change);
    }

    /// Adds the removal of one variant of a name that keeps others. Without
    /// locators the database has one resource of the name, which the others
    /// have replaced.
    pub(super) fn remove_variant(&mut self, name: &Name, constraints: Option<&Constraints>) {
        if self.interest.has_locators() {
            let (type_url, name) = (self.type_url.clone(), name.clone());
            let change = Change::RemoveVariant(type_url, name, constraints.cloned());
            self.effects.changes.push(change);
        }
    }

    /// Adds the subscriptions to a name that a variant with these constraints
    /// answers; without constraints, all of them.
    pub(super) fn complete_name(&mut self, name: &Name, constraints: Option<&Constraints>) {
        let subscriptions = self.interest.subscriptions_answered_by(name, constraints);
        self.complete(subscriptions);
    }

    /// Adds subscriptions that are answered, or complete (S51).
    pub(super) fn complete(&mut self, subscriptions: impl IntoIterator<Item = Subscription>) {
        let typed_subscriptions = subscriptions
            .into_iter()
            .map(|subscription| (self.type_url.clone(), subscription));
        self.effects.complete.extend(typed_subscriptions);
    }

    /// Adds the server's error for a name or a collection (S61).
    pub(super) fn fail(&mut self, name: &Name, error: &Arc<ResourceError>) {
        let change = Change::Fail(self.type_url.clone(), name.clone(), error.clone());
        self.effects.changes.push(change);
    }

    /// Adds a name that the owner may drop before it applies the changes.
    /// Changes and events of the name that were collected before are taken
    /// back: they have no effect any more.
    pub(super) fn forget(&mut self, name: &Name) {
        let type_url = self.type_url;
        self.effects.take_back(type_url, name);
        self.effects
            .forgotten
            .push((type_url.clone(), name.clone()));
    }
}
