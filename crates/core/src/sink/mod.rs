//! The asking side of one stream, state of the world or incremental.
//!
//! ```text
//!  subscribe ──▶ ┌──────────────────────────┐ ──▶ poll_request ──▶ source
//!                │ Sink: types in order of  │
//!  handle_verdict│ first subscription, each │ ◀── handle_response ◀── source
//!       │    ──▶ │ asking + cache + answer  │ ──▶ Delivery, to judge
//!       ▼        └──────────────────────────┘
//!    Effects: changes for the database, events for watchers
//! ```
//!
//! A sink outlives its streams: what is held and which versions are known stay
//! when one ends (C19). It does not dial, wait or decode, and it does not
//! choose among servers. Output is level-triggered: a request is made of the
//! state at the moment of [`Sink::poll_request`].
//!
//! A source that breaks the protocol costs the response in which it did so.
//! Other types of the stream go on.
//!
//! ```
//! use trunkline_core::message::{Mode, Node};
//! use trunkline_core::name::Selector;
//! use trunkline_core::sink::{Request, Sink, SinkConfig};
//! use trunkline_core::{Moment, kind};
//!
//! let mut sink = Sink::new(SinkConfig::new(Mode::Delta, Node::default()));
//! sink.subscribe(&kind::EDS.into(), Selector::Name("backend".into()), Moment::START)?;
//! sink.handle_connected();
//! let Some(Request::Delta(request)) = sink.poll_request(Moment::START) else {
//!     panic!("a stream begins with a request");
//! };
//! assert_eq!(request.subscribe, ["backend".into()]);
//! # Ok::<(), trunkline_core::sink::SinkError>(())
//! ```

mod backoff;
mod cache;
mod cache_update;
mod config;
mod delta;
mod effects;
mod error;
mod error_policy;
mod event;
mod incoming;
mod interest_state;
mod response;
mod sotw;
mod status;
mod stream;
mod type_state;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::type_state::TypeState;
use crate::Moment;
use crate::change::Transaction;
use crate::message::Node;
use crate::name::Selector;
use crate::resource::{Nonce, TypeUrl};

pub use crate::message::{Request, Response};
pub use backoff::{Backoff, BackoffConfig};
pub use cache::CacheState;
pub use config::{DataErrors, FetchStart, FetchTimeout, NackCode, SinkConfig, StreamScope};
pub use error::{Blame, ProtocolFault, SinkError};
pub use event::{Cause, Effects, ErrorClass, Event, WatchError};
pub use response::Delivery;
pub use status::Status;
pub use verdict::{Outcome, Rejection, Verdict};

/// The asking side of one stream after another to one source.
#[derive(Debug)]
pub struct Sink {
    config: SinkConfig,
    connected: bool,
    /// A response came on the present stream, or on the last one if there is none.
    got_response: bool,
    /// The source is yet to be told who asks.
    node_due: bool,
    /// Set while no stream lived until a response (C36).
    unreachable: Option<WatchError>,
    /// In order of first subscription (E5).
    types: Vec<TypeState>,
    /// Which types have an answer to give, in the order of the verdicts.
    due_acks: VecDeque<usize>,
}

impl Sink {
    /// Asks for nothing yet, over no stream.
    #[must_use]
    pub fn new(config: SinkConfig) -> Self {
        Self {
            config,
            connected: false,
            got_response: false,
            node_due: true,
            unreachable: None,
            types: Vec::new(),
            due_acks: VecDeque::new(),
        }
    }

    /// Asks for one thing more. Asking twice is asking once (C23). Returns what
    /// is still held of it if it was dropped a moment ago, to be applied as if
    /// it had arrived now.
    ///
    /// # Errors
    /// If the stream carries another type only.
    pub fn subscribe(
        &mut self,
        type_url: &TypeUrl,
        wanted: Selector,
        now: Moment,
    ) -> Result<Transaction, SinkError> {
        if let StreamScope::Single(carries) = &self.config.scope
            && carries != type_url
        {
            return Err(SinkError::WrongType {
                carries: carries.clone(),
                wanted: type_url.clone(),
            });
        }
        let index = self.index(type_url).unwrap_or_else(|| {
            self.types.push(TypeState::new(type_url.clone()));
            self.types.len() - 1
        });
        let type_state = &mut self.types[index];
        let is_new = !type_state.interest.wanted().has_selector(&wanted);
        let held = type_state.subscribe(wanted.clone());
        if let (true, Some(after), FetchStart::Subscribed) = (
            is_new,
            self.config.fetch_timeout.after(),
            self.config.fetch_start,
        ) {
            type_state.start_fetch_timer(&wanted, now + after); // E2
        }
        Ok(held)
    }

    /// Asks for one thing less. The owner drops what it holds of it (C25).
    pub fn unsubscribe(&mut self, type_url: &TypeUrl, wanted: &Selector) {
        if let Some(index) = self.index(type_url) {
            self.types[index].unsubscribe(wanted);
        }
    }

    /// Another node from now on: the next request says so (E14).
    pub fn set_node(&mut self, node: Node) {
        self.config.node = node;
        self.node_due = true;
    }

    /// Whether no response of any type is unfinished: a transport that does not
    /// look into messages reads on only then (C22).
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.connected && !self.types.iter().any(TypeState::is_busy)
    }

    /// Whether a response of this type would come too early (C22). One that
    /// does look may take another type meanwhile, as Envoy does while a cluster
    /// waits for its endpoints.
    #[must_use]
    pub fn is_busy(&self, type_url: &TypeUrl) -> bool {
        let index = self.index(type_url);
        index.is_some_and(|index| self.types[index].is_busy())
    }

    /// Takes a response; what the owner must judge of it.
    ///
    /// # Errors
    /// If the caller may not hand it over now, or the source should not have
    /// sent it: [`SinkError::blame`] tells.
    pub fn handle_response(
        &mut self,
        response: impl Into<Response>,
    ) -> Result<Delivery, SinkError> {
        let response = response.into();
        if !self.connected {
            return Err(SinkError::NotConnected);
        }
        if response.mode() != self.config.mode {
            return Err(SinkError::WrongMode);
        }
        self.got_response = true;
        let incoming = response.into_incoming();
        let asked = |index: &usize| self.types[*index].interest.has_sent_request();
        let Some(index) = self.index(&incoming.type_url).filter(asked) else {
            return Err(SinkError::NeverAsked(incoming.type_url)); // C20
        };
        let type_state = &mut self.types[index];
        if type_state.is_busy() {
            return Err(SinkError::Busy(incoming.type_url));
        }
        let taken = type_state.receive(incoming, &self.config);
        if taken.is_err() {
            self.due_acks.push_back(index);
        }
        taken
    }

    /// Takes the verdict on a response, and answers it.
    ///
    /// # Errors
    /// If no such response waits: its stream ended meanwhile, say.
    pub fn handle_verdict(
        &mut self,
        type_url: &TypeUrl,
        nonce: &Nonce,
        verdict: Verdict,
        now: Moment,
    ) -> Result<Outcome, SinkError> {
        let not_judging = || SinkError::NotJudging {
            type_url: type_url.clone(),
            nonce: nonce.clone(),
        };
        let index = self.index(type_url).ok_or_else(not_judging)?;
        let pending = self.types[index]
            .take_pending(nonce)
            .ok_or_else(not_judging)?;
        let mut effects = self.recover();
        let type_state = &mut self.types[index];
        let acked = type_state.apply_verdict(pending, verdict, &self.config, now, &mut effects);
        self.due_acks.push_back(index);
        Ok(Outcome { acked, effects })
    }

    /// The next request, if the stream can take one: answers first, then what
    /// is newly wanted, by type in order of first subscription (E5). That it is
    /// handed over counts as sent.
    pub fn poll_request(&mut self, now: Moment) -> Option<Request> {
        if !self.connected {
            return None;
        }
        let mode = self.config.mode;
        let news = |type_state: &TypeState| type_state.has_changes(mode);
        let index = match self.due_acks.pop_front() {
            Some(index) => index,
            None => self.types.iter().position(news)?,
        };
        let says_node = std::mem::take(&mut self.node_due) || self.config.node_every_request;
        let node = says_node.then(|| self.config.node.clone()); // C16, E14
        Some(self.types[index].request(node, &self.config, now))
    }

    /// When [`Sink::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let next = |type_state: &TypeState| type_state.cache.timers.next();
        self.types.iter().filter_map(next).min()
    }

    /// Time has passed: names that nobody answered for, resources that nobody
    /// refreshed.
    pub fn handle_timeout(&mut self, now: Moment) -> Effects {
        let mut effects = Effects::default();
        for type_state in &mut self.types {
            type_state.expire(&self.config, now, &mut effects);
        }
        effects
    }

    fn index(&self, type_url: &TypeUrl) -> Option<usize> {
        self.types.iter().position(|c| c.type_url == *type_url)
    }
}
