//! The session of a stream: bytes in, frames out. No waiting.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use tokio::sync::Notify;
use trunkline_core::database::{Choice, Database, Edge};
use trunkline_core::kind;
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Ask, Name};
use trunkline_core::params::ParamsId;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::{Config, Event, ProtocolError, Session};
use trunkline_proto::discovery::{DecodeError, Frames, Limits};

use super::hooks::Connection;
use super::marks::Marks;
use super::report::{Peer, Report, Sent};
use super::shared::Shared;
use super::wave::{self, Wave};
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
    woken: Notify,
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
    configured: bool,
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
            woken: Notify::new(),
            waves: Mutex::default(),
            node: OnceLock::new(),
            talk: Mutex::new(Talk {
                reader: Reader::new(limits),
                session: None,
                marks: Marks::default(),
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
        match self.mode {
            Mode::Sotw => {
                let read = talk.reader.sotw(raw)?;
                outcome.refused = read.refused;
                let request = read.request;
                let session = self.begin(
                    talk,
                    request.node.as_ref(),
                    request.type_url.as_ref(),
                    outcome,
                );
                self.shared.with(|db| {
                    let fault = session.handle_sotw(db, request, now);
                    take_edges(db, outcome);
                    fault
                })?;
            }
            Mode::Delta => {
                let read = talk.reader.delta(raw)?;
                outcome.refused = read.refused;
                let request = read.request;
                let session = self.begin(
                    talk,
                    request.node.as_ref(),
                    request.type_url.as_ref(),
                    outcome,
                );
                self.shared.with(|db| {
                    let fault = session.handle_delta(db, request, now);
                    take_edges(db, outcome);
                    fault
                })?;
            }
        }
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
        self.introduce(node);
        outcome.opens = talk.session.is_none();
        let session = talk
            .session
            .get_or_insert_with(|| self.shared.open(self.config(), self));
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
    pub(super) fn introduce(&self, node: Option<&Node>) {
        if let Some(node) = node {
            self.node.get_or_init(|| node.id.clone());
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

    /// The next message, built from the newest state.
    pub(super) fn poll(&self) -> Option<Frames> {
        let waves = std::mem::take(&mut *self.waves());
        let frames = match self.mode {
            Mode::Sotw => self.poll_sotw(),
            Mode::Delta => self.poll_delta(),
        };
        let talk = self.talk();
        let settled = frames.is_none() && talk.session.as_ref().is_none_or(Session::is_answered);
        drop(talk);
        // What is dropped here has arrived.
        if !settled && !waves.is_empty() {
            let mut kept = self.waves();
            kept.splice(0..0, waves);
            kept.truncate(wave::KEPT);
        }
        frames
    }

    fn poll_sotw(&self) -> Option<Frames> {
        let now = self.shared.now();
        let response = {
            let mut talk = self.talk();
            let session = talk.session.as_mut()?;
            let (response, revision) = self.shared.with_revision(|db| session.poll_sotw(db, now));
            let response = response?;
            talk.marks
                .sent(&response.type_url, &response.nonce, revision);
            response
        };
        let frames = wire::sotw_frames(&response, &self.shared.options.identifier);
        self.report(Report::Sent(Sent {
            type_url: &response.type_url,
            nonce: &response.nonce,
            resources: &response.resources,
            removed: &[],
            bytes: frames.len(),
        }));
        Some(frames)
    }

    fn poll_delta(&self) -> Option<Frames> {
        let now = self.shared.now();
        let response = {
            let mut talk = self.talk();
            let session = talk.session.as_mut()?;
            let (response, revision) = self.shared.with_revision(|db| session.poll_delta(db, now));
            let response = response?;
            talk.marks
                .sent(&response.type_url, &response.nonce, revision);
            response
        };
        let frames = wire::delta_frames(&response, &self.shared.options.identifier);
        self.report(Report::Sent(Sent {
            type_url: &response.type_url,
            nonce: &response.nonce,
            resources: &response.resources,
            removed: &response.removed,
            bytes: frames.len(),
        }));
        Some(frames)
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
        self.woken.notify_one();
    }

    /// Waits until there may be something to say.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
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

    fn peer(&self) -> Peer<'_> {
        Peer {
            stream: self.number,
            node: self.node.get().map_or("", String::as_str),
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
