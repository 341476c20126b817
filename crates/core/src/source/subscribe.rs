//! Subscribes to names and unsubscribes from them, as requests say.

use std::sync::Arc;

use super::client_cache::CachedResource;
use super::negative;
use super::params::resource_matches;
use super::{AnswerKind, Dialect, Mode, Subscription, SubscriptionKey, TypeStream};
use crate::database::{Choice, Database, name_weight};
use crate::hosts::HostName;
use crate::kind::NegativeForm;
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Resource, Version};

/// Resources that a client held by a name that it unsubscribed from. The client
/// may go on using their references (S81).
pub(crate) type UnsubscribedResources = Vec<Arc<Resource>>;

impl TypeStream {
    /// Subscribes to a name with these parameters. If the client was subscribed
    /// before, the resource is resent (S28). For a new subscription, the
    /// version that the client names in `initial` is recorded as held.
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

        let is_located = self.located_names.remove(&(name.clone(), params));
        if let Some(subscription) = self.subscriptions.get_mut(key) {
            subscription.resend = true;
            if params == self.params && is_located != self.subscriptions.is_located_only(key) {
                self.subscriptions.mark_plain_and_located(key);
            }
            return;
        }

        self.client_cache.make_exception(db, name);
        let is_unbounded = self.kind.on_demand && !db.is_bounded_host(self.type_id, name);
        let resumption = self.resumption.as_ref();
        let subscription = Subscription {
            unbounded: is_unbounded,
            is_resumed: resumption.is_some_and(|resumption| resumption.is_first_request),
            ..Subscription::default()
        };
        self.subscriptions
            .insert(key, subscription, name_weight(name));
        if is_located {
            self.subscriptions.mark_located_only(key);
        }

        if self.kind.on_demand || initial.get(name).is_some() {
            self.record_named_version(db, key, name, initial);
        } else {
            self.resend_if_held(db, key, name);
        }
    }

    /// Marks a new subscription for resending if the client has its resource
    /// from elsewhere, such as a wildcard: the client waits for an answer to
    /// this subscription (S28, S30).
    fn resend_if_held(&mut self, db: &mut Database, key: SubscriptionKey, name: &Name) {
        let choice = self.resolve(db, key);
        let resolved_name = choice.resource().map_or(name, |resource| &resource.name);
        let held_resources = self.client_cache.held_after_acks(db, resolved_name);
        let is_held = held_resources
            .iter()
            .any(|record| !record.has_unknown_body());
        if let Some(subscription) = self.subscriptions.get_mut(key) {
            subscription.resend = is_held;
        }
    }

    /// Records the answer that a reconnecting client has for a subscription to a
    /// name, by its `initial_resource_versions` (those of a scope are compared
    /// with a view, in `wildcard`): the current resource if the versions agree (S46),
    /// a negative answer if that is still right, else a resource of another
    /// version. Nothing is recorded for a name without an initial version. A
    /// host may be held under the name of its virtual host.
    fn record_named_version(
        &mut self,
        db: &mut Database,
        key: SubscriptionKey,
        name: &Name,
        initial: &InitialVersions,
    ) {
        let choice = self.resolve(db, key);
        let resolved_name = choice.resource().map_or(name, |resource| &resource.name);
        // A virtual host of this name that does not answer this subscription
        // may answer that of another host.
        let is_unused = resolved_name == name || db.unused_name(self.type_id, name) == *name;
        let mut names = [Some(resolved_name), Some(name).filter(|_| is_unused)].into_iter();
        let named_version = names.find_map(|name| Some((name?, initial.get(name?)?)));
        let Some((held_name, version)) = named_version else {
            return;
        };

        let is_negative = self.is_negative_for(name, version);
        let is_held = |current: &Resource| {
            current.name == *held_name && current.version == *version && serves_host(current, name)
        };
        let (answer_kind, record) = match &choice {
            Choice::Resource(current) if is_held(current) => {
                (AnswerKind::Resource, CachedResource::accepted(current))
            }
            Choice::Absent if is_negative => {
                let subscriptions = &mut self.subscriptions;
                return subscriptions.record_answer(key, AnswerKind::Absent, None);
            }
            // The name exists by now: the subscription has no answer.
            _ if is_negative => return,
            _ => {
                let record = self.resumed_resource(db, held_name, version);
                (AnswerKind::Unanswered, record)
            }
        };

        let resolved_name =
            Some(record.resource.name.clone()).filter(|record_name| record_name != name);
        self.client_cache.record(db, record);
        self.subscriptions.record_answer(key, answer_kind, None);
        self.subscriptions.set_resolved_name(key, resolved_name);
    }

    /// Records the hosts that a reconnected client holds and that no
    /// subscription resolves to, so that they are removed (S45). Negative
    /// answers do not count as hosts.
    pub(crate) fn record_other_hosts(&mut self, db: &mut Database, versions: &[(Name, Version)]) {
        for (name, version) in versions {
            let is_held = !name.as_str().is_empty() && !negative::is_negative_version(version);
            if is_held && self.client_cache.held(db, name).is_empty() {
                let record = CachedResource::unknown_body(name.clone(), version.clone());
                self.client_cache.record(db, record);
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Returns whether a version is that of a negative answer on an earlier
    /// stream. Always false for types whose negative answers leave the client
    /// without a version.
    fn is_negative_for(&self, name: &Name, version: &Version) -> bool {
        match self.negative_form(false) {
            NegativeForm::EmptyBody => negative::empty_body(name).version == *version,
            NegativeForm::Bodyless => negative::is_negative_version(version),
            NegativeForm::Removed | NegativeForm::Unreadable | NegativeForm::Silence => false,
        }
    }

    /// Returns whether a client may hold the version of a negative answer: some
    /// forms leave it without one.
    pub(crate) fn may_hold_negatives(&self) -> bool {
        match self.negative_form(false) {
            NegativeForm::EmptyBody | NegativeForm::Bodyless => true,
            NegativeForm::Removed | NegativeForm::Unreadable | NegativeForm::Silence => false,
        }
    }

    /// Adds these versions, which a client names in its first request, to the
    /// number of resources that it resumed with; negative answers do not count.
    /// Has no effect for a client that did not resume.
    pub(crate) fn count_resumed_resources(&mut self, versions: &[(Name, Version)]) {
        let is_negative = |(name, version): &&(Name, Version)| self.is_negative_for(name, version);
        let negative_count = match self.may_hold_negatives() {
            true => versions.iter().filter(is_negative).count(),
            false => 0,
        };
        if let Some(resumption) = &mut self.resumption {
            resumption.held_count += versions.len() - negative_count;
        }
    }

    /// Unsubscribes from a name with these parameters. A name without such a
    /// subscription is ignored (S32), and a subscription that a locator made as
    /// well stays (TP2). Returns the resources that the client held only by
    /// that name, and whose references it may go on using (S81).
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
        if self.remove_one_origin(key, name) {
            return UnsubscribedResources::new();
        }

        let resolved_name = self.subscriptions.resolved_name(key).cloned();
        let Some((_, unresolved_name)) = self.subscriptions.remove(key, name_weight(name)) else {
            return UnsubscribedResources::new();
        };

        let mut held_resources = self.held_without_interest(db, name);
        if let Some(resolved_name) = resolved_name {
            held_resources.extend(self.held_without_interest(db, &resolved_name));
        }

        self.client_cache.forget_answers(key);
        let desired_resources = self.desired_resources(db, name);
        self.forget_nacks(name, &desired_resources);
        let names = [name.clone()].into_iter().chain(unresolved_name);
        match self.kind.on_demand && self.wildcard.is_on() {
            // A client with a wildcard keeps the resource. But the wildcard of
            // VHDS covers no hosts: their removal is sent (S23), unless another
            // name resolves to them.
            true => self.dirty.extend(names),
            false => self.forget_unsubscribed(db, names),
        }

        self.reevaluate_unsubscribed(db, name, params);
        db.unsubscribe(self.subscriber, entry, params);
        held_resources
    }

    /// Ends one of the two origins of a subscription that both a plain name and
    /// a locator made. Returns whether there were two, so that the subscription
    /// stays (TP2).
    fn remove_one_origin(&mut self, key: SubscriptionKey, name: &Name) -> bool {
        let is_locator_ended = self.located_names.remove(&(name.clone(), key.params));
        let is_kept = self.subscriptions.unmark_plain_and_located(key);
        if is_kept && !is_locator_ended {
            self.subscriptions.mark_located_only(key);
        }
        is_kept
    }

    /// Marks a name dirty that other subscriptions or a cursor cover, after a
    /// subscription with these parameters ended. Variants that only the ended
    /// one matched are forgotten.
    fn reevaluate_unsubscribed(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        self.forget_unmatched_variants(db, name, params);
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
    }

    /// Returns all resources of a name that the client may hold; none if a
    /// subscription still covers the name.
    fn held_without_interest(&self, db: &mut Database, name: &Name) -> UnsubscribedResources {
        if self.has_interest(db, name) {
            return UnsubscribedResources::new();
        }
        let mut resources = self.client_cache.maybe_held(db, name);
        let held_resources = self.client_cache.held(db, name).into_iter();
        let unknown_records = held_resources.filter(|record| record.has_unknown_body());
        resources.extend(unknown_records.map(|record| record.resource));
        resources
    }

    /// Forgets the records of the variants that only the ended subscription
    /// matched: the client drops those variants by itself (TP2). Variants that
    /// another subscription of the name or its cursor matches stay.
    fn forget_unmatched_variants(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        let is_covered = self.client_cache.covering_cursor(name).is_some();
        let matches_cursor = is_covered && params == self.params;
        let is_resolved = self.subscriptions.resolved_count(name) > 0;
        // A name without interest is forgotten as a whole by the caller, or its
        // removal is sent. Where a host resolved to the name, parameters alone
        // do not tell which variants the client drops.
        if matches_cursor || is_resolved || !self.has_interest(db, name) {
            return;
        }

        let held_resources = self.client_cache.held(db, name);
        let other_params = self.subscribed_params(db, name);
        let is_dropped = |record: &CachedResource| {
            let matches = |params| resource_matches(db, params, &record.resource);
            matches(params) && !other_params.iter().copied().any(matches)
        };
        let (dropped_records, kept_records): (Vec<_>, Vec<_>) =
            held_resources.into_iter().partition(is_dropped);
        if !dropped_records.is_empty() {
            self.client_cache
                .edit_records(db, name, |records| *records = kept_records);
        }
    }

    /// Returns whether the variant that a cursor lists under the name does not
    /// match these parameters, so that the ended subscription had another
    /// variant (TP2).
    fn differs_from_cursor(&self, db: &mut Database, name: &Name, params: ParamsId) -> bool {
        if params == self.params {
            return false;
        }
        let choice = self.cursor_choice(db, name);
        let listed_resource = choice.as_ref().and_then(Choice::resource);
        listed_resource.is_some_and(|resource| !resource_matches(db, params, resource))
    }

    /// Forgets the resources of these names, which the client drops when it
    /// unsubscribes. A name that a subscription still covers is not forgotten.
    pub(super) fn forget_unsubscribed(&mut self, db: &Database, names: impl Iterator<Item = Name>) {
        for name in names {
            if !self.has_interest(db, &name) {
                self.client_cache.forget(&name);
                self.forget_name(&name);
            }
        }
    }

    /// Ends the subscription to a host. An Envoy that was not answered yet
    /// stays subscribed: it unsubscribes when it finds its hosts in another
    /// way, and its own request for the host goes on waiting (S76).
    pub(super) fn unsubscribe_host(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        let subscriptions = self.subscriptions_of(db, name);
        let subscription = subscriptions.iter().find(|(key, _)| key.params == params);
        let Some((_, subscription)) = subscription else {
            return;
        };
        // A virtual host that the client named when it reconnected may be the
        // answer for another host: only an ACK on this stream tells.
        let is_awaited = subscription.resend || subscription.acked_answer == AnswerKind::Unanswered;
        if is_awaited && self.dialect == Dialect::Envoy {
            return;
        }
        self.unsubscribe(db, name, params);
    }

    /// Hands a name whose own subscription ended over to the cursor that covers
    /// it. On a delta stream the client is sent the resource that the cursor
    /// lists, or the removal of the name (S23).
    fn return_to_wildcard(&mut self, db: &mut Database, name: &Name) {
        self.dirty.insert(name.clone());
        if self.mode != Mode::Delta {
            return;
        }
        let choice = self.cursor_choice(db, name);
        match choice.as_ref().and_then(Choice::resource) {
            Some(_) => _ = self.resend_names.insert(name.clone()),
            None if self.client_cache.held_after_acks(db, name).is_empty() => {
                // Only a held resource is removed.
                let record = CachedResource::unknown_body(name.clone(), Version::unknown());
                self.client_cache.record(db, record);
            }
            None => {}
        }
    }

    /// Marks a name for resending, even if nothing changed, if the client is
    /// subscribed to it with the plain parameters (S53). Has no effect on other
    /// names.
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

    /// Marks all hosts of a route configuration that the client is subscribed
    /// to for resending, because it may have lost them (S76). Visits all
    /// subscriptions.
    pub(crate) fn resend_hosts(&mut self, db: &Database, route: &Name) {
        let prefix = format!("{route}/");
        let keys: Vec<SubscriptionKey> = self.subscriptions.keys().collect();
        for key in keys {
            let name = db.name(self.type_id, key.entry);
            if name.as_str().starts_with(&prefix)
                && let Some(subscription) = self.subscriptions.get_mut(key)
            {
                subscription.resend = true;
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Marks all subscriptions of a name for resending, even if nothing
    /// changed. The caller marks the name dirty.
    pub(super) fn resend_subscriptions(&mut self, db: &Database, name: &Name) {
        for (key, _) in self.subscriptions_of(db, name) {
            if let Some(subscription) = self.subscriptions.get_mut(key) {
                subscription.resend = true;
            }
        }
    }
}

/// Returns whether a virtual host that a client holds serves a host, by a
/// domain or an alias. A virtual host that only has the host as its name leaves
/// a request for the host waiting. A resource without known domains always
/// serves.
fn serves_host(resource: &Resource, requested_name: &Name) -> bool {
    let domains = &resource.facts().domains;
    let host = HostName::split(requested_name.as_str()).map_or("", |name| name.host);
    let has_domain = domains.iter().any(|domain| domain.matches(host));
    let has_alias = || resource.other_names().any(|name| name == *requested_name);
    domains.is_empty() || has_domain || has_alias()
}
