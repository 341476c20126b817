//! A stream as the body of a response: it is driven by whoever sends it.
//!
//! ```text
//!   transport has room ──▶ poll_frame ──▶ frames that are left of the last message
//!                                    └──▶ requests, time, changes ──▶ the next message
//! ```
//!
//! There is no task and no queue: a message is built at the moment at which the
//! transport asks for one, from the newest state. A peer that does not read is
//! not asked what it wants either.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use super::driver::Driver;
use super::hooks::BoxFuture;

/// See the module's documentation.
pub(super) struct Body {
    state: State,
    /// What is left of the messages that were built.
    frames: VecDeque<Bytes>,
}

enum State {
    /// Whether it may begin is being found out.
    Admitting(BoxFuture<'static, Result<Box<Driver>, Status>>),
    /// It speaks.
    Open(Box<Driver>),
    /// The status has been said.
    Ended,
}

impl Body {
    /// A stream that begins when it is let in.
    pub(super) fn new(admitting: BoxFuture<'static, Result<Box<Driver>, Status>>) -> Self {
        Self {
            state: State::Admitting(admitting),
            frames: VecDeque::new(),
        }
    }

    /// Adds the next message, or says how the stream ended.
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
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(bytes) = self.frames.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if matches!(self.state, State::Ended) {
                return Poll::Ready(None);
            }
            match ready!(self.poll_message(cx)) {
                Ok(()) => {}
                Err(status) => {
                    // Of which nothing is left when the peer hears of the end.
                    self.state = State::Ended;
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Ended) && self.frames.is_empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        // Its text is no header; its code is.
        headers.insert(Status::GRPC_STATUS, (status.code() as i32).into());
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(body: &mut Body) -> Option<Frame<Bytes>> {
        let frame =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx));
        frame.await.map(|Ok(frame)| frame)
    }

    #[tokio::test]
    async fn who_is_not_let_in_hears_the_status() {
        let refusal = std::future::ready(Err(Status::unavailable("not yet")));
        let mut body = Body::new(Box::pin(refusal));
        let trailers = next(&mut body).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
        assert!(http_body::Body::is_end_stream(&body));
        assert!(next(&mut body).await.is_none());
    }
}
