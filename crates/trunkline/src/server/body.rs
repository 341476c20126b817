//! Messages as an HTTP body: frames that share bytes, and the status as the
//! last word.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::vec;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::mpsc;
use tonic::Status;
use trunkline_proto::discovery::Frames;

use super::flight::Ticket;

/// What a stream's task gives to its body.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A message, and what counts it until it was taken.
    Message(Frames, Arc<Ticket>),
    /// Nothing more.
    End(Status),
}

/// The body of a response; without a source it is empty.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// None once the status has been said.
    source: Option<mpsc::Receiver<Outgoing>>,
    /// The rest of the message that is being sent.
    rest: vec::IntoIter<Bytes>,
    ticket: Option<Arc<Ticket>>,
}

impl Body {
    pub(super) fn new(source: mpsc::Receiver<Outgoing>) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
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
            if let Some(bytes) = self.rest.next() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if let Some(ticket) = self.ticket.take() {
                ticket.land();
            }
            let Some(source) = &mut self.source else {
                return Poll::Ready(None);
            };
            let status = match ready!(source.poll_recv(cx)) {
                Some(Outgoing::Message(frames, ticket)) => {
                    self.ticket = Some(ticket);
                    self.rest = framed(frames).into_iter();
                    continue;
                }
                Some(Outgoing::End(status)) => status,
                None => Status::internal("the stream ended without a word"),
            };
            self.source = None;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_none() && self.rest.as_slice().is_empty()
    }
}

/// The frames of a message behind gRPC's five bytes: not compressed, and how
/// long it is.
fn framed(message: Frames) -> Vec<Bytes> {
    let mut prefix = BytesMut::with_capacity(5);
    prefix.put_u8(0);
    // A set larger than four gigabytes is beyond gRPC, and beyond any peer.
    prefix.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    let mut frames = message.into_vec();
    frames.insert(0, prefix.freeze());
    frames
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
    use super::super::flight::Flight;
    use super::*;
    use trunkline_proto::discovery::{DeltaDiscoveryResponse, encode_delta};

    async fn next(body: &mut Body) -> Option<Frame<Bytes>> {
        let frame =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx));
        frame.await.map(|Ok(frame)| frame)
    }

    #[tokio::test]
    async fn a_message_and_the_status_at_the_end() {
        let (sender, source) = mpsc::channel(2);
        let mut body = Body::new(source);
        let head = DeltaDiscoveryResponse {
            nonce: "1".into(),
            ..DeltaDiscoveryResponse::default()
        };
        let message = encode_delta(&head, []);
        let end = Status::invalid_argument("no type");
        let ticket = Arc::new(Flight::new(0, 0)).start(message.len());
        sender
            .send(Outgoing::Message(message.clone(), ticket))
            .await
            .unwrap();
        sender.send(Outgoing::End(end)).await.unwrap();

        let prefix = next(&mut body).await.unwrap().into_data().unwrap();
        assert_eq!(&prefix[..], [0, 0, 0, 0, 3]);
        let data = next(&mut body).await.unwrap().into_data().unwrap();
        assert_eq!(data, message.to_bytes());
        let trailers = next(&mut body).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "3");
        assert!(http_body::Body::is_end_stream(&body));
        assert!(next(&mut body).await.is_none());
    }

    #[tokio::test]
    async fn a_task_that_vanished_is_an_error() {
        let (sender, source) = mpsc::channel(1);
        drop(sender);
        let mut body = Body::new(source);
        let trailers = next(&mut body).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "13");
    }
}
