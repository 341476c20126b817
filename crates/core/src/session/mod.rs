//! One stream: the conversations of its types, and what they mean to each other.
//!
//! ```text
//!   handle_delta / handle_sotw ─▶ conversation of the type ─▶ events
//!   poll ◀──────────────────────── conversations in order of rank
//!   poll_timeout ◀── the earliest moment at which silence changes something
//! ```
//!
//! The transport owns the session, shares the database, and calls `poll_*`
//! whenever it can send: after a request, after the database woke the stream,
//! after a timeout.

mod ack;
mod base;
mod cross_type;
mod event;
mod locators;
mod params;
mod request;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use base::BaseSubscriptions;
pub use event::{Event, ProtocolError, Refusal};
pub use status::{NameState, NameStatus, TypeStatus};

use crate::database::{Database, SLICE, StreamId};
use crate::limits::Limits;
use crate::message::{Mode, Node, Response};
use crate::moment::Moment;
use crate::order::{DrainDeadlines, DrainingReferences, Order, OtherTypes};
use crate::params::{Params, ParamsId};
use crate::resource::{Nonce, TypeUrl};
use crate::source::{Dialect, PendingAck, Push, PushContext, Timeouts, TypeStream};

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which protocol the stream speaks.
    pub mode: Mode,
    /// The one type of a stream that is not aggregated.
    pub single_type: Option<TypeUrl>,
    /// Types of which an empty first request asks for nothing, not for all (S18).
    pub named_only: Vec<TypeUrl>,
    /// What the peer may make us hold.
    pub limits: Limits,
    /// The parameters of the stream (TP2).
    pub params: Params,
    /// What the peer gets without asking.
    pub base_subscriptions: BaseSubscriptions,
    /// Whether the peer understands `resource_errors` (TP3).
    pub supports_resource_errors: bool,
    /// Whether a cluster that changed gets its endpoints again although those
    /// did not (S53). Not needed by an Envoy that keeps endpoints in a cache.
    pub repeat_endpoints: bool,
    /// How long an answer is awaited before the next response goes out all the same.
    pub ack_timeout: Duration,
    /// How long something waits for what it refers to (S73).
    pub dependency_timeout: Duration,
    /// How long a reconnecting client takes to ask for all its types: until
    /// then nothing is taken away from it (S73).
    pub resume_window: Duration,
    /// How long a replaced listener goes on using what it refers to (S73).
    pub drain_time: Duration,
}

impl Config {
    /// The defaults for a protocol.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            single_type: None,
            named_only: Vec::new(),
            limits: Limits::default(),
            params: Params::default(),
            base_subscriptions: BaseSubscriptions::default(),
            supports_resource_errors: false,
            repeat_endpoints: true,
            ack_timeout: Duration::from_secs(5),
            dependency_timeout: Duration::from_secs(15),
            resume_window: Duration::from_secs(1),
            drain_time: Duration::from_secs(600),
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Session {
    config: Config,
    stream: StreamId,
    /// The database has forgotten the stream.
    is_closed: bool,
    /// Of every type that is not in `own_params`.
    params: ParamsId,
    params_by_type: Vec<(TypeUrl, ParamsId)>,
    /// All sets that were asked with, sorted: held until the stream ends.
    held_params: Vec<ParamsId>,
    node: Option<Node>,
    /// The peer asks by locators: who does reads resources that are wrapped (TP2).
    uses_locators: bool,
    /// Types that the peer may not see.
    denied: Vec<TypeUrl>,
    /// In order of rank.
    type_streams: Vec<TypeStream>,
    draining: DrainingReferences,
    /// Types of which anything may still be in use, since what referred to them
    /// is not known.
    draining_types: BTreeMap<&'static str, DrainDeadlines>,
    nonce_counter: u64,
    polled_at: Moment,
    /// A push of the present poll needed no response, so deferred names may go
    /// on.
    has_silent_progress: bool,
    /// What is left to read of the last request.
    unfinished: Option<locators::UnfinishedRequest>,
    /// The last poll left names to look at, so that others need not wait (S85).
    has_more: bool,
    /// Until when a peer that resumes may take to ask for all its types.
    resuming_until: Option<Moment>,
    events: VecDeque<Event>,
    dropped_events: u64,
}

/// How often one poll looks at everything again.
const MAX_ROUNDS: usize = 64;

/// Refusals that are kept until somebody asks for them.
const MAX_EVENTS: usize = 1024;

impl Session {
    /// A stream begins.
    #[must_use]
    pub fn open(db: &mut Database, config: Config) -> Self {
        let params = db.intern_params(config.params.clone());
        db.hold_params(params);
        Self {
            stream: db.open_stream(),
            is_closed: false,
            params,
            params_by_type: Vec::new(),
            held_params: vec![params],
            config,
            node: None,
            uses_locators: false,
            denied: Vec::new(),
            type_streams: Vec::new(),
            draining: DrainingReferences::new(),
            draining_types: BTreeMap::new(),
            nonce_counter: 0,
            polled_at: Moment::START,
            has_silent_progress: false,
            unfinished: None,
            has_more: false,
            resuming_until: None,
            events: VecDeque::new(),
            dropped_events: 0,
        }
    }

    /// The stream has ended: the database forgets it.
    pub fn close(mut self, db: &mut Database) {
        while !self.close_slice(db) {}
    }

    /// The same for a part of it, so that others need not wait (S85). Returns
    /// whether the database has forgotten all of it.
    pub fn close_slice(&mut self, db: &mut Database) -> bool {
        self.remember_draining(db);
        let mut names = SLICE;
        while let Some(last) = self.type_streams.last_mut() {
            last.remember_set(db);
            let before = last.subscriptions.len();
            if !last.close(db, names) {
                return false;
            }
            names = names.saturating_sub(before).max(1);
            self.type_streams.pop();
        }
        if !std::mem::replace(&mut self.is_closed, true) {
            db.close_stream(self.stream);
            for params in self.held_params.drain(..) {
                db.release_params(params);
            }
        }
        true
    }

    /// By which the database says that there is something to look at.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Who the peer is; bound by its first request (S2).
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Hides a type from the peer: every name of it does not exist. Has no
    /// effect on a type that was asked for before.
    pub fn deny(&mut self, type_url: TypeUrl) {
        if !self.denied.contains(&type_url) && self.denied.len() < self.config.limits.types {
            self.denied.push(type_url);
        }
    }

    /// Says whether the client understands `resource_errors` (TP3); for types
    /// that it has not asked for yet.
    pub fn set_supports_resource_errors(&mut self, speaks: bool) {
        self.config.supports_resource_errors = speaks;
    }

    /// Whether a type was asked for before.
    #[must_use]
    pub fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.type_stream(type_url.as_str()).is_some()
    }

    /// Whether every response was answered.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let mut all = self.type_streams.iter();
        all.all(|type_stream| type_stream.client_cache.pending_acks().is_empty())
    }

    /// Whether there is nothing to say until something happens or
    /// [`Self::poll_timeout`] is reached. Saves polling after an answer that
    /// leads to nothing; false does not promise that there is something.
    #[must_use]
    pub fn is_quiet(&self, db: &Database, now: Moment) -> bool {
        if self.unfinished.is_some() {
            return false;
        }
        let mut all = self.type_streams.iter();
        let deferred = all.any(|type_stream| !type_stream.deferred.is_empty());
        if deferred && self.has_changes(db) {
            return false;
        }
        let mut all = self.type_streams.iter();
        all.all(|type_stream| {
            !type_stream.may_send(now, self.config.ack_timeout)
                || (type_stream.params
                    == type_stream.next_params(self.params_of(&type_stream.type_url))
                    && type_stream.is_quiet(db))
        })
    }

    /// What happened since this was last asked.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// How many refusals there were beside the events.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.dropped_events
    }

    /// Whether the last poll ended before all was looked at: it should be called
    /// again at once, after others had their turn (S85).
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// When to poll again although nothing happens. What is past was seen to by
    /// the last poll.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let times = Timeouts {
            ack_timeout: self.config.ack_timeout,
            resume_window: self.config.resume_window,
            dependency_timeout: self.config.dependency_timeout,
            drain_time: self.config.drain_time,
        };
        let deadlines = self.type_streams.iter().map(|c| c.deadlines(times));
        let draining = self.draining.values().chain(self.draining_types.values());
        let draining = draining.flat_map(|drained| [drained.by_name, drained.by_wildcard]);
        let all = deadlines
            .flatten()
            .chain(draining)
            .chain(self.resuming_until);
        all.filter(|deadline| *deadline > self.polled_at).min()
    }

    /// The next response, if there is something to say.
    pub fn poll(&mut self, db: &mut Database, now: Moment) -> Option<Response> {
        if self.unfinished.is_some() {
            self.has_more = true;
            self.continue_changes(db);
            return None;
        }
        let has_news = self.has_changes(db);
        if has_news {
            self.infer_clusters_from_endpoints(db);
        }
        if self.poll_timeout().is_some_and(|due| due <= now) || has_news {
            self.mark_deferred_dirty();
        }
        self.draining
            .retain(|_, drained| now < drained.by_name.max(drained.by_wildcard));
        self.polled_at = now;
        let mut rounds = 0;
        loop {
            (self.has_silent_progress, self.has_more) = (false, false);
            for index in 0..self.type_streams.len() {
                if let Some((response, push)) = self.poll_type(db, now, index) {
                    self.after_sending(db, index, &push);
                    self.record_sent(db, now, index, &response, push);
                    self.mark_resumed_dirty();
                    return Some(response);
                }
            }
            // What was said by silence something else may have waited for.
            if !self.has_silent_progress {
                return None;
            }
            rounds += 1;
            if rounds == MAX_ROUNDS {
                // Whatever it is, others need not wait for it.
                self.has_more = true;
                return None;
            }
            self.mark_deferred_dirty();
        }
    }

    /// Whether the database has something for the stream that it has not looked at.
    fn has_changes(&self, db: &Database) -> bool {
        self.type_streams.iter().any(|c| c.has_changes(db))
    }

    /// What is sent may refer to a name of which nothing was said (S82).
    fn mark_resumed_dirty(&mut self) {
        let all = self.type_streams.iter_mut();
        all.filter(|type_stream| type_stream.resumption.is_some())
            .for_each(TypeStream::mark_deferred_dirty);
    }

    /// Something has happened: what waits may go on.
    fn mark_deferred_dirty(&mut self) {
        self.type_streams
            .iter_mut()
            .for_each(TypeStream::mark_deferred_dirty);
    }

    fn poll_type(
        &mut self,
        db: &mut Database,
        now: Moment,
        index: usize,
    ) -> Option<(Response, Push)> {
        let wrap = self.may_wrap();
        let own_params = self.params_of(&self.type_streams[index].type_url);
        let (type_stream, others) = OtherTypes::split(&mut self.type_streams, index);
        if !type_stream.may_send(now, self.config.ack_timeout) {
            return None;
        }
        let params = type_stream.next_params(own_params);
        if type_stream.params != params && type_stream.can_change_params() {
            type_stream.change_params(db, params);
        }
        let known = type_stream.is_complete(db);
        if !known && type_stream.sends_whole_sets() {
            return None;
        }
        let awaited = type_stream.awaited_type();
        if awaited.is_some_and(|(names, until)| now < until && others.find(names).is_none()) {
            return None;
        }
        cross_type::answer_first_vhds_request(db, &self.config, type_stream, others);
        cross_type::update_routes_without_vhds(db, type_stream, others);
        let resuming = self.resuming_until.is_some_and(|until| now < until);
        let draining = (&self.draining, &self.draining_types);
        let order = Order::new(others, draining, now, resuming);
        let context = PushContext {
            order: &order,
            limits: &self.config.limits,
            dependency_timeout: self.config.dependency_timeout,
            drain_time: self.config.drain_time,
            resume_window: self.config.resume_window,
            now,
        };
        if type_stream.awaits_dependencies(db, &context) {
            return None;
        }
        let push = type_stream.select_push(db, &context);
        if push.is_empty() && !(type_stream.owes_response && known) {
            self.has_silent_progress |= push.has_more(db);
            self.has_more |= !type_stream.dirty.is_empty();
            type_stream.client_cache.advance_silently(db, push.advances);
            return None;
        }
        let nonce = Nonce::of_number(self.nonce_counter + 1);
        let written = match self.config.mode {
            Mode::Delta => type_stream
                .write_delta(db, &push, nonce)
                .map(Response::Delta),
            Mode::Sotw => type_stream
                .write_sotw(db, &push, nonce, wrap)
                .map(Response::Sotw),
        };
        let Some(response) = written else {
            self.has_silent_progress |=
                !push.updates.is_empty() || !push.answers.is_empty() || push.has_more(db);
            type_stream.client_cache.advance_silently(db, push.advances);
            type_stream.apply_silently(db, push.updates, push.answers);
            return None;
        };
        self.nonce_counter += 1;
        type_stream.owes_response &= !known;
        Some((response, push))
    }

    fn record_sent(
        &mut self,
        db: &mut Database,
        now: Moment,
        index: usize,
        response: &Response,
        push: Push,
    ) {
        let wraps = self.may_wrap();
        let version = match response {
            Response::Delta(_) => None,
            Response::Sotw(response) => Some(response.version.clone()),
        };
        let type_stream = &mut self.type_streams[index];
        type_stream.start_ttl_timers(&push, wraps, now);
        let expects_nack = push.expects_nack || !type_stream.invalid_clusters(&push).is_empty();
        let pending_ack = PendingAck {
            nonce: response.nonce().clone(),
            version,
            sent_at: now,
            updates: push.updates,
            answers: push.answers,
            advances: push.advances,
            merged_nonces: Vec::new(),
            expects_nack,
        };
        type_stream.record_sent(db, pending_ack);
    }

    /// Whether the peer reads resources that are wrapped (S58).
    fn may_wrap(&self) -> bool {
        let features = self
            .node
            .as_ref()
            .map_or(&[][..], |node| &node.client_features);
        self.uses_locators
            || self.dialect() == Dialect::Envoy
            || features.iter().any(|feature| {
                matches!(
                    feature.as_str(),
                    "xds.config.supports-resource-in-sotw"
                        | "xds.config.resource-in-sotw"
                        | "xds.config.supports-resource-ttl"
                )
            })
    }

    /// Whose habits the peer has.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match &self.node {
            Some(node) if node.user_agent == "envoy" => Dialect::Envoy,
            _ => Dialect::Standard,
        }
    }

    /// Whether an empty first request can mean all of a type (S18). gRPC never
    /// means it.
    fn allows_legacy_wildcard(&self, url: &TypeUrl) -> bool {
        let grpc = |node: &Node| node.user_agent.starts_with("gRPC");
        !self.node.as_ref().is_some_and(grpc) && !self.config.named_only.contains(url)
    }

    fn type_stream(&self, url: &str) -> Option<&TypeStream> {
        let mut all = self.type_streams.iter();
        all.find(|type_stream| type_stream.type_url.as_str() == url)
    }

    fn type_stream_mut(&mut self, url: &str) -> Option<&mut TypeStream> {
        let mut all = self.type_streams.iter_mut();
        all.find(|type_stream| type_stream.type_url.as_str() == url)
    }
}

#[cfg(test)]
mod tests;
