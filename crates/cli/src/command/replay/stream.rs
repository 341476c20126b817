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
use crate::recording::{Recorded, Recording};

/// The field of the nonce, in responses of both protocols.
const NONCE: u32 = 5;

/// One stream of a client.
pub(super) struct Replayed {
    /// Counts the streams of the program, from 1.
    number: u64,
    mode: Mode,
    recording: Arc<Recording>,
    speed: Option<f64>,
    opened: Instant,
    node: Option<String>,
    /// The types that the client has asked for.
    cursors: BTreeMap<String, Cursor>,
    /// How many responses were sent.
    sent: u64,
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
struct Asked {
    type_url: String,
    nonce: String,
    error: Option<String>,
    node: Option<Bytes>,
}

impl Replayed {
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
            opened: Instant::now(),
            node: None,
            cursors: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Answers requests until the client ends the stream.
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
            let next = self.next_due();
            let at = next.as_ref().map_or(self.opened, |(at, _)| *at);
            tokio::select! {
                biased;
                request = requests.message() => match request {
                    Ok(Some(request)) => {
                        if let Err(status) = self.take(&request) {
                            let reason = status.message();
                            tracing::warn!(stream = self.number, reason, "ended");
                            // Nobody hears it if the client is gone.
                            let _ = sender.send(Err(status)).await;
                            return;
                        }
                    }
                    Ok(None) | Err(_) => break,
                },
                () = sleep_until(at), if next.is_some() => {
                    let Some((_, type_url)) = next else { continue };
                    let response = self.respond(&type_url);
                    if sender.send(Ok(response)).await.is_err() {
                        break;
                    }
                }
            }
        }
        tracing::info!(stream = self.number, "closed");
    }

    /// The type whose turn it is, and when: of those whose last response has an
    /// answer, the one whose next response was recorded first.
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
        let (_, type_url, response) = ready.min_by_key(|(place, ..)| *place)?;
        let at = match self.speed {
            None => self.opened,
            Some(speed) => self.opened + response.at.div_f64(speed),
        };
        Some((at, type_url.clone()))
    }

    /// Takes a request: a type that is new begins, and an answer lets the next
    /// response follow.
    fn take(&mut self, request: &Bytes) -> Result<(), Status> {
        let mut asked = parse(self.mode, request)?;
        if let Some(node) = asked.node.take() {
            self.node = Node::decode(node).ok().map(|node| node.id);
        }
        if asked.type_url.is_empty() {
            asked.type_url = self.only_type()?;
        }
        if !self.cursors.contains_key(&asked.type_url) {
            self.begin(&asked.type_url);
            return Ok(());
        }
        let (number, type_url) = (self.number, TypeUrl::new(&*asked.type_url));
        let kind = kinds::short(&type_url);
        let Some(cursor) = self.cursors.get_mut(&asked.type_url) else {
            return Ok(());
        };
        if cursor.pending.as_ref() == Some(&asked.nonce) {
            cursor.pending = None;
            let nonce = asked.nonce;
            match asked.error.as_deref().map(redact::quoted) {
                None => tracing::info!(stream = number, kind, nonce, "ACK"),
                Some(reason) => tracing::warn!(stream = number, kind, nonce, %reason, "NACK"),
            }
        }
        Ok(())
    }

    /// Begins a type that the client has asked for.
    fn begin(&mut self, type_url: &str) {
        let responses = self.recording.responses.iter();
        let mine = responses.filter(|one| self.is_of(one, type_url)).count();
        let kind = TypeUrl::new(type_url);
        let kind = kinds::short(&kind);
        let node = self.node.as_deref().unwrap_or_default();
        match mine {
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

    /// Makes the next response of a type: the recorded bytes, and a nonce.
    fn respond(&mut self, type_url: &str) -> Bytes {
        self.sent += 1;
        let nonce = format!("replay-{}", self.sent);
        let place = self.cursors.get(type_url).map_or(0, |cursor| cursor.next);
        let next = self.place_from(place + 1, type_url);
        let recorded = &self.recording.responses[place];
        let mut message = BytesMut::with_capacity(recorded.message.len() + nonce.len() + 8);
        message.put_slice(&recorded.message);
        string::encode(NONCE, &nonce, &mut message);

        let kind = TypeUrl::new(type_url);
        let (kind, recorded_stream) = (kinds::short(&kind), recorded.stream);
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

    /// The place of the first response of a type from a place on; the end if
    /// there is none.
    fn place_from(&self, from: usize, type_url: &str) -> usize {
        let responses = &self.recording.responses;
        let rest = responses.iter().enumerate().skip(from);
        let mut mine = rest.filter(|(_, one)| self.is_of(one, type_url));
        mine.next().map_or(responses.len(), |(place, _)| place)
    }

    fn is_of(&self, response: &Recorded, type_url: &str) -> bool {
        response.mode == self.mode && response.type_url == type_url
    }

    /// The type of a request that names none: the only one of the recording.
    fn only_type(&self) -> Result<String, Status> {
        let responses = self.recording.responses.iter();
        let mut types = responses
            .filter(|one| one.mode == self.mode)
            .map(|one| &one.type_url);
        let first = types.next().cloned().unwrap_or_default();
        match types.all(|other| *other == first) {
            true => Ok(first),
            false => Err(Status::invalid_argument(
                "the request has no type_url, and several types are recorded",
            )),
        }
    }
}

/// Reads the parts of a request that matter.
fn parse(mode: Mode, request: &Bytes) -> Result<Asked, Status> {
    let wrong = |error| Status::invalid_argument(format!("it is no request: {error}"));
    let asked = match mode {
        Mode::Delta => {
            let request = DeltaDiscoveryRequest::decode(request.clone()).map_err(wrong)?;
            Asked {
                type_url: request.type_url,
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| error.message),
                node: request.node,
            }
        }
        Mode::Sotw => {
            let request = DiscoveryRequest::decode(request.clone()).map_err(wrong)?;
            Asked {
                type_url: request.type_url,
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| error.message),
                node: request.node,
            }
        }
    };
    Ok(asked)
}
