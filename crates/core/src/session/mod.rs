//! The server's state of one stream: the type streams, and their effects on
//! each other.
//!
//! ```text
//!   handle_delta / handle_sotw ─▶ type stream ─▶ events
//!   poll ◀──────────────────────── type streams in order of rank
//!   poll_timeout ◀── the earliest moment at which a push may be due by itself
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

/// The configuration of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// The protocol of the stream.
    pub mode: Mode,
    /// The one type of a stream that is not aggregated.
    pub single_type: Option<TypeUrl>,
    /// Types whose empty first request is no wildcard (S18).
    pub named_only: Vec<TypeUrl>,
    /// Bounds on the memory that the client can make us use.
    pub limits: Limits,
    /// The parameters of the stream (TP2).
    pub params: Params,
    /// The hosts that the client is subscribed to without asking.
    pub base_subscriptions: BaseSubscriptions,
    /// Whether the client understands `resource_errors` (TP3).
    pub supports_resource_errors: bool,
    /// Whether a changed cluster gets its endpoints again although those did
    /// not change (S53). An Envoy that caches endpoints does not need it.
    pub repeat_endpoints: bool,
    /// How long an ACK is awaited before the next response is sent all the
    /// same.
    pub ack_timeout: Duration,
    /// How long an addition is deferred for a dependency (S73).
    pub dependency_timeout: Duration,
    /// How long a reconnecting client takes to subscribe to all its types:
    /// until then nothing is removed (S73).
    pub resume_window: Duration,
    /// How long a replaced listener goes on using its references (S73).
    pub drain_time: Duration,
}

impl Config {
    /// The default configuration of a protocol.
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

/// The server's state of one stream.
#[derive(Debug)]
pub struct Session {
    config: Config,
    stream: StreamId,
    /// The stream was removed from the database.
    is_closed: bool,
    /// The parameters of every type that is not in `params_by_type`.
    params: ParamsId,
    params_by_type: Vec<(TypeUrl, ParamsId)>,
    /// All parameter sets of subscriptions, sorted, held until the stream ends.
    held_params: Vec<ParamsId>,
    node: Option<Node>,
    /// The client subscribes by locators: such a client reads wrapped resources
    /// (TP2).
    uses_locators: bool,
    /// Types that the client may not see.
    denied: Vec<TypeUrl>,
    /// In order of rank.
    type_streams: Vec<TypeStream>,
    draining: DrainingReferences,
    /// Types of which any resource may be in use, since their referrers have
    /// unknown bodies.
    draining_types: BTreeMap<&'static str, DrainDeadlines>,
    nonce_counter: u64,
    polled_at: Moment,
    /// A push of the present poll needed no response, so deferred names may go
    /// on.
    has_silent_progress: bool,
    /// The rest of the last request, which is not read yet.
    unfinished: Option<locators::UnfinishedRequest>,
    /// The last poll left dirty names, so that others need not wait (S85).
    has_more: bool,
    /// The end of the time that a resuming client has to subscribe to all its
    /// types.
    resuming_until: Option<Moment>,
    events: VecDeque<Event>,
    /// Refusals beyond [`MAX_EVENTS`].
    dropped_events: u64,
}

/// How often one poll evaluates all types.
const MAX_ROUNDS: usize = 64;

/// Refusals that are kept until they are polled.
const MAX_EVENTS: usize = 1024;

impl Session {
    /// Opens a stream.
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

    /// Closes the stream: removes it from the database.
    pub fn close(mut self, db: &mut Database) {
        while !self.close_slice(db) {}
    }

    /// Closes a part of the stream, so that others need not wait (S85). Returns
    /// whether all of it is closed.
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

    /// The id by which the database wakes the stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The node of the client, from its first request (S2).
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Hides a type from the client: every name of it does not exist. Has no
    /// effect on a type that the client has subscribed to before.
    pub fn deny(&mut self, type_url: TypeUrl) {
        if !self.denied.contains(&type_url) && self.denied.len() < self.config.limits.types {
            self.denied.push(type_url);
        }
    }

    /// Sets whether the client understands `resource_errors` (TP3), for types
    /// that it has not subscribed to yet.
    pub fn set_supports_resource_errors(&mut self, supports: bool) {
        self.config.supports_resource_errors = supports;
    }

    /// Whether the client has subscribed to a type.
    #[must_use]
    pub fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.type_stream(type_url.as_str()).is_some()
    }

    /// Whether every response was acknowledged.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let mut all = self.type_streams.iter();
        all.all(|type_stream| type_stream.client_cache.pending_acks().is_empty())
    }

    /// Whether there is nothing to send until something happens or
    /// [`Self::poll_timeout`] is reached. This saves a poll after an ACK that
    /// has no effect; false does not promise that there is a response.
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

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the last poll ended before it evaluated everything: it should be
    /// called again at once, after others had their turn (S85).
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// When to poll again although nothing happens. The last poll has handled
    /// moments in the past.
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
        let draining = draining.flat_map(|deadlines| [deadlines.by_name, deadlines.by_wildcard]);
        let all = deadlines
            .flatten()
            .chain(draining)
            .chain(self.resuming_until);
        all.filter(|deadline| *deadline > self.polled_at).min()
    }

    /// The next response, if there is one.
    pub fn poll(&mut self, db: &mut Database, now: Moment) -> Option<Response> {
        if self.unfinished.is_some() {
            self.has_more = true;
            self.continue_changes(db);
            return None;
        }
        let has_changes = self.has_changes(db);
        if has_changes {
            self.infer_clusters_from_endpoints(db);
        }
        if self.poll_timeout().is_some_and(|due| due <= now) || has_changes {
            self.mark_deferred_dirty();
        }
        self.draining
            .retain(|_, deadlines| now < deadlines.by_name.max(deadlines.by_wildcard));
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
            // Something else may have been deferred for a push that needed no
            // response.
            if !self.has_silent_progress {
                return None;
            }
            rounds += 1;
            if rounds == MAX_ROUNDS {
                // Others need not wait for the rest.
                self.has_more = true;
                return None;
            }
            self.mark_deferred_dirty();
        }
    }

    /// Whether the database has changes for the stream that were not evaluated.
    fn has_changes(&self, db: &Database) -> bool {
        self.type_streams.iter().any(|c| c.has_changes(db))
    }

    /// Marks names of resumed clients dirty: a response may refer to a name
    /// that was not answered (S82).
    fn mark_resumed_dirty(&mut self) {
        let all = self.type_streams.iter_mut();
        all.filter(|type_stream| type_stream.resumption.is_some())
            .for_each(TypeStream::mark_deferred_dirty);
    }

    /// Marks deferred names dirty, after something has happened.
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
        let type_params = self.params_of(&self.type_streams[index].type_url);
        let (type_stream, others) = OtherTypes::split(&mut self.type_streams, index);
        if !type_stream.may_send(now, self.config.ack_timeout) {
            return None;
        }
        let params = type_stream.next_params(type_params);
        type_stream.apply_params(db, params);
        let complete = type_stream.is_complete(db);
        if !complete && type_stream.sends_whole_sets() {
            return None;
        }
        let awaited = type_stream.awaited_type();
        if awaited.is_some_and(|(url, until)| now < until && others.find(url).is_none()) {
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
        if push.is_empty() && !(type_stream.owes_response && complete) {
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
        type_stream.owes_response &= !complete;
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

    /// Whether the client reads wrapped resources (S58).
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

    /// The client implementation whose behaviour is assumed.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match &self.node {
            Some(node) if node.user_agent == "envoy" => Dialect::Envoy,
            _ => Dialect::Standard,
        }
    }

    /// Whether an empty first request can be a wildcard for a type (S18). gRPC
    /// never means it.
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
