//! One stream of a client, answered from a recording.
//!
//! ```text
//!   a request of a type ──▶ cursor ── the first response ──▶ waits for its answer
//!                             ▲                                    │
//!                             └── the next one, when it is due ◀── ACK or NACK
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use prost::encoding::string;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, Streaming};
use trunkline::TypeUrl;
use trunkline_core::message::Mode;
use trunkline_proto::discovery::{DeltaDiscoveryRequest, DiscoveryRequest, Node};
use trunkline_proto::redact;

use super::mode_word;
use crate::kinds;
use crate::recording::{RecordedResponse, Recording};

/// The field of the nonce, in responses of both protocols.
const NONCE: u32 = 5;

/// One stream of a client.
pub(super) struct ReplayStream {
    /// Counts the streams of the program, from 1.
    number: u64,
    mode: Mode,
    recording: Arc<Recording>,
    speed: Option<f64>,
    opened_at: Instant,
    node: Option<String>,
    /// The types that the client has asked for.
    cursors: BTreeMap<String, Cursor>,
    /// How many responses were sent.
    sent_count: u64,
}

/// How far a type is.
#[derive(Debug, Default)]
struct Cursor {
    /// The next response, by its place in the recording; the end if there is
    /// none.
    next: usize,
    /// The nonce of the response that has no answer yet.
    pending: Option<String>,
}

/// The parts of a request that matter.
struct RequestParts {
    type_url: String,
    nonce: String,
    error: Option<String>,
    node: Option<Bytes>,
}

impl ReplayStream {
    /// Makes the stream before its first request. `number` is its place among
    /// the streams of the program.
    pub(super) fn new(
        number: u64,
        mode: Mode,
        recording: Arc<Recording>,
        speed: Option<f64>,
    ) -> Self {
        Self {
            number,
            mode,
            recording,
            speed,
            opened_at: Instant::now(),
            node: None,
            cursors: BTreeMap::new(),
            sent_count: 0,
        }
    }

    /// Responds to requests until the client ends the stream, or a request is
    /// invalid.
    pub(super) async fn run(
        mut self,
        mut requests: Streaming<Bytes>,
        sender: mpsc::Sender<Result<Bytes, Status>>,
    ) {
        tracing::info!(
            stream = self.number,
            protocol = mode_word(self.mode),
            "opened"
        );
        loop {
            let next_due = self.next_due();
            let due_time = next_due.as_ref().map_or(self.opened_at, |(time, _)| *time);
            tokio::select! {
                biased;
                request = requests.message() => match request {
                    Ok(Some(request)) => {
                        if let Err(status) = self.handle_request(&request) {
                            let reason = status.message();
                            tracing::warn!(stream = self.number, reason, "ended");
                            // The client may have closed the stream already.
                            let _ = sender.send(Err(status)).await;
                            return;
                        }
                    }
                    Ok(None) | Err(_) => break,
                },
                () = sleep_until(due_time), if next_due.is_some() => {
                    let Some((_, type_url)) = next_due else { continue };
                    let response = self.next_response(&type_url);
                    if sender.send(Ok(response)).await.is_err() {
                        break;
                    }
                }
            }
        }
        tracing::info!(stream = self.number, "closed");
    }

    /// Returns the type whose response is due next, and the time for it. Skips
    /// types whose last response the client has not acknowledged. Returns
    /// `None` if no type is left.
    fn next_due(&self) -> Option<(Instant, String)> {
        let cursors = self.cursors.iter();
        let ready = cursors.filter(|(_, cursor)| cursor.pending.is_none());
        let ready = ready.filter_map(|(type_url, cursor)| {
            Some((
                cursor.next,
                type_url,
                self.recording.responses.get(cursor.next)?,
            ))
        });
        let (_, type_url, response) = ready.min_by_key(|(index, ..)| *index)?;
        let due_time = match self.speed {
            None => self.opened_at,
            Some(speed) => self.opened_at + response.at.div_f64(speed),
        };
        Some((due_time, type_url.clone()))
    }

    /// Handles a request. The first request of a type begins the type; later,
    /// an acknowledgement allows the next response.
    fn handle_request(&mut self, request: &Bytes) -> Result<(), Status> {
        let mut parts = parse_request(self.mode, request)?;
        if let Some(node) = parts.node.take() {
            self.node = Node::decode(node).ok().map(|node| node.id);
        }

        if parts.type_url.is_empty() {
            parts.type_url = self.only_type()?;
        }
        if !self.cursors.contains_key(&parts.type_url) {
            self.begin_type(&parts.type_url);
            return Ok(());
        }

        let (number, type_url) = (self.number, TypeUrl::new(&*parts.type_url));
        let kind = kinds::short(&type_url);
        let Some(cursor) = self.cursors.get_mut(&parts.type_url) else {
            return Ok(());
        };
        if cursor.pending.as_ref() == Some(&parts.nonce) {
            cursor.pending = None;
            let nonce = parts.nonce;
            match parts.error.as_deref().map(redact::quoted) {
                None => tracing::info!(stream = number, kind, nonce, "ACK"),
                Some(reason) => tracing::warn!(stream = number, kind, nonce, %reason, "NACK"),
            }
        }
        Ok(())
    }

    /// Begins the responses of a type to which the client has subscribed.
    fn begin_type(&mut self, type_url: &str) {
        let responses = self.recording.responses.iter();
        let response_count = responses
            .filter(|response| self.has_type(response, type_url))
            .count();
        let kind = TypeUrl::new(type_url);
        let kind = kinds::short(&kind);
        let node = self.node.as_deref().unwrap_or_default();
        match response_count {
            0 => tracing::warn!(
                stream = self.number,
                node,
                kind,
                "asks for a type of which nothing is recorded, and gets no answer"
            ),
            responses => tracing::info!(stream = self.number, node, kind, responses, "asks"),
        }

        let cursor = Cursor {
            next: self.place_from(0, type_url),
            pending: None,
        };
        self.cursors.insert(type_url.to_owned(), cursor);
    }

    /// Returns the next response of a type: the recorded bytes with a nonce of
    /// this stream.
    fn next_response(&mut self, type_url: &str) -> Bytes {
        self.sent_count += 1;
        let nonce = format!("replay-{}", self.sent_count);
        let index = self.cursors.get(type_url).map_or(0, |cursor| cursor.next);
        let next = self.place_from(index + 1, type_url);
        let response = &self.recording.responses[index];

        let mut message = BytesMut::with_capacity(response.message.len() + nonce.len() + 8);
        message.put_slice(&response.message);
        string::encode(NONCE, &nonce, &mut message);

        let kind = TypeUrl::new(type_url);
        let (kind, recorded_stream) = (kinds::short(&kind), response.stream);
        tracing::info!(
            stream = self.number,
            kind,
            nonce,
            recorded_stream,
            bytes = message.len(),
            "sent"
        );
        let pending = Some(nonce);
        self.cursors
            .insert(type_url.to_owned(), Cursor { next, pending });
        message.freeze()
    }

    /// Returns the place of the first response of a type from a place on; the
    /// end if there is none.
    fn place_from(&self, start: usize, type_url: &str) -> usize {
        let responses = &self.recording.responses;
        let later_responses = responses.iter().enumerate().skip(start);
        let mut matching_responses =
            later_responses.filter(|(_, response)| self.has_type(response, type_url));
        matching_responses
            .next()
            .map_or(responses.len(), |(place, _)| place)
    }

    /// Returns whether a response has the protocol of this stream and a type.
    fn has_type(&self, response: &RecordedResponse, type_url: &str) -> bool {
        response.mode == self.mode && response.type_url == type_url
    }

    /// Returns the type of a request without a type URL: the only type of the
    /// recording.
    ///
    /// # Errors
    /// The recording has several types.
    fn only_type(&self) -> Result<String, Status> {
        let responses = self.recording.responses.iter();
        let mut types = responses
            .filter(|response| response.mode == self.mode)
            .map(|response| &response.type_url);
        let type_url = types.next().cloned().unwrap_or_default();
        match types.all(|other_type| *other_type == type_url) {
            true => Ok(type_url),
            false => Err(Status::invalid_argument(
                "the request has no type_url, and several types are recorded",
            )),
        }
    }
}

/// Parses a request of either protocol, and returns the fields that a replay
/// needs.
fn parse_request(mode: Mode, request: &Bytes) -> Result<RequestParts, Status> {
    let invalid = |error| Status::invalid_argument(format!("it is no request: {error}"));
    let parts = match mode {
        Mode::Delta => {
            let request = DeltaDiscoveryRequest::decode(request.clone()).map_err(invalid)?;
            RequestParts {
                type_url: request.type_url,
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| error.message),
                node: request.node,
            }
        }
        Mode::Sotw => {
            let request = DiscoveryRequest::decode(request.clone()).map_err(invalid)?;
            RequestParts {
                type_url: request.type_url,
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| error.message),
                node: request.node,
            }
        }
    };
    Ok(parts)
}
