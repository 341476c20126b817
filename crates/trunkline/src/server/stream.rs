//! The session of a stream: bytes in, frames out. No waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Context;
use std::time::{Instant, SystemTime};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use trunkline_core::database::{Choice, Database, Edge};
use trunkline_core::kind;
use trunkline_core::message::{DeltaResponse, Mode, SotwResponse};
use trunkline_core::name::{Ask, Name};
use trunkline_core::params::ParamsId;
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::session::{Config, Event, ProtocolError, Session};
use trunkline_core::sink::Request;
use trunkline_proto::discovery::{DecodeError, Frames, Limits, Node};

use super::hooks::Connection;
use super::marks::Marks;
use super::report::{Peer, Report, Sent};
use super::shared::Shared;
use super::wave::{self, Wave};
use crate::node::Described;
use crate::wire::{self, Reader, Refused};

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
    shared: Arc<Shared>,
    begun: Instant,
    /// Told by the database that there is something to look at.
    woken: AtomicBool,
    /// Who has to hear of it.
    waker: AtomicWaker,
    /// The changes that the peer has not answered yet.
    waves: Mutex<Vec<Arc<Wave>>>,
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
    pub(super) marks: Marks,
    /// What rules know of the node, if there are rules.
    pub(super) described: Option<Box<Described>>,
    configured: bool,
}

/// What a stream has to say.
pub(super) struct Spoken {
    pub(super) messages: Vec<Frames>,
    /// Whether there may be more.
    pub(super) more: bool,
}

/// A response of either protocol.
enum Response {
    Sotw(SotwResponse),
    Delta(DeltaResponse),
}

/// Resources from which a response takes a while to be sent.
const LARGE: usize = 32;

impl Response {
    fn name(&self) -> (&TypeUrl, &Nonce) {
        match self {
            Self::Sotw(response) => (&response.type_url, &response.nonce),
            Self::Delta(response) => (&response.type_url, &response.nonce),
        }
    }

    fn is_large(&self) -> bool {
        let resources = match self {
            Self::Sotw(response) => response.resources.len(),
            Self::Delta(response) => response.resources.len(),
        };
        resources > LARGE
    }
}

/// What a request led to, to be reported when nothing is locked.
#[derive(Default)]
struct Outcome {
    opens: bool,
    type_url: Option<TypeUrl>,
    denied: Option<TypeUrl>,
    refused: Vec<Refused>,
    events: Vec<Event>,
    missing: Vec<(TypeUrl, Name)>,
    unwanted: Vec<(TypeUrl, Name)>,
    configured: bool,
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
            woken: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            waves: Mutex::default(),
            node: OnceLock::new(),
            talk: Mutex::new(Talk {
                reader: Reader::new(limits),
                session: None,
                marks: Marks::default(),
                described: None,
                configured: false,
            }),
            shared,
        }
    }

    /// Takes a request.
    pub(super) fn handle(self: &Arc<Self>, raw: Bytes) -> Result<(), Fault> {
        let bytes = raw.len();
        let mut outcome = Outcome::default();
        let fault = self.take(raw, &mut outcome);
        self.tell(bytes, &outcome);
        fault
    }

    fn take(self: &Arc<Self>, raw: Bytes, outcome: &mut Outcome) -> Result<(), Fault> {
        let now = self.shared.now();
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
        let session = self.begin(talk, node.as_ref(), type_url.as_ref(), outcome);
        self.shared.with(|db| {
            let fault = match request {
                Request::Sotw(request) => session.handle_sotw(db, request, now),
                Request::Delta(request) => session.handle_delta(db, request, now),
            };
            take_edges(db, outcome);
            fault
        })?;
        while let Some(event) = talk.session.as_mut().and_then(Session::poll_event) {
            talk.marks.answered(&event);
            outcome.configured |= matches!(event, Event::Acked { .. }) && !talk.configured;
            talk.configured |= outcome.configured;
            outcome.events.push(event);
        }
        Ok(())
    }

    /// The session, which the first request opens, ready to hear of a type.
    fn begin<'a>(
        self: &Arc<Self>,
        talk: &'a mut Talk,
        node: Option<&Node>,
        type_url: Option<&TypeUrl>,
        outcome: &mut Outcome,
    ) -> &'a mut Session {
        self.introduce(node.map(|node| &node.id));
        outcome.opens = talk.session.is_none();
        let Talk {
            session, described, ..
        } = talk;
        let session = session.get_or_insert_with(|| self.shared.open(self.config(), self));
        let rules = &self.shared.base;
        if let Some(node) = node
            && described.is_none()
            && !rules.is_empty()
        {
            let known = described.insert(Box::new(Described::new(node, rules.wanted())));
            session.set_base(rules.base(known));
        }
        let type_url = self.only.as_ref().or(type_url);
        outcome.type_url = type_url.cloned();
        if let Some(type_url) = type_url
            && !session.speaks_of(type_url)
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
            only: self.only.clone(),
            named_only: options.named_only.clone(),
            limits: options.limits.clone(),
            repeat_endpoints: options.repeat_endpoints,
            ..Config::new(self.mode)
        }
    }

    fn tell(&self, bytes: usize, outcome: &Outcome) {
        if outcome.opens {
            self.report(Report::Opened);
        }
        if let Some(type_url) = &outcome.type_url {
            self.report(Report::Requested { type_url, bytes });
        }
        if let Some(type_url) = &outcome.denied {
            self.report(Report::Denied { type_url });
        }
        for name in &outcome.refused {
            self.report(Report::Refused(name));
        }
        for event in &outcome.events {
            self.report(Report::Event(event));
        }
        if outcome.configured {
            self.report(Report::Configured(self.begun.elapsed()));
        }
        for (type_url, name) in &outcome.missing {
            self.report(Report::Missing { type_url, name });
            for contents in &self.shared.contents {
                contents.wanted(type_url, name);
            }
        }
        self.unwanted(&outcome.unwanted);
    }

    fn unwanted(&self, names: &[(TypeUrl, Name)]) {
        for (type_url, name) in names {
            for contents in &self.shared.contents {
                contents.unwanted(type_url, name);
            }
        }
    }

    /// The next messages, one of a type at most, built from the newest state.
    pub(super) fn poll(&self) -> Spoken {
        let waves = std::mem::take(&mut *self.waves());
        let (responses, answered) = self.poll_session();
        let more = responses.last().is_some_and(Response::is_large);
        let settled = answered && responses.is_empty();
        // What is dropped here has arrived.
        if !settled && !waves.is_empty() {
            let mut kept = self.waves();
            kept.splice(0..0, waves);
            kept.truncate(wave::KEPT);
        }
        let messages = responses.iter().map(|response| self.write(response));
        Spoken {
            messages: messages.collect(),
            more,
        }
    }

    /// What there is to say, and whether all that was said is answered. What
    /// is large is said alone: what comes next can be newer then.
    fn poll_session(&self) -> (Vec<Response>, bool) {
        let now = self.shared.now();
        let mut talk = self.talk();
        let Talk { session, marks, .. } = &mut *talk;
        let Some(session) = session else {
            return (Vec::new(), true);
        };
        let (responses, revision) = self.shared.with_revision(|db| {
            let mut responses = Vec::new();
            while !responses.last().is_some_and(Response::is_large)
                && let Some(response) = match self.mode {
                    Mode::Sotw => session.poll_sotw(db, now).map(Response::Sotw),
                    Mode::Delta => session.poll_delta(db, now).map(Response::Delta),
                }
            {
                responses.push(response);
            }
            responses
        });
        for response in &responses {
            let (type_url, nonce) = response.name();
            marks.sent(type_url, nonce, revision);
        }
        (responses, session.is_answered())
    }

    fn write(&self, response: &Response) -> Frames {
        let identifier = &self.shared.options.identifier;
        let (frames, resources, removed) = match response {
            Response::Sotw(response) => {
                let frames = wire::sotw_frames(response, identifier);
                (frames, &response.resources, &[][..])
            }
            Response::Delta(response) => {
                let frames = wire::delta_frames(response, identifier);
                (frames, &response.resources, &response.removed[..])
            }
        };
        let (type_url, nonce) = response.name();
        self.report(Report::Sent(Sent {
            type_url,
            nonce,
            resources,
            removed,
            bytes: frames.len(),
        }));
        frames
    }

    /// When to poll again, now that there was nothing to say.
    pub(super) fn deadline(&self) -> Option<tokio::time::Instant> {
        let due = self.talk().session.as_ref()?.poll_timeout()?;
        Some(self.shared.instant(due))
    }

    /// There may be something to say.
    pub(super) fn wake(&self, wave: Option<&Arc<Wave>>) {
        if let Some(wave) = wave {
            let mut waves = self.waves();
            if waves.len() < wave::KEPT {
                wave.reach();
                waves.push(Arc::clone(wave));
            }
        }
        self.woken.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether there may be something to say since this was last asked; if not,
    /// whoever asks is woken when there is.
    pub(super) fn is_woken(&self, cx: &Context<'_>) -> bool {
        // Before it is looked at, so that nothing is missed.
        self.waker.register(cx.waker());
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// The peer has gone, or has to.
    pub(super) fn close(&self) {
        let Some(session) = self.talk().session.take() else {
            return;
        };
        self.shared.close(session);
        self.waves().clear();
        let mut outcome = Outcome::default();
        self.shared.with(|db| take_edges(db, &mut outcome));
        self.unwanted(&outcome.unwanted);
        self.report(Report::Closed);
    }

    pub(super) fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waves(&self) -> MutexGuard<'_, Vec<Arc<Wave>>> {
        self.waves.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.shared.hooks.report(self.peer(), report);
    }
}

/// Names that somebody asks for first and that do not exist, and names that
/// nobody asks for any more.
fn take_edges(db: &mut Database, outcome: &mut Outcome) {
    let edges: Vec<_> = db.take_edges().collect();
    for (type_id, ask, edge) in edges {
        let Ask::Name(name) = ask else { continue };
        let type_url = db.type_url(type_id).clone();
        match edge {
            Edge::Last => outcome.unwanted.push((type_url, name)),
            Edge::First => {
                let found = db.choose_name(type_id, &name, ParamsId::EMPTY);
                if matches!(found, Choice::Absent | Choice::Unknown)
                    && db.variants(type_id, &name).is_empty()
                {
                    outcome.missing.push((type_url, name));
                }
            }
        }
    }
}
