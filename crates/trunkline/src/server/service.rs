//! Requests of HTTP: which of them are streams, and how those begin.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use tokio::sync::mpsc;
use tonic::Streaming;
use trunkline_core::message::Mode;
use trunkline_core::resource::TypeUrl;

use super::admit;
use super::body::{Body, Outgoing};
use super::drive::{self, Raw};
use super::ending;
use super::hooks::{BoxFuture, Call, Connection};
use super::paths;
use super::services;
use super::shared::Shared;
use super::stream::Stream;
use crate::listen::Closing;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// A server as a service of HTTP, to be mounted on a server of one's own:
/// everything under `/envoy.service.` and beside it is answered here.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let server = trunkline::Server::default();
/// tonic::transport::Server::builder()
///     .serve_with_incoming(server.service(), tokio_stream::empty::<std::io::Result<tokio::net::TcpStream>>())
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) shared: Arc<Shared>,
}

/// Any error of a body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let request = request.map(tonic::body::Body::new);
        Box::pin(async move { Ok(answer(shared, request).await) })
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<tonic::body::Body>,
) -> Response<tonic::body::Body> {
    let path = request.uri().path();
    let stream = (request.method() == Method::POST)
        .then(|| paths::stream(path))
        .flatten();
    match stream {
        Some(stream) => open(shared, stream, request),
        None => services::answer(shared, request).await,
    }
}

/// Begins a stream, whose task ends with it.
fn open(
    shared: Arc<Shared>,
    stream: (Mode, Option<TypeUrl>),
    request: Request<tonic::body::Body>,
) -> Response<tonic::body::Body> {
    let (head, requests) = request.into_parts();
    let limit = shared.options.request_bytes;
    let requests = Streaming::new_request(Raw, requests, None, Some(limit));
    let (sender, source) = mpsc::channel(1);
    tokio::spawn(run(shared, stream, head, requests, sender));
    let mut response = Response::new(tonic::body::Body::new(Body::new(source)));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// Runs a stream to its end and says how it ended.
async fn run(
    shared: Arc<Shared>,
    stream: (Mode, Option<TypeUrl>),
    mut head: http::request::Parts,
    requests: Streaming<Bytes>,
    out: mpsc::Sender<Outgoing>,
) {
    let closing = head.extensions.remove::<Closing>();
    let call = Call {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        connection: head.extensions.remove::<Connection>().unwrap_or_default(),
    };
    let status = tokio::select! {
        admitted = admit::admit(&shared, &call) => match admitted {
            Ok((_admission, identity)) => {
                let connection = call.connection;
                let stream = Stream::new(Arc::clone(&shared), stream, connection, identity);
                let ending = ending::ending(&shared, closing, stream.number);
                // Of which nothing is left when the peer hears of the end.
                drive::drive(&shared, stream, requests, &out, ending).await
            }
            Err(status) => status,
        },
        () = out.closed() => return,
    };
    // If nobody reads it, the peer has gone.
    let _ = out.send(Outgoing::End(status)).await;
}
