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

use super::asking::Asking;
use super::cache::{Cache, CacheState, Deadline};
use super::config::{FetchStart, FetchTimeout, SinkConfig};
use super::error::SinkError;
use super::event::{Cause, Effects, WatchError};
use super::response::{self, Delivery, Pending};
use super::teller::Teller;
use super::verdict::{Application, Rejection, Verdict, detail};
use super::wire::Incoming;
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
enum Turn {
    /// No response is unanswered.
    #[default]
    Idle,
    /// The owner judges one.
    Judging(Box<Pending>),
    /// The verdict must be told; `Some` is a rejection.
    Answer(Option<ErrorDetail>),
}

#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) type_url: TypeUrl,
    pub(super) asking: Asking,
    pub(super) cache: Cache,
    /// The last state that was accepted as a whole; outlives streams (C19).
    pub(super) version: Option<Version>,
    /// Nothing of that state is wanted any more, or not all of it was kept. Told
    /// to a new stream, the version would say that there is nothing to send.
    version_is_void: bool,
    /// The last response of this stream. An empty one cannot be pointed at.
    pub(super) nonce: Option<Nonce>,
    turn: Turn,
}

impl Conversation {
    pub(super) fn new(type_url: TypeUrl) -> Self {
        Self {
            type_url,
            asking: Asking::default(),
            cache: Cache::default(),
            version: None,
            version_is_void: false,
            nonce: None,
            turn: Turn::default(),
        }
    }

    /// A stream began or ended. What was unanswered stays so; what is held and
    /// its version are kept (C19).
    pub(super) fn restart(&mut self) {
        let lingering = self.asking.removed().clone();
        self.asking.restart();
        self.evict(&lingering);
        // A version stands for everything that it was given with: said to a new
        // stream after a part was dropped, it would keep that part away.
        if std::mem::take(&mut self.version_is_void) || !lingering.is_empty() {
            self.version = None;
        }
        self.nonce = None;
        self.turn = Turn::Idle;
    }

    pub(super) fn forget_versions(&mut self) {
        self.version = None;
        self.cache.make_foreign();
    }

    /// Wants one thing more; what is still known of it, from when it was wanted
    /// before. That it does not exist is known too: the source may say so again,
    /// but that would be no news (C28).
    pub(super) fn subscribe(&mut self, wanted: Selector) -> Transaction {
        let mut held = self.cache.held_for(&wanted);
        held.retain(|resource| !self.asking.wants_resource(resource));
        let mut known = Transaction::new();
        if let Selector::Name(name) = &wanted {
            if self.cache.knows_absent(name) && !self.asking.wanted().names_exactly(name) {
                known.push(Change::Remove(self.type_url.clone(), name.clone()));
            }
            self.cache.expect(name);
        }
        self.asking.subscribe(wanted);
        held.retain(|resource| self.asking.wants_resource(resource));
        let upsert = |resource| Change::Upsert(self.type_url.clone(), resource);
        known.extend(held.into_iter().map(upsert));
        known
    }

    /// Wants one thing less. What the source was told of is evicted when it is
    /// told otherwise ([`Asking::reaches`]).
    pub(super) fn unsubscribe(&mut self, wanted: &Selector) {
        self.asking.unsubscribe(wanted);
        self.version_is_void |= self.asking.wanted().is_empty();
        if !self.asking.told().has_selector(wanted) {
            self.cache.forget(wanted, &self.asking);
            if !self.asking.has_asked() {
                self.version = None;
            }
        }
    }

    /// A name's time runs from its subscription (E2).
    pub(super) fn await_answer(&mut self, wanted: &Selector, until: Moment) {
        if let Selector::Name(name) = wanted {
            self.cache.await_answer(name, until);
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.turn, Turn::Idle)
    }

    pub(super) fn is_judging(&self) -> bool {
        matches!(self.turn, Turn::Judging(_))
    }

    /// Takes a response in; what the owner must judge.
    pub(super) fn take(
        &mut self,
        incoming: Incoming,
        config: &SinkConfig,
    ) -> Result<Delivery, SinkError> {
        let nonce = incoming.nonce.clone();
        self.nonce = Some(nonce.clone()).filter(|nonce| !nonce.as_str().is_empty());
        if let Some(fault) = response::fault(&incoming) {
            let rejected = [Rejection::of_response(fault.to_string())];
            self.turn = Turn::Answer(detail(&rejected, config));
            return Err(SinkError::Protocol {
                type_url: self.type_url.clone(),
                nonce,
                fault,
            });
        }
        let pending = response::sift(incoming, &self.asking, &self.cache, &config.limits);
        let delivery = pending.delivery.clone();
        self.turn = Turn::Judging(Box::new(pending));
        Ok(delivery)
    }

    /// The response that waits for a verdict, if it is this one.
    pub(super) fn pending(&mut self, nonce: &Nonce) -> Option<Box<Pending>> {
        match std::mem::take(&mut self.turn) {
            Turn::Judging(pending) if pending.delivery.nonce == *nonce => Some(pending),
            other => {
                self.turn = other;
                None
            }
        }
    }

    /// Applies a verdict; whether the response is acknowledged.
    pub(super) fn judge(
        &mut self,
        mut pending: Box<Pending>,
        verdict: Verdict,
        config: &SinkConfig,
        now: Moment,
        effects: &mut Effects,
    ) -> bool {
        let mut rejected = std::mem::take(&mut pending.refused);
        rejected.extend(verdict.rejected);
        let application = Application {
            pending: &pending,
            rejected: &rejected,
            longest_error: config.limits.error_bytes,
            now,
        };
        let mut teller = teller(&self.type_url, &self.asking, config, effects);
        application.apply(&mut self.cache, &mut teller);
        let acked = rejected.is_empty();
        if acked && pending.version.is_some() {
            // C18: only a response without a fault moves the version on.
            self.version = pending.version;
            self.version_is_void = self.asking.wanted().is_empty() || pending.is_partial;
        }
        self.turn = Turn::Answer(detail(&rejected, config));
        acked
    }

    /// Whether there is something to say besides an answer.
    pub(super) fn has_news(&self, mode: Mode) -> bool {
        match mode {
            // The names go with the verdict: before it, a request would have to
            // name a response that is not judged (E4).
            Mode::Sotw => !self.is_judging() && sotw::has_news(&self.asking),
            Mode::Delta => delta::has_news(&self.asking),
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
    pub(super) fn legacy(&self) -> bool {
        Kind::of(&self.type_url).legacy_wildcard
    }

    /// Whether the next request is an answer.
    pub(super) fn is_answering(&self) -> bool {
        matches!(self.turn, Turn::Answer(_))
    }

    /// The answer that is due, which is then no longer.
    pub(super) fn take_answer(&mut self) -> Option<Option<ErrorDetail>> {
        match std::mem::take(&mut self.turn) {
            Turn::Answer(error) => Some(error),
            other => {
                self.turn = other;
                None
            }
        }
    }

    /// The source was told: what it was told to drop goes, and the time of what
    /// it was asked for runs (C32).
    pub(super) fn settle(&mut self, settled: &InterestDiff, config: &SinkConfig, now: Moment) {
        self.evict(&settled.removed);
        if let (Some(after), FetchStart::Sent) = (config.fetch_timeout.after(), config.fetch_start)
        {
            for name in settled.added.names() {
                self.cache.await_answer(name, now + after);
            }
        }
    }

    fn evict(&mut self, removed: &Interest) {
        for wanted in removed.iter() {
            self.cache.forget(&wanted, &self.asking);
        }
    }

    /// What is due by now.
    pub(super) fn expire(&mut self, config: &SinkConfig, now: Moment, effects: &mut Effects) {
        for deadline in self.cache.timers.expire(now) {
            let mut teller = teller(&self.type_url, &self.asking, config, effects);
            match deadline {
                Deadline::Fetch(name) => {
                    let (state, error) = silence(config.fetch_timeout);
                    self.cache.fail(&name, state, error, &mut teller);
                }
                Deadline::Ttl(name, constraints) => {
                    self.cache.expire(&name, constraints.as_ref(), &mut teller);
                }
            }
        }
    }
}

/// What silence comes to (C34, C35).
fn silence(timeout: FetchTimeout) -> (CacheState, WatchError) {
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
pub(super) fn teller<'a>(
    type_url: &'a TypeUrl,
    asking: &'a Asking,
    config: &SinkConfig,
    effects: &'a mut Effects,
) -> Teller<'a> {
    Teller {
        type_url,
        asking,
        policy: config.data_errors,
        effects,
    }
}
