//! The two paths of the aggregated service, each with its protocol.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tower_service::Service;
use trunkline_core::message::Mode;

use super::body::Body;
use super::drive::{self, Raw};
use super::shared::Shared;
use super::stream::REQUEST_BYTES;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// `envoy.service.discovery.v3.AggregatedDiscoveryService`.
#[derive(Clone, Debug)]
pub(super) struct Ads {
    shared: Arc<Shared>,
}

impl Ads {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Begins a stream, whose task ends with it.
    fn open(&self, mode: Mode, requests: tonic::body::Body) -> Response<Body> {
        let requests = Streaming::new_request(Raw, requests, None, Some(REQUEST_BYTES));
        let (sender, source) = mpsc::channel(1);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(drive::run(shared, mode, requests, sender));
        let mut response = Response::new(Body::new(source));
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }
}

impl Service<Request<tonic::body::Body>> for Ads {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let mode = (request.method() == Method::POST)
            .then(|| mode_of(request.uri().path()))
            .flatten();
        ready(Ok(match mode {
            Some(mode) => self.open(mode, request.into_body()),
            None => {
                Status::unimplemented(format!("no method {}", request.uri().path())).into_http()
            }
        }))
    }
}

fn mode_of(path: &str) -> Option<Mode> {
    let method = path.strip_prefix("/envoy.service.discovery.v3.AggregatedDiscoveryService/")?;
    match method {
        "StreamAggregatedResources" => Some(Mode::Sotw),
        "DeltaAggregatedResources" => Some(Mode::Delta),
        _ => None,
    }
}
