//! A socket whose owner is told what HTTP/2 does not tell: that something was
//! read, and what the TLS library finds wrong after the handshake.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls;

use super::ConnectError;
use super::dial::address;
use crate::client::ControlPlane;

/// What was seen on a socket.
#[derive(Debug, Default)]
pub(super) struct Activity {
    has_heard: AtomicBool,
    fault: OnceLock<rustls::Error>,
}

impl Activity {
    /// Returns whether something was read since the last call.
    pub(super) fn take_heard(&self) -> bool {
        self.has_heard.swap(false, Ordering::Relaxed)
    }

    /// Returns the error of TLS that ended the connection, if one did. A server
    /// that refuses a client's certificate says so only after the handshake.
    pub(super) fn refusal(&self, plane: &ControlPlane) -> Option<ConnectError> {
        let source = self.fault.get()?.clone();
        let address = address(plane);
        Some(ConnectError::Handshake { address, source })
    }

    /// Keeps an error of the socket if it is one of TLS.
    fn note(&self, error: &io::Error) {
        let tls_error = error.get_ref().and_then(|cause| cause.downcast_ref());
        if let Some(fault) = tls_error.cloned() {
            // The first is the reason.
            let _ = self.fault.set(fault);
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    /// Watches a socket; what is seen goes to `activity`.
    pub(super) fn new(socket: S, activity: Arc<Activity>) -> Self {
        Self { socket, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    /// Notes that something was read, or an error of TLS.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.socket).poll_read(cx, buffer));
        match &result {
            Ok(()) => self.activity.has_heard.store(true, Ordering::Relaxed),
            Err(error) => self.activity.note(error),
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
