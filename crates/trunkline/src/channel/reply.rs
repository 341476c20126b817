//! The reply to a call: its status, and a body that counts how the call ends.

use std::error::Error as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};
use tonic::{Code, Status};

use super::cluster::{Guard, Outcome};
use super::fault::code_of_http;

/// The body of a reply. It ends with `DEADLINE_EXCEEDED` when the time of the
/// call is over.
#[derive(Debug)]
pub struct ReplyBody {
    body: Incoming,
    guard: Guard,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl ReplyBody {
    /// Makes the reply of a response. The call has ended already if the
    /// response has nothing but headers.
    pub(super) fn wrap(
        response: Response<Incoming>,
        mut guard: Guard,
        deadline: Option<Instant>,
    ) -> Response<Self> {
        if let Some(code) = early_status(&response) {
            guard.end(outcome(code));
        }
        response.map(|body| Self {
            body,
            guard,
            deadline: deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline))),
        })
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    /// Polls the response first: what arrives with the deadline still counts.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            let trailers = match &frame {
                Some(Ok(frame)) => frame.trailers_ref(),
                Some(Err(_)) => {
                    this.guard.end(Outcome::Failed);
                    None
                }
                None => None,
            };
            if let Some(code) = trailers.and_then(status_in) {
                this.guard.end(outcome(code));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| status_of(&error))));
        }

        let deadline = this.deadline.as_mut();
        match deadline.is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready()) {
            true => {
                this.guard.end(Outcome::Failed);
                Poll::Ready(Some(Err(too_late_status())))
            }
            false => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the status of a call whose time is over.
pub(super) fn too_late_status() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

/// Returns the status of a reply that has nothing but headers. `None` means
/// that the reply goes on, and that the call is committed to it.
pub(super) fn early_status<B>(response: &Response<B>) -> Option<Code> {
    let in_headers = status_in(response.headers());
    let by_http = || Some(code_of_http(response.status().as_u16().into()));
    in_headers.or_else(|| by_http().filter(|_| response.status() != http::StatusCode::OK))
}

/// Returns the gRPC status in some headers or trailers; `None` if they have
/// none.
fn status_in(headers: &HeaderMap) -> Option<Code> {
    let status = headers.get("grpc-status")?;
    Some(Code::from_bytes(status.as_bytes()))
}

/// Returns how a call with this status counts for its endpoint.
fn outcome(code: Code) -> Outcome {
    match code {
        Code::Ok => Outcome::Succeeded,
        _ => Outcome::Failed,
    }
}

/// Returns whether the peer refused the stream, and so has certainly done
/// nothing of the call.
pub(super) fn is_refused(error: &hyper::Error) -> bool {
    reason(error) == Some(h2::Reason::REFUSED_STREAM)
}

/// Returns the status of a call whose stream has ended with an error.
pub(super) fn status_of(error: &hyper::Error) -> Status {
    let mut text = error.to_string();
    if let Some(cause) = error.source() {
        text = format!("{text}: {cause}");
    }
    match reason(error) {
        Some(h2::Reason::CANCEL) => Status::cancelled(text),
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Status::resource_exhausted(text),
        Some(h2::Reason::INADEQUATE_SECURITY) => Status::permission_denied(text),
        Some(h2::Reason::INTERNAL_ERROR | h2::Reason::PROTOCOL_ERROR) => Status::internal(text),
        _ => Status::unavailable(text),
    }
}

/// Returns why the peer or this side reset the stream; `None` for another
/// error.
fn reason(error: &hyper::Error) -> Option<h2::Reason> {
    let cause = error.source()?.downcast_ref::<h2::Error>()?;
    cause.is_reset().then(|| cause.reason()).flatten()
}
