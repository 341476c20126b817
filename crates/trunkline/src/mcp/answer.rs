//! The body of the response to an accepted stream: messages as they come, then a
//! status.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;
use tonic::Status;
use trunkline_proto::discovery::Frames;

use crate::server::status_trailers;

/// See the module's documentation.
pub(super) struct AnswerBody {
    messages: mpsc::Receiver<Result<Frames, Status>>,
    /// The rest of the message that is on its way.
    frames: Option<<Frames as IntoIterator>::IntoIter>,
    is_ended: bool,
}

impl AnswerBody {
    /// Makes the body of a response from its messages. The body ends with OK
    /// when their sender is dropped.
    pub(super) fn new(messages: mpsc::Receiver<Result<Frames, Status>>) -> Self {
        Self {
            messages,
            frames: None,
            is_ended: false,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    /// Sends the frames of one message after the other, and then the status.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(bytes) = self.frames.as_mut().and_then(Iterator::next) {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            self.frames = None;
            if self.is_ended {
                return Poll::Ready(None);
            }
            let status = match ready!(self.messages.poll_recv(cx)) {
                Some(Ok(frames)) => {
                    self.frames = Some(frames.into_iter());
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            self.is_ended = true;
            return Poll::Ready(Some(Ok(Frame::trailers(status_trailers(&status)))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended && self.frames.is_none()
    }
}
