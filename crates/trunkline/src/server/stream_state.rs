//! The part of a stream that its messages change.

use trunkline_core::session::{Event, Session};

use super::request_outcome::RequestOutcome;
use super::revisions::SentRevisions;
use crate::node::Described;
use crate::wire::Reader;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) reader: Reader,
    /// Opened by the first request, and taken when the stream ends.
    pub(super) session: Option<Session>,
    /// The revision of the contents when the session was opened.
    pub(super) opened_at: u64,
    pub(super) revisions: SentRevisions,
    /// The node as rules read it; `None` if none of them does.
    pub(super) described: Option<Box<Described>>,
    /// Whether the client has acknowledged a response.
    is_configured: bool,
}

impl StreamState {
    /// The state of a stream that has made no request.
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            session: None,
            opened_at: 0,
            revisions: SentRevisions::default(),
            described: None,
            is_configured: false,
        }
    }

    /// Takes the events of the session: notes which revisions are acknowledged,
    /// and the first ACK of the stream. Adds the events to the outcome if they
    /// are to be reported; otherwise they are dropped.
    pub(super) fn take_events(&mut self, outcome: &mut RequestOutcome, are_reported: bool) {
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            let acknowledged = self.revisions.note_acknowledgement(&event);
            outcome.acknowledged = acknowledged.or(outcome.acknowledged);
            let is_first_ack = matches!(event, Event::Acked { .. }) && !self.is_configured;
            outcome.configured |= is_first_ack;
            self.is_configured |= is_first_ack;
            if are_reported {
                outcome.events.push(event);
            }
        }
    }
}
