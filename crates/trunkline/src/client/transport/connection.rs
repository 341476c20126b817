//! One connection of HTTP/2, which carries many streams.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};

use super::connector::Pace;
use super::dial::{Io, address};
use super::headers;
use super::keepalive;
use super::options::{Keepalive, TransportOptions};
use super::stream::Stream;
use super::watched::Activity;
use super::{ConnectError, StreamError};
use crate::client::{ControlPlane, Security};

/// The largest frame that a server may send: one of a stream's usual messages.
const MAX_FRAME: u32 = 64 << 10;
/// Bytes of requests that a stream holds before it is ready for no more.
const SEND_BUFFER: usize = 16 << 10;

/// A connection to a control plane. Clones share it, and it is closed when the
/// last of them and the last of its streams are dropped.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) live: Arc<Live>,
}

/// What streams of a connection share.
#[derive(Debug)]
pub(super) struct Live {
    plane: ControlPlane,
    sender: SendRequest<Bytes>,
    max_message: usize,
    state: Arc<State>,
}

/// What is known of a connection beside HTTP/2.
#[derive(Debug, Default)]
struct State {
    activity: Arc<Activity>,
    /// Whether the server has answered a request.
    has_answered: AtomicBool,
    /// Set when the server did not answer a ping for so long.
    ping_timeout: OnceLock<Duration>,
}

impl Connection {
    /// Begins HTTP/2 on a socket, and starts the task that moves its frames. The
    /// keepalive of the control plane counts before that of the options.
    pub(super) async fn begin(
        plane: &ControlPlane,
        socket: Box<dyn Io>,
        options: &TransportOptions,
        activity: Arc<Activity>,
        pace: Arc<Pace>,
    ) -> Result<Self, ConnectError> {
        let handshake = client::Builder::new()
            .initial_window_size(options.stream_window)
            .initial_connection_window_size(options.connection_window)
            .max_frame_size(MAX_FRAME)
            .max_send_buffer_size(SEND_BUFFER)
            .enable_push(false)
            .handshake(socket)
            .await;
        let (sender, connection) = handshake.map_err(|error| ConnectError::Closed {
            address: address(plane),
            protocol: "HTTP/2",
            source: Arc::new(std::io::Error::other(error)),
        })?;

        let state = Arc::new(State {
            activity,
            ..State::default()
        });
        let plane_keepalive = plane.keepalive.map(|keepalive| Keepalive {
            interval: keepalive.interval,
            timeout: keepalive.timeout,
        });
        let keepalive = plane_keepalive.or(options.keepalive);
        let keepalive = keepalive.map(|keepalive| pace.slow(keepalive));
        tokio::spawn(run(connection, keepalive, Arc::clone(&state), pace));

        Ok(Self {
            live: Arc::new(Live {
                plane: plane.clone(),
                sender,
                max_message: options.max_message,
                state,
            }),
        })
    }

    /// Returns whether the connection takes new streams.
    pub(super) fn is_open(&self) -> bool {
        self.end().is_none()
    }

    /// Returns why the connection takes no new streams; `None` if it does.
    fn end(&self) -> Option<h2::Error> {
        let mut sender = self.live.sender.clone();
        match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => Some(error),
            _ => None,
        }
    }

    /// Opens a stream of a method, such as
    /// `/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources`.
    /// Some servers do not answer before they have something to send, so that a
    /// server refused the stream shows when it is read.
    ///
    /// # Errors
    /// The file with the token cannot be read, a header cannot be sent, or the
    /// connection is lost.
    pub async fn open(&self, path: &str) -> Result<Stream, StreamError> {
        let live = &self.live;
        let token = headers::token(&live.plane).await?;
        let scheme = match live.plane.security {
            Security::Plaintext => "http",
            Security::Tls(_) => "https",
        };

        let request = headers::grpc_request(&live.plane, scheme, path, token)?;
        let sender = live.sender.clone().ready().await;
        let stream = sender.and_then(|mut sender| sender.send_request(request, false));
        let (answer, requests) = stream.map_err(|error| self.error(error))?;
        Ok(Stream::new(
            self.clone(),
            answer,
            requests,
            live.max_message,
        ))
    }

    /// Notes that the server answered a request, which shows that it speaks
    /// HTTP/2.
    pub(super) fn note_answer(&self) {
        self.live.state.has_answered.store(true, Ordering::Relaxed);
    }

    /// Turns an error of HTTP/2 into one that says whose fault it is. A dead
    /// peer and a refusal by TLS count before what HTTP/2 saw of them.
    pub(super) fn error(&self, error: h2::Error) -> StreamError {
        let state = &self.live.state;
        if let Some(timeout) = state.ping_timeout.get() {
            return StreamError::Dead(*timeout);
        }
        if let Some(refusal) = state.activity.refusal(&self.live.plane) {
            return refusal.into();
        }
        // A stream that was open when the server said GOAWAY is told only that
        // the connection was lost.
        let error = match self.end() {
            Some(end) if error.is_io() && end.is_remote() => end,
            _ => error,
        };
        let code = error.reason().map_or(0, u32::from);
        match (error.is_remote(), error.is_go_away()) {
            (true, true) => StreamError::GoAway(code),
            (true, false) => StreamError::Reset(code),
            _ if error.is_io() => StreamError::Lost(Arc::new(io_error(error))),
            _ if !state.has_answered.load(Ordering::Relaxed) => StreamError::NotHttp2,
            _ => StreamError::Protocol(code),
        }
    }
}

/// Returns the error of the system behind the loss of a connection.
fn io_error(error: h2::Error) -> std::io::Error {
    let aborted = || std::io::ErrorKind::ConnectionAborted.into();
    error.into_io().unwrap_or_else(aborted)
}

/// Moves the frames of a connection until it ends, or until a ping is not
/// answered in time.
async fn run(
    connection: client::Connection<Box<dyn Io>, Bytes>,
    keepalive: Option<Keepalive>,
    state: Arc<State>,
    pace: Arc<Pace>,
) {
    let mut connection = connection;
    let pings = keepalive.and_then(|keepalive| Some((connection.ping_pong()?, keepalive)));
    let watch = async {
        match pings {
            None => std::future::pending().await,
            Some((pings, keepalive)) => {
                keepalive::watch(pings, keepalive, &state.activity).await;
                keepalive.timeout
            }
        }
    };
    tokio::select! {
        result = connection => {
            // How it ended is told to each of its streams.
            if let Err(error) = result && error.is_remote() {
                pace.note_go_away(error.reason());
            }
        }
        // The streams of a connection that is dropped end.
        timeout = watch => { let _ = state.ping_timeout.set(timeout); }
    }
}
