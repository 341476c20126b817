//! The session of a stream: bytes in, frames out. No waiting.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use trunkline_core::Moment;
use trunkline_core::kind;
use trunkline_core::message::{Mode, Response};
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::{Config, Event, ProtocolError, Session};
use trunkline_core::sink::Request;
use trunkline_core::source::Dialect;
use trunkline_proto::discovery::{DecodeError, Frames, Limits, Node};

use super::convergence::{Convergence, Convergences};
use super::hooks::Connection;
use super::report::{Peer, Report, Sent};
use super::request_outcome::{RequestOutcome, on_demand, take_demand_changes};
use super::revisions::SentRevisions;
use super::shared::Shared;
use crate::hub::Watcher;
use crate::node::Described;
use crate::wake::WakeFlags;
use crate::wire::{self, Reader};

/// The peer broke the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// What it sent cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What it said makes no sense.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u64,
    pub(super) mode: Mode,
    pub(super) only: Option<TypeUrl>,
    pub(super) connection: Connection,
    pub(super) identity: Option<String>,
    pub(super) opened: SystemTime,
    pub(super) shared: Arc<Shared>,
    pub(super) begun: Instant,
    /// Rings when there is something to look at.
    pub(super) wake_flags: Arc<WakeFlags>,
    /// The changes that the peer has not answered yet.
    convergences: Convergences,
    /// Bound by the first request (S2).
    node: OnceLock<String>,
    /// Taken by the stream's task for each message, and by who looks on. Never
    /// held while something is reported.
    talk: Mutex<Talk>,
}

#[derive(Debug)]
pub(super) struct Talk {
    reader: Reader,
    /// Begins with the first request, which says whose it is.
    pub(super) session: Option<Session>,
    pub(super) revisions: SentRevisions,
    /// What rules know of the node, if they ask for something.
    pub(super) described: Option<Box<Described>>,
    configured: bool,
}

/// The wake flag of a change in the database that concerns the stream.
pub(super) const NEWS: u8 = 2;

/// How long others have their turn when a stream has more to look at than it may
/// at once (S85).
const BETWEEN_SLICES: Duration = Duration::from_millis(1);

/// A response that is not written yet.
struct Built {
    response: Response,
    /// Whose habits its reader has.
    dialect: Dialect,
    /// How many transactions it is from.
    revision: u64,
}

/// What a stream has to say.
pub(super) struct Spoken {
    pub(super) message: Option<Frames>,
    pub(super) at: tokio::time::Instant,
    pub(super) next: Next,
}

/// When a stream may have something to say again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    /// Now.
    pub(super) now: bool,
    /// Then, although nothing happens.
    pub(super) due: Option<tokio::time::Instant>,
}

impl Stream {
    pub(super) fn new(
        shared: Arc<Shared>,
        (mode, only): (Mode, Option<TypeUrl>),
        connection: Connection,
        identity: Option<String>,
    ) -> Self {
        let limits = Limits {
            message_bytes: shared.options.request_bytes,
            ..Limits::default()
        };
        Self {
            number: shared.next_number(),
            mode,
            only,
            connection,
            identity,
            opened: SystemTime::now(),
            begun: Instant::now(),
            wake_flags: WakeFlags::new(),
            convergences: Convergences::default(),
            node: OnceLock::new(),
            talk: Mutex::new(Talk {
                reader: Reader::new(limits, Arc::clone(&shared.known_versions)),
                session: None,
                revisions: SentRevisions::default(),
                described: None,
                configured: false,
            }),
            shared,
        }
    }

    /// Takes a request.
    pub(super) fn handle(self: &Arc<Self>, raw: Bytes) -> Result<Next, Fault> {
        let bytes = raw.len();
        let mut outcome = RequestOutcome::default();
        let held = self.convergences.len();
        let taken = self.take(raw, &mut outcome);
        self.tell(bytes, &outcome);
        let (next, answered) = taken?;
        if answered && !next.now {
            self.convergences.acknowledged(held);
        }
        Ok(next)
    }

    /// Says as well whether all that was said is answered.
    fn take(
        self: &Arc<Self>,
        raw: Bytes,
        outcome: &mut RequestOutcome,
    ) -> Result<(Next, bool), Fault> {
        let now = self.shared.hub.now();
        let mut talk = self.talk();
        let talk = &mut *talk;
        let (request, node) = match self.mode {
            Mode::Sotw => {
                let read = talk.reader.sotw(raw)?;
                outcome.refused = read.refused;
                (Request::Sotw(read.request), read.node)
            }
            Mode::Delta => {
                let read = talk.reader.delta(raw)?;
                outcome.refused = read.refused;
                (Request::Delta(read.request), read.node)
            }
        };
        let type_url = match &request {
            Request::Sotw(request) => &request.type_url,
            Request::Delta(request) => &request.type_url,
        };
        let known = (&mut talk.session, &mut talk.described);
        let session = self.begin(known, node.as_ref(), type_url.as_ref(), outcome);
        if self.shared.hooks.are_any() {
            outcome.asked = on_demand(outcome.type_url.as_ref(), &request);
        }
        let quiet = self.shared.with(|db| {
            let fault = match request {
                Request::Sotw(request) => session.handle_sotw(db, request, now),
                Request::Delta(request) => session.handle_delta(db, request, now),
            };
            take_demand_changes(db, outcome);
            fault.map(|()| session.is_quiet(db, now))
        })?;
        while let Some(event) = session.poll_event() {
            talk.revisions.acknowledged(&event);
            outcome.configured |= matches!(event, Event::Acked { .. }) && !talk.configured;
            talk.configured |= outcome.configured;
            if self.shared.hooks.are_any() {
                outcome.events.push(event);
            }
        }
        Ok((self.next(session, quiet), session.is_acknowledged()))
    }

    fn next(&self, session: &Session, quiet: bool) -> Next {
        let due = session.poll_timeout();
        Next {
            now: !quiet,
            due: due.map(|due| self.shared.hub.instant(due)),
        }
    }

    /// The session, which the first request opens, ready to hear of a type.
    fn begin<'a>(
        self: &Arc<Self>,
        (session, described): (&'a mut Option<Session>, &mut Option<Box<Described>>),
        node: Option<&Node>,
        type_url: Option<&TypeUrl>,
        outcome: &mut RequestOutcome,
    ) -> &'a mut Session {
        self.introduce(node.map(|node| &node.id));
        outcome.opens = session.is_none();
        let session = session.get_or_insert_with(|| self.shared.open(self.config(), self));
        if let Some(node) = node {
            self.set_node(session, described, node);
        }
        let type_url = self.only.as_ref().or(type_url);
        outcome.type_url = type_url.cloned();
        if let Some(type_url) = type_url
            && !session.has_type(type_url)
            && !self.may_see(type_url)
        {
            session.deny(type_url.clone());
            outcome.denied = Some(type_url.clone());
        }
        session
    }

    /// Says who is at the other end; what is said first counts (S2).
    pub(super) fn introduce(&self, node: Option<&String>) {
        if let Some(id) = node {
            self.node.get_or_init(|| id.clone());
        }
    }

    pub(super) fn may_see(&self, type_url: &TypeUrl) -> bool {
        let secret = type_url.as_str() == kind::SDS;
        let private = self.connection.is_private() || self.shared.options.secrets_in_clear;
        (private || !secret) && self.shared.hooks.authorise(self.peer(), type_url)
    }

    pub(super) fn config(&self) -> Config {
        let options = &self.shared.options;
        Config {
            single_type: self.only.clone(),
            named_only: options.named_only.clone(),
            limits: options.limits.clone(),
            repeat_endpoints: options.repeat_endpoints,
            ..Config::new(self.mode)
        }
    }

    /// The next message, built from the newest state.
    pub(super) fn poll(&self) -> Spoken {
        let held = self.convergences.len();
        let now = self.shared.hub.now();
        let (response, next, told) = self.poll_session(now);
        if told && response.is_none() {
            self.convergences.acknowledged(held);
        }
        Spoken {
            message: response.map(|response| self.write(&response)),
            at: self.shared.hub.instant(now),
            next,
        }
    }

    /// What there is to say, and whether all else was said before and answered.
    /// One response at a time: what comes next can be newer then.
    fn poll_session(&self, now: Moment) -> (Option<Built>, Next, bool) {
        let mut talk = self.talk();
        let Talk {
            session, revisions, ..
        } = &mut *talk;
        let Some(session) = session else {
            let next = Next {
                now: false,
                due: None,
            };
            return (None, next, true);
        };
        let ((response, quiet), revision) = self.shared.hub.with_revision(|db| {
            let response = session.poll(db, now);
            let quiet = response.is_none() || session.is_quiet(db, now);
            (response, quiet)
        });
        if let Some(response) = &response {
            revisions.sent(response.type_url(), response.nonce(), revision);
        }
        let dialect = session.dialect();
        let response = response.map(|response| Built {
            response,
            dialect,
            revision,
        });
        let mut next = self.next(session, quiet);
        let goes_on = session.has_more();
        if goes_on {
            let soon = self.shared.hub.instant(now) + BETWEEN_SLICES;
            next.due = Some(next.due.map_or(soon, |due| due.min(soon)));
        }
        (response, next, session.is_acknowledged() && !goes_on)
    }

    fn write(&self, built: &Built) -> Frames {
        let response = &built.response;
        let identifier = &self.shared.options.identifier;
        let (frames, resources, removed) = match response {
            Response::Sotw(response) => {
                let frames = wire::sotw_frames(response, identifier);
                (frames, &response.resources, &[][..])
            }
            Response::Delta(response) => {
                let frames = wire::delta_frames(response, identifier, built.revision);
                (frames, &response.resources, &response.removed[..])
            }
        };
        let (type_url, nonce) = (response.type_url(), response.nonce());
        self.report(Report::Sent(Sent {
            type_url,
            nonce,
            resources,
            removed,
            bytes: frames.len(),
        }));
        if built.dialect == Dialect::Standard {
            self.tell_size((type_url, nonce), resources, frames.len());
        }
        frames
    }

    /// The peer has gone, or has to.
    pub(super) fn close(&self) {
        let Some(session) = self.talk().session.take() else {
            return;
        };
        self.shared.close(session);
        self.convergences.acknowledged(usize::MAX);
        let mut outcome = RequestOutcome::default();
        self.shared.with(|db| take_demand_changes(db, &mut outcome));
        self.unwanted(&outcome.unwanted);
        self.report(Report::Closed);
    }

    pub(super) fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the peer calls itself; empty until its first request.
    pub(super) fn node_id(&self) -> &str {
        self.node.get().map_or("", String::as_str)
    }

    fn peer(&self) -> Peer<'_> {
        Peer {
            stream: self.number,
            node: self.node_id(),
            identity: self.identity.as_deref(),
            connection: &self.connection,
        }
    }

    pub(super) fn report(&self, report: Report<'_>) {
        if self.shared.hooks.are_any() {
            self.shared.hooks.report(self.peer(), report);
        }
    }
}

impl Watcher for Stream {
    type News = Arc<Convergence>;

    /// There may be something to say.
    fn wake(&self, convergence: Option<&Arc<Convergence>>) {
        if let Some(convergence) = convergence {
            self.convergences.add(convergence);
        }
        self.wake_flags.raise(NEWS);
    }
}
