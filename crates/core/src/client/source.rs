//! One source of a client: its contents, its subscriptions, and the choice
//! among its servers.

use std::collections::{BTreeMap, BTreeSet};

use super::ServerId;
use super::contents::{Contents, Key, covers, key_of};
use super::fallback::{Fallback, FallbackPolicy};
use super::watch::State;
use crate::change::Change;
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::TypeUrl;
use crate::sink::{Cause, Effects, Event, Subscription, WatchError};

/// One source of a client.
#[derive(Debug)]
pub(super) struct Source {
    /// In the order in which they are tried.
    pub(super) servers: Vec<ServerId>,
    pub(super) fallback: Fallback,
    /// The subscriptions, and how often each was made.
    subscriptions: BTreeMap<(TypeUrl, Subscription), usize>,
    pub(super) contents: Contents,
    /// Set while every server is unreachable (C49).
    unreachable: Option<WatchError>,
    /// Names that another server has sent, and that the present one has not
    /// spoken of yet.
    foreign: BTreeSet<Key>,
}

impl Source {
    /// Makes a source without subscriptions.
    pub(super) fn new(servers: Vec<ServerId>, policy: FallbackPolicy) -> Self {
        Self {
            fallback: Fallback::new(policy, servers.len()),
            servers,
            subscriptions: BTreeMap::new(),
            contents: Contents::new(),
            unreachable: None,
            foreign: BTreeSet::new(),
        }
    }

    /// Adds a subscription. Returns whether it is the first of its kind (C23).
    pub(super) fn subscribe(&mut self, key: &(TypeUrl, Subscription)) -> bool {
        let count = self.subscriptions.entry(key.clone()).or_insert(0);
        *count += 1;
        let is_first = *count == 1;
        if is_first {
            self.contents.subscribe(&key.0, &key.1);
        }
        is_first
    }

    /// Removes a subscription. Returns whether it was the last of its kind
    /// (C25).
    pub(super) fn unsubscribe(&mut self, key: &(TypeUrl, Subscription)) -> bool {
        let Some(count) = self.subscriptions.get_mut(key) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.subscriptions.remove(key);
            self.contents.unsubscribe(&key.0, &key.1);
        }
        is_last
    }

    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &(TypeUrl, Subscription)> {
        self.subscriptions.keys()
    }

    /// The place of a server in the list.
    pub(super) fn place_of(&self, server: ServerId) -> Option<usize> {
        self.servers.iter().position(|id| *id == server)
    }

    /// Returns whether a resource that is subscribed to is not known (C46).
    pub(super) fn is_missing_any(&mut self) -> bool {
        let contents = &mut self.contents;
        let mut keys = self.subscriptions.keys();
        keys.any(|(url, subscription)| contents.is_missing(url, subscription))
    }

    /// Notes that contents come from another server from now on: of what is
    /// held, nothing is confirmed.
    pub(super) fn mark_foreign(&mut self) {
        for type_url in self.contents.types() {
            let names = self.contents.names(&type_url).into_iter();
            self.foreign
                .extend(names.map(|name| (type_url.clone(), name)));
        }
    }

    /// Takes in the effects of a response, as far as they concern the source.
    pub(super) fn absorb(&mut self, effects: &Effects) {
        for (type_url, name) in &effects.forgotten {
            self.contents.forget(type_url, name);
        }
        let changes = effects
            .changes
            .iter()
            .filter(|change| self.concerns(change));
        let changes: Vec<_> = changes.cloned().collect();
        if !self.foreign.is_empty() {
            for key in changes.iter().filter_map(key_of) {
                self.foreign.remove(&key);
            }
        }
        self.contents.apply(changes);

        for (type_url, subscription) in &effects.complete {
            self.complete(type_url, subscription);
        }
        for event in &effects.events {
            self.absorb_event(event);
        }
    }

    /// Notes that the present server has spoken of all that a subscription
    /// covers.
    pub(super) fn complete(&mut self, type_url: &TypeUrl, subscription: &Subscription) {
        self.drop_foreign(type_url, &subscription.selector);
        self.contents.set_complete(type_url, &subscription.selector);
    }

    /// The names that another server has sent, and that the present one has not
    /// spoken of yet.
    pub(super) fn foreign(&self) -> Vec<Key> {
        self.foreign.iter().cloned().collect()
    }

    /// Copies the contents of another source, as far as they are subscribed to
    /// here.
    pub(super) fn copy_from(&mut self, other: &Self) {
        for (type_url, name) in other.all_keys() {
            if !self.contents.is_subscribed(&type_url, &name) {
                continue;
            }
            let held = other.contents.held(&type_url, &name).into_iter();
            let upserts = held.map(|held| Change::Upsert(type_url.clone(), held));
            self.contents.apply(upserts.collect());
            self.foreign.remove(&(type_url.clone(), name.clone()));
            let error = other.contents.error(&type_url, &name).cloned();
            self.contents.set_error(&type_url, &name, error);
        }
        for (type_url, subscription) in self.subscriptions.keys() {
            if other.contents.is_complete(type_url, subscription) {
                self.contents.set_complete(type_url, &subscription.selector);
            }
        }
    }

    /// Removes what another server has sent and this one, which has spoken of
    /// all that the selector covers, does not have.
    fn drop_foreign(&mut self, type_url: &TypeUrl, selector: &Selector) {
        if matches!(selector, Selector::Name(_)) {
            return;
        }
        let is_gone = |key: &Key| key.0 == *type_url && covers(selector, &key.1);
        let gone: Vec<_> = self.foreign.extract_if(.., is_gone).collect();
        let gone = gone
            .into_iter()
            .map(|(url, name)| Change::Remove(url, name));
        self.contents.apply(gone.collect());
    }

    /// Takes in an error of a name. That a server cannot be reached is told by
    /// the source, when it is so of all of them (C49).
    pub(super) fn absorb_event(&mut self, event: &Event) {
        let (type_url, name, error) = match event {
            Event::Failed(url, name, error) => (url, name, Some(error)),
            Event::Ambient(url, name, error) => (url, name, error.as_ref()),
        };
        if error.is_some_and(|error| error.cause == Cause::Unreachable)
            || !self.contents.is_subscribed(type_url, name)
        {
            return;
        }
        if let (Event::Failed(..), Some(error)) = (event, error)
            && error.cause.is_definite()
        {
            // Also what another server has sent: the present one has no such
            // name.
            let removal = Change::Remove(type_url.clone(), name.clone());
            self.contents.apply(vec![removal]);
        }
        self.contents.set_error(type_url, name, error.cloned());
    }

    /// Returns whether a change is about a name that the source subscribes to.
    fn concerns(&self, change: &Change) -> bool {
        let subscribes = |url: &TypeUrl, name: &Name| self.contents.is_subscribed(url, name);
        match change {
            Change::Upsert(url, resource) => {
                let mut aliases = resource.aliases.iter();
                subscribes(url, &resource.name) || aliases.any(|alias| subscribes(url, alias))
            }
            Change::Remove(url, name)
            | Change::RemoveVariant(url, name, _)
            | Change::Fail(url, name, _) => subscribes(url, name) || self.contents.has(url, name),
            Change::ReplaceAll(..) => true,
        }
    }

    /// Sets or clears the error that every server is unreachable. Returns
    /// whether it changes what watchers see.
    pub(super) fn set_unreachable(&mut self, error: Option<WatchError>) -> bool {
        let is_news = self.unreachable != error;
        self.unreachable = error;
        is_news
    }

    /// Returns the names whose state an error of the source changes.
    pub(super) fn all_keys(&self) -> BTreeSet<Key> {
        let named = self
            .subscriptions
            .keys()
            .filter_map(|(url, subscription)| match &subscription.selector {
                Selector::Name(name) => Some((url.clone(), name.clone())),
                _ => None,
            });
        let types = self.contents.types().into_iter();
        let held = types.flat_map(|url| {
            let names = self.contents.names(&url).into_iter();
            names.map(move |name| (url.clone(), name))
        });
        named.chain(held).collect()
    }

    /// Returns the state of a name in the source.
    pub(super) fn state(&mut self, type_url: &TypeUrl, name: &Name, params: &Params) -> State {
        let mut state = self.contents.state(type_url, name, params);
        if let Some(error) = &self.unreachable
            && self.contents.is_subscribed(type_url, name)
        {
            state.error = Some(error.clone());
        }
        state
    }
}
