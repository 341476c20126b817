//! One type on one stream: what is asked, held, and due to be said.
//!
//! ```text
//!                 response                verdict
//!        Idle ───────────────▶ Judging ─────────────▶ Answer
//!         ▲          │ contradicts itself                ▲ │
//!         │          └───────────────────────────────────┘ │
//!         └────────────────────────────────────────────────┘
//!                            the request leaves
//! ```
//!
//! There is one place for an answer, so nothing more of the type is read until
//! it has left (C22): a source that sends and does not read cannot make
//! answers pile up.

use super::cache::{Cache, CacheState, Deadline};
use super::config::{FetchStart, FetchTimeout, SinkConfig};
use super::effects::EffectCollector;
use super::error::SinkError;
use super::event::{Cause, Effects, WatchError};
use super::incoming::Incoming;
use super::interest_state::InterestState;
use super::response::{self, Delivery, PendingVerdict};
use super::verdict::{Rejection, Verdict, VerdictApplier, detail};
use super::{delta, sotw};
use crate::Moment;
use crate::change::{Change, Transaction};
use crate::interest::{Interest, InterestDiff};
use crate::kind::Kind;
use crate::message::Request;
use crate::message::{ErrorDetail, Mode, Node};
use crate::name::Selector;
use crate::resource::{Nonce, TypeUrl, Version};

/// Whose turn it is to speak of a response.
#[derive(Debug, Default)]
enum AckState {
    /// No response is unanswered.
    #[default]
    Idle,
    /// The owner judges one.
    Judging(Box<PendingVerdict>),
    /// The verdict must be told; `Some` is a rejection.
    Due(Option<ErrorDetail>),
}

#[derive(Debug)]
pub(super) struct TypeState {
    pub(super) type_url: TypeUrl,
    pub(super) interest: InterestState,
    pub(super) cache: Cache,
    /// The last state that was accepted as a whole; outlives streams (C19).
    pub(super) version: Option<Version>,
    /// Nothing of that state is wanted any more, or not all of it was kept. Told
    /// to a new stream, the version would say that there is nothing to send.
    version_is_void: bool,
    /// The last response of this stream. An empty one cannot be pointed at.
    pub(super) nonce: Option<Nonce>,
    ack_state: AckState,
}

impl TypeState {
    pub(super) fn new(type_url: TypeUrl) -> Self {
        Self {
            type_url,
            interest: InterestState::default(),
            cache: Cache::default(),
            version: None,
            version_is_void: false,
            nonce: None,
            ack_state: AckState::default(),
        }
    }

    /// A stream began or ended. What was unanswered stays so; what is held and
    /// its version are kept (C19).
    pub(super) fn restart(&mut self) {
        let lingering = self.interest.removed().clone();
        self.interest.restart();
        self.evict(&lingering);
        // A version stands for everything that it was given with: said to a new
        // stream after a part was dropped, it would keep that part away.
        if std::mem::take(&mut self.version_is_void) || !lingering.is_empty() {
            self.version = None;
        }
        self.nonce = None;
        self.ack_state = AckState::Idle;
    }

    pub(super) fn forget_versions(&mut self) {
        self.version = None;
        self.cache.mark_foreign();
    }

    /// Wants one thing more; what is still known of it, from when it was wanted
    /// before. That it does not exist is known too: the source may say so again,
    /// but that would be no news (C28).
    pub(super) fn subscribe(&mut self, wanted: Selector) -> Transaction {
        let mut held = self.cache.held_for(&wanted);
        held.retain(|resource| !self.interest.wants_resource(resource));
        let mut known = Transaction::new();
        if let Selector::Name(name) = &wanted {
            if self.cache.knows_absent(name) && !self.interest.wanted().names_exactly(name) {
                known.push(Change::Remove(self.type_url.clone(), name.clone()));
            }
            self.cache.add_entry(name);
        }
        self.interest.subscribe(wanted);
        held.retain(|resource| self.interest.wants_resource(resource));
        let upsert = |resource| Change::Upsert(self.type_url.clone(), resource);
        known.extend(held.into_iter().map(upsert));
        known
    }

    /// Wants one thing less. What the source was told of is evicted when it is
    /// told otherwise ([`InterestState::is_requested`]).
    pub(super) fn unsubscribe(&mut self, wanted: &Selector) {
        self.interest.unsubscribe(wanted);
        self.version_is_void |= self.interest.wanted().is_empty();
        if !self.interest.sent().has_selector(wanted) {
            self.cache.forget_selector(wanted, &self.interest);
            if !self.interest.has_sent_request() {
                self.version = None;
            }
        }
    }

    /// A name's time runs from its subscription (E2).
    pub(super) fn start_fetch_timer(&mut self, wanted: &Selector, until: Moment) {
        if let Selector::Name(name) = wanted {
            self.cache.start_fetch_timer(name, until);
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.ack_state, AckState::Idle)
    }

    pub(super) fn is_judging(&self) -> bool {
        matches!(self.ack_state, AckState::Judging(_))
    }

    /// Takes a response in; what the owner must judge.
    pub(super) fn receive(
        &mut self,
        incoming: Incoming,
        config: &SinkConfig,
    ) -> Result<Delivery, SinkError> {
        let nonce = incoming.nonce.clone();
        self.nonce = Some(nonce.clone()).filter(|nonce| !nonce.as_str().is_empty());
        if let Some(fault) = response::fault(&incoming) {
            let rejected = [Rejection::of_response(fault.to_string())];
            self.ack_state = AckState::Due(detail(&rejected, config));
            return Err(SinkError::Protocol {
                type_url: self.type_url.clone(),
                nonce,
                fault,
            });
        }
        let pending =
            response::filter_response(incoming, &self.interest, &self.cache, &config.limits);
        let delivery = pending.delivery.clone();
        self.ack_state = AckState::Judging(Box::new(pending));
        Ok(delivery)
    }

    /// The response that waits for a verdict, if it is this one.
    pub(super) fn take_pending(&mut self, nonce: &Nonce) -> Option<Box<PendingVerdict>> {
        match std::mem::take(&mut self.ack_state) {
            AckState::Judging(pending) if pending.delivery.nonce == *nonce => Some(pending),
            other => {
                self.ack_state = other;
                None
            }
        }
    }

    /// Applies a verdict; whether the response is acknowledged.
    pub(super) fn apply_verdict(
        &mut self,
        mut pending: Box<PendingVerdict>,
        verdict: Verdict,
        config: &SinkConfig,
        now: Moment,
        effects: &mut Effects,
    ) -> bool {
        let mut rejected = std::mem::take(&mut pending.over_limits);
        rejected.extend(verdict.rejected);
        let application = VerdictApplier {
            pending: &pending,
            rejected: &rejected,
            longest_error: config.limits.error_bytes,
            now,
        };
        let mut collector = effect_collector(&self.type_url, &self.interest, config, effects);
        application.apply(&mut self.cache, &mut collector);
        let acked = rejected.is_empty();
        if acked && pending.version.is_some() {
            // C18: only a response without a fault moves the version on.
            self.version = pending.version;
            self.version_is_void = self.interest.wanted().is_empty() || pending.is_partial;
        }
        self.ack_state = AckState::Due(detail(&rejected, config));
        acked
    }

    /// Whether there is something to say besides an answer.
    pub(super) fn has_changes(&self, mode: Mode) -> bool {
        match mode {
            // The names go with the verdict: before it, a request would have to
            // name a response that is not judged (E4).
            Mode::Sotw => !self.is_judging() && sotw::has_changes(&self.interest),
            Mode::Delta => delta::has_changes(&self.interest),
        }
    }

    /// The next request. Call only if an answer or news is due.
    pub(super) fn request(
        &mut self,
        node: Option<Node>,
        config: &SinkConfig,
        now: Moment,
    ) -> Request {
        match config.mode {
            Mode::Sotw => Request::Sotw(sotw::request(self, node, config, now)),
            Mode::Delta => Request::Delta(delta::request(self, node, config, now)),
        }
    }

    /// Whether the type may be asked for as a whole by naming nothing.
    pub(super) fn has_legacy_wildcard(&self) -> bool {
        Kind::of(&self.type_url).legacy_wildcard
    }

    /// Whether the next request is an answer.
    pub(super) fn has_due_ack(&self) -> bool {
        matches!(self.ack_state, AckState::Due(_))
    }

    /// The answer that is due, which is then no longer.
    pub(super) fn take_due_ack(&mut self) -> Option<Option<ErrorDetail>> {
        match std::mem::take(&mut self.ack_state) {
            AckState::Due(error) => Some(error),
            other => {
                self.ack_state = other;
                None
            }
        }
    }

    /// The source was told: what it was told to drop goes, and the time of what
    /// it was asked for runs (C32).
    pub(super) fn apply_sent(&mut self, settled: &InterestDiff, config: &SinkConfig, now: Moment) {
        self.evict(&settled.removed);
        if let (Some(after), FetchStart::Sent) = (config.fetch_timeout.after(), config.fetch_start)
        {
            for name in settled.added.names() {
                self.cache.start_fetch_timer(name, now + after);
            }
        }
    }

    fn evict(&mut self, removed: &Interest) {
        for wanted in removed.iter() {
            self.cache.forget_selector(&wanted, &self.interest);
        }
    }

    /// What is due by now.
    pub(super) fn expire(&mut self, config: &SinkConfig, now: Moment, effects: &mut Effects) {
        for deadline in self.cache.timers.expire(now) {
            let mut collector = effect_collector(&self.type_url, &self.interest, config, effects);
            match deadline {
                Deadline::Fetch(name) => {
                    let (state, error) = timeout_error(config.fetch_timeout);
                    self.cache.fail(&name, state, error, &mut collector);
                }
                Deadline::Ttl(name, constraints) => {
                    self.cache
                        .expire(&name, constraints.as_ref(), &mut collector);
                }
            }
        }
    }
}

/// What silence comes to (C34, C35).
fn timeout_error(timeout: FetchTimeout) -> (CacheState, WatchError) {
    let words = "the source did not answer in time";
    match timeout {
        FetchTimeout::Transient(_) => {
            (CacheState::Timeout, WatchError::new(Cause::TimedOut, words))
        }
        FetchTimeout::DoesNotExist(_) | FetchTimeout::Never => (
            CacheState::DoesNotExist,
            WatchError::new(Cause::Silent, words),
        ),
    }
}

/// Gathers effects for one type.
pub(super) fn effect_collector<'a>(
    type_url: &'a TypeUrl,
    interest: &'a InterestState,
    config: &SinkConfig,
    effects: &'a mut Effects,
) -> EffectCollector<'a> {
    EffectCollector {
        type_url,
        interest,
        policy: config.data_errors,
        effects,
    }
}
