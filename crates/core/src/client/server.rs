//! One server of a client: its sink, its connection, and which subscriptions
//! its sources have there.
//!
//! ```text
//!            Connect             handle_connected
//!   Idle ──────────────▶ Dialing ───────────────▶ Up
//!    ▲  ▲                  │ handle_disconnected   │
//!    │  └──── retry_at ────┴───────────────────────┘
//!    └─────── Close, from any state: nobody needs it
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::rate_limit::{RateLimit, TokenBucket};
use crate::Moment;
use crate::message::Request;
use crate::resource::TypeUrl;
use crate::sink::{Backoff, BackoffConfig, Effects, Sink, SinkConfig, SinkError, Subscription};

/// How a server is spoken with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The behaviour of its sink.
    pub sink: SinkConfig,
    /// When to connect again.
    pub backoff: BackoffConfig,
    /// How fast requests may be sent; `None` is as fast as they are made (E6).
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
}

/// One server: one stream after another.
#[derive(Debug)]
pub(super) struct Server {
    config: ServerConfig,
    pub(super) sink: Sink,
    pub(super) link: Link,
    /// The last stream, or the last attempt to open one, ended without a
    /// response, and none came since (C36).
    pub(super) has_failed: bool,
    /// The subscriptions, and how many sources have each.
    subscriptions: BTreeMap<(TypeUrl, Subscription), usize>,
    /// Those of which the server has sent all.
    complete: BTreeSet<(TypeUrl, Subscription)>,
    backoff: Backoff,
    tokens: Option<TokenBucket>,
    /// A request had to wait for a token.
    pub(super) is_limited: bool,
    /// How often requests had to wait.
    pub(super) limited: u64,
}

impl Server {
    /// Makes a server without a connection; its waits are drawn from the seed.
    pub(super) fn new(config: ServerConfig, seed: u64) -> Self {
        Self {
            sink: Sink::new(config.sink.clone()),
            link: Link::Idle {
                retry_at: Moment::START,
            },
            has_failed: false,
            subscriptions: BTreeMap::new(),
            complete: BTreeSet::new(),
            backoff: Backoff::new(config.backoff, seed),
            tokens: config.rate_limit.map(TokenBucket::new),
            is_limited: false,
            limited: 0,
            config,
        }
    }

    /// Adds the subscription of one source. The server is asked once, however
    /// many sources have it (C12, C23).
    pub(super) fn subscribe(
        &mut self,
        key: &(TypeUrl, Subscription),
        now: Moment,
    ) -> Result<(), SinkError> {
        let count = self.subscriptions.entry(key.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        let added = self.sink.subscribe(&key.0, key.1.clone(), now);
        if added.is_err() {
            self.subscriptions.remove(key);
        }
        added
    }

    /// Removes the subscription of one source.
    pub(super) fn unsubscribe(&mut self, key: &(TypeUrl, Subscription)) {
        let Some(count) = self.subscriptions.get_mut(key) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.subscriptions.remove(key);
            self.complete.remove(key);
            self.sink.unsubscribe(&key.0, &key.1);
        }
    }

    /// Takes the effects of the sink.
    pub(super) fn take_effects(&mut self) -> Effects {
        let effects = self.sink.take_effects();
        let complete = effects.complete.iter();
        let complete = complete.filter(|key| self.subscriptions.contains_key(*key));
        self.complete.extend(complete.cloned());
        effects
    }

    /// The subscriptions of which the server has sent all.
    pub(super) fn complete(&self) -> impl Iterator<Item = &(TypeUrl, Subscription)> {
        self.complete.iter()
    }

    /// Returns whether any source has a subscription here.
    pub(super) fn is_needed(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// Forgets all that the server has sent, but not the subscriptions: the
    /// contents come from another server meanwhile, and this one is to send
    /// them all when it is back (E9). For a server without a stream.
    pub(super) fn start_anew(&mut self, now: Moment) {
        self.sink = Sink::new(self.config.sink.clone());
        self.complete.clear();
        for (type_url, subscription) in self.subscriptions.keys() {
            let added = self.sink.subscribe(type_url, subscription.clone(), now);
            debug_assert!(added.is_ok(), "it was accepted before");
        }
    }

    /// Ends the stream because nobody needs it.
    pub(super) fn close(&mut self) {
        self.link = Link::Idle {
            retry_at: Moment::START,
        };
        self.has_failed = false;
        self.backoff = self.backoff.after_close();
        self.sink = Sink::new(self.config.sink.clone());
        self.complete.clear();
    }

    /// Notes that the stream, or the attempt to open one, has ended. Returns
    /// whether that is a failure: no response came on it (C36).
    pub(super) fn note_disconnected(&mut self, reason: &str, now: Moment) -> bool {
        let had_stream = self.link == Link::Up;
        self.sink.handle_disconnected(reason);
        let got_response = had_stream && self.sink.got_response();
        self.link = Link::Idle {
            retry_at: now + self.backoff.after_stream(got_response),
        };
        self.has_failed |= !got_response;
        !got_response
    }

    /// Builds the next request, if a token is left for it (E6).
    pub(super) fn poll_request(&mut self, now: Moment) -> Option<Request> {
        if let Some(tokens) = &mut self.tokens
            && !tokens.has_token(now)
        {
            self.limited += u64::from(!self.is_limited);
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

    /// The next moment at which time means something to the server.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let retry_at = match self.link {
            Link::Idle { retry_at } if self.is_needed() => Some(retry_at),
            _ => None,
        };
        let tokens = self.tokens.as_ref().filter(|_| self.is_limited);
        let next_token = tokens.and_then(TokenBucket::next_token);
        let all = [self.sink.poll_timeout(), retry_at, next_token];
        all.into_iter().flatten().min()
    }
}
