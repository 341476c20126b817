//! The requests of a stream, cut out of the body in which they arrive.
//!
//! A message that arrives in one piece is a slice of it, not a copy; a stream
//! that is silent keeps no buffer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use tonic::Status;

use crate::listen::BoxError;

/// gRPC's own bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Requests<B> {
    body: B,
    limit: usize,
    /// What arrived and was not given out. One of the two is empty.
    whole: Bytes,
    pieces: BytesMut,
}

impl<B> Requests<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// A message that is longer than the limit ends the stream.
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self {
            body,
            limit,
            whole: Bytes::new(),
            pieces: BytesMut::new(),
        }
    }

    /// The next message; `None` if the peer has said all.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        loop {
            match self.cut() {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(message))),
                Ok(None) => {}
                Err(status) => return Poll::Ready(Some(Err(status))),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.add(data);
                    }
                }
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(Status::from_error(error.into()))));
                }
                None if self.whole.is_empty() && self.pieces.is_empty() => {
                    return Poll::Ready(None);
                }
                None => {
                    let status = Status::invalid_argument("the stream ended within a message");
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    fn add(&mut self, data: Bytes) {
        if self.whole.is_empty() && self.pieces.is_empty() {
            self.whole = data;
        } else {
            self.pieces
                .extend_from_slice(&std::mem::take(&mut self.whole));
            self.pieces.extend_from_slice(&data);
        }
    }

    /// Takes a message off the front of what arrived, if it is complete.
    fn cut(&mut self) -> Result<Option<Bytes>, Status> {
        let arrived = match self.pieces.is_empty() {
            true => &self.whole[..],
            false => &self.pieces[..],
        };
        let Some((prefix, rest)) = arrived.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let [compressed, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        if compressed != 0 {
            return Err(Status::unimplemented("compressed requests are not read"));
        }
        if length > self.limit {
            return Err(Status::resource_exhausted(format!(
                "a request of {length} bytes; the limit is {}",
                self.limit
            )));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = if self.pieces.is_empty() {
            self.whole.advance(PREFIX);
            self.whole.split_to(length)
        } else {
            self.pieces.advance(PREFIX);
            let message = self.pieces.split_to(length).freeze();
            self.settle();
            message
        };
        // What is empty keeps nothing alive.
        if self.whole.is_empty() {
            self.whole = Bytes::new();
        }
        Ok(Some(message))
    }

    /// What is left after a message of many pieces is handed on as it is.
    fn settle(&mut self) {
        self.whole = std::mem::take(&mut self.pieces).freeze();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use std::convert::Infallible;

    /// What arrives in these pieces.
    struct Pieces(Vec<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn requests(pieces: &[&[u8]], limit: usize) -> Requests<Pieces> {
        let backwards = pieces.iter().rev().copied();
        let pieces = backwards.map(Bytes::copy_from_slice).collect();
        Requests::new(Pieces(pieces), limit)
    }

    async fn all(mut requests: Requests<Pieces>) -> Result<Vec<Bytes>, Status> {
        let mut messages = Vec::new();
        while let Some(message) = std::future::poll_fn(|cx| requests.poll(cx)).await {
            messages.push(message?);
        }
        Ok(messages)
    }

    #[tokio::test]
    async fn messages_are_cut_wherever_the_pieces_end() {
        let text = b"\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three";
        for at in 0..text.len() {
            for then in at..text.len() {
                let pieces = [&text[..at], &text[at..then], &text[then..]];
                let messages = all(requests(&pieces, 5)).await.unwrap();
                assert_eq!(messages, ["one", "", "three"], "{at} {then}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_too_long_or_cut_off_or_compressed_is_told() {
        let code = async |pieces: &[&[u8]]| all(requests(pieces, 3)).await.unwrap_err().code();
        use tonic::Code;
        assert_eq!(code(&[b"\0\0\0\0\x04"]).await, Code::ResourceExhausted);
        assert_eq!(code(&[b"\0\0\0\0\x03on"]).await, Code::InvalidArgument);
        assert_eq!(code(&[b"\0\0"]).await, Code::InvalidArgument);
        assert_eq!(code(&[b"\x01\0\0\0\x03one"]).await, Code::Unimplemented);
    }
}
