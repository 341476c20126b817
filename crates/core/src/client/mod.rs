//! A client: subscriptions and watches in this process, contents from control
//! planes.
//!
//! ```text
//!  subscribe ─▶ ┌ Source: subscriptions ┐      ┌ Server: a sink   ┐ ─▶ poll_action
//!               │ choice among servers  │ ───▶ │ contents (a data │ ◀▶ requests,
//!               │ kept of those before  │ ◀─── │ base), back-off  │    responses,
//!               └──────────┬────────────┘ View └──────────────────┘    verdicts
//!  watch ─────▶ Watches ◀──┘ changed names
//!                  └──▶ poll_watch: the newest state of a name
//! ```
//!
//! To **subscribe** is to ask a source for a name; to **watch** is to be told
//! of it, whoever subscribes: a watch alone waits without asking, and resources
//! of the bootstrap need no subscription.
//!
//! A **source** is a list of servers, of which the first that works is used
//! (C46-C49); its resources are kept apart from those of other sources, also if
//! they have the same names. A **server** may be one of several sources, which
//! then share its stream and what it says (C12). A source sees what the server
//! in use has said, and of other names what it saw before it used that server.
//!
//! The machine does not dial, decode or wait. Its owner connects and closes as
//! [`Client::poll_action`] says, carries requests and responses, and judges the
//! responses. State for watchers is level-triggered: [`Client::poll_watch`]
//! tells which watch has news, and [`Client::state`] is the newest.

mod choice;
mod contents;
mod evaluate;
mod fallback;
mod kept;
mod rate_limit;
mod server;
mod source;
mod status;
mod subscriptions;
mod view;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::server::{Link, Server};
use self::source::Source;
use self::view::SourceView;
use self::watch::Watches;
use crate::Moment;
use crate::change::Transaction;
use crate::message::Request;
use crate::name::{Name, Selector};
use crate::resource::{Nonce, Resource, TypeUrl};
use crate::sink::{Cause, Delivery, Event, Response, SinkError, Subscription, Verdict, WatchError};

pub use fallback::FallbackPolicy;
pub use rate_limit::RateLimit;
pub use server::ServerConfig;
pub use status::{NameStatus, ServerStatus};
pub use watch::{Origin, State, Watched};

/// A server of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(u64);

/// A source of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u64);

/// A watch of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(u64);

/// A task for the owner of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a stream to the server, then call [`Client::handle_connected`], or
    /// [`Client::handle_disconnected`] if that fails.
    Connect(ServerId),
    /// Close the stream: nobody needs it, or another one is opened in its
    /// place. There is nothing to call after it.
    Close(ServerId),
}

/// The client of one process; see the module's documentation.
#[derive(Debug)]
pub struct Client {
    servers: BTreeMap<ServerId, Server>,
    sources: BTreeMap<SourceId, Source>,
    statics: BTreeMap<TypeUrl, BTreeMap<Name, Arc<Resource>>>,
    watches: Watches,
    next_id: u64,
    seed: u64,
}

impl Client {
    /// Makes a client without sources; its waits are drawn from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            servers: BTreeMap::new(),
            sources: BTreeMap::new(),
            statics: BTreeMap::new(),
            watches: Watches::default(),
            next_id: 0,
            seed,
        }
    }

    /// Adds a server. It is connected to once a source subscribes to something
    /// at it.
    pub fn add_server(&mut self, config: ServerConfig) -> ServerId {
        let id = ServerId(self.take_id());
        let seed = self
            .seed
            .wrapping_add(id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.servers.insert(id, Server::new(config, seed));
        id
    }

    /// Adds a source with these servers, in the order in which they are tried.
    /// A source without servers is filled by [`Client::apply`].
    pub fn add_source(&mut self, servers: Vec<ServerId>, policy: FallbackPolicy) -> SourceId {
        let id = SourceId(self.take_id());
        self.sources.insert(id, Source::new(servers, policy));
        id
    }

    /// Returns an id that no server or source has.
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Adds a resource of the bootstrap. It stays, whatever sources send (E20).
    pub fn add_static(&mut self, type_url: &TypeUrl, resource: Arc<Resource>) {
        let name = resource.name.clone();
        let type_resources = self.statics.entry(type_url.clone()).or_default();
        type_resources.insert(name.clone(), resource);
        self.touch(&(type_url.clone(), name));
    }

    /// Subscribes to a name, a glob or the wildcard at a source. Subscribing
    /// twice is subscribing once, until it was unsubscribed from twice (C23).
    ///
    /// # Errors
    /// If the streams of the source carry another type only.
    pub fn subscribe(
        &mut self,
        source_id: SourceId,
        type_url: &TypeUrl,
        subscription: impl Into<Subscription>,
        now: Moment,
    ) -> Result<(), SinkError> {
        let key = (type_url.clone(), subscription.into());
        let Some(source) = self.sources.get_mut(&source_id) else {
            return Ok(());
        };
        if !source.subscribe(&key) {
            return Ok(());
        }

        let open_servers = source.open_servers();
        if let Err(error) = self.subscribe_at(&open_servers, &key, now) {
            if let Some(source) = self.sources.get_mut(&source_id) {
                source.unsubscribe(&key);
            }
            return Err(error);
        }

        self.absorb_all(&open_servers, now);
        // The server may have answered another source already (C12), and so may
        // a better one (C48).
        for id in open_servers {
            self.return_to(source_id, id, now);
        }
        self.supersede_all(source_id);
        self.fall_back(source_id, now);
        self.touch_subscription(&key);
        Ok(())
    }

    /// Ends a subscription. With the last of its kind, the server is told, and
    /// then the contents are dropped (C25).
    pub fn unsubscribe(
        &mut self,
        source_id: SourceId,
        type_url: &TypeUrl,
        subscription: &Subscription,
        now: Moment,
    ) {
        let key = (type_url.clone(), subscription.clone());
        let names = self.known_names(type_url, &subscription.selector);
        let Some(source) = self.sources.get_mut(&source_id) else {
            return;
        };

        if !source.unsubscribe(&key) {
            return;
        }
        let open_servers = source.open_servers();
        for id in &open_servers {
            if let Some(server) = self.servers.get_mut(id) {
                server.unsubscribe(&key);
            }
        }

        self.absorb_all(&open_servers, now);
        for name in names {
            self.touch(&(key.0.clone(), name));
        }
        self.touch_subscription(&key);
    }

    /// Watches a name, or all that a glob or the wildcard covers. Its first
    /// state, if anything is known, is its first news (C23, C42).
    pub fn watch(&mut self, watched: Watched) -> WatchId {
        let type_url = watched.type_url.clone();
        let names = match &watched.selector {
            Selector::Name(name) => BTreeSet::from([name.clone()]),
            selector => self.known_names(&type_url, selector),
        };
        let id = self.watches.add(watched);
        for name in names {
            self.evaluate(id, &(type_url.clone(), name));
        }
        id
    }

    /// Ends a watch. Subscriptions stay.
    pub fn unwatch(&mut self, id: WatchId) {
        self.watches.remove(id);
    }

    /// Takes the next watch with news, in the order in which they came; `None`
    /// if no watch has news.
    pub fn poll_watch(&mut self) -> Option<WatchId> {
        self.watches.poll()
    }

    /// Returns the subject of a watch; `None` if the watch has ended.
    #[must_use]
    pub fn watched(&self, id: WatchId) -> Option<&Watched> {
        self.watches.get(id).map(|watch| &watch.watched)
    }

    /// Returns the newest state of a watch of one name. A watch of many names
    /// has none: see [`Client::take_changes`].
    #[must_use]
    pub fn state(&self, id: WatchId) -> Option<&State> {
        self.watches.state(id)
    }

    /// Applies contents of a source without servers: a file, for example.
    /// Changes of names that the source is not subscribed to are left out.
    /// `complete` are the subscriptions of which the source has spoken with
    /// these changes: a name that a complete wildcard or glob does not list does
    /// not exist.
    pub fn apply(
        &mut self,
        source_id: SourceId,
        changes: Transaction,
        complete: Vec<(TypeUrl, Subscription)>,
    ) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            source.apply(changes, &complete);
            let changed_keys = source.own_contents.take_changed();
            changed_keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Sets or clears the error of a source without servers.
    pub fn set_unavailable(&mut self, source: SourceId, reason: Option<&str>) {
        let error = reason.map(|reason| WatchError::new(Cause::Unreachable, reason));
        self.set_unreachable(source, error);
    }

    /// Returns the next server to connect to or to close; `None` if there is
    /// none now.
    pub fn poll_action(&mut self, now: Moment) -> Option<Action> {
        let mut servers = self.servers.iter_mut();
        servers.find_map(|(id, server)| server.poll_action(*id, now))
    }

    /// Starts a stream to a server, in place of an earlier one. A stream that
    /// the client has asked to close, or has not asked for, is ignored.
    pub fn handle_connected(&mut self, id: ServerId, now: Moment) {
        if let Some(server) = self.servers.get_mut(&id)
            && matches!(server.link, Link::Dialing | Link::Up)
        {
            server.note_connected();
        }
        self.absorb(id, now);
    }

    /// Ends a stream, or an attempt to open one. If no response came on it,
    /// that is a failure, after which another server may be used (C36, C46).
    /// Returns whether it is a failure.
    pub fn handle_disconnected(&mut self, id: ServerId, reason: &str, now: Moment) -> bool {
        let Some(server) = self.servers.get_mut(&id) else {
            return false;
        };
        let is_failure = server.note_disconnected(reason, now);
        self.absorb(id, now);

        let sources = self.sources_of(id);
        if !is_failure {
            // A source that returns to the server sees only what comes from now
            // on.
            if sources.iter().any(|source| self.is_replaced(*source, id)) {
                self.start_anew(id, now);
            }
            return false;
        }

        for source_id in sources {
            let place = self
                .sources
                .get(&source_id)
                .and_then(|source| source.place_of(id));
            if let Some(place) = place {
                self.change_server(source_id, |fallback| fallback.note_failure(place), now);
            }

            self.fall_back(source_id, now);
            if self.is_replaced(source_id, id) {
                self.start_anew(id, now);
            }
            if self.all_failed(source_id) {
                let error = WatchError::new(Cause::Unreachable, reason);
                self.set_unreachable(source_id, Some(error)); // C49
            }
        }
        true
    }

    /// Returns whether the last response of this type is not acknowledged yet
    /// (C22).
    #[must_use]
    pub fn is_busy(&self, id: ServerId, type_url: &TypeUrl) -> bool {
        let server = self.servers.get(&id);
        server.is_some_and(|server| server.sink.is_busy(type_url))
    }

    /// Takes a response of a server. Returns the delivery that the owner must
    /// judge.
    ///
    /// # Errors
    /// If the caller may not hand over a response now, or the server should not
    /// have sent it: [`SinkError::blame`] tells which.
    pub fn handle_response(
        &mut self,
        id: ServerId,
        response: impl Into<Response>,
        now: Moment,
    ) -> Result<Delivery, SinkError> {
        let Some(server) = self.servers.get_mut(&id) else {
            return Err(SinkError::NotConnected);
        };
        let delivery = server.sink.handle_response(response);
        if server.sink.got_response() {
            server.note_response();
            for source_id in self.sources_of(id) {
                if let Some(source) = self.sources.get_mut(&source_id)
                    && let Some(place) = source.place_of(id)
                {
                    source.fallback.note_response(place);
                }
                self.set_unreachable(source_id, None);
                self.return_to(source_id, id, now);
            }
        }

        self.absorb(id, now);
        delivery
    }

    /// Applies the owner's verdict on a response; the next request acknowledges
    /// it. Returns whether it is ACKed.
    ///
    /// # Errors
    /// If no such response waits for a verdict, since its stream has ended, for
    /// example.
    pub fn handle_verdict(
        &mut self,
        id: ServerId,
        type_url: &TypeUrl,
        nonce: &Nonce,
        verdict: Verdict,
        now: Moment,
    ) -> Result<bool, SinkError> {
        let Some(server) = self.servers.get_mut(&id) else {
            return Err(SinkError::NotConnected);
        };
        let outcome = server.sink.handle_verdict(type_url, nonce, verdict, now);
        self.absorb(id, now);
        outcome
    }

    /// Builds the next request for a server whose transport can send one.
    pub fn poll_request(&mut self, id: ServerId, now: Moment) -> Option<Request> {
        let request = self.servers.get_mut(&id)?.poll_request(now);
        self.absorb(id, now);
        request
    }

    /// Returns the next moment at which to call [`Client::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let servers = self.servers.values().filter_map(Server::poll_timeout);
        let sources = self.sources.values();
        let kept_timeouts = sources.filter_map(|source| source.kept.poll_timeout());
        servers.chain(kept_timeouts).min()
    }

    /// Handles deadlines that have passed: names without a response, and
    /// resources whose TTL ran out. Connections and requests that are due are
    /// not begun here: the caller polls for them.
    pub fn handle_timeout(&mut self, now: Moment) {
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for server in self.servers.values_mut() {
            server.sink.handle_timeout(now);
        }
        for id in ids {
            let events = self.absorb(id, now);
            self.handle_silence(id, &events);
        }

        let sources = self.sources.values_mut();
        let expired_keys: Vec<_> = sources.flat_map(|source| source.kept.expire(now)).collect();
        expired_keys.iter().for_each(|key| self.touch(key));
    }

    /// Proves the invariants, for tests and simulations.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn check(&mut self) -> Result<(), String> {
        let mut sources = self.sources.values_mut();
        sources.try_for_each(|source| SourceView::new(source, &mut self.servers).check())
    }

    /// Returns the sources that have the server in their lists.
    fn sources_of(&self, id: ServerId) -> Vec<SourceId> {
        let sources = self.sources.iter();
        let users = sources.filter(|(_, source)| source.place_of(id).is_some());
        users.map(|(id, _)| *id).collect()
    }

    /// Absorbs the effects of several servers; see [`Client::absorb`].
    fn absorb_all(&mut self, ids: &[ServerId], now: Moment) {
        for id in ids {
            self.absorb(*id, now);
        }
    }

    /// Applies the effects of a server's sink to its contents, and evaluates
    /// the watches of the names that changed. Sources that prefer the server
    /// return to it (C48). Called after every call that may leave effects in
    /// the sink. Returns the errors of names that began or ended.
    fn absorb(&mut self, id: ServerId, now: Moment) -> Vec<Event> {
        let Some(server) = self.servers.get_mut(&id) else {
            return Vec::new();
        };
        let (effects, mut keys) = server.take_effects();
        if effects.is_empty() {
            return Vec::new();
        }

        let mut is_used = false;
        for source_id in self.sources_of(id) {
            if self.return_to(source_id, id, now) {
                continue; // All names of the source are evaluated.
            }
            if let Some(source) = self.sources.get_mut(&source_id)
                && source.current_server() == Some(id)
            {
                let kept_keys = SourceView::new(source, &mut self.servers).absorb(&effects, &keys);
                keys.extend(kept_keys);
                is_used = true;
            }
        }

        if is_used {
            keys.iter().for_each(|key| self.touch(key));
        }
        effects.events
    }
}
