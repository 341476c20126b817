//! A connection over HTTP/2 and the calls on it, with every window in hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::door::{Door, Protocol};
use crate::error::{Error, Result};
use crate::wire;

/// How long a step of a connection may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The windows that a well-behaved client has.
const WIDE: u32 = 16 << 20;

/// A connection, which ends with this.
#[derive(Debug)]
pub(crate) struct Peer {
    sender: SendRequest<Bytes>,
    freeze: Arc<Notify>,
    driver: JoinHandle<()>,
}

impl Peer {
    /// A connection with wide windows.
    pub(crate) async fn connect(door: &Door) -> Result<Self> {
        Self::with_windows(door, WIDE, WIDE).await
    }

    /// A connection whose streams, and which itself, take so many bytes until
    /// they are read.
    pub(crate) async fn with_windows(door: &Door, stream: u32, connection: u32) -> Result<Self> {
        let socket = late(door.enter(Protocol::Http2)).await??;
        let mut builder = Builder::new();
        builder
            .initial_window_size(stream)
            .initial_connection_window_size(connection)
            .max_send_buffer_size(WIDE as usize);
        let (sender, connection) = late(builder.handshake(socket)).await??;
        let freeze = Arc::new(Notify::new());
        let driver = tokio::spawn(drive(connection, Arc::clone(&freeze)));
        Ok(Self {
            sender,
            freeze,
            driver,
        })
    }

    /// Begins a gRPC call.
    pub(crate) async fn call(&self, path: &str) -> Result<Call> {
        self.call_with(path, &[]).await
    }

    /// Begins a gRPC call with more headers.
    pub(crate) async fn call_with(&self, path: &str, headers: &[(&str, &str)]) -> Result<Call> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://trunkline{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut sender = late(self.sender.clone().ready()).await??;
        let (answer, out) = sender.send_request(request.body(())?, false)?;
        Ok(Call {
            out,
            answer: Answer::Awaited(answer),
            received: BytesMut::new(),
        })
    }

    /// Stops reading and writing, with the socket open.
    pub(crate) fn freeze(&self) {
        self.freeze.notify_one();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Drives a connection until it ends, or holds it without driving it.
async fn drive<T>(connection: Connection<T>, freeze: Arc<Notify>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => {}
        () = freeze.notified() => std::future::pending().await,
    }
}

/// One gRPC call.
#[derive(Debug)]
pub(crate) struct Call {
    out: SendStream<Bytes>,
    answer: Answer,
    received: BytesMut,
}

#[derive(Debug)]
enum Answer {
    Awaited(ResponseFuture),
    Begun(RecvStream),
}

impl Call {
    /// Sends a message, as fast as the server takes it.
    pub(crate) async fn send(&mut self, message: &impl Message) -> Result<()> {
        self.send_bytes(wire::frame(message)).await
    }

    /// Sends bytes, as fast as the server takes them.
    pub(crate) async fn send_bytes(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            self.out.reserve_capacity(bytes.len());
            let next = std::future::poll_fn(|cx| self.out.poll_capacity(cx));
            let Some(room) = late(next).await? else {
                return Err(self.reason().await);
            };
            let room = room?;
            let part = bytes.split_to(room.min(bytes.len()));
            self.out.send_data(part, false)?;
        }
        Ok(())
    }

    /// Why the server takes no more.
    async fn reason(&mut self) -> Error {
        match late(self.read()).await {
            Ok(Err(error)) | Err(error) => error,
            Ok(Ok(_)) => Error::Ended("it takes no more".into()),
        }
    }

    /// The next message of the server, however long it takes. An error if the
    /// server ends the stream.
    pub(crate) async fn next<M: Message + Default>(&mut self) -> Result<M> {
        loop {
            if let Some(message) = wire::take_message(&mut self.received) {
                let decoded = M::decode(message);
                return decoded.map_err(|error| Error::Ended(error.to_string()));
            }
            let more = self.read().await?;
            self.received.extend_from_slice(&more);
        }
    }

    /// The next bytes of the server, however long they take.
    pub(crate) async fn read(&mut self) -> Result<Bytes> {
        if let Answer::Awaited(answer) = &mut self.answer {
            let response = answer.await?;
            if let Some(status) = response.headers().get("grpc-status") {
                let message = response.headers().get("grpc-message");
                return Err(ended(status, message));
            }
            self.answer = Answer::Begun(response.into_body());
        }
        let Answer::Begun(body) = &mut self.answer else {
            return Err(Error::Ended("no answer".into()));
        };
        match body.data().await {
            Some(bytes) => {
                let bytes = bytes?;
                let _ = body.flow_control().release_capacity(bytes.len());
                Ok(bytes)
            }
            None => Err(end_of(body).await),
        }
    }
}

/// Why a stream ended, by its trailers.
async fn end_of(body: &mut RecvStream) -> Error {
    match body.trailers().await {
        Ok(Some(trailers)) => match trailers.get("grpc-status") {
            Some(status) => ended(status, trailers.get("grpc-message")),
            None => Error::Ended("no status".into()),
        },
        Ok(None) => Error::Ended("no trailers".into()),
        Err(error) => error.into(),
    }
}

fn ended(status: &http::HeaderValue, message: Option<&http::HeaderValue>) -> Error {
    let message = message.and_then(|m| m.to_str().ok()).unwrap_or_default();
    let status = status.to_str().unwrap_or("?");
    Error::Ended(format!("status {status} {message}"))
}

/// A step that must not take for ever.
pub(crate) async fn late<T>(step: impl Future<Output = T>) -> Result<T> {
    let step = tokio::time::timeout(PATIENCE, step).await;
    step.map_err(|_| Error::Late(PATIENCE.as_secs()))
}
