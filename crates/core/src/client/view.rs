//! What a source sees: the contents of the server in use, and under them what
//! is kept of servers that it used before.
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
use super::kept::Kept;
use super::server::Server;
use super::source::Source;
use super::subscriptions::{Subscriptions, TypedSubscription};
use super::watch::State;
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::{Resource, TypeUrl};
use crate::sink::{Cause, DataErrors, Effects, Sink, WatchError, drops_value};

/// See the module's documentation.
pub(super) struct View<'a> {
    subscriptions: &'a Subscriptions,
    kept: &'a mut Kept,
    unreachable: Option<&'a WatchError>,
    contents: &'a mut Contents,
    /// Of the server in use.
    sink: Option<&'a Sink>,
    policy: DataErrors,
}

impl<'a> View<'a> {
    /// The view of a source.
    pub(super) fn new(source: &'a mut Source, servers: &'a mut BTreeMap<ServerId, Server>) -> Self {
        let server = source.in_use().and_then(|id| servers.get_mut(&id));
        let (contents, sink, policy) = match server {
            Some(server) => {
                let policy = server.config.sink.data_errors;
                (&mut server.contents, Some(&server.sink), policy)
            }
            None => (&mut source.own, None, DataErrors::Obey),
        };
        Self {
            subscriptions: &source.subscriptions,
            kept: &mut source.kept,
            unreachable: source.unreachable.as_ref(),
            contents,
            sink,
            policy,
        }
    }

    /// The state of a name.
    pub(super) fn state(&mut self, key: &Key, params: &Params) -> State {
        if !self.subscriptions.covers(&key.0, &key.1) {
            return State::default();
        }
        let mut state = self.known(key, params);
        if let Some(error) = self.unreachable {
            state.error = Some(error.clone()); // C49
        }
        state
    }

    /// The state of a name, whether or not the servers can be reached.
    fn known(&mut self, key: &Key, params: &Params) -> State {
        let said = self.contents.state(&key.0, &key.1, params);
        let kept = self.kept.state(key, params);
        if said.value.is_some() || kept.is_pending() {
            return said;
        }
        match self.word(key, said) {
            // A kept value outlives silence: the server may be slow.
            State {
                error: Some(error), ..
            } if kept.value.is_some() => match self.drops(&error) {
                true => error_alone(error),
                false if error.cause == Cause::Silent => kept,
                false => State {
                    error: Some(error),
                    ..kept
                },
            },
            said if said.is_pending() => kept,
            said => said,
        }
    }

    /// Returns the word of the server in use on a name that it has no value of:
    /// a name that a complete wildcard or glob does not list does not exist,
    /// but a name without a variant for some parameters may get one (TP2).
    fn word(&self, key: &Key, said: State) -> State {
        let (url, name) = key;
        let error = self.contents.error(url, name);
        if error.is_some_and(|error| error.cause != Cause::Silent) {
            said
        } else if self.contents.is_listed_completely(url, name) {
            error_alone(WatchError::deleted())
        } else if self.contents.has(url, name) {
            State::default()
        } else {
            said
        }
    }

    /// Returns whether an error ends the use of a kept value: as it would that
    /// of the server's own (C40, C41), but for silence.
    fn drops(&self, error: &WatchError) -> bool {
        error.cause != Cause::Silent && drops_value(error.cause, self.policy)
    }

    /// Returns whether the server in use has spoken of a name, for everyone who
    /// is subscribed to it: nothing of it is to be kept.
    fn is_superseded(&mut self, key: &Key) -> bool {
        let params: BTreeSet<_> = self
            .subscriptions
            .params_covering(&key.0, &key.1)
            .cloned()
            .collect();
        params.iter().all(|params| {
            let said = self.contents.state(&key.0, &key.1, params);
            let has_value = said.value.is_some();
            let is_kept = self.kept.state(key, params).value.is_some();
            let word = self.word(key, said);
            match &word.error {
                _ if has_value => true,
                Some(error) if is_kept => self.drops(error),
                _ => !word.is_pending(),
            }
        })
    }

    /// Drops what is kept and the server in use has spoken of, with these
    /// effects on these names. Returns the names that were kept, if all of them
    /// had to be looked at.
    pub(super) fn absorb(&mut self, effects: &Effects, keys: &BTreeSet<Key>) -> Vec<Key> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        let is_scope = |(_, one): &TypedSubscription| !matches!(one.selector, Selector::Name(_));
        let kept = match effects.complete.iter().any(is_scope) {
            true => self.supersede_all(),
            false => Vec::new(),
        };
        self.supersede(keys);
        for (url, one) in &effects.complete {
            if let Selector::Name(name) = &one.selector {
                self.drop_unmatched(&(url.clone(), name.clone()), &one.params);
            }
        }
        kept
    }

    /// Drops what is kept of a name on which the server in use was silent for
    /// too long: if it has answered on its stream, that is a word, too.
    pub(super) fn drop_silent(&mut self, key: &Key) {
        let has_answered = self.sink.is_some_and(Sink::got_response);
        if has_answered && drops_value(Cause::Silent, self.policy) {
            self.kept.drop_name(key);
        }
    }

    fn supersede<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) {
        for key in keys {
            if self.is_superseded(key) {
                self.kept.drop_name(key);
            }
        }
    }

    /// Drops all that is kept and that the server in use has spoken of. Returns
    /// the names that were kept.
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

    /// Drops the kept variants of a name for parameters that the server in use
    /// has none for (TP2).
    fn drop_unmatched(&mut self, key: &Key, params: &Params) {
        let has_others = self.contents.has(&key.0, &key.1);
        if has_others && self.contents.error(&key.0, &key.1).is_none() {
            self.kept.drop_variants(key, params);
        }
    }

    /// Keeps all that the server in use has said: it is about to be replaced,
    /// or to start anew.
    pub(super) fn keep(&mut self) {
        for key in self.keys() {
            let known = self.known(&key, &Params::default());
            let mut held = self.contents.held(&key.0, &key.1);
            if held.is_empty() {
                // Also the value of an alias, which is under another name (S36).
                let said = self.contents.state(&key.0, &key.1, &Params::default());
                held.extend(said.value);
            }
            let expires_at = |held: &Resource| self.sink?.expires_at(&key.0, held);
            self.kept.keep(&key, held, known.error, expires_at);
        }
        let scopes: Vec<_> = self.subscriptions.scopes().cloned().collect();
        for scope in scopes {
            if self.contents.is_complete(&scope.0, &scope.1) {
                self.kept.keep_complete(scope);
            }
        }
    }

    /// Returns the names that are seen, or subscribed to by themselves.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        let named = self.subscriptions.names();
        let named = named.map(|(url, name)| (url.clone(), name.clone()));
        let held = self.contents.keys().into_iter();
        let held = held.filter(|(url, name)| self.subscriptions.covers(url, name));
        named.chain(held).chain(self.kept.keys().cloned()).collect()
    }

    /// Returns the names of a type that have contents or an error.
    pub(super) fn names(&self, type_url: &TypeUrl) -> BTreeSet<Name> {
        let held = self.contents.names(type_url).into_iter();
        let held = held.filter(|name| self.subscriptions.covers(type_url, name));
        held.chain(self.kept.names(type_url).cloned()).collect()
    }

    /// Returns the variants of a name.
    pub(super) fn held(&self, key: &Key) -> Vec<Arc<Resource>> {
        let held = self.contents.held(&key.0, &key.1);
        match held.is_empty() {
            true => self.kept.held(key).to_vec(),
            false => held,
        }
    }

    /// Proves the invariants: what is kept is subscribed to, and the server in
    /// use has not spoken of it.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.contents.check()?;
        let kept: Vec<_> = self.kept.keys().cloned().collect();
        for key in &kept {
            if !self.subscriptions.covers(&key.0, &key.1) {
                return Err(format!("{key:?} is kept without a subscription"));
            }
            if self.is_superseded(key) {
                return Err(format!("{key:?} is kept and superseded"));
            }
        }
        Ok(())
    }

    /// Returns whether a subscription is not answered yet (C46).
    pub(super) fn is_missing(&mut self, (url, one): &TypedSubscription) -> bool {
        match &one.selector {
            Selector::Name(name) => {
                let state = self.known(&(url.clone(), name.clone()), &one.params);
                let is_absent = |error: &WatchError| error.cause.is_definite();
                state.value.is_none() && !state.error.as_ref().is_some_and(is_absent)
            }
            _ => {
                let key = (url.clone(), one.clone());
                !self.contents.is_complete(url, one) && !self.kept.is_complete(&key)
            }
        }
    }

    /// Returns whether a resource that is subscribed to is not known (C46).
    pub(super) fn is_missing_any(&mut self) -> bool {
        let all: Vec<_> = self.subscriptions.iter().cloned().collect();
        all.iter().any(|one| self.is_missing(one))
    }
}

/// The state of a name that has an error in place of a value.
fn error_alone(error: WatchError) -> State {
    State {
        error: Some(error),
        ..State::default()
    }
}
