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
mod listing;
mod locators;
mod params;
mod poll;
mod progress;
mod reading;
mod refuse;
mod request;
mod secrets;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use base::BaseSubscriptions;
pub use event::{Event, ProtocolError, Refusal};
pub use listing::NameListing;
pub use progress::{ListedCounts, ResourceCounts, TypeProgress};
pub use status::{NameState, NameStatus, TypeStatus};

use crate::database::{Database, SLICE, StreamId};
use crate::limits::Limits;
use crate::message::{Mode, Node};
use crate::moment::Moment;
use crate::order::{DrainDeadlines, DrainingReferences};
use crate::params::{Params, ParamsId};
use crate::resource::TypeUrl;
use crate::source::{Dialect, Timeouts, TypeStream};
use crate::timer::EarliestDeadline;

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
    /// Whether resources with a private key in them are withheld: others may
    /// listen, or nobody knows who the client is.
    pub withholds_keys: bool,
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
    /// Makes the default configuration of a protocol.
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
            withholds_keys: false,
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
    /// The number of the next response.
    next_nonce: u64,
    polled_at: Moment,
    /// A push of the present poll needed no response, so deferred names may go
    /// on.
    has_silent_progress: bool,
    /// The rest of the last request, which is not read yet.
    unfinished: Option<Box<reading::UnfinishedRequest>>,
    /// Types that are closed. They are freed with the session, for which nobody
    /// has to wait.
    closed_types: Vec<TypeStream>,
    /// The last poll left dirty names, so that others need not wait (S85).
    has_more: bool,
    /// The end of the time that a resuming client has to subscribe to all its
    /// types.
    resuming_until: Option<Moment>,
    events: VecDeque<Event>,
}

/// The number of events that are kept until they are polled, beyond which
/// refusals are dropped.
const MAX_EVENTS: usize = 1024;

/// Subscriptions that end at once when a stream closes: each costs more than
/// the evaluation of a name.
const CLOSED_AT_ONCE: usize = SLICE / 2;

/// The client features that tell that a SotW client reads wrapped resources.
const WRAPPING_FEATURES: [&str; 3] = [
    "xds.config.supports-resource-in-sotw",
    "xds.config.resource-in-sotw",
    "xds.config.supports-resource-ttl",
];

impl Session {
    /// Opens a stream: adds it to the database, which wakes it from then on.
    /// The caller ends it by [`Self::close`] or [`Self::close_slice`].
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
            next_nonce: 1,
            polled_at: Moment::START,
            has_silent_progress: false,
            unfinished: None,
            closed_types: Vec::new(),
            has_more: false,
            resuming_until: None,
            events: VecDeque::new(),
        }
    }

    /// Closes the stream: removes it from the database, at once.
    /// [`Self::close_slice`] lets others have their turn in between.
    pub fn close(mut self, db: &mut Database) {
        while !self.close_slice(db) {}
    }

    /// Closes a slice of the stream, so that other streams need not wait (S85).
    /// Returns whether the whole stream is closed. The database remembers the
    /// resources that the client holds, for when the client resumes (S82).
    pub fn close_slice(&mut self, db: &mut Database) -> bool {
        if let Some(unfinished) = &mut self.unfinished {
            if !unfinished.drop_slice(SLICE) {
                return false;
            }
            self.unfinished = None;
        }
        self.remember_draining(db);

        let mut name_budget = CLOSED_AT_ONCE;
        while let Some(type_stream) = self.type_streams.last_mut() {
            type_stream.remember_set(db);
            let name_count = type_stream.subscriptions.len();
            if !type_stream.close(db, name_budget) {
                return false;
            }
            name_budget = name_budget.saturating_sub(name_count).max(1);
            self.closed_types.extend(self.type_streams.pop());
        }

        if !std::mem::replace(&mut self.is_closed, true) {
            db.close_stream(self.stream);
            for params in self.held_params.drain(..) {
                db.release_params(params);
            }
        }
        true
    }

    /// Returns the number of names that the session keeps. A session with many
    /// takes long to close and to drop.
    #[must_use]
    pub fn name_count(&self) -> usize {
        let unread_count = self.unfinished.as_ref().map_or(0, |request| request.len());
        let counts = self.type_streams.iter().map(TypeStream::name_count);
        unread_count + counts.sum::<usize>()
    }

    /// Returns the id by which the database wakes the stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the node of the client, from its first request (S2).
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Hides a type from the client: none of its names exists. Has no effect on
    /// a type that the client has subscribed to before.
    pub fn deny(&mut self, type_url: TypeUrl) {
        // A type that is refused needs no entry (S72).
        if self.has_room_for_type(&type_url) && !self.denied.contains(&type_url) {
            self.denied.push(type_url);
        }
    }

    /// Sets whether the client understands `resource_errors` (TP3), for types
    /// that it has not subscribed to yet.
    pub fn set_supports_resource_errors(&mut self, supports: bool) {
        self.config.supports_resource_errors = supports;
    }

    /// Returns whether the client has subscribed to a type.
    #[must_use]
    pub fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.type_stream(type_url.as_str()).is_some()
    }

    /// Returns whether every response that was sent has its acknowledgement.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let mut type_streams = self.type_streams.iter();
        type_streams.all(|type_stream| type_stream.client_cache.pending_acks().is_empty())
    }

    /// Returns whether there is nothing to send until something happens or
    /// [`Self::poll_timeout`] is reached. This saves a poll after an ACK that
    /// has no effect; false does not promise that there is a response.
    #[must_use]
    pub fn is_quiet(&self, db: &Database, now: Moment) -> bool {
        if self.unfinished.is_some() {
            return false;
        }

        let mut type_streams = self.type_streams.iter();
        let has_deferred = type_streams.any(|type_stream| !type_stream.deferred.is_empty());
        if has_deferred && self.has_changes(db) {
            return false;
        }

        let is_quiet = |type_stream: &TypeStream| {
            let stream_params = self.params_of(&type_stream.type_url);
            let changes_params = type_stream.next_params(stream_params) != type_stream.params;
            !type_stream.may_send(now, self.config.ack_timeout)
                || (!changes_params
                    && !type_stream.is_changing_params()
                    && type_stream.is_quiet(db))
        };
        self.type_streams.iter().all(is_quiet)
    }

    /// Returns the next event. After the last one no memory is kept.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        event
    }

    /// Returns whether there are events to poll.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns whether the last poll ended before it evaluated everything: it
    /// should be called again at once, after others had their turn (S85).
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns the moment at which to poll again even if nothing happens.
    /// `None` means that there is no such moment. Moments before the last poll
    /// were handled by that poll.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let timeouts = Timeouts {
            ack_timeout: self.config.ack_timeout,
            resume_window: self.config.resume_window,
            dependency_timeout: self.config.dependency_timeout,
            drain_time: self.config.drain_time,
        };

        let mut earliest = EarliestDeadline::later_than(self.polled_at);
        for type_stream in &self.type_streams {
            type_stream.add_deadlines(&timeouts, &mut earliest);
        }
        for deadlines in self.draining.values().chain(self.draining_types.values()) {
            earliest.add(deadlines.by_name);
            earliest.add(deadlines.by_wildcard);
        }
        earliest.add(self.resuming_until);
        earliest.get()
    }

    /// Returns whether the client reads wrapped resources (S58).
    fn may_wrap(&self) -> bool {
        let node = self.node.as_ref();
        let mut features = node.into_iter().flat_map(|node| &node.client_features);
        self.uses_locators
            || self.dialect() == Dialect::Envoy
            || features.any(|feature| WRAPPING_FEATURES.contains(&feature.as_str()))
    }

    /// Returns the client implementation whose behaviour is assumed: Envoy if
    /// the node says so, else one that does as the specification says.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match &self.node {
            Some(node) if node.user_agent == "envoy" => Dialect::Envoy,
            _ => Dialect::Standard,
        }
    }

    /// Returns whether an empty first request can be a wildcard for a type
    /// (S18). gRPC never means it.
    fn allows_legacy_wildcard(&self, url: &TypeUrl) -> bool {
        let is_grpc = |node: &Node| node.user_agent.starts_with("gRPC");
        !self.node.as_ref().is_some_and(is_grpc) && !self.config.named_only.contains(url)
    }

    /// Returns the state of a type; `None` if the client has not subscribed to
    /// it.
    fn type_stream(&self, url: &str) -> Option<&TypeStream> {
        let mut type_streams = self.type_streams.iter();
        type_streams.find(|type_stream| type_stream.type_url.as_str() == url)
    }

    /// Returns the state of a type, to be changed; `None` if the client has not
    /// subscribed to it.
    fn type_stream_mut(&mut self, url: &str) -> Option<&mut TypeStream> {
        let mut type_streams = self.type_streams.iter_mut();
        type_streams.find(|type_stream| type_stream.type_url.as_str() == url)
    }
}

#[cfg(test)]
mod tests;
