//! One gRPC stream: messages out, messages in, both as bytes.
//!
//! Nothing is queued in either direction. A request is made when the stream is
//! ready for it, and what the owner does not read stays with the server, but
//! for one window (C22).

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Response, header};

use super::connection::Connection;
use super::frame::{ReceiveBuffer, with_prefix};
use super::{Code, StreamError};

/// A stream. It ends when it is dropped.
#[derive(Debug)]
pub struct Stream {
    requests: RequestSender,
    responses: ResponseReceiver,
}

/// The half of a stream that sends.
#[derive(Debug)]
pub struct RequestSender {
    stream: SendStream<Bytes>,
    connection: Connection,
}

/// The half of a stream that receives.
#[derive(Debug)]
pub struct ResponseReceiver {
    answer: Answer,
    /// What was received of the next message.
    buffer: ReceiveBuffer,
    connection: Connection,
}

#[derive(Debug)]
enum Answer {
    /// Some servers say nothing, not even that there is a stream, before they
    /// have something to send.
    Awaited(ResponseFuture),
    Open(RecvStream),
}

impl Stream {
    /// Makes a stream whose server has not answered yet. A response of more
    /// than `max_message` bytes is an error.
    pub(super) fn new(
        connection: Connection,
        answer: ResponseFuture,
        requests: SendStream<Bytes>,
        max_message: usize,
    ) -> Self {
        Self {
            requests: RequestSender {
                stream: requests,
                connection: connection.clone(),
            },
            responses: ResponseReceiver {
                answer: Answer::Awaited(answer),
                buffer: ReceiveBuffer::new(max_message),
                connection,
            },
        }
    }

    /// Returns the two halves, for an owner that waits for both.
    pub fn halves(&mut self) -> (&mut RequestSender, &mut ResponseReceiver) {
        (&mut self.requests, &mut self.responses)
    }

    /// See [`RequestSender::ready`].
    ///
    /// # Errors
    /// The stream ended.
    pub async fn ready(&mut self) -> Result<(), StreamError> {
        self.requests.ready().await
    }

    /// See [`RequestSender::send`].
    pub fn send(&mut self, message: Bytes) {
        self.requests.send(message);
    }

    /// See [`RequestSender::finish`].
    pub fn finish(&mut self) {
        self.requests.finish();
    }

    /// See [`ResponseReceiver::next`].
    ///
    /// # Errors
    /// How the stream ended, unless the server ended it well.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        self.responses.next().await
    }
}

impl RequestSender {
    /// Waits until the stream takes a message: all before it are on their way.
    /// It stays ready until one is sent, and nothing is lost if the wait is
    /// given up.
    ///
    /// # Errors
    /// The stream ended. There may be messages left to receive, and
    /// [`ResponseReceiver::next`] says more of the reason.
    pub async fn ready(&mut self) -> Result<(), StreamError> {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// Returns whether the stream takes a message now.
    pub fn is_ready(&mut self) -> bool {
        self.stream.reserve_capacity(1);
        self.stream.capacity() > 0
    }

    /// Polls for what [`ready`](Self::ready) waits for.
    ///
    /// # Errors
    /// The stream ended.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if self.is_ready() {
            return Poll::Ready(Ok(()));
        }
        match ready!(self.stream.poll_capacity(cx)) {
            Some(Ok(_)) => Poll::Ready(Ok(())),
            Some(Err(error)) => Poll::Ready(Err(self.connection.error(error))),
            None => {
                let reset = ready!(self.stream.poll_reset(cx));
                Poll::Ready(Err(match reset {
                    Ok(reason) => StreamError::Reset(reason.into()),
                    Err(error) => self.connection.error(error),
                }))
            }
        }
    }

    /// Sends a message. It is for a stream that is ready: one that is not holds
    /// the message until it is. A message that the stream cannot take any more
    /// is lost with it, as on any wire.
    pub fn send(&mut self, message: Bytes) {
        let _ = self.stream.send_data(with_prefix(&message), false);
    }

    /// Tells the server that no message follows. Those that were sent arrive
    /// before that; a stream that is dropped without it may lose them.
    pub fn finish(&mut self) {
        let _ = self.stream.send_data(Bytes::new(), true);
    }
}

impl ResponseReceiver {
    /// Waits for the next message; `None` when the server ended the stream
    /// well. The message shares the bytes that were received, if they came in
    /// one piece. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// How the stream ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for what [`next`](Self::next) waits for.
    ///
    /// # Errors
    /// How the stream ended, unless the server ended it well.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        loop {
            if let Some(message) = self.buffer.take_message()? {
                return Poll::Ready(Ok(Some(message)));
            }
            let body = match &mut self.answer {
                Answer::Open(body) => body,
                Answer::Awaited(answer) => {
                    let answer = ready!(Future::poll(std::pin::Pin::new(answer), cx));
                    let answer = answer.map_err(|error| self.connection.error(error))?;
                    self.connection.note_answer();
                    self.answer = Answer::Open(check_answer(answer)?);
                    continue;
                }
            };
            match ready!(body.poll_data(cx)) {
                Some(Ok(part)) => {
                    // It is read, so the server may send as much again.
                    let _ = body.flow_control().release_capacity(part.len());
                    self.buffer.push(part);
                }
                Some(Err(error)) => return Poll::Ready(Err(self.connection.error(error))),
                None => {
                    let trailers = ready!(body.poll_trailers(cx));
                    let trailers = trailers.map_err(|error| self.connection.error(error))?;
                    return Poll::Ready(self.outcome(trailers.as_ref()));
                }
            }
        }
    }

    /// Returns the outcome of a stream that ended with these trailers; `None` in
    /// it means that the server ended the stream well.
    fn outcome(&self, trailers: Option<&HeaderMap>) -> Result<Option<Bytes>, StreamError> {
        match trailers.and_then(read_status) {
            None => Err(StreamError::NoStatus),
            Some(Err(error)) => Err(error),
            Some(Ok(())) if !self.buffer.is_empty() => Err(StreamError::Truncated),
            Some(Ok(())) => Ok(None),
        }
    }
}

/// Checks that an answer is gRPC, and returns its messages.
fn check_answer(answer: Response<RecvStream>) -> Result<RecvStream, StreamError> {
    // A stream that is refused at once has its status here.
    if let Some(status) = read_status(answer.headers()) {
        status?;
    }
    if !answer.status().is_success() {
        return Err(StreamError::Http(answer.status().as_u16()));
    }
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let kind = kind.map_or(&b""[..], header::HeaderValue::as_bytes);
    if !kind.starts_with(b"application/grpc") {
        let kind = String::from_utf8_lossy(kind).into_owned();
        return Err(StreamError::NotGrpc(kind));
    }
    Ok(answer.into_body())
}

/// Reads the gRPC status of trailers; `None` if they have no `grpc-status`. A
/// code that is no number counts as UNKNOWN.
fn read_status(trailers: &HeaderMap) -> Option<Result<(), StreamError>> {
    let text = trailers.get("grpc-status")?.to_str();
    let number = text.ok().and_then(|text| text.parse().ok());
    let code = number.map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Some(Ok(()));
    }

    let message = trailers
        .get("grpc-message")
        .map(header::HeaderValue::as_bytes);
    let message = percent_decode(message.unwrap_or_default());
    Some(Err(StreamError::Status { code, message }))
}

/// Undoes the percent-encoding of a status message; what is none of it stays.
fn percent_decode(text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut encoded = text;
    while let [first, suffix @ ..] = encoded {
        let byte = (*first == b'%').then(|| hex(suffix)).flatten();
        decoded.push(byte.unwrap_or(*first));
        encoded = if byte.is_some() { &suffix[2..] } else { suffix };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Returns the byte that the first two characters write in hexadecimal; `None` if
/// they are no such digits.
fn hex(text: &[u8]) -> Option<u8> {
    let digits = text.get(..2)?;
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}
