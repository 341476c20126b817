//! A stream between a child and its parent, message by message.

use std::collections::VecDeque;

use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::limits::Limits;
use trunkline_core::message::Mode;
use trunkline_core::session::{Config, Event, Session};
use trunkline_core::sink::{Request, Response};

/// The most responses on their way: what a transport buffers.
const IN_FLIGHT: usize = 2;

/// A live stream. Each direction keeps its order; the two do not wait for each other.
#[derive(Debug)]
pub struct Link {
    /// The parent's side.
    pub session: Session,
    /// Towards the parent.
    pub up: VecDeque<Request>,
    /// Towards the child.
    pub down: VecDeque<Response>,
    /// The child does not read for now.
    pub stalled: bool,
    /// Responses that were sent on this stream.
    pub sent: usize,
    /// Acknowledgements of them that arrived.
    pub answered: usize,
}

impl Link {
    /// Opens a stream at the parent.
    pub fn open(db: &mut Database, mode: Mode, limits: Limits) -> Self {
        let config = Config {
            limits,
            ..Config::new(mode)
        };
        Self::with(db, config)
    }

    /// The same with a parent that behaves so.
    pub fn with(db: &mut Database, config: Config) -> Self {
        Self {
            session: Session::open(db, config),
            up: VecDeque::new(),
            down: VecDeque::new(),
            stalled: false,
            sent: 0,
            answered: 0,
        }
    }

    /// The parent reads one request. Returns its events.
    ///
    /// # Panics
    /// If the child broke the protocol.
    pub fn deliver_up(&mut self, db: &mut Database, now: Moment) -> Vec<Event> {
        let Some(request) = self.up.pop_front() else {
            return Vec::new();
        };
        let result = match request {
            Request::Delta(request) => self.session.handle_delta(db, request, now),
            Request::Sotw(request) => self.session.handle_sotw(db, request, now),
        };
        #[expect(clippy::expect_used, reason = "both sides are under test")]
        result.expect("the child keeps the protocol");
        let events: Vec<_> = std::iter::from_fn(|| self.session.poll_event()).collect();
        let is_answer = |e: &&Event| matches!(e, Event::Acked { .. } | Event::Nacked { .. });
        self.answered += events.iter().filter(is_answer).count();
        events
    }

    /// The parent sends one response, if it has one and the stream takes it.
    pub fn send(&mut self, db: &mut Database, now: Moment) -> bool {
        if self.down.len() >= IN_FLIGHT {
            return false;
        }
        let quiet = is_quiet(&self.session, db, now);
        let response = self.session.poll(db, now);
        let sent = response.is_some();
        assert!(!(sent && quiet), "a session that is quiet speaks");
        self.sent += usize::from(sent);
        self.down.extend(response);
        sent
    }

    /// Whether no message is on its way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }
}

/// Whether a session says that there is no reason to poll it now.
pub(crate) fn is_quiet(session: &Session, db: &Database, now: Moment) -> bool {
    let waits = session.poll_timeout().is_none_or(|due| due > now);
    waits && session.is_quiet(db, now)
}
