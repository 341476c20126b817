//! Polls: a `DiscoveryRequest` and its response in JSON, over HTTP/1.1.
//!
//! A poll has a connection of its own, since polls are far apart. To its owner
//! it is a message out and a message in, both as bytes in the form of gRPC.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::descriptor;
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::text::{Format, TextError, to_node};

use super::connector::Connector;
use super::dial::{Io, address};
use super::discovery_text;
use super::headers;
use super::tls::Protocol;
use super::watched::Activity;
use super::{HeaderError, StreamError};
use crate::client::ControlPlane;
use crate::paths;

const REQUEST: &str = "envoy.service.discovery.v3.DiscoveryRequest";

/// Why a poll has no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PollError {
    /// The type is none that is polled.
    #[error("{0} is no type that is polled; use a gRPC stream for it")]
    Type(TypeUrl),
    /// The request is none, or has what JSON cannot express.
    #[error("the request cannot be written as JSON")]
    Request,
    /// There is no connection, or a header cannot be sent.
    #[error(transparent)]
    Transport(#[from] StreamError),
    /// The poll took longer than it may.
    #[error("{address} did not answer a poll within {after:?}")]
    Timeout {
        /// Where.
        address: String,
        /// The timeout.
        after: Duration,
    },
    /// The server answered with another status.
    #[error("the server answered a poll with HTTP status {0}; does it serve REST there?")]
    Http(u16),
    /// The response is longer than the limit.
    #[error("the response to a poll has more than {limit} bytes; raise the limit, or ask for less")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The response is no `DiscoveryResponse`.
    #[error("the response to a poll is no DiscoveryResponse: {}", discovery_text::summarize(.0))]
    Text(Vec<TextError>),
}

impl Connector {
    /// Asks a control plane for a type. `request` is a `DiscoveryRequest`, and
    /// the result a `DiscoveryResponse`; `None` if the server says that nothing
    /// is newer than the version in the request.
    ///
    /// # Errors
    /// There is no response, or none that can be read.
    pub(crate) async fn poll(
        &self,
        plane: &ControlPlane,
        kind: &TypeUrl,
        request: Bytes,
        after: Duration,
    ) -> Result<Option<Bytes>, PollError> {
        let Some(path) = paths::path_of_poll(kind) else {
            return Err(PollError::Type(kind.clone()));
        };
        let body = to_json(request).ok_or(PollError::Request)?;
        let answer = tokio::time::timeout(after, self.exchange(plane, path, body)).await;
        let Ok(answer) = answer else {
            let address = address(plane);
            return Err(PollError::Timeout { address, after });
        };
        let Some(text) = answer? else {
            return Ok(None);
        };

        let (name, limit) = (
            format!("{}{path}", address(plane)),
            self.options().max_message,
        );
        // A large set takes a while to read.
        let read = move || discovery_text::read(Format::Json, &name, &text, limit);
        let reading = tokio::task::spawn_blocking(read).await;
        match reading {
            Ok(response) => response.map(Some).map_err(PollError::Text),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Sends a request over a connection of its own, and receives the body of the
    /// response, up to the limit of a message; `None` if the server says that
    /// nothing is newer.
    async fn exchange(
        &self,
        plane: &ControlPlane,
        path: &str,
        body: String,
    ) -> Result<Option<Bytes>, PollError> {
        let request = request(plane, path, body).await?;
        let activity = Arc::new(Activity::default());
        let socket = self.socket(plane, Protocol::Http1, &activity).await;
        let socket = socket.map_err(StreamError::from)?;
        let loss = |error| loss_error(plane, &activity, error);
        let response = send(socket, request).await.map_err(loss)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Ok(None),
            status => return Err(PollError::Http(status.as_u16())),
        }

        let limit = self.options().max_message;
        let mut body = response.into_body();
        // A body whose header says that it is too long is not read at all.
        if body.size_hint().lower() > limit as u64 {
            return Err(PollError::TooLong { limit });
        }
        let mut received = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(loss)?;
            let part = frame.into_data().unwrap_or_default();
            if part.len() > limit - received.len() {
                return Err(PollError::TooLong { limit });
            }
            received.extend_from_slice(&part);
        }
        Ok(Some(received.freeze()))
    }
}

/// Makes the error of a lost connection. A server that refuses a client's
/// certificate after the handshake is told from one that is gone.
fn loss_error(plane: &ControlPlane, activity: &Activity, error: hyper::Error) -> PollError {
    PollError::Transport(match activity.refusal(plane) {
        Some(refusal) => refusal.into(),
        None => StreamError::Lost(Arc::new(io::Error::other(error))),
    })
}

/// Builds the request of a poll, with the newest token. `path` is one of the
/// fixed paths of polls.
async fn request(
    plane: &ControlPlane,
    path: &str,
    body: String,
) -> Result<Request<Full<Bytes>>, StreamError> {
    let token = headers::token(plane).await?;
    let authority = headers::authority(plane);
    let Ok(host) = header::HeaderValue::try_from(&authority) else {
        return Err(HeaderError::Authority(authority).into());
    };
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::try_from(path).unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(header::HOST, host);
    let json = header::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers::add_metadata(headers, plane, token)?;
    Ok(request)
}

/// Sends a request, and returns the head of the response; its body is read from
/// the connection as the caller asks for it.
async fn send(
    socket: Box<dyn Io>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<http::Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // It ends with the response, or when nobody waits for that any more.
    tokio::spawn(connection);
    sender.send_request(request).await
}

/// Writes a request as JSON; `None` if it is none.
fn to_json(request: Bytes) -> Option<String> {
    let message = DynamicMessage::decode(descriptor::message(REQUEST)?, request).ok()?;
    Some(to_node(&message, None).to_json())
}
