//! The body of a response. A stream is such a body, driven by the transport
//! that sends it.
//!
//! ```text
//!   transport has room ──▶ poll_frame ──▶ frames that are left of the last message
//!                                    └──▶ requests, time, changes ──▶ the next message
//! ```
//!
//! There is no task and no queue: a message is built when the transport polls
//! for one, from the newest state. Requests of a client that does not read are
//! not read either.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use super::driver::Driver;
use super::hooks::BoxFuture;
use crate::listen::BoxError;

/// The body of a server's response: a discovery stream over requests that
/// arrive in a body `B`, or the response of another service.
pub struct Body<B>(BodyForm<B>);

enum BodyForm<B> {
    Stream(Stream<B>),
    Other(tonic::body::Body),
}

/// A stream, in place: it is polled for every message.
struct Stream<B> {
    state: State<B>,
    /// The rest of the message that was built.
    frames: VecDeque<Bytes>,
}

/// The admission of a stream.
type Admitting<B> = BoxFuture<'static, Result<Box<Driver<B>>, Status>>;

enum State<B> {
    /// The admission is being decided.
    Admitting(Admitting<B>),
    /// The stream is admitted.
    Open(Box<Driver<B>>),
    /// The status was sent.
    Ended,
}

impl<B> Body<B> {
    /// Returns the body of a stream, which begins when it is admitted.
    pub(super) fn stream(admitting: Admitting<B>) -> Self {
        Self(BodyForm::Stream(Stream {
            state: State::Admitting(admitting),
            frames: VecDeque::new(),
        }))
    }

    /// Returns the body of the response of another service.
    pub(super) fn from_response(body: tonic::body::Body) -> Self {
        Self(BodyForm::Other(body))
    }
}

impl<B> Stream<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Adds the next message to `frames`, or returns the status with which the
    /// stream ended. A stream begins here, as soon as it is admitted. One that
    /// has ended adds nothing.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        loop {
            match &mut self.state {
                State::Admitting(admitting) => {
                    self.state = State::Open(ready!(admitting.as_mut().poll(cx))?);
                }
                State::Open(driver) => return driver.poll(cx, &mut self.frames),
                State::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Polls for the next frame: the rest of a message, the next message, or
    /// the status of the stream as trailers, which is the last one.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        loop {
            if let Some(bytes) = self.frames.pop_front() {
                return Poll::Ready(Some(Frame::data(bytes)));
            }
            if matches!(self.state, State::Ended) {
                return Poll::Ready(None);
            }
            if let Err(status) = ready!(self.poll_message(cx)) {
                // The stream is dropped before the client hears of its end.
                self.state = State::Ended;
                return Poll::Ready(Some(Frame::trailers(status_trailers(&status))));
            }
        }
    }
}

impl<B> http_body::Body for Body<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.0 {
            BodyForm::Stream(stream) => stream.poll_frame(cx).map(|frame| frame.map(Ok)),
            BodyForm::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    /// Returns whether nothing is left to send: the status was sent, and all
    /// frames before it.
    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyForm::Stream(stream) => {
                matches!(stream.state, State::Ended) && stream.frames.is_empty()
            }
            BodyForm::Other(body) => body.is_end_stream(),
        }
    }

    /// Returns no bounds for a stream, whose length is not known before its
    /// end.
    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            BodyForm::Stream(_) => http_body::SizeHint::default(),
            BodyForm::Other(body) => body.size_hint(),
        }
    }
}

impl<B> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// Writes the status of a stream as trailers. A message that cannot be the
/// value of a header is left out; the code is always there.
pub(crate) fn status_trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert(Status::GRPC_STATUS, (status.code() as i32).into());
    }
    trailers
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(body: &mut Body<tonic::body::Body>) -> Option<Frame<Bytes>> {
        let frame =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx));
        frame.await.map(Result::unwrap)
    }

    #[tokio::test]
    async fn who_is_not_let_in_hears_the_status() {
        let refusal = std::future::ready(Err(Status::unavailable("not yet")));
        let mut body = Body::stream(Box::pin(refusal));
        let trailers = next(&mut body).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
        assert!(http_body::Body::is_end_stream(&body));
        assert!(next(&mut body).await.is_none());
    }
}
