//! Subscribes to names and unsubscribes from them, as requests say.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;

use super::client_cache::{CachedResource, Certainty, same_variant};
use super::negative;
use super::{AnswerKind, Dialect, Mode, Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database};
use crate::hosts::HostName;
use crate::kind::NegativeForm;
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Resource, Version};

/// Resources that a client held by a name that it unsubscribed from. It may go
/// on using their references (S81).
pub(crate) type UnsubscribedResources = Vec<Arc<Resource>>;

impl TypeStream {
    /// Subscribes to a name. If the client was subscribed before, the resource
    /// is resent (S28).
    pub(crate) fn subscribe(
        &mut self,
        db: &mut Database,
        name: &Name,
        params: ParamsId,
        initial: &InitialVersions,
    ) {
        let entry = db.subscribe(self.subscriber, name, params);
        let key = SubscriptionKey { entry, params };
        self.dirty.insert(name.clone());
        let located = self.located_names.remove(&(name.clone(), params));
        if let Some(subscription) = self.subscriptions.get_mut(key) {
            subscription.resend = true;
            if params == self.params && located != self.subscriptions.is_located_only(key) {
                self.subscriptions.mark_plain_and_located(key);
            }
            return;
        }
        self.client_cache.make_exception(db, name);
        let unbounded = self.kind.on_demand && !db.is_bounded_host(self.type_id, name);
        let subscription = Subscription {
            unbounded,
            is_resumed: self.resumption.as_ref().is_some_and(|r| r.first_request),
            ..Subscription::default()
        };
        self.subscriptions.insert(key, subscription);
        if located {
            self.subscriptions.mark_located_only(key);
        }
        if self.kind.on_demand || initial.get(name).is_some() {
            self.record_named_version(db, key, name, initial);
        } else {
            // A resource that the client has by other means is sent again (S28,
            // S30).
            let target = self.resolve(db, key);
            let resolved_name = target.resource().map_or(name, |resource| &resource.name);
            let held = self.client_cache.held_after_acks(db, resolved_name);
            let is_held = held.iter().any(|held| !held.has_unknown_body());
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = is_held;
            }
        }
    }

    /// Records what a client says it holds of a subscription: the current
    /// resource if the versions agree (S46), else one of another version. A
    /// host may be held under the name of its virtual host.
    fn record_named_version(
        &mut self,
        db: &mut Database,
        key: SubscriptionKey,
        name: &Name,
        initial: &InitialVersions,
    ) {
        let target = self.resolve(db, key);
        let resolved_name = target.resource().map_or(name, |resource| &resource.name);
        // A virtual host of this name that is not the answer here is another's
        // answer.
        let is_unused = resolved_name == name || db.unused_name(self.type_id, name) == *name;
        let mut names = [Some(resolved_name), Some(name).filter(|_| is_unused)].into_iter();
        let found = names.find_map(|name| Some((name?, initial.get(name?)?)));
        let Some((held, version)) = found else {
            return;
        };
        let (answer, held) = match &target {
            Choice::Resource(current)
                if current.name == *held
                    && current.version == *version
                    && serves(current, name) =>
            {
                (AnswerKind::Resource, CachedResource::accepted(current))
            }
            Choice::Absent if self.is_negative_for(name, version) => {
                return self
                    .subscriptions
                    .record_answer(key, AnswerKind::Absent, None);
            }
            _ if self.is_negative_for(name, version) => return,
            _ => (
                AnswerKind::Unanswered,
                self.resumed_resource(db, held, version),
            ),
        };
        let held_name = held.resource.name.clone();
        self.client_cache.record(db, held);
        self.subscriptions.record_answer(key, answer, None);
        self.subscriptions
            .set_resolved_name(key, Some(held_name).filter(|held_name| held_name != name));
    }

    /// Records the hosts that a reconnected client holds and that no
    /// subscription resolves to, so that they are removed (S45).
    pub(crate) fn record_other_hosts(&mut self, db: &mut Database, initial: &InitialVersions) {
        for (name, version) in initial {
            let is_held = !name.as_str().is_empty() && !negative::is_negative_version(version);
            if is_held && self.client_cache.held(db, name).is_empty() {
                let held = CachedResource::unknown_body(name.clone(), version.clone());
                self.client_cache.record(db, held);
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Whether the client is subscribed to this name as an unbounded host.
    pub(crate) fn has_unbounded_host(&self, db: &Database, name: &Name, params: ParamsId) -> bool {
        let entry = db.find(self.type_id, name);
        let subscription =
            entry.and_then(|entry| self.subscriptions.get(SubscriptionKey { entry, params }));
        subscription.is_some_and(|subscription| subscription.unbounded)
    }

    /// Whether a version is that of a negative answer on an earlier stream.
    fn is_negative_for(&self, name: &Name, version: &Version) -> bool {
        match negative::negative_form(&self.kind, self.dialect, self.mode, false) {
            NegativeForm::EmptyBody => negative::empty_body(name).version == *version,
            NegativeForm::Bodyless => negative::is_negative_version(version),
            NegativeForm::Removed | NegativeForm::Unreadable | NegativeForm::Silence => false,
        }
    }

    /// Counts the resources that a client resumed with, without negative
    /// answers.
    pub(crate) fn count_resumed(&mut self, versions: &InitialVersions) {
        let negative = |(name, version): &&(Name, Version)| self.is_negative_for(name, version);
        let form = negative::negative_form(&self.kind, self.dialect, self.mode, false);
        let negative = match form {
            NegativeForm::EmptyBody | NegativeForm::Bodyless => {
                versions.iter().filter(negative).count()
            }
            // Nobody holds a version of these.
            NegativeForm::Removed | NegativeForm::Unreadable | NegativeForm::Silence => 0,
        };
        let held = versions.len() - negative;
        self.resumption.iter_mut().for_each(|r| r.held_count = held);
    }

    /// Unsubscribes from a name. Unknown names are ignored (S32). Returns the
    /// resources that the client held by that name alone.
    pub(crate) fn unsubscribe(
        &mut self,
        db: &mut Database,
        name: &Name,
        params: ParamsId,
    ) -> UnsubscribedResources {
        let Some(entry) = db.find(self.type_id, name) else {
            return UnsubscribedResources::new();
        };
        let key = SubscriptionKey { entry, params };
        // A plain name and a locator made the subscription: one of them is
        // left.
        let located = self.located_names.remove(&(name.clone(), params));
        if self.subscriptions.unmark_plain_and_located(key) {
            if !located {
                self.subscriptions.mark_located_only(key);
            }
            return UnsubscribedResources::new();
        }
        let resolved_name = self.subscriptions.resolved_name(key).cloned();
        let Some((_, left)) = self.subscriptions.remove(key) else {
            return UnsubscribedResources::new();
        };
        let mut unsubscribed = Vec::new();
        for name in [Some(name), resolved_name.as_ref()].into_iter().flatten() {
            if !self.has_interest(db, name) {
                unsubscribed.extend(self.client_cache.maybe_held(db, name));
                let held = self.client_cache.held(db, name).into_iter();
                let unknown = held.filter(|held| held.has_unknown_body());
                unsubscribed.extend(unknown.map(|held| held.resource));
            }
        }
        self.client_cache.forget_answers(key);
        let still = self.desired_resources(db, name);
        self.forget_nacks(name, &still);
        match self.kind.on_demand && self.wildcard.is_on() {
            // A client with a wildcard keeps the resource. But the wildcard of
            // VHDS covers no hosts: their removal is sent (S23), unless another
            // name resolves to them.
            true => self.dirty.extend([name.clone()].into_iter().chain(left)),
            false => self.forget_undesired(db, [name.clone()].into_iter().chain(left)),
        }
        self.forget_variants(db, name, params);
        if self.has_interest(db, name) {
            // A resource that was kept in place of a NACKed one may be removed
            // now.
            self.dirty.insert(name.clone());
        }
        if self.client_cache.covering_cursor(name).is_some()
            && !self.differs_from_cursor(db, name, params)
        {
            self.return_to_wildcard(db, name);
        }
        db.unsubscribe(self.subscriber, entry, params);
        unsubscribed
    }

    /// Forgets the variant that the ended subscription matched, unless another
    /// subscription of the name matches it too: the client drops it by itself
    /// (TP2).
    fn forget_variants(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        let by_cursor = params == self.params && self.client_cache.covering_cursor(name).is_some();
        if by_cursor || !self.has_interest(db, name) {
            return;
        }
        let others = self.subscriptions_of(db, name).into_iter();
        let mut others: Vec<_> = others.map(|(key, _)| key.params).collect();
        if self.client_cache.covering_cursor(name).is_some() {
            others.push(self.params);
        }
        let matches = |db: &Database, held: &CachedResource, params| {
            let constraints = held.resource.constraints.as_ref();
            constraints.is_none_or(|c| c.matches(db.params(params)))
        };
        let is_resolved = self.subscriptions.resolved_count(name) > 0;
        let held = self.client_cache.held(db, name).into_iter();
        let dropped = held.filter(|held| {
            let by_others = others.iter().any(|other| matches(db, held, *other));
            !is_resolved && matches(db, held, params) && !by_others
        });
        let dropped: Vec<_> = dropped.collect();
        if !dropped.is_empty() {
            self.client_cache.edit_records(db, name, |held| {
                let is_dropped = |held: &CachedResource| {
                    let mut dropped = dropped.iter();
                    dropped.any(|other| same_variant(&other.resource, &held.resource))
                };
                held.retain(|held| !is_dropped(held));
            });
        }
    }

    /// Whether the variant that a cursor lists under the name does not match
    /// these parameters, so that the ended subscription had another one (TP2).
    fn differs_from_cursor(&self, db: &mut Database, name: &Name, params: ParamsId) -> bool {
        if params == self.params {
            return false;
        }
        let listed = self.cursor_choice(db, name);
        let params = db.params(params);
        listed
            .as_ref()
            .and_then(Choice::resource)
            .is_some_and(|listed| {
                let constraints = listed.constraints.as_ref();
                !constraints.is_none_or(|c| c.matches(params))
            })
    }

    /// Forgets resources that the client drops when it unsubscribes.
    pub(super) fn forget_undesired(&mut self, db: &Database, names: impl Iterator<Item = Name>) {
        for name in names {
            if !self.has_interest(db, &name) {
                self.client_cache.forget(&name);
                self.forget_name(&name);
            }
        }
    }

    /// Ends the subscription to a host. Envoy unsubscribes when it finds its
    /// hosts in another way, and a request that waits goes on waiting (S76).
    pub(super) fn unsubscribe_host(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        let subscriptions = self.subscriptions_of(db, name);
        let subscription = subscriptions.iter().find(|(key, _)| key.params == params);
        let Some((key, subscription)) = subscription else {
            return;
        };
        // A virtual host with the name of the host may be the answer for
        // another host.
        let held = self.subscriptions.resolved_name(*key).is_some()
            || subscription.acked_answer != AnswerKind::Unanswered
            || self
                .client_cache
                .held(db, name)
                .iter()
                .any(CachedResource::has_unknown_body);
        if (subscription.resend || !held) && self.dialect == Dialect::Envoy {
            return;
        }
        self.unsubscribe(db, name, params);
    }

    /// Leaves a name that was subscribed to by itself to the cursor that covers
    /// it. On a delta stream the client is told which of the two it has from
    /// now on (S23).
    fn return_to_wildcard(&mut self, db: &mut Database, name: &Name) {
        self.dirty.insert(name.clone());
        if self.mode != Mode::Delta {
            return;
        }
        let listed = self.cursor_choice(db, name);
        match listed.as_ref().and_then(Choice::resource) {
            Some(_) => _ = self.resend_names.insert(name.clone()),
            None if self.client_cache.held_after_acks(db, name).is_empty() => {
                let held = CachedResource::unknown_body(name.clone(), Version::new(""));
                self.client_cache.record(db, held);
            }
            None => {}
        }
    }

    /// Resends a name that the client is subscribed to, even if nothing changed
    /// (S53).
    pub(crate) fn resend_plain(&mut self, db: &Database, name: &Name) {
        let Some(entry) = db.find(self.type_id, name) else {
            return;
        };
        let params = self.params;
        if let Some(subscription) = self
            .subscriptions
            .get_mut(SubscriptionKey { entry, params })
        {
            subscription.resend = true;
            self.dirty.insert(name.clone());
        }
    }

    /// Resends all hosts of a route configuration: the client may have lost
    /// them, or not (S76).
    pub(crate) fn resend_hosts(&mut self, db: &Database, route: &Name) {
        let under = format!("{route}/");
        let name = |key: SubscriptionKey| db.name(self.type_id, key.entry).clone();
        let keys: Vec<_> = self
            .subscriptions
            .keys()
            .map(|key| (key, name(key)))
            .collect();
        for (key, name) in keys {
            if name.as_str().starts_with(&under)
                && let Some(subscription) = self.subscriptions.get_mut(key)
            {
                subscription.resend = true;
                self.dirty.insert(name);
            }
        }
    }

    /// Whether the parameters can change: a pending response was made with the
    /// old ones.
    pub(crate) fn can_change_params(&self) -> bool {
        self.client_cache.pending_acks().is_empty()
    }

    /// The parameters of this type if the stream has `stream`.
    pub(crate) fn next_params(&self, stream: ParamsId) -> ParamsId {
        self.scope_params.unwrap_or(stream)
    }

    /// Changes the parameters of plain names and cursors (TP2). Located
    /// subscriptions stay. The client cache stays as it is: its difference from
    /// what is now desired is sent in one response.
    pub(crate) fn change_params(&mut self, db: &mut Database, params: ParamsId) {
        self.params = params;
        let mut names: BTreeSet<Name> = BTreeSet::new();
        for old in self.subscriptions.set_plain_params(params) {
            names.insert(db.name(self.type_id, old.entry).clone());
            self.change_subscription_params(db, old, params);
        }
        names.extend(self.change_cursor_params(db, params));
        for name in names {
            self.mark_unmatched(db, &name);
            self.resend_unconfirmed(db, &name);
        }
    }

    /// Resends the subscriptions of a name to a client that resumed with one
    /// set of parameters and changed them before the first response: it does
    /// not know which variant it should have (TP2).
    fn resend_unconfirmed(&mut self, db: &Database, name: &Name) {
        if self.resumption.is_none() || self.last_nonce.is_some() {
            return;
        }
        for (key, _) in self.subscriptions_of(db, name) {
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = true;
            }
        }
    }

    /// Marks as maybe dropped the variants of a name that no subscription
    /// matches any more. A client that matches variants itself drops them,
    /// another keeps them until they are removed (TP2).
    pub(super) fn mark_unmatched(&mut self, db: &mut Database, name: &Name) {
        let subscriptions = self.subscriptions_of(db, name).into_iter();
        let mut params: Vec<ParamsId> = subscriptions.map(|(key, _)| key.params).collect();
        if self.client_cache.covering_cursor(name).is_some() {
            params.push(self.params);
        }
        let is_unmatched = |held: &CachedResource| {
            let only = held
                .resource
                .constraints
                .as_ref()
                .filter(|_| held.is_accepted());
            only.is_some_and(|only| !params.iter().any(|p| only.matches(db.params(*p))))
        };
        let held = self.client_cache.records_of(name).cloned();
        let changed = held.map(|held| match is_unmatched(&held) {
            true => CachedResource {
                certainty: Certainty::MaybeDropped,
                ..held
            },
            false => held,
        });
        let changed: Vec<CachedResource> = changed.collect();
        if changed
            .iter()
            .any(|held| held.certainty == Certainty::MaybeDropped)
        {
            self.client_cache
                .edit_records(db, name, |held| *held = changed);
        }
    }

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
            true => Subscription::default(),
            false => {
                let Some((subscription, _)) = self.subscriptions.remove(old) else {
                    return;
                };
                db.unsubscribe(self.subscriber, old.entry, old.params);
                subscription
            }
        };
        self.dirty.insert(name);
        // A subscription with these parameters exists already: the two are one
        // from now on.
        match self.subscriptions.get_mut(key) {
            Some(other) => {
                other.resend |= subscription.resend;
                self.subscriptions.mark_plain_and_located(key);
            }
            None => {
                self.subscriptions.insert(key, subscription);
                self.subscriptions.set_resolved_name(key, resolved_name);
                self.subscriptions
                    .record_answer(key, subscription.acked_answer, error);
            }
        }
    }
}

/// Whether a virtual host that a client holds serves a host. One that only has
/// the host as its name leaves a request for it waiting.
fn serves(held: &Resource, requested: &Name) -> bool {
    let domains = &held.facts().domains;
    let host = HostName::split(requested.as_str()).map_or("", |name| name.host);
    let serves = |host| domains.iter().any(|domain| domain.matches(host));
    domains.is_empty() || serves(host) || (held.other_names().any(|name| name == *requested))
}

/// The names in a list of selectors.
pub(super) fn listed_names(
    selectors: &[(crate::name::Selector, ParamsId)],
) -> HashSet<(&Name, ParamsId)> {
    let names = selectors
        .iter()
        .filter_map(|(selector, params)| match selector {
            crate::name::Selector::Name(name) => Some((name, *params)),
            _ => None,
        });
    names.collect()
}
