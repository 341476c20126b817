//! A stream of bytes that tells when the other side has said something.
//!
//! A connection of TCP says little: a proxy whose server is gone takes it and
//! closes it. What speaks HTTP/2 begins with its settings, without being asked.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// See the module's documentation.
pub(super) struct FirstBytes<S> {
    stream: S,
    /// Dropped without a word if nothing was ever said.
    arrival: Option<oneshot::Sender<()>>,
}

impl<S> FirstBytes<S> {
    /// Wraps a stream. The receiver gets its value at the first bytes, or fails
    /// if the stream is dropped before.
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<()>) {
        let (arrival, first_bytes) = oneshot::channel();
        let arrival = Some(arrival);
        (Self { stream, arrival }, first_bytes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let old_length = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > old_length
            && let Some(arrival) = self.arrival.take()
        {
            // Nobody may wait for it any more.
            let _ = arrival.send(());
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
