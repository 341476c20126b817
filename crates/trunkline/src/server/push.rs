//! Pushes of a stream: the next response, from the session to frames.

use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::message::Response;
use trunkline_core::session::{Event, Session};
use trunkline_core::source::Dialect;
use trunkline_proto::discovery::Frames;

use super::convergence::HeldChanges;
use super::hooks::Limit;
use super::report::{Report, Sent};
use super::revisions::SentRevisions;
use super::stream::{NextPoll, Stream};
use super::stream_state::StreamState;
use crate::wire;

/// How long others have their turn when a stream has more to evaluate than it
/// may at once (S85).
const BETWEEN_SLICES: Duration = Duration::from_millis(1);

/// The outcome of polling a session.
#[derive(Default)]
struct PolledSession {
    response: Option<BuiltResponse>,
    next: NextPoll,
    /// Whether everything was evaluated, and every response is acknowledged.
    is_settled: bool,
    /// The resources that are withheld from the client.
    withheld: Vec<Event>,
}

/// A response that is not written yet.
struct BuiltResponse {
    response: Response,
    /// The dialect of the client that reads it.
    dialect: Dialect,
    /// The revision of the contents that it was built from.
    revision: u64,
}

/// The outcome of polling a stream.
pub(super) struct PollOutcome {
    /// The next message, if there is something to send.
    pub(super) message: Option<Frames>,
    pub(super) next: NextPoll,
}

impl Stream {
    /// Builds the next message from the newest state, and reports it as sent.
    /// If there is no message and every response is acknowledged, the changes
    /// that the stream holds have reached the client.
    pub(super) fn poll(&self) -> PollOutcome {
        // Changes that arrive from now on may not be in the message.
        let changes = self.convergences.held_changes();
        let now = self.shared.hub.now();

        let outcome = self.poll_session(now);
        for event in &outcome.withheld {
            self.report_withheld(event);
        }
        if outcome.is_settled && outcome.response.is_none() {
            self.convergences.drop_acknowledged(changes.count);
        }
        PollOutcome {
            message: outcome
                .response
                .map(|response| self.write_and_report(&response, changes)),
            next: outcome.next,
        }
    }

    /// Builds one response, if there is something to send; the one after it is
    /// built later and can be newer. A stream without a session is settled.
    /// While a request is being read, nothing is built.
    fn poll_session(&self, now: Moment) -> PolledSession {
        let mut state = self.lock();
        let StreamState {
            session: Some(session),
            revisions,
            ..
        } = &mut *state
        else {
            return PolledSession {
                is_settled: true,
                ..PolledSession::default()
            };
        };
        if session.is_reading() {
            // The stream is polled again when the request is read.
            return PolledSession::default();
        }

        let (response, is_quiet) = self.build_response(session, revisions, now);
        let mut next = self.next_poll(session, is_quiet);
        let has_more = session.has_more();
        if has_more {
            // After the slice: one that took long must not be followed at once.
            let soon = self.shared.hub.instant(self.shared.hub.now()) + BETWEEN_SLICES;
            next.due = Some(next.due.map_or(soon, |due| due.min(soon)));
        }
        let is_settled = session.is_acknowledged() && !has_more;
        PolledSession {
            response,
            next,
            is_settled,
            withheld: take_withheld(session),
        }
    }

    /// Builds the next response of a session, if there is something to send,
    /// and notes the revision that it is from. Returns also whether nothing is
    /// left to send after it.
    fn build_response(
        &self,
        session: &mut Session,
        revisions: &mut SentRevisions,
        now: Moment,
    ) -> (Option<BuiltResponse>, bool) {
        let ((response, is_quiet, has_sent_all), revision) = self.shared.hub.with_revision(|db| {
            let response = session.poll(db, now);
            let is_quiet = response.is_none() || session.is_quiet(db, now);
            let type_url = response.as_ref().map(Response::type_url);
            let progress = type_url.and_then(|type_url| session.type_progress(db, type_url));
            let has_sent_all = progress.is_some_and(|progress| progress.has_sent_all());
            (response, is_quiet, has_sent_all)
        });

        let built_response = response.map(|response| {
            let (type_url, nonce) = (response.type_url(), response.nonce());
            revisions.note_sent(type_url, nonce, revision, has_sent_all, now);
            BuiltResponse {
                response,
                dialect: session.dialect(),
                revision,
            }
        });
        (built_response, is_quiet)
    }

    /// Writes a response as frames, without the lock of the stream, and reports
    /// it as sent. It was built after `changes`: the hooks are told how long
    /// the oldest of them has waited, because the transport is given the frames
    /// next.
    fn write_and_report(&self, built: &BuiltResponse, changes: HeldChanges) -> Frames {
        let response = &built.response;
        let identifier = &self.shared.options.identifier;
        let (frames, resources, removed) = match response {
            Response::Sotw(response) => {
                let frames = wire::encode_sotw_frames(response, identifier);
                (frames, &response.resources, &response.removed[..])
            }
            Response::Delta(response) => {
                let frames = wire::encode_delta_frames(response, identifier, built.revision);
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
        // Envoy accepts more than gRPC does by default (S80).
        if built.dialect == Dialect::Standard {
            self.report_if_oversized(type_url, nonce, resources, frames.len());
        }
        if let Some(took) = self.convergences.note_pushed(changes) {
            self.shared.hooks.pushed(type_url, took);
        }
        frames
    }

    /// Reports a resource that is withheld from the client, as a limit and as
    /// an event.
    pub(super) fn report_withheld(&self, event: &Event) {
        self.shared.hooks.limited(Limit::Keys);
        self.report(Report::Event(event));
    }
}

/// Takes the events of a session that was polled, which are all of resources
/// that are withheld. Mostly there are none.
pub(super) fn take_withheld(session: &mut Session) -> Vec<Event> {
    match session.has_events() {
        true => std::iter::from_fn(|| session.poll_event()).collect(),
        false => Vec::new(),
    }
}
