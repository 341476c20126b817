//! The body of a request, message by message: a service that reads it never has
//! a part of a message, and what has arrived of one counts among the unfinished
//! requests like that of a discovery stream.
//!
//! ```text
//!   pieces ──▶ Requests: shares, timeouts ──▶ prefix, message ──▶ service
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use tokio::time::Sleep;
use tonic::Status;

use super::arrived::PREFIX;
use super::request_bounds::RequestBounds;
use super::requests::Requests;
use crate::listen::{Activity, BoxError};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct WholeMessages<B> {
    requests: Requests<B>,
    /// The message whose prefix was handed over.
    message: Option<Bytes>,
    /// Runs until the requests have to be polled again.
    timer: Pin<Box<Sleep>>,
}

impl<B> WholeMessages<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Returns the messages of a body on a connection. One with more than
    /// `limit` bytes is an error.
    pub(crate) fn new(
        body: B,
        bounds: RequestBounds,
        connection: Arc<Activity>,
        limit: usize,
    ) -> Self {
        Self {
            requests: Requests::new(body, bounds, connection, limit),
            message: None,
            timer: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
        }
    }

    /// Lets the first message take as long as it likes: the other end speaks
    /// when there is news.
    #[cfg(feature = "mcp")]
    pub(crate) fn without_first_deadline(self) -> Self {
        Self {
            requests: self.requests.without_first_deadline(),
            ..self
        }
    }

    /// Polls for the next message, also when a deadline of it has passed and
    /// nothing arrives.
    pub(crate) fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Status>>> {
        loop {
            if let Poll::Ready(message) = self.requests.poll(cx) {
                return Poll::Ready(message);
            }
            let Some(due) = self.requests.due() else {
                return Poll::Pending;
            };
            self.timer.as_mut().reset(due);
            ready!(self.timer.as_mut().poll(cx));
        }
    }
}

impl<B> http_body::Body for WholeMessages<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let Some(message) = ready!(self.poll_message(cx)) else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(message.map(|message| {
            let prefix = prefix(message.len());
            // An empty message is its prefix.
            self.message = Some(message).filter(|message| !message.is_empty());
            Frame::data(prefix)
        })))
    }
}

/// Returns the prefix of a message of this length that is not compressed.
fn prefix(length: usize) -> Bytes {
    // A message is within a limit of some megabytes.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut prefix = [0; PREFIX];
    prefix[1..].copy_from_slice(&length.to_be_bytes());
    Bytes::copy_from_slice(&prefix)
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;
    use crate::bounds::SMALL_REQUESTS;
    use http_body_util::{BodyExt as _, StreamBody};
    use std::convert::Infallible;
    use tokio::sync::mpsc;
    use tokio_stream::StreamExt as _;
    use tokio_stream::wrappers::ReceiverStream;

    /// Returns a body of which a test sends the pieces, on a connection.
    fn body(
        bounds: &RequestBounds,
        connection: &Arc<Activity>,
    ) -> (
        mpsc::Sender<Bytes>,
        impl http_body::Body<Data = Bytes, Error = Status> + Unpin,
    ) {
        let (sender, pieces) = mpsc::channel(8);
        let frame = |piece| Ok::<_, Infallible>(Frame::data(piece));
        let pieces = StreamBody::new(ReceiverStream::new(pieces).map(frame));
        let (bounds, connection) = (bounds.clone(), Arc::clone(connection));
        (
            sender,
            WholeMessages::new(pieces, bounds, connection, 1 << 20),
        )
    }

    #[tokio::test]
    async fn messages_are_handed_over_whole() {
        let bounds = Server::builder().build().shared.request_bounds();
        let connection = Activity::new(None);
        let (sender, body) = body(&bounds, &connection);
        let wire = b"\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x02ab";
        let sending = tokio::spawn(async move {
            for byte in wire {
                sender.send(Bytes::copy_from_slice(&[*byte])).await.unwrap();
            }
        });
        assert_eq!(body.collect().await.unwrap().to_bytes(), &wire[..]);
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_stops_in_the_middle_ends_its_stream_and_others_wait_for_it() {
        let options = |options: &mut super::super::Options| {
            options.request_bytes = 4 * SMALL_REQUESTS;
        };
        let server = Server::builder().options(options).build();
        let bounds = server.shared.request_bounds();
        let connection = Activity::new(None);
        const LENGTH: usize = 3 * SMALL_REQUESTS;
        let (broken, mut stopped) = body(&bounds, &connection);
        broken.send(prefix(LENGTH)).await.unwrap();
        broken.send(Bytes::from_static(b"x")).await.unwrap();
        let polled = tokio::time::timeout(std::time::Duration::from_secs(1), stopped.frame());
        assert!(polled.await.is_err());

        let (good, mut waiting) = body(&bounds, &connection);
        good.send(prefix(LENGTH)).await.unwrap();
        good.send(Bytes::from(vec![7; LENGTH])).await.unwrap();
        let polled = tokio::time::timeout(std::time::Duration::from_secs(10), waiting.frame());
        assert!(polled.await.is_err(), "there is memory for one");

        let ended = stopped.frame().await.unwrap().unwrap_err();
        assert_eq!(ended.code(), tonic::Code::DeadlineExceeded);
        drop(stopped);
        let arrived = waiting.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(arrived, prefix(LENGTH));
    }
}
