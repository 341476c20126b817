//! The requests of a stream: messages cut out of the body of an HTTP request.
//!
//! A message that arrives in one piece is a slice of it, not a copy; a stream
//! that is silent keeps no buffer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use tonic::Status;

use crate::listen::BoxError;

/// The bytes that gRPC puts before a message: one that says whether the message
/// is compressed, and four of its length.
const PREFIX: usize = 5;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Requests<B> {
    body: B,
    limit: usize,
    arrived: Arrived,
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
            arrived: Arrived::default(),
        }
    }

    /// Polls for the next message; `None` if the client has closed its half of
    /// the stream. After an error the stream has to end: nothing says where the
    /// next message begins.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        loop {
            if let Some(message) = self.next_message().transpose() {
                return Poll::Ready(Some(message));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.arrived.add(data);
                    }
                }
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(Status::from_error(error.into()))));
                }
                None if self.arrived.as_slice().is_empty() => return Poll::Ready(None),
                None => {
                    let status = Status::invalid_argument("the stream ended within a message");
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    /// Takes the first message off the bytes that arrived; `None` while it is
    /// incomplete.
    fn next_message(&mut self) -> Result<Option<Bytes>, Status> {
        let arrived = self.arrived.as_slice();
        let Some(length) = message_length(arrived, self.limit)? else {
            return Ok(None);
        };
        if arrived.len() - PREFIX < length {
            return Ok(None);
        }
        Ok(Some(self.arrived.take_message(length)))
    }
}

/// Reads the prefix of a message and returns the length of what follows it;
/// `None` while the prefix is incomplete. Refuses a message that is compressed
/// or longer than the limit before the rest of it arrives.
fn message_length(arrived: &[u8], limit: usize) -> Result<Option<usize>, Status> {
    let Some((prefix, _)) = arrived.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(Status::unimplemented("compressed requests are not read"));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(Status::resource_exhausted(format!(
            "a request of {length} bytes; the limit is {limit}"
        )));
    }
    Ok(Some(length))
}

/// The bytes that arrived and belong to no message that was taken.
#[derive(Debug)]
enum Arrived {
    /// A slice of one piece of the body, or nothing.
    Whole(Bytes),
    /// A copy of several pieces, none of which holds the whole of a message.
    Pieces(BytesMut),
}

impl Default for Arrived {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl Arrived {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Whole(whole) => whole,
            Self::Pieces(pieces) => pieces,
        }
    }

    /// Adds a piece of the body. It is copied only if an incomplete message is
    /// before it.
    fn add(&mut self, piece: Bytes) {
        match self {
            Self::Whole(whole) if whole.is_empty() => *whole = piece,
            Self::Whole(whole) => {
                let mut pieces = BytesMut::with_capacity(whole.len() + piece.len());
                pieces.extend_from_slice(whole);
                pieces.extend_from_slice(&piece);
                *self = Self::Pieces(pieces);
            }
            Self::Pieces(pieces) => pieces.extend_from_slice(&piece),
        }
    }

    /// Takes a message of this length off the front, without its prefix. Both
    /// must have arrived.
    fn take_message(&mut self, length: usize) -> Bytes {
        let mut rest = match std::mem::take(self) {
            Self::Whole(whole) => whole,
            Self::Pieces(pieces) => pieces.freeze(),
        };
        rest.advance(PREFIX);
        let message = rest.split_to(length);
        // An empty slice could keep the memory of the message alive.
        if !rest.is_empty() {
            *self = Self::Whole(rest);
        }
        message
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
