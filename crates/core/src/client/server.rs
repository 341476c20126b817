//! One server of a client: its sink, its connection, its contents, and the
//! subscriptions that its sources have there.
//!
//! ```text
//!            Connect             handle_connected
//!   Idle ──────────────▶ Dialing ───────────────▶ Up
//!    ▲  ▲                  │ handle_disconnected   │
//!    │  └──── retry_at ────┴───────────────────────┤
//!    │                                             │ start_anew
//!    └─────── Close ◀── Spent ◀────────────────────┘
//!             Close, from any state: nobody needs it
//! ```

use std::collections::BTreeSet;

use super::contents::{Contents, Key, key_of};
use super::rate_limit::{RateLimit, TokenBucket};
use super::subscriptions::{Subscriptions, TypedSubscription};
use super::{Action, ServerId};
use crate::Moment;
use crate::message::Request;
use crate::sink::{Backoff, BackoffConfig, Cause, Effects, Event, Sink, SinkConfig, SinkError};

/// The way in which a server is spoken with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The behaviour of its sink.
    pub sink: SinkConfig,
    /// The waits between attempts to connect.
    pub backoff: BackoffConfig,
    /// The rate at which requests may be sent; `None` sends them as soon as
    /// they are made (E6).
    pub rate_limit: Option<RateLimit>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none; the next attempt waits for the moment.
    Idle { retry_at: Moment },
    /// The owner of the client connects.
    Dialing,
    /// There is a stream.
    Up,
    /// There is a stream that began with contents which are forgotten since:
    /// the server would not send them again on it. It is to be closed, and
    /// another one opened.
    Spent,
}

/// One server: one stream after another.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    pub(super) sink: Sink,
    /// Everything that the server has said to all its sources, since it last
    /// started anew.
    pub(super) contents: Contents,
    pub(super) link: Link,
    /// Whether the last stream, or the last attempt to open one, ended without
    /// a response, and none came since (C36).
    pub(super) has_failed: bool,
    /// Whether the contents are from streams that have ended, and no response
    /// has come since.
    pub(super) is_outdated: bool,
    /// The subscriptions of all sources.
    subscriptions: Subscriptions,
    backoff: Backoff,
    tokens: Option<TokenBucket>,
    /// Whether a request had to wait for a token.
    pub(super) is_limited: bool,
    /// The number of times that requests had to wait.
    pub(super) limit_count: u64,
    /// The number of names that the server did not answer in time.
    pub(super) fetch_timeouts: u64,
}

impl Server {
    /// Makes a server without a connection; its waits are drawn from the seed.
    pub(super) fn new(config: ServerConfig, seed: u64) -> Self {
        Self {
            sink: Sink::new(config.sink.clone()),
            contents: Contents::new(),
            link: Link::Idle {
                retry_at: Moment::START,
            },
            has_failed: false,
            is_outdated: false,
            subscriptions: Subscriptions::default(),
            backoff: Backoff::new(config.backoff, seed),
            tokens: config.rate_limit.map(TokenBucket::new),
            is_limited: false,
            limit_count: 0,
            fetch_timeouts: 0,
            config,
        }
    }

    /// Adds the subscription of one source. The server gets one request for it,
    /// however many sources have it (C12, C23). Nothing is added if the sink
    /// refuses the type.
    pub(super) fn subscribe(
        &mut self,
        key: &TypedSubscription,
        now: Moment,
    ) -> Result<(), SinkError> {
        if !self.subscriptions.add(key) {
            return Ok(());
        }
        let result = self.sink.subscribe(&key.0, key.1.clone(), now);
        match result {
            Ok(()) => self.contents.subscribe(&key.0, &key.1),
            Err(_) => _ = self.subscriptions.remove(key),
        }
        result
    }

    /// Removes the subscription of one source. The contents of a server that
    /// nobody needs, and that has no stream to close, are forgotten with its
    /// last subscription.
    pub(super) fn unsubscribe(&mut self, key: &TypedSubscription) {
        if self.subscriptions.remove(key) {
            self.contents.unsubscribe(&key.0, &key.1);
            self.sink.unsubscribe(&key.0, &key.1);
        }
        if !self.is_needed() && matches!(self.link, Link::Idle { .. }) {
            self.forget_all();
        }
    }

    /// Takes the effects of the sink and applies them to the contents. Returns
    /// the effects, and all names whose state they may have changed.
    pub(super) fn take_effects(&mut self) -> (Effects, BTreeSet<Key>) {
        let effects = self.sink.take_effects();
        for (type_url, name) in &effects.forgotten {
            self.contents.forget(type_url, name);
        }
        self.contents.apply(effects.changes.clone());
        for (type_url, subscription) in &effects.complete {
            self.contents.set_complete(type_url, &subscription.selector);
        }

        let mut keys = self.contents.take_changed();
        for event in &effects.events {
            keys.insert(self.apply_event(event));
        }
        // An error that a value has ended is gone, also if the value is the
        // same as before (C24).
        keys.extend(effects.changes.iter().filter_map(key_of));
        keys.extend(effects.forgotten.iter().cloned());
        (effects, keys)
    }

    /// Applies an error of a name, and returns the name. The error that the
    /// server cannot be reached is told by its sources instead, once all their
    /// servers have it (C49).
    fn apply_event(&mut self, event: &Event) -> Key {
        let (type_url, name, error) = match event {
            Event::Failed(url, name, error) => (url, name, Some(error)),
            Event::Ambient(url, name, error) => (url, name, error.as_ref()),
        };
        let is_own = error.is_none_or(|error| error.cause != Cause::Unreachable);
        if is_own && self.contents.is_subscribed(type_url, name) {
            self.contents.set_error(type_url, name, error.cloned());
        }
        (type_url.clone(), name.clone())
    }

    /// Returns whether any source has a subscription here.
    pub(super) fn is_needed(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// Forgets everything that the server has sent, but not the subscriptions:
    /// the contents come from another server in the meantime, and this one
    /// sends everything when it is back (E9). A stream that is up began with
    /// the versions of these contents, so it is spent.
    pub(super) fn start_anew(&mut self, now: Moment) {
        self.forget_all();
        if self.link == Link::Up {
            self.link = Link::Spent;
        }
        for (type_url, subscription) in self.subscriptions.iter() {
            let result = self.sink.subscribe(type_url, subscription.clone(), now);
            debug_assert!(result.is_ok(), "it was accepted before");
            self.contents.subscribe(type_url, subscription);
        }
    }

    /// Forgets everything that the server has sent, and all subscriptions at
    /// the sink: the caller has none left, or makes them again.
    fn forget_all(&mut self) {
        self.sink = Sink::new(self.config.sink.clone());
        self.contents = Contents::new();
        self.is_outdated = false;
    }

    /// Returns what the owner of the client has to do with the stream to this
    /// server, and counts it as begun: each action is returned once.
    pub(super) fn poll_action(&mut self, id: ServerId, now: Moment) -> Option<Action> {
        match self.link {
            Link::Idle { retry_at } if self.is_needed() && retry_at <= now => {
                self.link = Link::Dialing;
                Some(Action::Connect(id))
            }
            Link::Dialing | Link::Up | Link::Spent if !self.is_needed() => {
                self.close();
                Some(Action::Close(id))
            }
            Link::Spent => {
                self.link = Link::Idle { retry_at: now };
                Some(Action::Close(id))
            }
            Link::Idle { .. } | Link::Dialing | Link::Up => None,
        }
    }

    /// Ends the stream because nobody needs it.
    fn close(&mut self) {
        self.link = Link::Idle {
            retry_at: Moment::START,
        };
        self.has_failed = false;
        self.backoff = self.backoff.after_close();
        self.forget_all();
    }

    /// Records that a stream has begun, in place of an earlier one if there is
    /// one. The contents from the earlier stream are outdated then.
    pub(super) fn note_connected(&mut self) {
        self.is_outdated |= self.is_heard();
        self.link = Link::Up;
        self.sink.handle_connected();
    }

    /// Records that a response has come.
    pub(super) fn note_response(&mut self) {
        self.has_failed = false;
        self.is_outdated = false;
    }

    /// Returns whether a response came on the present stream.
    fn is_heard(&self) -> bool {
        self.link == Link::Up && self.sink.got_response()
    }

    /// Records that the stream, or the attempt to open one, has ended. Returns
    /// whether that is a failure: no response came on it (C36). The end of a
    /// spent stream is none.
    pub(super) fn note_disconnected(&mut self, reason: &str, now: Moment) -> bool {
        match self.link {
            Link::Up | Link::Dialing => {}
            Link::Idle { .. } => return false,
            Link::Spent => {
                self.link = Link::Idle { retry_at: now };
                return false;
            }
        }

        let got_response = self.is_heard();
        self.is_outdated |= got_response;
        self.sink.handle_disconnected(reason);
        self.link = Link::Idle {
            retry_at: now + self.backoff.after_stream(got_response),
        };
        self.has_failed |= !got_response;
        !got_response
    }

    /// Builds the next request. `None` if there is none, or if no token is left
    /// for it (E6): then [`Server::poll_timeout`] tells when there is one.
    pub(super) fn poll_request(&mut self, now: Moment) -> Option<Request> {
        if let Some(tokens) = &mut self.tokens
            && !tokens.has_token(now)
        {
            self.limit_count += u64::from(!self.is_limited);
            self.is_limited = true;
            return None;
        }

        self.is_limited = false;
        let request = self.sink.poll_request(now)?;
        if let Some(tokens) = &mut self.tokens {
            tokens.take(now);
        }
        Some(request)
    }

    /// Returns the next moment at which the server has something to do: a
    /// deadline of its sink, an attempt to connect, or a token.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let retry_at = match self.link {
            Link::Idle { retry_at } if self.is_needed() => Some(retry_at),
            _ => None,
        };
        let tokens = self.tokens.as_ref().filter(|_| self.is_limited);
        let next_token = tokens.and_then(TokenBucket::next_token);
        let deadlines = [self.sink.poll_timeout(), retry_at, next_token];
        deadlines.into_iter().flatten().min()
    }
}
