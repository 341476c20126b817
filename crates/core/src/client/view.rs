//! The contents that a source sees: those of the server in use, and under them
//! those that are kept of servers that it used before.
//!
//! ```text
//!   server in use:  a  b     (c: removed)     what it has spoken of
//!   kept:              b         c      d     of servers before
//!   ─────────────────────────────────────
//!   seen:           a  b                d     as far as subscribed to
//! ```
//!
//! A source without servers (a file) has contents of its own in place of a
//! server's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ServerId;
use super::contents::{Contents, Key};
use super::kept::KeptContents;
use super::server::Server;
use super::source::Source;
use super::subscriptions::{Subscriptions, TypedSubscription};
use super::watch::State;
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::{Resource, TypeUrl};
use crate::sink::{Cause, DataErrors, Effects, Sink, WatchError, drops_value};

/// The contents of a source as its watches see them; see the module's
/// documentation.
pub(super) struct SourceView<'a> {
    subscriptions: &'a Subscriptions,
    kept: &'a mut KeptContents,
    unreachable_error: Option<&'a WatchError>,
    contents: &'a mut Contents,
    /// The sink of the server in use.
    sink: Option<&'a Sink>,
    policy: DataErrors,
}

impl<'a> SourceView<'a> {
    /// Makes the view of a source: of the contents of the server in use, or of
    /// its own if it has no servers.
    pub(super) fn new(source: &'a mut Source, servers: &'a mut BTreeMap<ServerId, Server>) -> Self {
        let server = source.current_server().and_then(|id| servers.get_mut(&id));
        let (contents, sink, policy) = match server {
            Some(server) => {
                let policy = server.config.sink.data_errors;
                (&mut server.contents, Some(&server.sink), policy)
            }
            None => (&mut source.own_contents, None, DataErrors::Obey),
        };
        Self {
            subscriptions: &source.subscriptions,
            kept: &mut source.kept,
            unreachable_error: source.unreachable_error.as_ref(),
            contents,
            sink,
            policy,
        }
    }

    /// Returns the state of a name. While no server can be reached, that is its
    /// error.
    pub(super) fn state(&mut self, key: &Key, params: &Params) -> State {
        if !self.subscriptions.covers(&key.0, &key.1) {
            return State::default();
        }
        let mut state = self.known_state(key, params);
        if let Some(error) = self.unreachable_error {
            state.error = Some(error.clone()); // C49
        }
        state
    }

    /// Returns the state of a name, whether or not the servers can be reached:
    /// that of the server in use, or a kept one while the server has not spoken
    /// of the name.
    fn known_state(&mut self, key: &Key, params: &Params) -> State {
        let server_state = self.contents.state(&key.0, &key.1, params);
        let kept_state = self.kept.state(key, params);
        if server_state.value.is_some() || kept_state.is_pending() {
            return server_state;
        }

        match self.state_without_value(key, server_state) {
            // A kept value outlives silence: the server may be slow.
            State {
                error: Some(error), ..
            } if kept_state.value.is_some() => match self.drops(&error) {
                true => error_alone(error),
                false if error.cause == Cause::Silent => kept_state,
                false => State {
                    error: Some(error),
                    ..kept_state
                },
            },
            server_state if server_state.is_pending() => kept_state,
            server_state => server_state,
        }
    }

    /// Returns the state that the server in use gives to a name without a
    /// value: a name that a complete wildcard or glob does not list does not
    /// exist, but a name without a variant for some parameters may get one
    /// (TP2).
    fn state_without_value(&self, key: &Key, server_state: State) -> State {
        let (url, name) = key;
        let error = self.contents.error(url, name);
        if error.is_some_and(|error| error.cause != Cause::Silent) {
            server_state
        } else if self.contents.is_listed_completely(url, name) {
            error_alone(WatchError::deleted())
        } else if self.contents.has(url, name) {
            State::default()
        } else {
            server_state
        }
    }

    /// Returns whether an error ends the use of a kept value: as it would end
    /// the use of the server's own value (C40, C41), except for silence.
    fn drops(&self, error: &WatchError) -> bool {
        error.cause != Cause::Silent && drops_value(error.cause, self.policy)
    }

    /// Returns whether the server in use has spoken of a name to every
    /// subscription of it, so that no kept state is left to use.
    fn is_superseded(&mut self, key: &Key) -> bool {
        let params: BTreeSet<_> = self
            .subscriptions
            .params_covering(&key.0, &key.1)
            .cloned()
            .collect();
        params.iter().all(|params| {
            let server_state = self.contents.state(&key.0, &key.1, params);
            let has_value = server_state.value.is_some();
            let is_kept = self.kept.state(key, params).value.is_some();
            let state = self.state_without_value(key, server_state);
            match &state.error {
                _ if has_value => true,
                Some(error) if is_kept => self.drops(error),
                _ => !state.is_pending(),
            }
        })
    }

    /// Drops the kept states of names that the server in use has spoken of by
    /// these effects, which are about these `keys`. A wildcard or glob that has
    /// become complete says something of every kept name: then all of them are
    /// visited and returned, for the caller to evaluate.
    pub(super) fn absorb(&mut self, effects: &Effects, keys: &BTreeSet<Key>) -> Vec<Key> {
        if self.kept.is_empty() {
            return Vec::new();
        }

        let is_scope = |(_, subscription): &TypedSubscription| {
            !matches!(subscription.selector, Selector::Name(_))
        };
        let kept_keys = match effects.complete.iter().any(is_scope) {
            true => self.supersede_all(),
            false => Vec::new(),
        };

        self.supersede(keys);
        for (url, subscription) in &effects.complete {
            if let Selector::Name(name) = &subscription.selector {
                self.drop_unmatched(&(url.clone(), name.clone()), &subscription.params);
            }
        }
        kept_keys
    }

    /// Drops the kept state of a name on which the server in use was silent for
    /// too long, if the server has answered on its stream: its silence is an
    /// answer then.
    pub(super) fn drop_silent(&mut self, key: &Key) {
        let has_answered = self.sink.is_some_and(Sink::got_response);
        if has_answered && drops_value(Cause::Silent, self.policy) {
            self.kept.drop_name(key);
        }
    }

    /// Drops the kept states of names that the server in use has spoken of; the
    /// others stay.
    fn supersede<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) {
        for key in keys {
            if self.is_superseded(key) {
                self.kept.drop_name(key);
            }
        }
    }

    /// Drops every kept state of a name that the server in use has spoken of.
    /// Returns all names that were kept before.
    pub(super) fn supersede_all(&mut self) -> Vec<Key> {
        let scopes: Vec<_> = self.subscriptions.scopes().cloned().collect();
        for scope in scopes {
            if self.contents.is_complete(&scope.0, &scope.1) {
                self.kept.drop_complete(&scope);
            }
        }
        let keys: Vec<_> = self.kept.keys().cloned().collect();
        self.supersede(&keys);
        keys
    }

    /// Drops the kept variants of a name that are for these parameters (TP2),
    /// unless the server in use has no variant of the name at all, or an error.
    /// The server has told that the subscription with these parameters has its
    /// answer.
    fn drop_unmatched(&mut self, key: &Key, params: &Params) {
        let has_variants = self.contents.has(&key.0, &key.1);
        if has_variants && self.contents.error(&key.0, &key.1).is_none() {
            self.kept.drop_variants(key, params);
        }
    }

    /// Keeps everything that the server in use has said: it is about to be
    /// replaced, or to start anew.
    pub(super) fn keep(&mut self) {
        for key in self.keys() {
            let state = self.known_state(&key, &Params::default());
            let mut variants = self.contents.variants(&key.0, &key.1);
            if variants.is_empty() {
                // The value of an alias is under another name (S36).
                let default_state = self.contents.state(&key.0, &key.1, &Params::default());
                variants.extend(default_state.value);
            }
            let expires_at = |variant: &Resource| self.sink?.expires_at(&key.0, variant);
            self.kept.keep(&key, variants, state.error, expires_at);
        }

        let scopes: Vec<_> = self.subscriptions.scopes().cloned().collect();
        for scope in scopes {
            if self.contents.is_complete(&scope.0, &scope.1) {
                self.kept.keep_complete(scope);
            }
        }
    }

    /// Returns the names that have contents or a kept state and are covered,
    /// and those that are subscribed to one by one.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        let subscribed_names = self.subscriptions.names();
        let subscribed_keys = subscribed_names.map(|(url, name)| (url.clone(), name.clone()));
        let content_keys = self.contents.keys().into_iter();
        let covered_keys = content_keys.filter(|(url, name)| self.subscriptions.covers(url, name));
        subscribed_keys
            .chain(covered_keys)
            .chain(self.kept.keys().cloned())
            .collect()
    }

    /// Returns the names of a type that have contents or an error.
    pub(super) fn names(&self, type_url: &TypeUrl) -> BTreeSet<Name> {
        let names = self.contents.names(type_url).into_iter();
        let covered_names = names.filter(|name| self.subscriptions.covers(type_url, name));
        covered_names
            .chain(self.kept.names(type_url).cloned())
            .collect()
    }

    /// Returns the variants of a name that are in use: those of the server in
    /// use, or else the kept ones.
    pub(super) fn variants(&self, key: &Key) -> Vec<Arc<Resource>> {
        let variants = self.contents.variants(&key.0, &key.1);
        match variants.is_empty() {
            true => self.kept.variants(key).to_vec(),
            false => variants,
        }
    }

    /// Proves the invariants: every kept name is subscribed to, and the server
    /// in use has not spoken of it.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.contents.check()?;
        let kept_keys: Vec<_> = self.kept.keys().cloned().collect();
        for key in &kept_keys {
            if !self.subscriptions.covers(&key.0, &key.1) {
                return Err(format!("{key:?} is kept without a subscription"));
            }
            if self.is_superseded(key) {
                return Err(format!("{key:?} is kept and superseded"));
            }
        }
        Ok(())
    }

    /// Returns whether a subscription is not answered yet (C46): a name without
    /// a value or a definite error, a wildcard or glob that is not complete.
    pub(super) fn is_missing(&mut self, (url, subscription): &TypedSubscription) -> bool {
        match &subscription.selector {
            Selector::Name(name) => {
                let state = self.known_state(&(url.clone(), name.clone()), &subscription.params);
                let is_absent = |error: &WatchError| error.cause.is_definite();
                state.value.is_none() && !state.error.as_ref().is_some_and(is_absent)
            }
            _ => {
                let key = (url.clone(), subscription.clone());
                !self.contents.is_complete(url, subscription) && !self.kept.is_complete(&key)
            }
        }
    }

    /// Returns whether any subscription is not answered yet (C46). Visits all
    /// of them.
    pub(super) fn is_missing_any(&mut self) -> bool {
        let subscriptions: Vec<_> = self.subscriptions.iter().cloned().collect();
        subscriptions
            .iter()
            .any(|subscription| self.is_missing(subscription))
    }
}

/// Makes the state of a name that has an error in place of a value.
fn error_alone(error: WatchError) -> State {
    State {
        error: Some(error),
        ..State::default()
    }
}
