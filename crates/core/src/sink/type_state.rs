//! One resource type of a sink: its interest, its cache, and the
//! acknowledgement that is due.
//!
//! ```text
//!                 response                verdict
//!        Idle ───────────────▶ Judging ─────────────▶ Due
//!         ▲          │ contradicts itself              ▲ │
//!         │          └─────────────────────────────────┘ │
//!         └──────────────────────────────────────────────┘
//!                            the request is sent
//! ```
//!
//! There is room for one acknowledgement, so no further response of the type is
//! read until it is sent (C22): a server that sends and does not read cannot
//! make acknowledgements pile up.

use std::time::Duration;

use super::cache::{Cache, Deadline};
use super::completion::{Completion, Extent};
use super::config::{FetchStart, FetchTimeout, SinkConfig};
use super::effects::EffectCollector;
use super::entry::CacheState;
use super::error::SinkError;
use super::event::{Cause, Effects, WatchError};
use super::incoming::Incoming;
use super::interest_state::InterestState;
use super::response::{self, Delivery, PendingVerdict};
use super::verdict::{Rejection, Verdict, VerdictApplier, nack_detail};
use super::{delta, sotw};
use crate::Moment;
use crate::interest::{Interest, InterestDiff, Subscription};
use crate::kind::Kind;
use crate::message::Request;
use crate::message::{ErrorDetail, Mode, Node};
use crate::name::{Name, Selector};
use crate::resource::{Nonce, TypeUrl, Version};

/// The state of the last response.
#[derive(Debug, Default)]
enum AckState {
    /// Every response was acknowledged.
    #[default]
    Idle,
    /// The owner judges the response.
    Judging(Box<PendingVerdict>),
    /// The acknowledgement is to be sent; `Some` is a NACK.
    Due(Option<ErrorDetail>),
}

/// One resource type of a sink; see the module's documentation.
#[derive(Debug)]
pub(super) struct TypeState {
    pub(super) type_url: TypeUrl,
    pub(super) interest: InterestState,
    pub(super) cache: Cache,
    completion: Completion,
    /// The version of the last set that was ACKed; outlives streams (C19).
    pub(super) version: Option<Version>,
    /// Whether the version must not be told on a new stream: nothing of the set
    /// is subscribed to any more, or a part of it was not kept. The version
    /// would tell the server that there is nothing to send.
    is_version_void: bool,
    /// The nonce of the last response on this stream. An empty one cannot be
    /// referred to.
    pub(super) nonce: Option<Nonce>,
    ack_state: AckState,
}

impl TypeState {
    /// Makes the state of a type without subscriptions.
    pub(super) fn new(type_url: TypeUrl, config: &SinkConfig) -> Self {
        Self {
            type_url,
            interest: InterestState::new(config),
            cache: Cache::default(),
            completion: Completion::default(),
            version: None,
            is_version_void: false,
            nonce: None,
            ack_state: AckState::default(),
        }
    }

    /// Resets the state of the stream, which began or ended. The cache and its
    /// version are kept (C19), but for names whose unsubscription was not sent
    /// yet: no new stream asks for them, so they are evicted. Without them the
    /// set is no more the one of the version, which is dropped then.
    pub(super) fn restart(&mut self, config: &SinkConfig, effects: &mut Effects) {
        let unsent_removals = self.interest.removed().clone();
        self.interest.restart();
        unsent_removals
            .scopes()
            .for_each(|scope| self.completion.remove(&scope));
        self.completion.restart();
        self.cache.timers.cancel(&Deadline::Silence);

        self.evict(&unsent_removals, config, effects);
        // A version stands for the whole set: on a new stream, after a part was
        // dropped, it would keep the server from sending that part.
        let was_version_void = std::mem::take(&mut self.is_version_void);
        if was_version_void || !unsent_removals.is_empty() {
            self.version = None;
        }
        self.nonce = None;
        self.ack_state = AckState::Idle;
    }

    /// Forgets the version of the set and those of the resources, which mean
    /// nothing to the next server (E9).
    pub(super) fn forget_versions(&mut self) {
        self.version = None;
        self.cache.mark_foreign();
    }

    /// Adds a subscription. If it was removed a moment ago, its names are still
    /// kept current, and their errors are reported: the server may repeat an
    /// error, but that would be no change (C28).
    pub(super) fn subscribe(
        &mut self,
        subscription: Subscription,
        config: &SinkConfig,
        effects: &mut Effects,
    ) {
        let candidates = self.cache.failed_names(&subscription.selector);
        let failed_names: Vec<Name> = candidates
            .into_iter()
            .filter(|name| !self.interest.is_desired(name))
            .collect();

        if let Selector::Name(name) = &subscription.selector {
            self.cache.add_entry(name);
        }
        self.interest.subscribe(subscription.clone());
        let is_answered = self.adopt_answer(&subscription);
        let mut collector = EffectCollector::new(&self.type_url, &self.interest, config, effects);
        for name in &failed_names {
            self.cache.report_error(name, &mut collector);
        }
        if is_answered {
            collector.complete([subscription]);
        }
    }

    /// Returns whether the server has answered a new subscription already. That
    /// is possible if the server was asked for it a moment ago, or for its
    /// selector with other parameters, which the server does not tell apart. In
    /// the latter case a wildcard or glob gets the stage of the subscription
    /// with the other parameters.
    fn adopt_answer(&mut self, subscription: &Subscription) -> bool {
        if !self.interest.sent().has(subscription) {
            return false;
        }
        let Subscription { selector, params } = subscription;
        match selector {
            Selector::Name(name) => self.cache.is_answered(name, params, &self.interest),
            Selector::Wildcard | Selector::Glob(_) => {
                self.completion.is_complete(subscription)
                    || self.completion.copy_stage(subscription)
            }
        }
    }

    /// Removes a subscription. Names that the server was asked for are evicted
    /// when the unsubscription is sent ([`InterestState::is_requested`]),
    /// others at once.
    pub(super) fn unsubscribe(
        &mut self,
        subscription: &Subscription,
        config: &SinkConfig,
        effects: &mut Effects,
    ) {
        self.interest.unsubscribe(subscription);
        self.is_version_void |= self.interest.desired().is_empty();
        if !self.interest.sent().has(subscription) {
            self.completion.remove(subscription);
            let mut collector =
                EffectCollector::new(&self.type_url, &self.interest, config, effects);
            self.cache.forget_subscription(subscription, &mut collector);
            if !self.interest.has_sent_request() {
                self.version = None;
            }
        }
    }

    /// Starts the fetch timer of a name with its subscription (E2), to run out
    /// at `deadline_at`. A wildcard or a glob has none.
    pub(super) fn start_fetch_timer(&mut self, subscription: &Subscription, deadline_at: Moment) {
        let Subscription { selector, params } = subscription;
        if let Selector::Name(name) = selector {
            self.cache
                .start_fetch_timer(name, params, &self.interest, deadline_at);
        }
    }

    /// Returns whether a response waits for its verdict or its acknowledgement:
    /// no further one is taken meanwhile (C22).
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.ack_state, AckState::Idle)
    }

    /// Returns whether a response waits for its verdict.
    pub(super) fn is_judging(&self) -> bool {
        matches!(self.ack_state, AckState::Judging(_))
    }

    /// Takes a response. Returns the delivery that the owner must judge. A
    /// response that contradicts itself is an error; it needs no verdict, and
    /// its NACK is due (E9). The caller has checked that the type is not busy.
    pub(super) fn receive(
        &mut self,
        incoming: Incoming,
        config: &SinkConfig,
    ) -> Result<Delivery, SinkError> {
        let nonce = incoming.nonce.clone();
        self.nonce = Some(nonce.clone()).filter(|nonce| !nonce.as_str().is_empty());

        if let Some(fault) = response::find_fault(&incoming) {
            let rejections = [Rejection::of_response(fault.to_string())];
            self.ack_state = AckState::Due(nack_detail(&rejections, config));
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

    /// Takes the response that waits for a verdict, if it has this nonce.
    /// Otherwise nothing changes.
    pub(super) fn take_pending(&mut self, nonce: &Nonce) -> Option<Box<PendingVerdict>> {
        match std::mem::take(&mut self.ack_state) {
            AckState::Judging(pending) if pending.delivery.nonce == *nonce => Some(pending),
            other => {
                self.ack_state = other;
                None
            }
        }
    }

    /// Applies a verdict, after which the acknowledgement is due. Returns
    /// whether the response is ACKed: the owner rejected nothing, no resource
    /// was over the limits, and no variant was refused.
    pub(super) fn apply_verdict(
        &mut self,
        mut pending: Box<PendingVerdict>,
        verdict: Verdict,
        config: &SinkConfig,
        now: Moment,
        effects: &mut Effects,
    ) -> bool {
        let mut rejections = std::mem::take(&mut pending.limit_rejections);
        rejections.extend(verdict.rejected);
        let (complete_scopes, silence) = self.complete_scopes(&pending, &rejections, config);
        if let Some(silence) = silence {
            self.cache.timers.set(Deadline::Silence, now + silence);
        }

        let applier = VerdictApplier {
            pending: &pending,
            rejections: &rejections,
            max_error_bytes: config.limits.error_bytes,
            now,
        };
        let mut collector = EffectCollector::new(&self.type_url, &self.interest, config, effects);
        applier.apply(&mut self.cache, &mut collector);
        self.cache.drop_unlisted(&complete_scopes, &mut collector);
        collector.complete(self.completion.take_news(&complete_scopes));

        rejections.append(&mut pending.variant_rejections);
        let is_acked = rejections.is_empty();
        if is_acked && pending.version.is_some() {
            // C18: only a response without an error changes the version.
            self.version = pending.version;
            self.is_version_void = self.interest.desired().is_empty() || pending.is_partial;
        }
        self.ack_state = AckState::Due(nack_detail(&rejections, config));
        is_acked
    }

    /// Returns the wildcards and globs that are complete with a response, and
    /// how long the server has to be silent until others are; `None` if no
    /// other waits. A whole set with a resource whose name cannot be read is
    /// not complete (C31), and heartbeats say nothing about other names.
    fn complete_scopes(
        &mut self,
        pending: &PendingVerdict,
        rejections: &[Rejection],
        config: &SinkConfig,
    ) -> (Vec<Subscription>, Option<Duration>) {
        let delivery = &pending.delivery;
        let failed_names = delivery.errors.iter().map(|(name, _)| name);
        let collections = failed_names.chain(&delivery.removed);
        let mut complete_scopes: Vec<Subscription> = collections
            .flat_map(|name| self.completion.complete_collection(name))
            .collect();

        let are_names_readable = rejections.iter().all(|rejection| rejection.name.is_some());
        if !are_names_readable || !delivery.heartbeats.is_empty() {
            return (complete_scopes, None);
        }
        let extent = match pending.is_whole_set {
            true => Extent::Whole,
            false => Extent::Part,
        };
        let (more_scopes, silence) = self.completion.record_response(extent, config.silence);
        complete_scopes.extend(more_scopes);
        (complete_scopes, silence)
    }

    /// Returns whether there is a request to send besides an acknowledgement.
    pub(super) fn has_changes(&self, mode: Mode) -> bool {
        match mode {
            // The names go with the verdict: before it, a request would refer
            // to a response that is not judged (E4).
            Mode::Sotw => !self.is_judging() && sotw::has_changes(&self.interest),
            Mode::Delta => delta::has_changes(&self.interest),
        }
    }

    /// Builds the next request, which counts as sent. The caller has found that
    /// an acknowledgement or a change is due; otherwise the request would say
    /// nothing.
    pub(super) fn build_request(
        &mut self,
        node: Option<Node>,
        config: &SinkConfig,
        now: Moment,
        effects: &mut Effects,
    ) -> Request {
        match config.mode {
            Mode::Sotw => Request::Sotw(sotw::build_request(self, node, config, now, effects)),
            Mode::Delta => Request::Delta(delta::build_request(self, node, config, now, effects)),
        }
    }

    /// Returns whether an empty list can be a wildcard for the type.
    pub(super) fn has_legacy_wildcard(&self) -> bool {
        Kind::of(&self.type_url).legacy_wildcard
    }

    /// Returns whether the next request is an acknowledgement.
    pub(super) fn has_due_ack(&self) -> bool {
        matches!(self.ack_state, AckState::Due(_))
    }

    /// Takes the acknowledgement that is due: `Some(None)` is an ACK,
    /// `Some(Some(_))` a NACK. `None` if none is due.
    pub(super) fn take_due_ack(&mut self) -> Option<Option<ErrorDetail>> {
        match std::mem::take(&mut self.ack_state) {
            AckState::Due(error) => Some(error),
            other => {
                self.ack_state = other;
                None
            }
        }
    }

    /// Applies a sent request: evicts names that it unsubscribes from, and
    /// starts the fetch timers of names that it subscribes to (C32).
    pub(super) fn apply_sent_diff(
        &mut self,
        diff: &InterestDiff,
        config: &SinkConfig,
        now: Moment,
        is_first: bool,
        effects: &mut Effects,
    ) {
        self.evict(&diff.removed, config, effects);
        // The set that the version stands for may have variants that are dropped
        // now. A server that took them for held could send them again.
        self.is_version_void |= self.interest.may_drop_variants(&diff.removed);
        self.completion.record_sent(diff, is_first);
        if let (Some(timeout), FetchStart::Sent) =
            (config.fetch_timeout.duration(), config.fetch_start)
        {
            for (name, params) in diff.added.names() {
                self.cache
                    .start_fetch_timer(name, params, &self.interest, now + timeout);
            }
        }
    }

    /// Evicts the names and variants that only these subscriptions covered.
    fn evict(
        &mut self,
        removed_subscriptions: &Interest,
        config: &SinkConfig,
        effects: &mut Effects,
    ) {
        let mut collector = EffectCollector::new(&self.type_url, &self.interest, config, effects);
        for subscription in removed_subscriptions.iter() {
            self.cache
                .forget_subscription(&subscription, &mut collector);
        }
    }

    /// Handles the deadlines that have passed: a name without a response gets
    /// an error, and a resource whose TTL ran out is removed.
    pub(super) fn expire(&mut self, config: &SinkConfig, now: Moment, effects: &mut Effects) {
        for deadline in self.cache.timers.expire(now) {
            let mut collector =
                EffectCollector::new(&self.type_url, &self.interest, config, effects);
            match deadline {
                Deadline::Fetch(name, params) => {
                    let (state, error) = timeout_error(config.fetch_timeout);
                    self.cache
                        .time_out(&name, params, state, error, &mut collector);
                }
                Deadline::Silence => {
                    let complete_scopes = self.completion.complete_silent();
                    self.cache.drop_unlisted(&complete_scopes, &mut collector);
                    collector.complete(self.completion.take_news(&complete_scopes));
                }
                Deadline::Ttl(name, constraints) => {
                    self.cache
                        .expire(&name, constraints.as_ref(), &mut collector);
                }
            }
        }
    }
}

/// Returns the state and the error of a name without a response: it does not
/// exist (C34), or is unavailable for now (C35).
fn timeout_error(timeout: FetchTimeout) -> (CacheState, WatchError) {
    let message = "the source did not answer in time";
    match timeout {
        FetchTimeout::Transient(_) => (
            CacheState::Timeout,
            WatchError::new(Cause::TimedOut, message),
        ),
        FetchTimeout::DoesNotExist(_) | FetchTimeout::Never => (
            CacheState::DoesNotExist,
            WatchError::new(Cause::Silent, message),
        ),
    }
}
