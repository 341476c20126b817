//! The body of a response on its way: marked while its peer does not take it,
//! and given to the transport in pieces.
//!
//! HTTP/2 takes a piece of any length as soon as its peer has room for one
//! byte. Of a long one it would keep all, and the body would seem to be taken.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::activity::OpenRequest;

/// The longest piece. With the send buffer it is what a stream can hold of a
/// message that seems to be taken.
const PIECE: usize = 64 << 10;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Sending<B> {
    body: B,
    /// The rest of a long frame of the body.
    rest: Bytes,
    request: OpenRequest,
}

impl<B> Sending<B> {
    /// Returns the body of the response to an open request.
    pub(super) fn new(body: B, request: OpenRequest) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            request,
        }
    }

    /// Returns the first piece of a frame, and keeps the rest of its data for
    /// the next pieces. Trailers are one piece.
    fn first_piece(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(data) if data.len() > PIECE => {
                self.rest = data;
                Frame::data(self.rest.split_to(PIECE))
            }
            Ok(data) => Frame::data(data),
            Err(trailers) => trailers,
        }
    }

    /// Takes the next piece off the rest. The last piece is copied, because a
    /// transport that keeps a slice keeps the memory of the whole message.
    fn next_piece(&mut self) -> Bytes {
        if self.rest.len() > PIECE {
            return self.rest.split_to(PIECE);
        }
        let last_piece = Bytes::copy_from_slice(&self.rest);
        self.rest = Bytes::new();
        last_piece
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Sending<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        // A transport polls for more when its peer has taken the last frame.
        this.request.mark.note_taken();
        let next_frame = if this.rest.is_empty() {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            frame.map(|frame| frame.map(|frame| this.first_piece(frame)))
        } else {
            Some(Ok(Frame::data(this.next_piece())))
        };
        if next_frame.is_some() {
            this.request.mark.note_new();
        }
        Poll::Ready(next_frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    /// Adds the bytes that wait to those of the body.
    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(body.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::Activity;
    use super::*;
    use http_body_util::{BodyExt, Full};

    #[tokio::test]
    async fn a_long_body_is_sent_in_pieces_and_whole() {
        for length in [0, 1, PIECE, PIECE + 1, 5 * PIECE, 5 * PIECE + 7] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let full = Full::new(Bytes::from(bytes.clone()));
            let mut body = Sending::new(full, Activity::new(None).begin_request());
            let mut all = Vec::new();
            loop {
                assert_eq!(body.size_hint().exact(), Some((length - all.len()) as u64));
                let Some(frame) = body.frame().await else {
                    break;
                };
                let data = frame.unwrap().into_data().unwrap();
                assert!(data.len() <= PIECE, "{}", data.len());
                all.extend_from_slice(&data);
            }
            assert!(body.is_end_stream());
            assert!(all == bytes, "{length}");
        }
    }
}
