//! The interest of one type, and how much of it the server was told.
//!
//! ```text
//!             subscribe              the request is sent
//!   desired ──▶ added ────────────────────▶ sent
//!           ◀── removed ◀── unsubscribe ─── sent
//! ```
//!
//! No message is kept here: when the transport can take one, it is made of
//! `added` and `removed` as they are then, so that ten changes while it was
//! blocked become one request.
//!
//! A server that does not read locators (TP2) is asked for each selector once,
//! whatever its parameters: all subscriptions of a selector are in one state.

use super::config::SinkConfig;
use super::ended::EndedSubscriptions;
use crate::interest::{Interest, InterestDiff, Subscription, Wildcard};
use crate::message::{Locator, Locators};
use crate::name::{Name, Selector};
use crate::params::{Constraints, Params};
use crate::resource::Resource;

/// The interest of one type on one stream after another.
///
/// Invariants, proved by `InterestState::check`:
/// - `desired` is `sent` without `removed` and with `added`;
/// - `removed` is in `sent` and not in `desired`;
/// - without locators, no selector is in `removed` and in `desired`;
/// - `desired_list` is made of `desired`.
#[derive(Debug)]
pub(super) struct InterestState {
    /// The server reads locators (TP2): it tells subscriptions apart by their
    /// parameters.
    has_locators: bool,
    /// The parameters of the stream, which plain subscriptions have.
    stream_params: Params,
    desired: Interest,
    sent: Interest,
    added: Interest,
    removed: Interest,
    /// The subscriptions that ended on this stream, if the server reads
    /// locators.
    ended_subscriptions: EndedSubscriptions,
    /// The state of the wildcard at the server, after the requests so far.
    wildcard: Wildcard,
    /// `desired` as requests list it, until it changes: an acknowledgement of
    /// one resource lists all names (C17).
    desired_list: Option<Locators>,
}

impl InterestState {
    /// Makes the state of a type without subscriptions.
    pub(super) fn new(config: &SinkConfig) -> Self {
        Self {
            has_locators: config.locators,
            stream_params: config.node.params.clone(),
            desired: Interest::default(),
            sent: Interest::default(),
            added: Interest::default(),
            removed: Interest::default(),
            ended_subscriptions: EndedSubscriptions::default(),
            wildcard: Wildcard::default(),
            desired_list: None,
        }
    }

    /// Changes the parameters of the stream, which plain subscriptions have.
    /// Nothing is sent on account of that.
    pub(super) fn set_stream_params(&mut self, params: &Params) {
        self.stream_params = params.clone();
    }

    /// Adds a subscription. If an unsubscription of it was not sent yet, a
    /// subscription is sent instead, so that the server sends the resources
    /// again (E9).
    pub(super) fn subscribe(&mut self, subscription: Subscription) {
        let selector = &subscription.selector;
        let is_shared = !self.has_locators && self.desired.has_selector(selector);
        if !self.desired.insert(subscription.clone()) {
            return;
        }

        self.desired_list = None;
        if is_shared {
            // The server was asked, or will be, on account of the others.
            for set in [&mut self.sent, &mut self.added] {
                if set.has_selector(&subscription.selector) {
                    set.insert(subscription.clone());
                }
            }
            return;
        }

        if !self.has_locators && self.removed.has_selector(selector) {
            let sent_subscriptions = subscriptions_with_selector(&self.removed, selector);
            for previous in &sent_subscriptions {
                self.removed.remove(previous);
                self.sent.remove(previous);
            }
            self.sent.insert(subscription.clone());
        }

        self.removed.remove(&subscription);
        self.added.insert(subscription);
    }

    /// Removes a subscription. An unsubscription is sent only for one that was
    /// sent.
    pub(super) fn unsubscribe(&mut self, subscription: &Subscription) {
        if !self.desired.remove(subscription) {
            return;
        }

        self.desired_list = None;
        self.added.remove(subscription);
        if !self.has_locators && self.desired.has_selector(&subscription.selector) {
            self.sent.remove(subscription);
        } else if self.sent.has(subscription) {
            self.removed.insert(subscription.clone());
        }
    }

    /// Resets what was sent, since the server of a new stream knows nothing:
    /// everything desired is to be sent again.
    pub(super) fn restart(&mut self) {
        self.sent = Interest::default();
        self.removed = Interest::default();
        self.ended_subscriptions = EndedSubscriptions::default();
        self.added = self.desired.clone();
        self.wildcard = Wildcard::Never;
    }

    /// Records that a request with all changes is sent, after which the
    /// wildcard has this state at the server. Takes the changes and returns
    /// them.
    pub(super) fn record_sent(&mut self, wildcard: Wildcard) -> InterestDiff {
        let diff = InterestDiff {
            added: std::mem::take(&mut self.added),
            removed: std::mem::take(&mut self.removed),
        };
        for subscription in diff.removed.iter() {
            self.sent.remove(&subscription);
            if self.has_locators {
                self.ended_subscriptions.insert(subscription);
            }
        }

        self.sent.extend(diff.added.iter());
        for subscription in diff.added.iter() {
            self.ended_subscriptions.remove(&subscription);
        }
        self.wildcard = wildcard;
        diff
    }

    /// Returns whether removing these subscriptions may drop variants of names
    /// that others still cover (TP2). Called after [`Self::record_sent`], when
    /// `sent` is without them. For a wildcard or a glob the names are not
    /// looked at, so the result is true if any subscription is left. A result
    /// that is true without need is safe: the next stream does not tell the
    /// version of the set, and is sent all of it.
    pub(super) fn may_drop_variants(&self, removed: &Interest) -> bool {
        if !self.has_locators {
            return false;
        }
        removed
            .iter()
            .any(|subscription| match &subscription.selector {
                Selector::Name(name) => self.sent.contains(name),
                Selector::Wildcard | Selector::Glob(_) => !self.sent.is_empty(),
            })
    }

    /// Records that a request is sent that changes nothing but the state of the
    /// wildcard at the server: it prepares the next change.
    pub(super) fn set_wildcard(&mut self, wildcard: Wildcard) {
        self.wildcard = wildcard;
    }

    /// Returns whether this stream has sent a request for the type.
    pub(super) fn has_sent_request(&self) -> bool {
        self.wildcard != Wildcard::Never
    }

    /// Returns the state of the wildcard at the server, after the requests so
    /// far.
    pub(super) fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    /// Returns the subscriptions that are wanted now.
    pub(super) fn desired(&self) -> &Interest {
        &self.desired
    }

    /// Returns the subscriptions that the server was told of on this stream,
    /// without those that it was told have ended.
    pub(super) fn sent(&self) -> &Interest {
        &self.sent
    }

    /// Returns the desired subscriptions that the next request makes.
    pub(super) fn added(&self) -> &Interest {
        &self.added
    }

    /// Returns the sent subscriptions that the next request ends.
    pub(super) fn removed(&self) -> &Interest {
        &self.removed
    }

    /// Returns whether the server reads locators.
    pub(super) fn has_locators(&self) -> bool {
        self.has_locators
    }

    /// Lists the subscriptions that are desired as locators; see
    /// [`InterestState::list_locators`]. The list is kept until they change,
    /// since each acknowledgement in SotW has it.
    pub(super) fn list_desired(&mut self, may_be_bare: bool) -> Locators {
        if let Some(list) = self.desired_list.as_ref().filter(|_| !may_be_bare) {
            return list.clone();
        }
        let names = Locators::from(self.list_locators(&self.desired, may_be_bare));
        // A bare list depends on more than what is desired.
        self.desired_list = Some(names.clone()).filter(|_| !may_be_bare);
        names
    }

    /// Lists subscriptions as locators. `may_be_bare` tells that an empty list
    /// stands for the plain wildcard if that is all there is. A server without
    /// locators is sent each selector once, whatever parameters its
    /// subscriptions have.
    pub(super) fn list_locators(&self, interest: &Interest, may_be_bare: bool) -> Vec<Locator> {
        let is_star_only = match self.has_locators {
            true => interest.is_plain_wildcard(),
            false => interest.is_wildcard_only(),
        };
        if is_star_only && may_be_bare {
            return Vec::new();
        }

        if self.has_locators {
            return interest
                .iter()
                .map(|subscription| subscription.locator())
                .collect();
        }
        // The subscriptions of one selector follow each other.
        let mut names: Vec<Locator> = Vec::new();
        for Subscription { selector, .. } in interest.iter() {
            let last_name = names.last().map(|locator| &*locator.name);
            if last_name != Some(selector.as_str()) {
                names.push(selector.as_str().into());
            }
        }
        names
    }

    /// Returns whether this name is subscribed to now.
    pub(super) fn is_desired(&self, name: &Name) -> bool {
        self.desired.contains(name)
    }

    /// Returns the subscriptions whose names are kept current: those that the
    /// server was asked for, or, before the first request of a stream, those
    /// that it has.
    fn requested_interest(&self) -> &Interest {
        match self.has_sent_request() {
            true => &self.sent,
            false => &self.desired,
        }
    }

    /// Returns whether the server was asked for the name, or is with the first
    /// request of a stream. A name that is about to be unsubscribed is still
    /// kept current: if it is subscribed to again before the request leaves, a
    /// SotW server sees no difference and does not send it again. A name that
    /// is subscribed to and not requested yet is sent when it is; a resource
    /// that arrives before was meant for an earlier request.
    pub(super) fn is_requested(&self, name: &Name) -> bool {
        self.requested_interest().contains(name)
    }

    /// Returns whether the server was asked for the resource under any of its
    /// names; see [`InterestState::is_requested`].
    pub(super) fn is_resource_requested(&self, resource: &Resource) -> bool {
        names_of(&resource.name, &resource.aliases).any(|name| self.is_requested(name))
    }

    /// Returns whether a variant is for any of the subscriptions that the
    /// server was asked for. A server without locators decides that itself.
    pub(super) fn is_variant_requested(
        &self,
        name: &Name,
        aliases: &[Name],
        constraints: Option<&Constraints>,
    ) -> bool {
        self.matches(self.requested_interest(), name, aliases, constraints)
    }

    /// Returns whether a variant is for a subscription that ended on this
    /// stream.
    pub(super) fn is_variant_ended(&self, resource: &Resource) -> bool {
        let (name, aliases) = (&resource.name, &resource.aliases);
        self.matches(
            self.ended_subscriptions.as_interest(),
            name,
            aliases,
            resource.constraints.as_ref(),
        )
    }

    /// Returns whether a subscription of an interest covers one of a resource's
    /// names, with parameters that the constraints match.
    fn matches(
        &self,
        interest: &Interest,
        name: &Name,
        aliases: &[Name],
        constraints: Option<&Constraints>,
    ) -> bool {
        let mut names = names_of(name, aliases);
        match constraints.filter(|_| self.has_locators) {
            None => names.any(|name| interest.contains(name)),
            Some(constraints) => names.any(|name| {
                let mut sets = interest.params_covering(name);
                sets.any(|params| constraints.matches(self.effective_params(params)))
            }),
        }
    }

    /// Returns the parameters by which the server chooses the variant of a
    /// subscription: a plain one has those of a wildcard or glob with its own,
    /// or else those of the stream.
    pub(super) fn effective_params<'a>(&'a self, params: &'a Params) -> &'a Params {
        match params.is_empty() {
            false => params,
            true => self.sent.scope_params().unwrap_or(&self.stream_params),
        }
    }

    /// Returns the subscriptions to this very name that a variant is for; all
    /// of them without a variant.
    pub(super) fn subscriptions_answered_by(
        &self,
        name: &Name,
        constraints: Option<&Constraints>,
    ) -> Vec<Subscription> {
        let constraints = constraints.filter(|_| self.has_locators);
        let is_for = |params: &&Params| {
            constraints.is_none_or(|constraints| constraints.matches(self.effective_params(params)))
        };
        let sets = self.sent.params_of_name(name).filter(is_for);
        let subscription =
            |params: &Params| Subscription::new(Selector::Name(name.clone()), params.clone());
        sets.map(subscription).collect()
    }

    /// Returns whether an error of the server about this name counts: the
    /// server was asked for the name, or it is the name of a collection that is
    /// subscribed to (S61).
    pub(super) fn accepts_error_for(&self, name: &Name) -> bool {
        self.is_requested(name) || self.desired.names_collection(name)
    }

    /// Returns whether the name is subscribed to by itself, not only by a
    /// wildcard or a glob, or was so in the last request.
    pub(super) fn names_exactly(&self, name: &Name) -> bool {
        self.desired.names_exactly(name) || self.sent.names_exactly(name)
    }

    /// Proves the invariants of the struct.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let sent_subscriptions = self.sent.iter();
        let remaining_subscriptions =
            sent_subscriptions.filter(|subscription| !self.removed.has(subscription));
        let expected_interest: Interest =
            remaining_subscriptions.chain(self.added.iter()).collect();
        assert_eq!(self.desired, expected_interest);
        for subscription in self.removed.iter() {
            assert!(self.sent.has(&subscription));
            assert!(!self.desired.has(&subscription));
            assert!(self.has_locators || !self.desired.has_selector(&subscription.selector));
        }
        for subscription in self.ended_subscriptions.as_interest().iter() {
            assert!(self.has_locators && !self.sent.has(&subscription));
        }
        if let Some(list) = &self.desired_list {
            assert_eq!(**list, *self.list_locators(&self.desired, false));
        }
    }
}

/// Returns all names of a resource.
fn names_of<'a>(name: &'a Name, aliases: &'a [Name]) -> impl Iterator<Item = &'a Name> {
    std::iter::once(name).chain(aliases)
}

/// Returns the subscriptions of an interest that have this selector, one for
/// each set of parameters.
fn subscriptions_with_selector(interest: &Interest, selector: &Selector) -> Vec<Subscription> {
    let sets = interest.params_of_selector(selector);
    let with_params = |params: &Params| Subscription::new(selector.clone(), params.clone());
    sets.map(with_params).collect()
}
