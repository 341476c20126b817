//! The session of a stream: bytes in, frames out. No waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use trunkline_core::kind;
use trunkline_core::message::{Mode, Request};
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::{Config, ProtocolError, Session};
use trunkline_proto::discovery::{DecodeError, Limits, Node};

use super::convergence::{Convergence, Convergences};
use super::hooks::Connection;
use super::report::{Peer, Report, RequestDetails};
use super::request_outcome::{RequestOutcome, names_on_demand, take_demand_changes};
use super::scrub;
use super::shared::Shared;
use super::stream_state::StreamState;
use crate::hub::Watcher;
use crate::identity::Identity;
use crate::paths::StreamForm;
use crate::wake::WakeFlags;
use crate::wire::{Read, Reader};

/// The client broke the protocol; its stream ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A message is not a request.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A request that the protocol does not allow.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u64,
    pub(super) mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub(super) only: Option<TypeUrl>,
    pub(super) connection: Connection,
    pub(super) identity: Option<Identity>,
    /// When the stream began, by the calendar.
    pub(super) opened: SystemTime,
    /// The same moment on the monotonic clock.
    pub(super) started: Instant,
    pub(super) shared: Arc<Shared>,
    /// [`NEWS`] is raised when there may be something to send.
    pub(super) wake_flags: Arc<WakeFlags>,
    /// The changes that the client has not acknowledged yet.
    pub(super) convergences: Convergences,
    /// The newest revision for which the stream was woken.
    woken_for: AtomicU64,
    /// Bound by the first request that has a node (S2).
    node_id: OnceLock<String>,
    /// Locked while a request is decoded, before `state`.
    reader: Mutex<Reader>,
    /// Locked by the stream's task for each message, and by those who ask for
    /// the state of clients. Never locked while something is reported.
    state: Mutex<StreamState>,
}

/// The wake flag of a change in the database that concerns the stream.
pub(super) const NEWS: u8 = 2;

/// The outcome of handling a request.
#[derive(Default)]
struct HandledRequest {
    next: NextPoll,
    /// Whether every response is acknowledged.
    is_acknowledged: bool,
}

/// When a stream has to be polled again, if no change raises [`NEWS`] before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NextPoll {
    /// At once.
    pub(super) is_due_now: bool,
    /// At this time, although nothing happens.
    pub(super) due: Option<tokio::time::Instant>,
    /// Not before the last request is worked off, by [`Stream::finish_aside`].
    /// A further request has to wait as well.
    pub(super) is_busy: bool,
}

impl Stream {
    /// Returns a stream without a session: that one opens with the first
    /// request.
    pub(super) fn new(
        shared: Arc<Shared>,
        StreamForm { mode, only }: StreamForm,
        connection: Connection,
        identity: Option<Identity>,
    ) -> Self {
        let limits = Limits {
            message_bytes: shared.options.request_bytes,
            ..Limits::default()
        };
        let known_versions = Arc::clone(&shared.known_versions);
        Self {
            number: shared.next_number(),
            mode,
            only,
            connection,
            identity,
            opened: SystemTime::now(),
            started: Instant::now(),
            wake_flags: WakeFlags::new(),
            convergences: Convergences::default(),
            woken_for: AtomicU64::new(0),
            node_id: OnceLock::new(),
            reader: Mutex::new(Reader::new(limits, known_versions)),
            state: Mutex::default(),
            shared,
        }
    }

    /// Handles a request, and reports it to hooks and contents, even one that
    /// breaks the protocol. Returns when the stream has to be polled.
    pub(super) fn handle(self: &Arc<Self>, raw: Bytes) -> Result<NextPoll, Fault> {
        let bytes = raw.len();
        let read = self.read(raw)?;
        self.handle_read(read, bytes)
    }

    /// Decodes a request. Remembers its node and its type, so that the next one
    /// is read faster.
    pub(super) fn read(&self, raw: Bytes) -> Result<Read<Request>, DecodeError> {
        let reader = self.reader.lock();
        let mut reader = reader.unwrap_or_else(PoisonError::into_inner);
        reader.read(self.mode, raw)
    }

    /// Handles a request that was decoded from so many bytes, and reports it.
    /// Of a long list only the first slice is read.
    pub(super) fn handle_read(
        self: &Arc<Self>,
        read: Read<Request>,
        bytes: usize,
    ) -> Result<NextPoll, Fault> {
        let mut outcome = RequestOutcome::default();
        // Changes that arrive from now on may not be acknowledged yet.
        let changes = self.convergences.held_changes();

        let result = self.handle_locked(read, &mut outcome);
        self.report_request(bytes, &outcome);

        let HandledRequest {
            next,
            is_acknowledged,
        } = result?;
        if is_acknowledged && !next.is_due_now {
            self.convergences.drop_acknowledged(changes.count);
        }
        Ok(next)
    }

    /// Handles a request under the lock of the stream. Nothing may be reported
    /// there, so events are collected in `outcome`. Does nothing on a stream
    /// that has ended.
    fn handle_locked(
        self: &Arc<Self>,
        read: Read<Request>,
        outcome: &mut RequestOutcome,
    ) -> Result<HandledRequest, Fault> {
        let Read {
            mut request,
            node,
            refused,
        } = read;
        let now = self.shared.hub.now();
        let mut state = self.lock();
        if state.has_ended {
            return Ok(HandledRequest::default());
        }
        outcome.refused_names = refused;
        self.note_request(state.session.as_ref(), &mut request, outcome);
        let session = self.prepare_session(&mut state, node.as_ref(), outcome);
        let is_quiet = self.shared.with_request(|db| {
            let result = match request {
                Request::Sotw(request) => session.handle_sotw(db, request, now),
                Request::Delta(request) => session.handle_delta(db, request, now),
            };
            take_demand_changes(db, outcome);
            result.map(|()| session.is_quiet(db, now))
        })?;

        let handled = HandledRequest {
            next: self.next_poll(session, is_quiet),
            is_acknowledged: session.is_acknowledged(),
        };
        state.take_events(outcome, self.shared.hooks.has_any());
        Ok(handled)
    }

    /// Notes the type of a request, and what hooks are told of it. The text of
    /// a NACK is scrubbed before: nobody gets to see the words of the client as
    /// they came.
    fn note_request(
        &self,
        session: Option<&Session>,
        request: &mut Request,
        outcome: &mut RequestOutcome,
    ) {
        outcome.type_url = self.only.as_ref().or(request_type(request)).cloned();
        if let Some(error) = scrub::error_of(request) {
            self.scrub_error(session, outcome.type_url.as_ref(), error);
        }
        if self.shared.hooks.has_any() {
            outcome.names_on_demand = names_on_demand(outcome.type_url.as_ref(), request);
            let reads = self.shared.hooks.reads_requests();
            outcome.details = reads.then(|| RequestDetails::of(request));
        }
    }

    /// Returns the session, which the first request opens, with the node of the
    /// request set. Denies the type of the request (S72) if the client may not
    /// see it: that is decided once, when the type is requested first.
    fn prepare_session<'a>(
        self: &Arc<Self>,
        state: &'a mut StreamState,
        node: Option<&Node>,
        outcome: &mut RequestOutcome,
    ) -> &'a mut Session {
        // Hooks that authorise the stream below are told the id of the node.
        if let Some(node) = node {
            self.bind_node_id(&node.id);
        }

        outcome.opens = state.session.is_none();
        if outcome.opens {
            // Changes after this revision may concern the stream.
            state.opened_at = self.shared.revision();
        }
        let open = || self.shared.open(self.config(), self);
        let session = state.session.get_or_insert_with(open);
        if let Some(node) = node {
            self.set_node(session, &mut state.described, node);
        }

        if let Some(type_url) = &outcome.type_url
            && !session.has_type(type_url)
            && !self.may_see(type_url)
        {
            session.deny(type_url.clone());
            outcome.denied_type = Some(type_url.clone());
        }
        session
    }

    /// Names the client by the id of its node. Only the first call counts (S2).
    pub(super) fn bind_node_id(&self, id: &str) {
        self.node_id.get_or_init(|| id.to_owned());
    }

    /// Returns whether the client may see a type: hooks authorise it, and
    /// secrets are sent only where they may go.
    pub(super) fn may_see(&self, type_url: &TypeUrl) -> bool {
        let is_secret = type_url.as_str() == kind::SDS;
        if is_secret && !self.is_for_secrets() {
            return false;
        }
        self.shared.hooks.authorise(self.peer(), type_url)
    }

    /// Returns whether secrets may go to the client, by its connection and
    /// identity, or because an option lets them go to all.
    fn is_for_secrets(&self) -> bool {
        let has_identity = self.identity.is_some();
        self.connection.is_for_secrets(has_identity) || self.shared.options.secrets_in_clear
    }

    /// Returns the configuration of the session, by the options of the server.
    pub(super) fn config(&self) -> Config {
        let options = &self.shared.options;
        Config {
            single_type: self.only.clone(),
            named_only: options.named_only.clone(),
            limits: options.limits.clone(),
            withholds_keys: !self.is_for_secrets(),
            repeat_endpoints: options.repeat_endpoints,
            ..Config::new(self.mode)
        }
    }

    /// Returns when to poll a session that has just handled a request or was
    /// polled: at once unless it `is_quiet`, and at its next timeout.
    pub(super) fn next_poll(&self, session: &Session, is_quiet: bool) -> NextPoll {
        let timeout = session.poll_timeout();
        NextPoll {
            is_due_now: !is_quiet,
            due: timeout.map(|timeout| self.shared.hub.instant(timeout)),
            is_busy: !is_quiet && session.is_busy(),
        }
    }

    /// Ends the stream. Returns its session, which the caller has to close;
    /// `None` if there was no request.
    pub(super) fn end(&self) -> Option<Session> {
        let mut state = self.lock();
        state.has_ended = true;
        state.session.take()
    }

    /// Lets go of all changes that the client has not acknowledged.
    pub(super) fn drop_convergences(&self) {
        self.convergences.drop_acknowledged(usize::MAX);
    }

    /// Locks the state. Ignores poison: a stream whose task panicked can still
    /// be looked at and closed.
    pub(super) fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest revision for which the stream was woken: no later one
    /// concerns it.
    pub(super) fn woken_for(&self) -> u64 {
        self.woken_for.load(Ordering::Acquire)
    }

    /// Returns the id of the client's node; empty until its first request.
    pub(super) fn node_id(&self) -> &str {
        self.node_id.get().map_or("", String::as_str)
    }

    /// Returns the stream and its client, as hooks are told of them.
    fn peer(&self) -> Peer<'_> {
        Peer {
            stream: self.number,
            node: self.node_id(),
            identity: self.identity.as_ref(),
            connection: &self.connection,
            mode: self.mode,
        }
    }

    /// Reports an event of the stream to the hooks. Not to be called with the
    /// state locked.
    pub(super) fn report(&self, report: Report<'_>) {
        if self.shared.hooks.has_any() {
            self.shared.hooks.report(self.peer(), report);
        }
    }
}

/// Returns the type in a request, if it has one.
fn request_type(request: &Request) -> Option<&TypeUrl> {
    match request {
        Request::Sotw(request) => request.type_url.as_ref(),
        Request::Delta(request) => request.type_url.as_ref(),
    }
}

impl Watcher for Stream {
    type News = Arc<Convergence>;

    /// Raises [`NEWS`], and holds the change until the client acknowledges it.
    fn wake(&self, convergence: Option<&Arc<Convergence>>, revision: u64) {
        if let Some(convergence) = convergence {
            self.convergences.add(convergence);
        }
        self.woken_for.fetch_max(revision, Ordering::Release);
        self.wake_flags.raise(NEWS);
    }
}
