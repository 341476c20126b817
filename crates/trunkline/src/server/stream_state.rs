//! The part of a stream that its messages change.

use trunkline_core::session::{Event, Session};

use super::request_outcome::RequestOutcome;
use super::revisions::SentRevisions;
use crate::node::Described;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    /// Opened by the first request, and taken when the stream ends.
    pub(super) session: Option<Session>,
    /// Whether the stream has ended. A request that was read meanwhile opens no
    /// session.
    pub(super) has_ended: bool,
    /// The revision of the contents when the session was opened.
    pub(super) opened_at: u64,
    pub(super) revisions: SentRevisions,
    /// The node as rules read it; `None` if none of them does.
    pub(super) described: Option<Box<Described>>,
    /// Whether the client has acknowledged a response.
    is_configured: bool,
}

impl StreamState {
    /// Takes the events of the session: notes which revisions are acknowledged,
    /// and the first ACK of the stream. Adds the events to the outcome if they
    /// are to be reported; otherwise they are dropped.
    pub(super) fn take_events(&mut self, outcome: &mut RequestOutcome, are_reported: bool) {
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            let revision = self.revisions.note_acknowledgement(&event);
            outcome.acknowledged_revision = revision.or(outcome.acknowledged_revision);
            let is_first_ack = matches!(event, Event::Acked { .. }) && !self.is_configured;
            outcome.has_first_ack |= is_first_ack;
            self.is_configured |= is_first_ack;
            if are_reported {
                outcome.events.push(event);
            }
        }
    }
}
