//! A response that is read while it arrives.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use super::Exchanged;
use crate::failure::Failure;

/// The outcome of a call whose response is read while it arrives.
pub(crate) enum Opening {
    /// The response is good.
    Open(OpenResponse),
    /// The server refuses, with this status.
    Refused(StatusCode, Failure),
}

/// A response on a connection of its own, which closes when it is dropped.
pub(crate) struct OpenResponse {
    response: Response<Incoming>,
    /// The connection ends with its last sender.
    _sender: http1::SendRequest<Full<Bytes>>,
    _connection: AbortOnDropHandle<hyper::Result<()>>,
}

impl OpenResponse {
    /// Sends a request over a new connection, and waits for the head of its
    /// response.
    pub(super) async fn send_request(
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
    ) -> Exchanged<Self> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        match sender.send_request(request).await {
            Ok(response) => Ok(Self {
                response,
                _sender: sender,
                _connection: connection,
            }),
            Err(error) => {
                // The request failed with the connection, whose error has the
                // reason. Without a sender, the connection ends.
                drop(sender);
                match connection.await {
                    Ok(Err(reason)) => Err(reason.into()),
                    _ => Err(error.into()),
                }
            }
        }
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the body, of which chunks may have been read.
    pub(super) fn body_mut(&mut self) -> &mut Incoming {
        self.response.body_mut()
    }

    /// Returns the number of bytes that the body has, if its head says so.
    pub(crate) fn content_length(&self) -> Option<u64> {
        let length = self.response.headers().get(http::header::CONTENT_LENGTH)?;
        length.to_str().ok()?.parse().ok()
    }

    /// Returns the value of a header, if it is a text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Waits for the next part of the body. Returns `None` if the body or the
    /// connection has ended.
    pub(crate) async fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            let frame = self.body_mut().frame().await?.ok()?;
            // A frame of trailers is skipped.
            if let Ok(data) = frame.into_data() {
                return Some(data);
            }
        }
    }
}
