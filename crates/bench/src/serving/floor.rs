//! A server that only writes: the limit of this HTTP/2 stack.
//!
//! It knows nothing of the protocol. Contents of one type are encoded once,
//! into one buffer, and every stream is given that buffer: the whole set after
//! its first request, and each change when it is made. A stream whose first
//! request is long says what it holds, and is given what changed since all streams
//! had left. Requests are received and dropped. No version, order, subscription
//! or acknowledgement is read, and nothing is kept for a stream but how far it is.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use trunkline::listen::Listening;
use trunkline_core::resource::Version;
use trunkline_proto::discovery::{
    Any, DeltaDiscoveryResponse, DiscoveryResponse, Resource, name_of,
};

use super::control::{self, Controlled};

/// The place of what state-of-the-world streams are given; the other is for
/// delta.
const SOTW: usize = 0;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Serves the floor until the process ends.
pub(super) async fn serve(xds: TcpListener, control: TcpListener) {
    let floor = Arc::new(Floor::default());
    tokio::spawn(control::serve(control, Arc::clone(&floor)));
    let listening = Listening {
        connections: 100_000,
        connections_per_address: 100_000,
        streams: 100_000,
        ..Listening::default()
    };
    listening.serve(xds, Service(floor), |_| {}).await;
}

#[derive(Default)]
struct Floor(Mutex<State>);

#[derive(Default)]
struct State {
    type_url: String,
    contents: BTreeMap<String, Bytes>,
    /// What changed last, and what was removed.
    changed: Vec<String>,
    removed: Vec<String>,
    /// Framed messages of both protocols: the last change, and everything.
    /// Written for the first stream that needs one.
    change: [Option<Bytes>; 2],
    /// One that is outdated stays until it is written anew, so that what a
    /// stream takes can be told from what was freed.
    whole: [Option<Bytes>; 2],
    outdated: [bool; 2],
    streams: usize,
    /// Names that changed since there was no stream, and the message for clients
    /// that reconnect.
    meanwhile: BTreeSet<String>,
    resumed: Option<Bytes>,
    /// How many changes there were since a stream last listened.
    changes: u64,
    listening: bool,
    asleep: Vec<Waker>,
}

impl Floor {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controlled for Arc<Floor> {
    fn put(&self, put: DiscoveryResponse) -> Result<(), String> {
        let mut state = self.lock();
        state.type_url = put.type_url;
        state.changed.clear();
        state.removed.clear();
        for any in put.resources {
            let name = name_of(&any.value).unwrap_or_default().to_owned();
            state.contents.insert(name.clone(), any.value);
            state.meanwhile.insert(name.clone());
            state.changed.push(name);
        }
        state.wake_streams();
        Ok(())
    }

    fn remove(&self, gone: DeltaDiscoveryResponse) -> Result<(), String> {
        let mut state = self.lock();
        state.changed.clear();
        for name in &gone.removed_resources {
            state.contents.remove(name);
        }
        state.removed = gone.removed_resources;
        state.wake_streams();
        Ok(())
    }
}

impl State {
    /// Outdates the messages that were written, and wakes all streams for what
    /// changed.
    fn wake_streams(&mut self) {
        self.outdated = [true, true];
        self.change = [None, None];
        self.resumed = None;
        if self.listening {
            self.changes += 1;
            self.asleep.drain(..).for_each(Waker::wake);
        }
    }

    /// Returns a message of all contents, for the streams of one protocol. It
    /// is written if it is outdated.
    fn whole_message(&mut self, protocol: usize) -> Bytes {
        let outdated = std::mem::take(&mut self.outdated[protocol]);
        if let Some(written) = self.whole[protocol].as_ref().filter(|_| !outdated) {
            return written.clone();
        }
        let all = self
            .contents
            .iter()
            .map(|(name, body)| (name.as_str(), body));
        let written = match protocol {
            SOTW => self.sotw(all),
            _ => self.delta(all, &[]),
        };
        self.whole[protocol] = Some(written.clone());
        written
    }

    /// Returns a message of the last change, for the streams of one protocol.
    fn change_message(&mut self, protocol: usize) -> Bytes {
        if protocol == SOTW {
            // State of the world has no smaller message than the whole.
            return self.whole_message(SOTW);
        }
        if let Some(written) = &self.change[protocol] {
            return written.clone();
        }
        let body = |name: &String| self.contents.get_key_value(name);
        let changed = self.changed.iter().filter_map(body);
        let changed = changed.map(|(name, body)| (name.as_str(), body));
        let written = self.delta(changed, &self.removed);
        self.change[protocol] = Some(written.clone());
        written
    }

    /// Returns a delta message of what changed since there was no stream.
    fn resume_message(&mut self) -> Bytes {
        if let Some(written) = &self.resumed {
            return written.clone();
        }
        let body = |name: &String| self.contents.get_key_value(name);
        let changed = self.meanwhile.iter().filter_map(body);
        let changed = changed.map(|(name, body)| (name.as_str(), body));
        let written = self.delta(changed, &[]);
        self.resumed = Some(written.clone());
        written
    }

    /// Returns the nonce of the next message, which is also its version.
    fn nonce(&self) -> String {
        self.changes.to_string()
    }

    /// Returns a body with its type.
    fn any(&self, body: &Bytes) -> Any {
        Any {
            type_url: self.type_url.clone(),
            value: body.clone(),
        }
    }

    /// Writes these resources as a framed response of state of the world.
    fn sotw<'a>(&self, all: impl Iterator<Item = (&'a str, &'a Bytes)>) -> Bytes {
        frame_message(&DiscoveryResponse {
            version_info: self.nonce(),
            resources: all.map(|(_, body)| self.any(body)).collect(),
            type_url: self.type_url.clone(),
            nonce: self.nonce(),
            ..DiscoveryResponse::default()
        })
    }

    /// Writes these resources and removals as a framed delta response.
    fn delta<'a>(
        &self,
        all: impl Iterator<Item = (&'a str, &'a Bytes)>,
        removed: &[String],
    ) -> Bytes {
        let resource = |(name, body): (&str, &Bytes)| Resource {
            version: Version::of_body(body).to_string(),
            resource: Some(self.any(body)),
            name: name.to_owned(),
            ..Resource::default()
        };
        frame_message(&DeltaDiscoveryResponse {
            resources: all.map(resource).collect(),
            removed_resources: removed.to_vec(),
            type_url: self.type_url.clone(),
            nonce: self.nonce(),
            ..DeltaDiscoveryResponse::default()
        })
    }
}

/// Encodes a message behind gRPC's prefix.
fn frame_message(message: &impl prost::Message) -> Bytes {
    let mut bytes = BytesMut::with_capacity(message.encoded_len() + 5);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

#[derive(Clone)]
struct Service(Arc<Floor>);

impl tower_service::Service<Request<Incoming>> for Service {
    type Response = Response<Stream>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Stream>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let protocol = usize::from(request.uri().path().contains("/Delta"));
        self.0.lock().streams += 1;
        let mut response = Response::new(Stream {
            floor: Arc::clone(&self.0),
            protocol,
            requests: request.into_body(),
            first: First::default(),
            at: None,
            asleep: None,
        });
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        std::future::ready(Ok(response))
    }
}

struct Stream {
    floor: Arc<Floor>,
    protocol: usize,
    requests: Incoming,
    first: First,
    /// The change that was written last; none before the first request.
    at: Option<u64>,
    /// The change after which it last asked to be woken.
    asleep: Option<u64>,
}

/// How much of the first request has arrived.
#[derive(Default)]
struct First {
    /// gRPC's own bytes before a message, as far as they arrived.
    prefix: Vec<u8>,
    received: usize,
}

/// A first request that is longer says what the client holds.
const LONG: usize = 4096;

impl First {
    /// Adds a piece of the first request.
    fn add(&mut self, data: &[u8]) {
        let missing = data.len().min(5 - self.prefix.len());
        self.prefix.extend_from_slice(&data[..missing]);
        self.received += data.len();
    }

    /// Returns the length of the message, without its prefix, once all of it
    /// has arrived.
    fn complete(&self) -> Option<usize> {
        let [_, length @ ..] = *self.prefix.first_chunk::<5>()?;
        let length = u32::from_be_bytes(length) as usize;
        (self.received >= length + 5).then_some(length)
    }
}

impl Stream {
    /// Receives requests, and drops them. Returns `None` if the stream has
    /// ended.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Option<()> {
        while let Poll::Ready(frame) = Pin::new(&mut self.requests).poll_frame(cx) {
            let frame = frame?.ok()?;
            if let (None, Some(data)) = (self.at, frame.data_ref()) {
                self.first.add(data);
            }
        }
        Some(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.floor.lock();
        state.streams -= 1;
        if state.streams == 0 {
            state.meanwhile.clear();
        }
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.poll_requests(cx).is_none() {
            return Poll::Ready(None);
        }
        let floor = Arc::clone(&self.floor);
        let mut state = floor.lock();
        let bytes = match self.at {
            None if let Some(length) = self.first.complete() => {
                state.listening = true;
                match length > LONG {
                    true => state.resume_message(),
                    false => state.whole_message(self.protocol),
                }
            }
            // One change at a time: a stream that missed some is behind for
            // good, which the check at the end shows.
            Some(at) if at < state.changes => state.change_message(self.protocol),
            _ => {
                // It is the same task each time, so once for each change is enough.
                if self.at.is_some() && self.asleep != Some(state.changes) {
                    self.asleep = Some(state.changes);
                    state.asleep.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
        };
        self.at = Some(state.changes);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
