//! HTTP requests: which of them open streams, and how streams begin.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use tonic::Status;

use super::admit::{self, Admitted};
use super::body::Body;
use super::driver::Driver;
use super::ending;
use super::hooks::{BoxFuture, Call};
use super::requests::Requests;
use super::services;
use super::shared::Shared;
use super::stream::Stream;
use crate::listen::{Activity, BoxError, ClientAddress, Closing};
use crate::paths::{self, StreamForm};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// A server as an HTTP service, to be mounted on another server: it serves
/// everything under `/envoy.service.`, and the services beside discovery.
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

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Response = Response<Body<B>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { Ok(serve(shared, request).await) })
    }
}

/// Serves a request: opens a discovery stream, or passes it on to another
/// service.
async fn serve<B>(shared: Arc<Shared>, request: Request<B>) -> Response<Body<B>>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let path = request.uri().path();
    let stream_form = match *request.method() {
        Method::POST => paths::stream_of_path(path),
        _ => None,
    };
    match stream_form {
        Some(stream_form) => open_stream(shared, stream_form, request),
        None => {
            let request = request.map(tonic::body::Body::new);
            services::serve(shared, request)
                .await
                .map(Body::from_response)
        }
    }
}

/// Opens a stream, which lives as long as the body of the response. The status
/// of a stream that is not admitted is sent in the trailers of that body.
fn open_stream<B>(
    shared: Arc<Shared>,
    stream_form: StreamForm,
    request: Request<B>,
) -> Response<Body<B>>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let call = Call::of(&request);
    let closing = request.extensions().get::<Closing>().cloned();
    let connection = connection_of(&request);
    let body = request.into_body();
    let limit = shared.options.request_bytes;
    let bounds = shared.request_bounds();
    let requests = Requests::new(body, bounds, Arc::clone(&connection), limit);
    let driver = start_driver(shared, stream_form, call, closing, connection, requests);
    let body = Body::stream(Box::pin(driver));

    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// Returns the activity of a request's connection. If another server accepted
/// the connection, each of its requests counts as one of its own.
pub(crate) fn connection_of<B>(request: &Request<B>) -> Arc<Activity> {
    let connection = request.extensions().get::<Arc<Activity>>().cloned();
    connection.unwrap_or_else(|| {
        let peer = Call::of(request).connection.peer;
        Activity::new(peer.map(ClientAddress::of))
    })
}

/// Admits a stream and returns its driver, or the status that refuses it.
/// `closing` says when the connection is about to close, if this server
/// accepted it.
async fn start_driver<B>(
    shared: Arc<Shared>,
    stream_form: StreamForm,
    call: Call,
    closing: Option<Closing>,
    connection: Arc<Activity>,
    requests: Requests<B>,
) -> Result<Box<Driver<B>>, Status>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let Admitted {
        admission,
        identity,
    } = admit::admit(&shared, &call).await?;
    let stream = Stream::new(Arc::clone(&shared), stream_form, call.connection, identity);
    let ending = ending::wait_for_end(Arc::clone(&shared), closing, stream.number);
    let ending = Box::pin(ending);
    let driver = Driver::new(shared, stream, requests, connection, ending, admission);
    Ok(Box::new(driver))
}
