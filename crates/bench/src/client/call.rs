//! One gRPC stream of a client: messages out, messages in, both as bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{Request, Response, header};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::tls::Tls;

/// What gRPC puts before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// No server sends more at once.
const LONGEST: usize = 1 << 30;

/// How a stream ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Below gRPC.
    #[error("the connection failed: {}", causes(.0))]
    Transport(#[from] hyper::Error),
    /// By the server's word.
    #[error("the server ended the stream with status {code}: {message}")]
    Status {
        /// gRPC's code.
        code: String,
        /// For people.
        message: String,
    },
    /// The answer is not gRPC.
    #[error("the server answered with HTTP status {0}; is this its xDS address?")]
    Http(u16),
    /// A message that cannot be.
    #[error("a message that is compressed, or longer than {LONGEST} bytes")]
    Message,
}

/// An error and what led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A connection of HTTP/2, which carries many streams.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Requests>,
    scheme: &'static str,
}

impl Connection {
    /// Connects; `window` is how many bytes a stream may send before they are
    /// read.
    pub(crate) async fn open(
        address: &str,
        tls: Option<&Tls>,
        window: u32,
        shared: bool,
    ) -> std::io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let many = if shared { 16 } else { 1 };
        let connection_window = window.saturating_mul(many);
        let (sender, scheme) = match tls {
            None => (handshake(socket, window, connection_window).await?, "http"),
            Some(tls) => {
                let socket = tls.connect(socket).await?;
                let sender = handshake(socket, window, connection_window).await?;
                (sender, "https")
            }
        };
        Ok(Self { sender, scheme })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Opens a stream. That it was refused shows when it is read.
    pub(crate) fn call(&self, authority: &str, path: &str) -> Call {
        let (out, requests) = mpsc::unbounded_channel();
        let request = Request::post(format!("{}://{authority}{path}", self.scheme))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .body(Requests(requests));
        let mut sender = self.sender.clone();
        let answer = Box::pin(async move {
            // The authority was connected to and paths are constants.
            let request = request.unwrap_or_default();
            sender.ready().await?;
            sender.send_request(request).await
        });
        Call {
            out,
            answer: Answer::Awaited(answer),
            received: Received::default(),
        }
    }
}

async fn handshake<S>(
    socket: S,
    window: u32,
    connection_window: u32,
) -> std::io::Result<SendRequest<Requests>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .initial_connection_window_size(connection_window)
        .max_frame_size(64 << 10)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(std::io::Error::other)?;
    // How it ends is told to each of its streams.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// The requests of a stream as a body of HTTP.
#[derive(Debug)]
pub(crate) struct Requests(mpsc::UnboundedReceiver<Bytes>);

impl Default for Requests {
    fn default() -> Self {
        Self(mpsc::unbounded_channel().1)
    }
}

impl http_body::Body for Requests {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(cx);
        next.map(|message| message.map(|message| Ok(Frame::data(framed(&message)))))
    }
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    // Requests are far from four gigabytes.
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

type Awaited = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

enum Answer {
    /// Some servers say nothing, not even that there is a stream, before they
    /// have something to send.
    Awaited(Awaited),
    Open(Incoming),
}

/// A stream.
pub(crate) struct Call {
    out: mpsc::UnboundedSender<Bytes>,
    answer: Answer,
    received: Received,
}

impl Call {
    /// Sends a message. One that the stream cannot take any more is lost with
    /// it, as on any wire.
    pub(crate) fn send(&self, message: Bytes) {
        let _ = self.out.send(message);
    }

    /// The next message; none when the server ended the stream well.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some(message) = self.received.message()? {
                return Ok(Some(message));
            }
            let incoming = match &mut self.answer {
                Answer::Open(incoming) => incoming,
                Answer::Awaited(answer) => {
                    let response = answer.await?;
                    self.answer = Answer::Open(opened(response)?);
                    continue;
                }
            };
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *incoming).poll_frame(cx)).await;
            match frame.transpose()?.map(Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => self.received.push(data),
                Some(Err(frame)) => match frame.into_trailers() {
                    Ok(trailers) => return status(&trailers).map(|()| None),
                    Err(_) => continue,
                },
            }
        }
    }
}

fn opened(response: Response<Incoming>) -> Result<Incoming, CallError> {
    if !response.status().is_success() {
        return Err(CallError::Http(response.status().as_u16()));
    }
    // A stream that is refused at once has its status here.
    status(response.headers())?;
    Ok(response.into_body())
}

fn status(headers: &http::HeaderMap) -> Result<(), CallError> {
    let text = |key: &str| {
        let value = headers.get(key).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    match text("grpc-status") {
        code if code.is_empty() || code == "0" => Ok(()),
        code => Err(CallError::Status {
            code,
            message: text("grpc-message"),
        }),
    }
}

/// Bytes of a stream that are not yet a message.
#[derive(Debug, Default)]
struct Received {
    parts: VecDeque<Bytes>,
    len: usize,
}

impl Received {
    fn push(&mut self, part: Bytes) {
        self.len += part.len();
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// The next message, if all of it is there.
    fn message(&mut self) -> Result<Option<Bytes>, CallError> {
        if self.len < PREFIX {
            return Ok(None);
        }
        let mut prefix = [0; PREFIX];
        let bytes = self.parts.iter().flatten();
        for (to, from) in prefix.iter_mut().zip(bytes) {
            *to = *from;
        }
        let [compressed, a, b, c, d] = prefix;
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        if compressed != 0 || len > LONGEST {
            return Err(CallError::Message);
        }
        if self.len < PREFIX + len {
            return Ok(None);
        }
        self.take(PREFIX);
        Ok(Some(self.take(len)))
    }

    /// So many bytes, shared if they came in one piece.
    fn take(&mut self, len: usize) -> Bytes {
        self.len -= len;
        if let Some(first) = self.parts.front_mut()
            && first.len() >= len
        {
            let taken = first.split_to(len);
            if first.is_empty() {
                self.parts.pop_front();
            }
            return taken;
        }
        let mut all = BytesMut::with_capacity(len);
        while all.len() < len {
            let Some(first) = self.parts.front_mut() else {
                break;
            };
            let some = first.len().min(len - all.len());
            all.put_slice(&first[..some]);
            first.advance(some);
            if first.is_empty() {
                self.parts.pop_front();
            }
        }
        all.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let messages: [&[u8]; 3] = [b"first", b"", b"and a longer one"];
        let all: Vec<u8> = messages.iter().flat_map(|m| framed(m).to_vec()).collect();
        for cut in 1..all.len() {
            let mut received = Received::default();
            let mut found = Vec::new();
            for part in all.chunks(cut) {
                received.push(Bytes::copy_from_slice(part));
                while let Some(message) = received.message().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages, "cut by {cut}");
            assert_eq!(received.len, 0);
        }
    }

    #[test]
    fn what_is_in_one_piece_is_not_copied() {
        let whole = framed(b"message");
        let mut received = Received::default();
        received.push(whole.clone());
        let message = received.message().unwrap().unwrap();
        assert!(whole.as_ptr_range().contains(&message.as_ptr()));
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let mut received = Received::default();
        received.push(Bytes::from_static(b"\x01\0\0\0\0"));
        assert!(received.message().is_err());
        let mut received = Received::default();
        received.push(Bytes::from_static(b"\0\xff\xff\xff\xff"));
        assert!(received.message().is_err());
    }
}
