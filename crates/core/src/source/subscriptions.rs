//! The subscriptions of a client by name, and the answers that it ACKed.
//!
//! A subscription is not what the client holds: that is in `client_cache`. One
//! resource may answer several subscriptions, by its name, by an alias, or as
//! the virtual host of several hosts; and a subscription that no resource
//! answers is told so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::database::EntryId;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::ResourceError;

/// Identifies one subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SubscriptionKey {
    pub(crate) entry: EntryId,
    pub(crate) params: ParamsId,
}

/// The kind of the last answer that the client ACKed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// No answer yet.
    #[default]
    Unanswered,
    /// The name does not exist.
    Absent,
    /// A resource, of the requested name or of another one
    /// ([`Subscriptions::resolved_name`]).
    Resource,
    /// An error, which is in [`Subscriptions::error`] (S61).
    Error,
}

/// The state of one named subscription. There is one of these for every name
/// of every stream, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subscription {
    pub(crate) acked_answer: AnswerKind,
    /// Whether the client subscribed (again): it is answered even if nothing
    /// changed (S28, S30, S53).
    pub(crate) resend: bool,
    /// Whether the name is an unbounded host (S72).
    pub(crate) unbounded: bool,
    /// Whether the name was in the first request of a client that reconnected
    /// (S82).
    pub(crate) is_resumed: bool,
}

/// All subscriptions of a type stream by name.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    /// The parameters of plain names.
    plain_params: ParamsId,
    /// The parameters that plain names had before, while they are changed one
    /// by one.
    former_params: Option<ParamsId>,
    by_key: HashMap<SubscriptionKey, Subscription>,
    /// Names that are subscribed to with other parameters than `plain_params`
    /// (TP2).
    locator_params: BTreeMap<EntryId, Vec<ParamsId>>,
    /// The name of the resource that last answered a subscription, where it
    /// differs from the requested one.
    resolved_names: HashMap<SubscriptionKey, Name>,
    /// How many subscriptions resolve to each of these names.
    resolved_counts: HashMap<Name, u32>,
    errors: HashMap<SubscriptionKey, Arc<ResourceError>>,
    /// Subscriptions that a plain name and a locator both make (TP2).
    plain_and_located: BTreeSet<SubscriptionKey>,
    /// Subscriptions with the plain parameters that only a locator makes: they
    /// stay when the plain parameters change.
    located_only: BTreeSet<SubscriptionKey>,
    unbounded_hosts: usize,
    /// The sum of the weights of all names.
    weight: usize,
}

impl Subscriptions {
    /// Makes an empty set of subscriptions whose plain names have these
    /// parameters.
    pub(crate) fn new(plain_params: ParamsId) -> Self {
        Self {
            plain_params,
            former_params: None,
            by_key: HashMap::new(),
            locator_params: BTreeMap::new(),
            resolved_names: HashMap::new(),
            resolved_counts: HashMap::new(),
            errors: HashMap::new(),
            plain_and_located: BTreeSet::new(),
            located_only: BTreeSet::new(),
            unbounded_hosts: 0,
            weight: 0,
        }
    }

    /// Returns the number of subscriptions, one for each name and set of
    /// parameters.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns whether there are no subscriptions by name.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the sum of the weights of all names.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the number of unbounded hosts (S72).
    pub(crate) fn unbounded_hosts(&self) -> usize {
        self.unbounded_hosts
    }

    /// Returns the state of a subscription; `None` if there is no such
    /// subscription.
    pub(crate) fn get(&self, key: SubscriptionKey) -> Option<&Subscription> {
        self.by_key.get(&key)
    }

    /// Returns the state of a subscription, to be changed; `None` if there is
    /// no such subscription.
    pub(crate) fn get_mut(&mut self, key: SubscriptionKey) -> Option<&mut Subscription> {
        self.by_key.get_mut(&key)
    }

    /// Returns all subscriptions with their states, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SubscriptionKey, &Subscription)> {
        self.by_key
            .iter()
            .map(|(key, subscription)| (*key, subscription))
    }

    /// Returns the keys of all subscriptions, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = SubscriptionKey> + '_ {
        self.by_key.keys().copied()
    }

    /// Removes and returns at most `limit` subscriptions of a type stream that
    /// is closed. Indexes and counts are not updated: they are not read any
    /// more.
    pub(crate) fn drain_some(&mut self, limit: usize) -> Vec<SubscriptionKey> {
        let entries = self.by_key.extract_if(|_, _| true).take(limit);
        entries.map(|(key, _)| key).collect()
    }

    /// Adds a subscription that does not exist yet, with the weight of its
    /// name.
    pub(crate) fn insert(
        &mut self,
        key: SubscriptionKey,
        subscription: Subscription,
        weight: usize,
    ) {
        self.weight += weight;
        self.unbounded_hosts += usize::from(subscription.unbounded);
        self.by_key.insert(key, subscription);
        if key.params != self.plain_params {
            self.index_located(key);
        }
    }

    /// Adds a subscription with other parameters than the plain ones to the
    /// index by which [`Self::iter_of_entry`] finds it.
    pub(crate) fn index_located(&mut self, key: SubscriptionKey) {
        let params_list = self.locator_params.entry(key.entry).or_default();
        if !params_list.contains(&key.params) {
            params_list.push(key.params);
        }
    }

    /// Ends a subscription to a name of this weight. Returns the subscription,
    /// and its resolved name if no other subscription resolves to that name;
    /// `None` if there is no such subscription.
    pub(crate) fn remove(
        &mut self,
        key: SubscriptionKey,
        weight: usize,
    ) -> Option<(Subscription, Option<Name>)> {
        let subscription = self.by_key.remove(&key)?;
        self.weight -= weight;
        self.unbounded_hosts -= usize::from(subscription.unbounded);
        self.errors.remove(&key);
        self.plain_and_located.remove(&key);
        self.located_only.remove(&key);
        if let Some(located) = self.locator_params.get_mut(&key.entry) {
            located.retain(|params| *params != key.params);
            if located.is_empty() {
                self.locator_params.remove(&key.entry);
            }
        }

        let unresolved_name = self.set_resolved_name(key, None);
        // A client that once had many names does not occupy memory for them.
        if self.by_key.len() < self.by_key.capacity() / 4 {
            self.by_key.shrink_to_fit();
        }
        Some((subscription, unresolved_name))
    }

    /// Returns the subscriptions of one name, one for each set of parameters.
    pub(crate) fn iter_of_entry(
        &self,
        entry: EntryId,
    ) -> impl Iterator<Item = (SubscriptionKey, &Subscription)> {
        let located_params = self
            .locator_params
            .get(&entry)
            .into_iter()
            .flatten()
            .copied();
        let former_params = self.former_params.filter(|former_params| {
            // If a locator has them too, they are among the located ones.
            let is_located = |params: &Vec<ParamsId>| params.contains(former_params);
            !self.locator_params.get(&entry).is_some_and(is_located)
        });

        let params = [self.plain_params]
            .into_iter()
            .chain(former_params)
            .chain(located_params);
        let keys = params.map(move |params| SubscriptionKey { entry, params });
        keys.filter_map(|key| Some((key, self.by_key.get(&key)?)))
    }

    /// Returns the name of the resource that last answered a subscription,
    /// where it differs from the requested one.
    pub(crate) fn resolved_name(&self, key: SubscriptionKey) -> Option<&Name> {
        self.resolved_names.get(&key)
    }

    /// Sets the resolved name of a subscription; `None` if the resource has the
    /// requested name, or there is none. Returns the old resolved name if no
    /// other subscription resolves to it.
    pub(crate) fn set_resolved_name(
        &mut self,
        key: SubscriptionKey,
        resolved_name: Option<Name>,
    ) -> Option<Name> {
        if self.resolved_names.get(&key) == resolved_name.as_ref() {
            return None;
        }

        if let Some(new_name) = &resolved_name {
            *self.resolved_counts.entry(new_name.clone()).or_default() += 1;
        }
        let old_name = match resolved_name {
            Some(new_name) => self.resolved_names.insert(key, new_name),
            None => self.resolved_names.remove(&key),
        }?;

        let count = self.resolved_counts.get_mut(&old_name)?;
        *count -= 1;
        (*count == 0).then(|| {
            self.resolved_counts.remove(&old_name);
            old_name
        })
    }

    /// Returns the number of subscriptions that resolve to this name.
    pub(crate) fn resolved_count(&self, name: &Name) -> u32 {
        self.resolved_counts.get(name).copied().unwrap_or_default()
    }

    /// Returns the subscriptions that resolve to this name. Visits all
    /// subscriptions that resolve to another name than the requested one.
    pub(crate) fn keys_resolving_to(&self, name: &Name) -> Vec<SubscriptionKey> {
        if self.resolved_count(name) == 0 {
            return Vec::new();
        }
        let entries = self
            .resolved_names
            .iter()
            .filter(|(_, resolved_name)| *resolved_name == name);
        entries.map(|(key, _)| *key).collect()
    }

    /// Returns the error that was the last answer to a subscription, if it was
    /// one (S61).
    pub(crate) fn error(&self, key: SubscriptionKey) -> Option<&Arc<ResourceError>> {
        self.errors.get(&key)
    }

    /// Records an answer that the client ACKed, and the error if it was one.
    /// Has no effect if the subscription ended in the meantime.
    pub(crate) fn record_answer(
        &mut self,
        key: SubscriptionKey,
        answer: AnswerKind,
        error: Option<Arc<ResourceError>>,
    ) {
        let Some(subscription) = self.by_key.get_mut(&key) else {
            return;
        };
        subscription.acked_answer = answer;
        match error {
            Some(error) => _ = self.errors.insert(key, error),
            None => _ = self.errors.remove(&key),
        }
    }

    /// Marks a subscription with the plain parameters as made by a locator
    /// alone: it stays when the plain parameters change.
    pub(crate) fn mark_located_only(&mut self, key: SubscriptionKey) {
        if key.params == self.plain_params && self.by_key.contains_key(&key) {
            self.located_only.insert(key);
        }
    }

    /// Returns whether a locator alone makes this subscription, with the plain
    /// parameters (TP2).
    pub(crate) fn is_located_only(&self, key: SubscriptionKey) -> bool {
        self.located_only.contains(&key)
    }

    /// Returns whether locators with the plain parameters made some of the
    /// subscriptions.
    pub(crate) fn has_located(&self) -> bool {
        !self.located_only.is_empty() || !self.plain_and_located.is_empty()
    }

    /// Returns whether a plain name makes this subscription, alone or together
    /// with a locator.
    pub(crate) fn is_plain(&self, key: SubscriptionKey) -> bool {
        key.params == self.plain_params && !self.located_only.contains(&key)
    }

    /// Records from a new list whether a plain name, a locator or both make
    /// this subscription. A subscription that only a plain name makes has no
    /// mark.
    pub(crate) fn set_origins(&mut self, key: SubscriptionKey, is_plain: bool, is_located: bool) {
        self.plain_and_located.remove(&key);
        self.located_only.remove(&key);
        if is_plain && is_located {
            self.mark_plain_and_located(key);
        } else if is_located {
            self.mark_located_only(key);
        }
    }

    /// Marks a subscription that a locator made as made by a plain name as
    /// well.
    pub(crate) fn mark_plain_and_located(&mut self, key: SubscriptionKey) {
        self.located_only.remove(&key);
        self.plain_and_located.insert(key);
    }

    /// Takes away one of the two origins of a subscription that a plain name
    /// and a locator both make. Returns whether it had both, so that the
    /// subscription stays. The caller marks it if the locator is the origin
    /// that is left.
    pub(crate) fn unmark_plain_and_located(&mut self, key: SubscriptionKey) -> bool {
        self.plain_and_located.remove(&key)
    }

    /// Changes the plain parameters. Subscriptions with the old parameters keep
    /// them until [`Self::end_params_change`]; locators' subscriptions with the
    /// new ones are marked as located only. Returns the plain subscriptions,
    /// for the caller to change their parameters.
    pub(crate) fn set_plain_params(&mut self, params: ParamsId) -> Vec<SubscriptionKey> {
        let old_params = std::mem::replace(&mut self.plain_params, params);
        self.former_params = Some(old_params);
        let located_only = std::mem::take(&mut self.located_only);
        // The subscriptions of locators keep the old parameters.
        for key in &located_only {
            self.index_located(*key);
        }
        self.locator_params.retain(|entry, located| {
            if located.contains(&params) {
                let entry = *entry;
                self.located_only.insert(SubscriptionKey { entry, params });
            }
            located.retain(|located_params| *located_params != params);
            !located.is_empty()
        });

        let old_keys = self.by_key.keys().filter(|key| key.params == old_params);
        let mut plain_keys: Vec<SubscriptionKey> = old_keys.copied().collect();
        if !located_only.is_empty() {
            plain_keys.retain(|key| !located_only.contains(key));
        }
        plain_keys
    }

    /// Ends a change of the plain parameters, once no plain name has the old
    /// ones.
    pub(crate) fn end_params_change(&mut self) {
        self.former_params = None;
    }

    /// Proves that counts and indexes agree with the subscriptions. The error
    /// says which of them does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let unbounded_count = self
            .by_key
            .values()
            .filter(|subscription| subscription.unbounded)
            .count();
        if unbounded_count != self.unbounded_hosts {
            return Err(format!(
                "{unbounded_count} unbounded hosts, counted {}",
                self.unbounded_hosts
            ));
        }

        let mut answered_keys = self.resolved_names.keys().chain(self.errors.keys());
        if let Some(key) = answered_keys.find(|key| !self.by_key.contains_key(*key)) {
            return Err(format!("{key:?} is not subscribed to and has an answer"));
        }
        self.check_resolved_counts()?;
        self.check_located()
    }

    /// Proves that the counts of resolved names are those of the names
    /// themselves.
    fn check_resolved_counts(&self) -> Result<(), String> {
        let mut counts: HashMap<&Name, u32> = HashMap::new();
        for name in self.resolved_names.values() {
            *counts.entry(name).or_default() += 1;
        }

        let is_counted = |(name, count): (&&Name, &u32)| self.resolved_count(name) == *count;
        match counts.len() == self.resolved_counts.len() && counts.iter().all(is_counted) {
            true => Ok(()),
            false => Err(format!(
                "subscriptions resolve to {counts:?}, counted {:?}",
                self.resolved_counts
            )),
        }
    }

    /// Proves that only subscriptions with the plain parameters are marked as
    /// located only, and that just those with other parameters are in the index
    /// of locators.
    fn check_located(&self) -> Result<(), String> {
        let is_valid = |key: &SubscriptionKey| {
            key.params == self.plain_params && self.by_key.contains_key(key)
        };
        if let Some(key) = self.located_only.iter().find(|key| !is_valid(key)) {
            return Err(format!(
                "{key:?} is marked as located only, and has not the plain parameters"
            ));
        }

        let is_plain =
            |params: ParamsId| params == self.plain_params || Some(params) == self.former_params;
        let keys_with_locator = || self.keys().filter(|key| !is_plain(key.params));
        for key in keys_with_locator() {
            let indexed_params = self.locator_params.get(&key.entry);
            if !indexed_params.is_some_and(|indexed_params| indexed_params.contains(&key.params)) {
                return Err(format!(
                    "{key:?} has locator parameters and is not found by its name"
                ));
            }
        }

        let indexed_params = self.locator_params.values().flatten();
        let indexed_count = indexed_params
            .filter(|params| Some(**params) != self.former_params)
            .count();
        let expected_count = keys_with_locator().count();
        match indexed_count == expected_count {
            true => Ok(()),
            false => Err(format!(
                "{expected_count} subscriptions with locator parameters, {indexed_count} found by name"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
