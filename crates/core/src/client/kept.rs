//! The contents that a source keeps of servers that it used before.
//!
//! When a source changes to another server, a resource that it has stays in use
//! until the new server has spoken of its name. So nothing is taken away before
//! its successor is there, or before the server says that there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::contents::Key;
use super::subscriptions::{Subscriptions, TypedSubscription};
use super::watch::State;
use crate::Moment;
use crate::name::Name;
use crate::params::{Constraints, Params};
use crate::resource::{Resource, TypeUrl};
use crate::sink::WatchError;
use crate::timer::Timers;

/// Names with the last state that an earlier server gave them. Each is
/// subscribed to, and the server in use has not spoken of it.
#[derive(Debug, Default)]
pub(super) struct KeptContents {
    names: BTreeMap<Key, KeptName>,
    /// Wildcards and globs of which all names are known.
    complete_scopes: BTreeSet<TypedSubscription>,
    /// The moments at which TTLs run out, which nobody renews any more (E10).
    timers: Timers<(Key, Option<Constraints>)>,
}

/// The last state that an earlier server gave a name.
#[derive(Debug, Default)]
struct KeptName {
    /// The resource, or its variants; the first that is for a client counts.
    variants: Vec<Arc<Resource>>,
    error: Option<WatchError>,
}

impl KeptContents {
    /// Returns whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.complete_scopes.is_empty()
    }

    /// Keeps the resources that a server has of a name, and the error of the
    /// name. Variants that are kept already stay, behind those with other
    /// constraints (TP2). `expires_at` tells when the TTL of a resource runs
    /// out.
    pub(super) fn keep(
        &mut self,
        key: &Key,
        variants: Vec<Arc<Resource>>,
        error: Option<WatchError>,
        expires_at: impl Fn(&Resource) -> Option<Moment>,
    ) {
        for variant in &variants {
            let timer = (key.clone(), variant.constraints.clone());
            match expires_at(variant) {
                Some(deadline) => self.timers.set(timer, deadline),
                None => _ = self.timers.cancel(&timer),
            }
        }

        // New variants come first, and replace those with the same constraints.
        let name = self.names.entry(key.clone()).or_default();
        let is_replaced = |kept: &Arc<Resource>| {
            variants
                .iter()
                .any(|variant| variant.constraints == kept.constraints)
        };
        name.variants.retain(|kept| !is_replaced(kept));
        name.variants.splice(..0, variants);
        name.error = error;
        if name.variants.is_empty() && name.error.is_none() {
            self.names.remove(key);
        }
    }

    /// Keeps that all names of a wildcard or a glob are known.
    pub(super) fn keep_complete(&mut self, scope: TypedSubscription) {
        self.complete_scopes.insert(scope);
    }

    /// Returns whether all names of a wildcard or a glob were known when they
    /// were kept.
    pub(super) fn is_complete(&self, scope: &TypedSubscription) -> bool {
        self.complete_scopes.contains(scope)
    }

    /// Forgets that a wildcard or a glob is complete: the server in use is to
    /// tell from now on.
    pub(super) fn drop_complete(&mut self, scope: &TypedSubscription) {
        self.complete_scopes.remove(scope);
    }

    /// Drops a name.
    pub(super) fn drop_name(&mut self, key: &Key) {
        let Some(name) = self.names.remove(key) else {
            return;
        };
        for variant in name.variants {
            self.timers
                .cancel(&(key.clone(), variant.constraints.clone()));
        }
    }

    /// Drops the kept variants of a name that are for these parameters, and the
    /// name with the last of them.
    pub(super) fn drop_variants(&mut self, key: &Key, params: &Params) {
        let Some(name) = self.names.get_mut(key) else {
            return;
        };

        let dropped_variants = name
            .variants
            .extract_if(.., |variant| is_for(variant, params));
        for variant in dropped_variants {
            self.timers
                .cancel(&(key.clone(), variant.constraints.clone()));
        }
        if name.variants.is_empty() {
            self.names.remove(key);
        }
    }

    /// Drops what is kept of names, wildcards and globs that the source is not
    /// subscribed to any more (C25).
    pub(super) fn drop_unsubscribed(&mut self, subscriptions: &Subscriptions) {
        let is_unsubscribed = |key: &Key| !subscriptions.covers(&key.0, &key.1);
        let unsubscribed_keys: Vec<Key> = self
            .names
            .keys()
            .filter(|key| is_unsubscribed(key))
            .cloned()
            .collect();
        unsubscribed_keys.iter().for_each(|key| self.drop_name(key));
        self.complete_scopes.retain(|scope| {
            subscriptions
                .iter()
                .any(|subscription| subscription == scope)
        });
    }

    /// Returns all kept names.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.names.keys()
    }

    /// Returns the kept names of one type.
    pub(super) fn names(&self, type_url: &TypeUrl) -> impl Iterator<Item = &Name> {
        let type_keys = self.names.keys().filter(move |(url, _)| url == type_url);
        type_keys.map(|(_, name)| name)
    }

    /// Returns the kept variants of a name: none if nothing is kept of it, or
    /// only an error.
    pub(super) fn variants(&self, key: &Key) -> &[Arc<Resource>] {
        self.names.get(key).map_or(&[], |name| &name.variants)
    }

    /// Returns the kept state of a name for these parameters. A name that is not
    /// kept does not exist if a complete wildcard or glob covers it; else
    /// nothing is known of it.
    pub(super) fn state(&self, key: &Key, params: &Params) -> State {
        let Some(name) = self.names.get(key) else {
            let mut complete_scopes = self.complete_scopes.iter();
            let is_listed = |(url, subscription): &TypedSubscription| {
                *url == key.0
                    && subscription.params == *params
                    && subscription.selector.covers(&key.1)
            };
            return State {
                error: complete_scopes.any(is_listed).then(WatchError::deleted),
                ..State::default()
            };
        };

        let value = name.variants.iter().find(|variant| is_for(variant, params));
        State {
            value: value.cloned(),
            error: name.error.clone(),
            origin: None,
        }
    }

    /// Returns the next moment at which a TTL runs out; `None` if no kept
    /// resource has one.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.timers.next()
    }

    /// Drops the kept resources whose TTL has run out (E10). A name that is left
    /// without any has that as its error. Returns the names.
    pub(super) fn expire(&mut self, now: Moment) -> Vec<Key> {
        let mut expired_keys = Vec::new();
        for (key, constraints) in self.timers.expire(now) {
            if let Some(name) = self.names.get_mut(&key) {
                name.variants
                    .retain(|variant| variant.constraints != constraints);
                if name.variants.is_empty() {
                    name.error = Some(WatchError::expired());
                }
            }
            expired_keys.push(key);
        }
        expired_keys
    }
}

/// Returns whether a variant is for these parameters (TP2).
fn is_for(resource: &Resource, params: &Params) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|constraints| constraints.matches(params))
}
