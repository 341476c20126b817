//! The receiving side of one stream, SotW or delta.
//!
//! ```text
//!  subscribe ──▶ ┌──────────────────────────┐ ──▶ poll_request ──▶ server
//!                │ Sink: types in order of  │
//!                │ first subscription, each │ ◀── handle_response ◀── server
//!  take_effects  │ interest + cache + ACK   │ ──▶ Delivery, to judge
//!       │    ◀── └──────────────────────────┘ ◀── handle_verdict
//!       ▼
//!    Effects: changes for the database, errors for watchers
//! ```
//!
//! A sink outlives its streams: cached resources and their versions stay when
//! one ends (C19). It does not dial, wait or decode, and it does not choose
//! among servers. Output is level-triggered: a request is made from the state
//! at the moment of [`Sink::poll_request`].
//!
//! A server that breaks the protocol loses the response in which it did so.
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
mod completion;
mod config;
mod delta;
mod effects;
mod ended;
mod entry;
mod error;
mod error_policy;
mod event;
mod incoming;
mod interest_state;
mod overlap;
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
use crate::message::Node;
use crate::resource::{Nonce, TypeUrl};

pub use crate::interest::Subscription;
pub use crate::message::{Request, Response};
pub use backoff::{Backoff, BackoffConfig};
pub use config::{DataErrors, FetchStart, FetchTimeout, NackCode, SinkConfig, StreamScope};
pub use entry::{CacheState, Held};
pub use error::{Blame, ProtocolFault, SinkError};
pub(crate) use error_policy::drops_value;
pub use event::{Cause, Effects, Event, WatchError};
pub use response::Delivery;
pub use status::Status;
pub use verdict::{Rejection, Verdict};

/// The receiving side of one stream after another to one server.
#[derive(Debug)]
pub struct Sink {
    config: SinkConfig,
    /// Whether there is a stream.
    is_connected: bool,
    /// A response came on the present stream, or on the last one if there is
    /// none.
    got_response: bool,
    /// The next request has to have the node.
    is_node_due: bool,
    /// Set while no stream lived until a response (C36).
    unreachable_error: Option<WatchError>,
    /// In order of first subscription (E5).
    types: Vec<TypeState>,
    /// Types with an acknowledgement to send, in the order of the verdicts.
    due_acks: VecDeque<usize>,
    /// The effects of all inputs since they were taken.
    effects: Effects,
}

impl Sink {
    /// Makes a sink without subscriptions and without a stream.
    #[must_use]
    pub fn new(config: SinkConfig) -> Self {
        Self {
            config,
            is_connected: false,
            got_response: false,
            is_node_due: true,
            unreachable_error: None,
            types: Vec::new(),
            due_acks: VecDeque::new(),
            effects: Effects::default(),
        }
    }

    /// Takes the effects of all inputs and requests since the last call.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// Adds a subscription. Subscribing twice is subscribing once (C23). If it
    /// was removed a moment ago, and the server was not told, its resources are
    /// still current.
    ///
    /// # Errors
    /// If the stream carries another type only.
    pub fn subscribe(
        &mut self,
        type_url: &TypeUrl,
        subscription: impl Into<Subscription>,
        now: Moment,
    ) -> Result<(), SinkError> {
        self.check_type(type_url)?;
        let subscription = subscription.into();

        let index = self.index(type_url).unwrap_or_else(|| {
            self.types
                .push(TypeState::new(type_url.clone(), &self.config));
            self.types.len() - 1
        });
        let type_state = &mut self.types[index];
        if type_state.interest.desired().has(&subscription) {
            return Ok(());
        }

        type_state.subscribe(subscription.clone(), &self.config, &mut self.effects);

        if self.config.fetch_start == FetchStart::Subscribed
            && let Some(timeout) = self.config.fetch_timeout.duration()
        {
            type_state.start_fetch_timer(&subscription, now + timeout); // E2
        }
        Ok(())
    }

    /// Fails if the stream carries another type only.
    fn check_type(&self, type_url: &TypeUrl) -> Result<(), SinkError> {
        match &self.config.scope {
            StreamScope::Single(stream_type) if stream_type != type_url => {
                Err(SinkError::WrongType {
                    carries: stream_type.clone(),
                    wanted: type_url.clone(),
                })
            }
            StreamScope::Single(_) | StreamScope::Aggregated => Ok(()),
        }
    }

    /// Removes a subscription. Names that only it covered are forgotten when
    /// the server has been told (C25).
    pub fn unsubscribe(&mut self, type_url: &TypeUrl, subscription: &Subscription) {
        if let Some(index) = self.index(type_url) {
            self.types[index].unsubscribe(subscription, &self.config, &mut self.effects);
        }
    }

    /// Changes the node; the next request has it (E14). After a change of its
    /// parameters (TP2), a variant that is for no subscription any more stays
    /// until the next update of its name.
    pub fn set_node(&mut self, node: Node) {
        for type_state in &mut self.types {
            type_state.interest.set_stream_params(&node.params);
        }
        self.config.node = node;
        self.is_node_due = true;
    }

    /// Returns whether the last response of every type is acknowledged: a
    /// transport that does not look into messages reads on only then (C22).
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.is_connected && !self.types.iter().any(TypeState::is_busy)
    }

    /// Returns whether the last response of this type is not acknowledged yet
    /// (C22). A transport that looks into messages may hand over another type
    /// meanwhile, as Envoy does while a cluster waits for its endpoints.
    #[must_use]
    pub fn is_busy(&self, type_url: &TypeUrl) -> bool {
        let index = self.index(type_url);
        index.is_some_and(|index| self.types[index].is_busy())
    }

    /// Takes a response. Returns the delivery that the owner must judge.
    ///
    /// # Errors
    /// If the caller may not hand over a response now, or the server should not
    /// have sent it: [`SinkError::blame`] tells which.
    pub fn handle_response(
        &mut self,
        response: impl Into<Response>,
    ) -> Result<Delivery, SinkError> {
        let response = response.into();
        if !self.is_connected {
            return Err(SinkError::NotConnected);
        }
        if response.mode() != self.config.mode {
            return Err(SinkError::WrongMode);
        }

        self.got_response = true;
        let incoming = response.into_incoming();
        let was_requested = |index: &usize| self.types[*index].interest.has_sent_request();
        let Some(index) = self.index(&incoming.type_url).filter(was_requested) else {
            return Err(SinkError::NeverAsked(incoming.type_url)); // C20
        };

        let type_state = &mut self.types[index];
        if type_state.is_busy() {
            return Err(SinkError::Busy(incoming.type_url));
        }
        let delivery = type_state.receive(incoming, &self.config);
        // A response that contradicts itself is NACKed without a verdict.
        if delivery.is_err() {
            self.due_acks.push_back(index);
        }
        delivery
    }

    /// Applies the owner's verdict on a response; the next request acknowledges
    /// it. Returns whether that is an ACK.
    ///
    /// # Errors
    /// If no such response waits for a verdict, since its stream has ended, for
    /// example.
    pub fn handle_verdict(
        &mut self,
        type_url: &TypeUrl,
        nonce: &Nonce,
        verdict: Verdict,
        now: Moment,
    ) -> Result<bool, SinkError> {
        let not_judging = || SinkError::NotJudging {
            type_url: type_url.clone(),
            nonce: nonce.clone(),
        };
        let index = self.index(type_url).ok_or_else(not_judging)?;
        let pending_verdict = self.types[index]
            .take_pending(nonce)
            .ok_or_else(not_judging)?;

        let first_event = self.effects.events.len();
        let (type_state, effects) = (&mut self.types[index], &mut self.effects);
        let is_acked =
            type_state.apply_verdict(pending_verdict, verdict, &self.config, now, effects);
        self.recover(first_event);
        self.due_acks.push_back(index);
        Ok(is_acked)
    }

    /// Builds the next request, for a transport that can send one:
    /// acknowledgements first, then changes of the interest, by type in order
    /// of first subscription (E5). A request that is returned counts as sent.
    /// `None` if there is no stream or nothing to send.
    pub fn poll_request(&mut self, now: Moment) -> Option<Request> {
        if !self.is_connected {
            return None;
        }

        let mode = self.config.mode;
        let has_changes = |type_state: &TypeState| type_state.has_changes(mode);
        let index = match self.due_acks.pop_front() {
            Some(index) => index,
            None => self.types.iter().position(has_changes)?,
        };

        let sends_node = std::mem::take(&mut self.is_node_due) || self.config.node_every_request;
        let node = sends_node.then(|| self.config.node.clone()); // C16, E14
        let effects = &mut self.effects;
        Some(self.types[index].build_request(node, &self.config, now, effects))
    }

    /// Returns the next moment at which to call [`Sink::handle_timeout`];
    /// `None` if nothing has a deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let next_deadline = |type_state: &TypeState| type_state.cache.timers.next();
        self.types.iter().filter_map(next_deadline).min()
    }

    /// Handles deadlines that have passed: names without a response, and
    /// resources whose TTL ran out.
    pub fn handle_timeout(&mut self, now: Moment) {
        for type_state in &mut self.types {
            type_state.expire(&self.config, now, &mut self.effects);
        }
    }

    /// Returns the index of the state of a type; `None` if nothing of it was
    /// ever subscribed to.
    fn index(&self, type_url: &TypeUrl) -> Option<usize> {
        let mut types = self.types.iter();
        types.position(|state| state.type_url == *type_url)
    }
}
