//! Answers as bodies: handed to the transport piece by piece, and given up when
//! the asker takes nothing.
//!
//! A transport does not poll the body of an answer that its peer does not read,
//! so a task hands over the pieces: it can wait with a clock, and it is the
//! task that holds the rest of the answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::mpsc;

use super::{Busy, Question};
use crate::listen::BoxError;

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// Bytes of a streamed answer that are there at once: a piece that waits, one
/// that is made, and one that the transport has.
const STREAMED_BYTES: usize = 3 * PIECE;

/// A piece of an answer, or its end: a channel that is closed before it means
/// that the answer was given up.
enum Piece {
    Frame(Frame<Bytes>),
    Failed(BoxError),
    End,
}

/// The body of an answer.
#[derive(Debug)]
pub struct AnswerBody(Form);

#[derive(Debug)]
enum Form {
    /// A small one, which needs nobody to hand it over.
    Whole(Full<Bytes>),
    Pieces(mpsc::Receiver<Piece>),
    Ended,
}

/// The error of an answer that was given up.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer was given up: the client took nothing of it in time")]
struct GivenUp;

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    /// Ends the body with an error if the answer was given up.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = match &mut self.0 {
            Form::Whole(whole) => {
                let frame = ready!(Pin::new(whole).poll_frame(cx));
                return Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})));
            }
            Form::Pieces(pieces) => ready!(pieces.poll_recv(cx)),
            Form::Ended => return Poll::Ready(None),
        };
        if !matches!(piece, Some(Piece::Frame(_))) {
            self.0 = Form::Ended;
        }
        Poll::Ready(match piece {
            Some(Piece::Frame(frame)) => Some(Ok(frame)),
            Some(Piece::Failed(error)) => Some(Err(error)),
            Some(Piece::End) => None,
            None => Some(Err(GivenUp.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Form::Whole(whole) => whole.is_end_stream(),
            Form::Pieces(_) => false,
            Form::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Form::Whole(whole) => whole.size_hint(),
            Form::Pieces(_) => SizeHint::default(),
            Form::Ended => SizeHint::with_exact(0),
        }
    }
}

/// Sends a body piece by piece, as the asker takes it. `question` holds the
/// bytes of the body until the asker has taken them, or has taken nothing for a
/// while.
pub fn stream_body<B>(body: B, question: Question) -> AnswerBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let (sender, answer) = channel(question);
    tokio::spawn(sender.send_body(body));
    answer
}

/// Answers with the bytes that `next` returns, until it returns `None`. It is
/// called as the asker reads, and each call is work on the question. An answer
/// that fits into one piece is sent with its length.
///
/// # Errors
/// Too many questions wait. The inner result is `None` if `next` panicked.
pub async fn stream(
    mut question: Question,
    mut next: impl FnMut() -> Option<Bytes> + Send + 'static,
) -> Result<Option<AnswerBody>, Busy> {
    let first_piece = question.run(move || {
        let (bytes, is_last) = fill(&mut next);
        (next, bytes, is_last)
    });

    let Some((next, bytes, is_last)) = first_piece.await? else {
        return Ok(None);
    };
    if is_last {
        let whole = Full::new(bytes);
        return Ok(Some(AnswerBody(Form::Whole(whole))));
    }

    question.hold(STREAMED_BYTES)?;
    let (sender, answer) = channel(question);
    tokio::spawn(sender.send_all(bytes, next));
    Ok(Some(answer))
}

/// Returns the two ends of an answer that is sent in pieces: one waits while
/// another is taken.
fn channel(question: Question) -> (Sender, AnswerBody) {
    let (pieces, piece_queue) = mpsc::channel(1);
    let sender = Sender { pieces, question };
    (sender, AnswerBody(Form::Pieces(piece_queue)))
}

/// The task that hands over the pieces of an answer, and holds the question
/// until it ends.
struct Sender {
    pieces: mpsc::Sender<Piece>,
    question: Question,
}

impl Sender {
    /// Sends a piece. Returns `None` if the asker is gone, or takes nothing in
    /// time, which is reported.
    async fn send(&self, piece: Piece) -> Option<()> {
        let sending = self.pieces.send(piece);
        match tokio::time::timeout(self.question.stall(), sending).await {
            Ok(outcome) => outcome.ok(),
            Err(_) => {
                self.question.report_unread();
                None
            }
        }
    }

    /// Sends bytes in pieces of [`PIECE`] at most. Returns `None` if the asker
    /// does not take them all.
    async fn send_bytes(&self, mut bytes: Bytes) -> Option<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.send(Piece::Frame(Frame::data(piece))).await?;
        }
        Some(())
    }

    /// Sends all frames of a body. Returns `None` if the asker does not take
    /// them all.
    async fn send_body<B>(self, mut body: B) -> Option<()>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                // The asker may leave while the body waits for something.
                () = self.pieces.closed() => return None,
            };
            let frame: Option<Result<Frame<Bytes>, BoxError>> =
                frame.map(|frame| frame.map_err(Into::into));
            match frame {
                None => return self.send(Piece::End).await,
                Some(Err(error)) => return self.send(Piece::Failed(error)).await,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.send_bytes(bytes).await?,
                    Err(frame) => self.send(Piece::Frame(frame)).await?,
                },
            }
        }
    }

    /// Sends `first_bytes`, and then those that `next` returns. Returns
    /// `None` if the asker does not take them all.
    async fn send_all(
        self,
        first_bytes: Bytes,
        mut next: impl FnMut() -> Option<Bytes> + Send + 'static,
    ) -> Option<()> {
        self.send_bytes(first_bytes).await?;
        loop {
            let piece = self.question.run_in_turn(move || {
                let (bytes, is_last) = fill(&mut next);
                (next, bytes, is_last)
            });
            // Work that panicked returns `None`, which cuts the answer off.
            let (returned_next, bytes, is_last) = piece.await?;
            next = returned_next;
            self.send_bytes(bytes).await?;
            if is_last {
                return self.send(Piece::End).await;
            }
        }
    }
}

/// Joins what `next` returns into one piece, of at least [`PIECE`] bytes if
/// there is so much. Returns also whether it is the last one.
fn fill(next: &mut impl FnMut() -> Option<Bytes>) -> (Bytes, bool) {
    let mut piece = BytesMut::new();
    while piece.len() < PIECE {
        match next() {
            Some(bytes) => piece.extend_from_slice(&bytes),
            None => return (piece.freeze(), true),
        }
    }
    (piece.freeze(), false)
}
