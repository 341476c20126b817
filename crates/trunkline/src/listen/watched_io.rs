//! A socket that marks whether its peer takes what is written, and counts the
//! effort of what is read and written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::effort::cost;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct WatchedIo<T> {
    io: T,
    activity: Arc<Activity>,
}

impl<T> WatchedIo<T> {
    /// Wraps the socket of a connection.
    pub(super) fn new(io: T, activity: Arc<Activity>) -> Self {
        Self { io, activity }
    }

    /// Marks the outcome of a write, counts its effort, and returns it.
    fn mark_written(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &outcome {
            let effort = *bytes as u64 * cost::WRITTEN_BYTE;
            self.activity.effort.charge(effort);
        }
        self.mark(outcome)
    }

    /// Marks whether the peer takes what is written, by the outcome of a write,
    /// a flush or a shutdown, and returns the outcome.
    fn mark<R>(&self, outcome: Poll<R>) -> Poll<R> {
        if outcome.is_pending() {
            self.activity.write.note_waiting()
        } else {
            self.activity.write.note_taken()
        }
        outcome
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WatchedIo<T> {
    /// Counts the effort of each read, and of its bytes.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        let outcome = Pin::new(&mut self.io).poll_read(cx, buffer);
        if outcome.is_ready() {
            let bytes = buffer.filled().len().saturating_sub(filled_before);
            let effort = cost::READ + bytes as u64 * cost::READ_BYTE;
            self.activity.effort.charge(effort);
        }
        outcome
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    /// Writes, and marks whether the peer takes what is written.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.mark_written(outcome)
    }

    /// Writes several slices, and marks whether the peer takes them.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.mark_written(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_flush(cx);
        self.mark(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_shutdown(cx);
        self.mark(outcome)
    }
}
