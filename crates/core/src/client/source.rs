//! One source of a client: its subscriptions, the choice among its servers, and
//! the contents that it keeps of servers that it used before.

use super::ServerId;
use super::contents::Contents;
use super::fallback::{Fallback, FallbackPolicy};
use super::kept::KeptContents;
use super::subscriptions::{Subscriptions, TypedSubscription};
use crate::change::{Change, Transaction};
use crate::name::{Name, Selector};
use crate::resource::TypeUrl;
use crate::sink::WatchError;

/// One source of a client.
#[derive(Debug)]
pub(super) struct Source {
    /// In the order in which they are tried.
    pub(super) servers: Vec<ServerId>,
    pub(super) fallback: Fallback,
    pub(super) subscriptions: Subscriptions,
    /// The contents of a source without servers.
    pub(super) own_contents: Contents,
    /// The states that earlier servers gave to names of which the one in use
    /// has not spoken.
    pub(super) kept: KeptContents,
    /// Set while every server is unreachable (C49).
    pub(super) unreachable_error: Option<WatchError>,
}

impl Source {
    /// Makes a source without subscriptions.
    pub(super) fn new(servers: Vec<ServerId>, policy: FallbackPolicy) -> Self {
        Self {
            fallback: Fallback::new(policy, servers.len()),
            servers,
            subscriptions: Subscriptions::default(),
            own_contents: Contents::new(),
            kept: KeptContents::default(),
            unreachable_error: None,
        }
    }

    /// Adds a subscription. Returns whether it is the first of its kind (C23).
    pub(super) fn subscribe(&mut self, key: &TypedSubscription) -> bool {
        let is_first = self.subscriptions.add(key);
        if is_first && self.servers.is_empty() {
            self.own_contents.subscribe(&key.0, &key.1);
        }
        is_first
    }

    /// Removes a subscription. Returns whether it was the last of its kind:
    /// then contents that it alone covered are dropped (C25).
    pub(super) fn unsubscribe(&mut self, key: &TypedSubscription) -> bool {
        let is_last = self.subscriptions.remove(key);
        if is_last && self.servers.is_empty() {
            self.own_contents.unsubscribe(&key.0, &key.1);
            match &key.1.selector {
                Selector::Name(name) if self.subscriptions.covers(&key.0, name) => {}
                Selector::Name(name) => self.own_contents.forget(&key.0, name),
                Selector::Wildcard | Selector::Glob(_) => self.own_contents.forget_unsubscribed(),
            }
        }
        if is_last {
            self.kept.drop_unsubscribed(&self.subscriptions);
        }
        is_last
    }

    /// Returns the server whose contents count; `None` if the source has no
    /// servers.
    pub(super) fn current_server(&self) -> Option<ServerId> {
        self.servers.get(self.fallback.current()).copied()
    }

    /// Returns the place of a server in the list of the source; `None` if it is
    /// not there.
    pub(super) fn place_of(&self, server: ServerId) -> Option<usize> {
        self.servers.iter().position(|id| *id == server)
    }

    /// Returns the servers that the source connects to.
    pub(super) fn open_servers(&self) -> Vec<ServerId> {
        let servers = self.servers.iter().enumerate();
        let open_servers = servers.filter(|(place, _)| self.fallback.is_open(*place));
        open_servers.map(|(_, id)| *id).collect()
    }

    /// Applies changes to the source's own contents, as far as they are
    /// subscribed to, and records the subscriptions that are complete with
    /// them.
    pub(super) fn apply(&mut self, changes: Transaction, complete: &[TypedSubscription]) {
        let own_changes = changes
            .into_iter()
            .filter(|change| self.concerns(change))
            .collect();
        self.own_contents.apply(own_changes);
        for (type_url, subscription) in complete {
            self.own_contents
                .set_complete(type_url, &subscription.selector);
        }
    }

    /// Returns whether a change is about a name that the source subscribes to,
    /// or has contents of.
    fn concerns(&self, change: &Change) -> bool {
        let covers = |url: &TypeUrl, name: &Name| self.subscriptions.covers(url, name);
        match change {
            Change::Upsert(url, resource) => {
                let mut aliases = resource.aliases.iter();
                covers(url, &resource.name) || aliases.any(|alias| covers(url, alias))
            }
            Change::Remove(url, name)
            | Change::RemoveVariant(url, name, _)
            | Change::Fail(url, name, _) => covers(url, name) || self.own_contents.has(url, name),
            Change::ReplaceAll(..) => true,
        }
    }
}
