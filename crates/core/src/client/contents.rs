//! The contents of one server, or of a source without servers: a database,
//! whose subscribers are the subscriptions of the client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::watch::State;
use crate::change::Change;
use crate::database::{
    Choice, CursorId, Database, EntryId, Position, Scope, StreamId, SubscriberId, TypeId,
};
use crate::name::{Name, Selector};
use crate::params::{Params, ParamsId};
use crate::resource::{Resource, TypeUrl};
use crate::sink::{Subscription, WatchError};

/// A name of a type.
pub(super) type Key = (TypeUrl, Name);

/// The contents of a source or a server; see the module's documentation.
#[derive(Debug)]
pub(super) struct Contents {
    database: Database,
    subscribers: BTreeMap<(TypeUrl, Params), TypeSubscriber>,
    /// The subscriber of each stream of the database.
    keys_by_stream: HashMap<StreamId, (TypeUrl, Params)>,
    /// The error of a name: why it has no value, or only an old one.
    errors: HashMap<Key, WatchError>,
}

/// The subscriptions to one type with the same parameters.
#[derive(Debug)]
struct TypeSubscriber {
    id: SubscriberId,
    stream: StreamId,
    type_id: TypeId,
    params: ParamsId,
    names: BTreeMap<Name, EntryId>,
    /// Wildcards and globs, each with the position up to which watches know its
    /// changes.
    scopes: BTreeMap<Selector, (CursorId, Position)>,
}

impl Contents {
    /// Makes contents of which nothing is known.
    pub(super) fn new() -> Self {
        Self {
            database: Database::cache(),
            subscribers: BTreeMap::new(),
            keys_by_stream: HashMap::new(),
            errors: HashMap::new(),
        }
    }

    /// Adds a subscription, which the caller has not added before. Its names
    /// are in [`Self::take_changed`] as they change from now on.
    pub(super) fn subscribe(&mut self, type_url: &TypeUrl, subscription: &Subscription) {
        let key = (type_url.clone(), subscription.params.clone());
        let database = &mut self.database;
        let subscriber = self.subscribers.entry(key.clone()).or_insert_with(|| {
            let params = database.intern_params(subscription.params.clone());
            database.hold_params(params);
            let type_id = database.type_id(type_url);
            let stream = database.open_stream();
            self.keys_by_stream.insert(stream, key);
            TypeSubscriber {
                id: database.add_subscriber(stream, type_id, params),
                stream,
                type_id,
                params,
                names: BTreeMap::new(),
                scopes: BTreeMap::new(),
            }
        });

        let (id, params) = (subscriber.id, subscriber.params);
        match &subscription.selector {
            Selector::Name(name) => {
                let entry = database.subscribe(id, name, params);
                subscriber.names.insert(name.clone(), entry);
            }
            selector => {
                if let Some(scope) = scope_of(selector) {
                    let cursor = database.open_cursor(id, &scope);
                    subscriber.scopes.insert(selector.clone(), (cursor, 0));
                }
            }
        }
    }

    /// Removes a subscription. Contents that it covered stay until they are
    /// forgotten; a wildcard or glob is not complete any more.
    pub(super) fn unsubscribe(&mut self, type_url: &TypeUrl, subscription: &Subscription) {
        let key = (type_url.clone(), subscription.params.clone());
        let Some(subscriber) = self.subscribers.get_mut(&key) else {
            return;
        };

        let (id, type_id, params) = (subscriber.id, subscriber.type_id, subscriber.params);
        match &subscription.selector {
            Selector::Name(name) => {
                if let Some(entry) = subscriber.names.remove(name) {
                    self.database.unsubscribe(id, entry, params);
                }
            }
            selector => {
                if let Some((cursor, _)) = subscriber.scopes.remove(selector) {
                    self.database.close_cursor(cursor);
                }
                if let Some(scope) = scope_of(selector) {
                    self.database.set_incomplete(type_id, &scope);
                }
            }
        }

        if subscriber.names.is_empty() && subscriber.scopes.is_empty() {
            self.database.remove_subscriber(id);
            self.database.close_stream(subscriber.stream);
            self.database.release_params(params);
            self.keys_by_stream.remove(&subscriber.stream);
            self.subscribers.remove(&key);
        }
    }

    /// Returns whether a subscription covers the name.
    pub(super) fn is_subscribed(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.subscribers_of(type_url).any(|subscriber| {
            let mut scopes = subscriber.scopes.keys();
            subscriber.names.contains_key(name) || scopes.any(|scope| scope.covers(name))
        })
    }

    /// Returns whether the name has contents.
    pub(super) fn has(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let type_id = self.database.find_type(type_url);
        type_id.is_some_and(|id| !self.database.variants(id, name).is_empty())
    }

    /// Returns the variants of a name; none if it has no contents.
    pub(super) fn variants(&self, type_url: &TypeUrl, name: &Name) -> Vec<Arc<Resource>> {
        let type_id = self.database.find_type(type_url);
        let variants = type_id.map(|id| self.database.variants(id, name).to_vec());
        variants.unwrap_or_default()
    }

    /// Returns the subscribers of one type, one for each set of parameters.
    fn subscribers_of(&self, type_url: &TypeUrl) -> impl Iterator<Item = &TypeSubscriber> {
        let first_key = (type_url.clone(), Params::default());
        let entries = self.subscribers.range(first_key..);
        entries
            .take_while(move |((url, _), _)| url == type_url)
            .map(|(_, subscriber)| subscriber)
    }

    /// Applies changes together. A change that contradicts others is left out:
    /// its name keeps what it had, and gets an error. If there is one, the others
    /// are applied one by one, and the order decides which one is left out.
    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            if let Change::Upsert(url, resource) = change {
                self.errors.remove(&(url.clone(), resource.name.clone()));
            }
        }

        // Contradictions are the exception: the sink has judged the variants.
        let Err(_) = self.database.apply(changes.clone()) else {
            return;
        };
        for change in changes {
            let key = key_of(&change);
            if let Err(error) = self.database.apply(vec![change])
                && let Some(key) = key
            {
                self.errors.insert(key, WatchError::of_contradiction(error));
            }
        }
    }

    /// Returns the error of a name, if it has one.
    pub(super) fn error(&self, type_url: &TypeUrl, name: &Name) -> Option<&WatchError> {
        self.errors.get(&(type_url.clone(), name.clone()))
    }

    /// Returns whether the source has spoken of every name that a wildcard or a
    /// glob covers.
    pub(super) fn is_complete(&self, type_url: &TypeUrl, subscription: &Subscription) -> bool {
        let key = (type_url.clone(), subscription.params.clone());
        let subscriber = self.subscribers.get(&key);
        let scope = subscriber.and_then(|subscriber| subscriber.scopes.get(&subscription.selector));
        scope.is_some_and(|(cursor, _)| self.database.is_complete(*cursor))
    }

    /// Sets or clears the error of a name.
    pub(super) fn set_error(&mut self, type_url: &TypeUrl, name: &Name, error: Option<WatchError>) {
        let key = (type_url.clone(), name.clone());
        match error {
            Some(error) => _ = self.errors.insert(key, error),
            None => _ = self.errors.remove(&key),
        }
    }

    /// Records that the source has spoken of every name that a wildcard or a
    /// glob covers. Does nothing for a name.
    pub(super) fn set_complete(&mut self, type_url: &TypeUrl, selector: &Selector) {
        if let Some(scope) = scope_of(selector) {
            let type_id = self.database.type_id(type_url);
            self.database.set_complete(type_id, &scope);
        }
    }

    /// Drops the contents and the error of a name. Nothing is known of it then,
    /// not even that it does not exist.
    pub(super) fn forget(&mut self, type_url: &TypeUrl, name: &Name) {
        self.errors.remove(&(type_url.clone(), name.clone()));
        if let Some(type_id) = self.database.find_type(type_url) {
            self.database.forget(type_id, name);
        }
    }

    /// Drops all names that no subscription covers.
    pub(super) fn forget_unsubscribed(&mut self) {
        for (type_url, name) in self.keys() {
            if !self.is_subscribed(&type_url, &name) {
                self.forget(&type_url, &name);
            }
        }
    }

    /// Returns the names whose contents have changed for any subscription since
    /// the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Key> {
        let mut changed_keys = BTreeSet::new();
        for stream in self.database.take_woken_streams() {
            let Some(key) = self.keys_by_stream.get(&stream) else {
                continue;
            };
            let Some(subscriber) = self.subscribers.get_mut(key) else {
                continue;
            };

            for (entry, _) in self.database.take_dirty(subscriber.id, usize::MAX) {
                let name = self.database.name(subscriber.type_id, entry).clone();
                changed_keys.insert((key.0.clone(), name));
            }

            for (cursor, position) in subscriber.scopes.values_mut() {
                let names = self.database.changed_names(*cursor, *position);
                changed_keys.extend(names.into_iter().map(|name| (key.0.clone(), name)));

                let head = self.database.head(*cursor);
                self.database.pin(*cursor, head);
                self.database.unpin(*cursor, *position);
                *position = head;
            }
        }
        changed_keys
    }

    /// Returns the state of a name for these parameters, without its origin,
    /// which the caller knows.
    pub(super) fn state(&mut self, type_url: &TypeUrl, name: &Name, params: &Params) -> State {
        let error = self.errors.get(&(type_url.clone(), name.clone())).cloned();
        let Some(type_id) = self.database.find_type(type_url) else {
            return State {
                error,
                ..State::default()
            };
        };

        let choice = match self.database.find(type_id, name) {
            Some(entry) => {
                let params = self.database.intern_params(params.clone());
                self.database.choose(type_id, entry, params)
            }
            None if self.is_listed_completely(type_url, name) => Choice::Absent,
            None => Choice::Unknown,
        };

        match choice {
            Choice::Resource(value) => State {
                value: Some(value),
                error,
                origin: None,
            },
            Choice::Failed(failure, value) => State {
                value,
                error: error.or_else(|| Some(WatchError::of_source(&failure))),
                origin: None,
            },
            Choice::Absent => State {
                error: error.or_else(|| Some(WatchError::deleted())),
                ..State::default()
            },
            Choice::Unknown => State {
                error,
                ..State::default()
            },
        }
    }

    /// Returns whether a complete wildcard or glob covers the name: if it is
    /// not listed, it does not exist.
    pub(super) fn is_listed_completely(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.subscribers_of(type_url).any(|subscriber| {
            let mut scopes = subscriber.scopes.iter();
            scopes.any(|(selector, (cursor, _))| {
                selector.covers(name) && self.database.is_complete(*cursor)
            })
        })
    }

    /// Returns the names of a type that have contents or an error.
    pub(super) fn names(&self, type_url: &TypeUrl) -> BTreeSet<Name> {
        let type_id = self.database.find_type(type_url);
        let resources = type_id.map(|type_id| self.database.resources(type_id));
        let resource_names = resources
            .into_iter()
            .flatten()
            .map(|resource| resource.name.clone());
        let failed_keys = self.errors.keys().filter(|(url, _)| url == type_url);
        resource_names
            .chain(failed_keys.map(|(_, name)| name.clone()))
            .collect()
    }

    /// Returns all names that have contents or an error.
    pub(super) fn keys(&self) -> Vec<Key> {
        let types = self.database.types().map(|(_, url)| url.clone());
        let keys = types.flat_map(|url| {
            let names = self.names(&url).into_iter();
            names.map(move |name| (url.clone(), name))
        });
        keys.collect()
    }

    /// Proves the invariants of the database and of the subscribers in it.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.database.check()?;
        for (key, subscriber) in &self.subscribers {
            if self.keys_by_stream.get(&subscriber.stream) != Some(key) {
                return Err(format!("the stream of {key:?} is another's"));
            }
            if subscriber.names.is_empty() && subscriber.scopes.is_empty() {
                return Err(format!("{key:?} has a subscriber without subscriptions"));
            }
        }
        match self.keys_by_stream.len() == self.subscribers.len() {
            true => Ok(()),
            false => Err("a stream has no subscriber".to_owned()),
        }
    }
}

/// Returns the scope of a wildcard or a glob; `None` for a name.
fn scope_of(selector: &Selector) -> Option<Scope> {
    match selector {
        Selector::Name(_) => None,
        Selector::Wildcard => Some(Scope::All),
        Selector::Glob(glob) => Some(Scope::Glob(glob.clone())),
    }
}

/// Returns the type and the name that a change is about; `None` if it is about a
/// whole type.
pub(super) fn key_of(change: &Change) -> Option<Key> {
    match change {
        Change::Upsert(url, resource) => Some((url.clone(), resource.name.clone())),
        Change::Remove(url, name)
        | Change::RemoveVariant(url, name, _)
        | Change::Fail(url, name, _) => Some((url.clone(), name.clone())),
        Change::ReplaceAll(..) => None,
    }
}
