//! gRPC health: `SERVING` while the server is ready, `NOT_SERVING` before and
//! while it drains. All services of a server have the same status.
//!
//! A [`Server`](crate::Server) has one; this is for other services of a program:
//!
//! ```
//! use trunkline::health::Health;
//!
//! let health = Health::new(["example.Greeter"]);
//! let service = health.service(); // for a tonic server
//! health.set_ready(true);
//! # drop(service);
//! ```

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::codegen::{BoxFuture, StdError};
use tonic::server::{Grpc, UnaryService};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// The full name of the service.
pub const NAME: &str = "grpc.health.v1.Health";

const LIST: &str = "/grpc.health.v1.Health/List";

/// Whether a server is ready. Clones share it.
#[derive(Clone, Debug)]
pub struct Health {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ready: watch::Sender<bool>,
    services: Vec<String>,
}

impl Health {
    /// Returns a server that is not ready. `services` are the names that a
    /// client can check, beside the empty name, which stands for the server.
    #[must_use]
    pub fn new(services: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let named = services.into_iter().map(Into::into);
        let services = std::iter::once(String::new()).chain(named).collect();
        let ready = watch::Sender::new(false);
        Self {
            shared: Arc::new(Shared { ready, services }),
        }
    }

    /// Sets whether the server is ready. Clients that watch are told if that is
    /// a change.
    pub fn set_ready(&self, ready: bool) {
        let replace = |current: &mut bool| {
            let before = std::mem::replace(current, ready);
            before != ready
        };
        self.shared.ready.send_if_modified(replace);
    }

    /// Returns whether the server is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.shared.ready.borrow()
    }

    /// Returns the service for a tonic server.
    #[must_use]
    pub fn service(&self) -> HealthService {
        HealthService {
            generated: HealthServer::new(self.clone()),
            health: self.clone(),
        }
    }

    /// Returns whether a client can check this name.
    fn knows(&self, service: &str) -> bool {
        self.shared.services.iter().any(|known| known == service)
    }
}

/// Returns the response for every service: serving if the server is ready.
fn readiness_response(is_ready: bool) -> HealthCheckResponse {
    response_with(match is_ready {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    })
}

/// Returns the response with this status.
fn response_with(status: ServingStatus) -> HealthCheckResponse {
    let status = status.into();
    HealthCheckResponse { status }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// Returns the status of a service. A service that the server does not have
    /// is an error.
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !self.knows(&request.get_ref().service) {
            return Err(Status::not_found("this server has no such service"));
        }
        Ok(Response::new(readiness_response(self.is_ready())))
    }

    /// Sends the status of a service, and again at every change. A service that
    /// the server does not have is reported as unknown, once.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        if self.knows(&request.get_ref().service) {
            let changes = WatchStream::new(self.shared.ready.subscribe());
            let responses = changes.map(|is_ready| Ok(readiness_response(is_ready)));
            return Ok(Response::new(Box::pin(responses)));
        }

        // The stream stays open, so that the client does not retry.
        let unknown = tokio_stream::once(Ok(response_with(ServingStatus::ServiceUnknown)));
        let responses = unknown.chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(responses)))
    }
}

/// The generated service, and the method that the generated code lacks.
#[derive(Clone)]
pub struct HealthService {
    generated: HealthServer<Health>,
    health: Health,
}

impl fmt::Debug for HealthService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HealthService").field(&self.health).finish()
    }
}

impl<B> Service<http::Request<B>> for HealthService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Passes all calls but `List` on to the generated service, which lacks
    /// `List`.
    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path() != LIST {
            return self.generated.call(request);
        }
        let list = List(self.health.clone());
        let mut grpc = Grpc::new(ProstCodec::<ListResponse, ListRequest>::default());
        Box::pin(async move { Ok(grpc.unary(list, request).await) })
    }
}

/// `grpc.health.v1.HealthListRequest`
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct ListRequest {}

/// `grpc.health.v1.HealthListResponse`
#[derive(Clone, PartialEq, prost::Message)]
struct ListResponse {
    #[prost(map = "string, message", tag = "1")]
    statuses: HashMap<String, HealthCheckResponse>,
}

/// The method `List`: all services, with their status.
struct List(Health);

impl UnaryService<ListRequest> for List {
    type Response = ListResponse;
    type Future = Ready<Result<Response<ListResponse>, Status>>;

    /// Lists all services; they have the same status.
    fn call(&mut self, _: Request<ListRequest>) -> Self::Future {
        let now = readiness_response(self.0.is_ready());
        let services = self.0.shared.services.iter();
        let statuses = services.map(|service| (service.clone(), now)).collect();
        ready(Ok(Response::new(ListResponse { statuses })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;
    use tonic_health::pb::health_client::HealthClient;

    const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";

    fn ask(service: &str) -> HealthCheckRequest {
        let service = service.to_owned();
        HealthCheckRequest { service }
    }

    #[tokio::test]
    async fn a_server_serves_while_it_is_ready() {
        let health = Health::new([ADS]);
        let mut client = HealthClient::new(health.service());
        for ready in [false, true, false] {
            health.set_ready(ready);
            for service in ["", ADS] {
                let answer = client.check(ask(service)).await.unwrap();
                assert_eq!(answer.into_inner(), readiness_response(ready));
            }
        }
        let unknown = client.check(ask("x")).await.unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
    }

    #[tokio::test]
    async fn who_watches_hears_of_changes() {
        let health = Health::new([ADS]);
        let mut client = HealthClient::new(health.service());
        let mut watch = client.watch(ask(ADS)).await.unwrap().into_inner();
        assert_eq!(
            watch.message().await.unwrap(),
            Some(readiness_response(false))
        );
        health.set_ready(false);
        health.set_ready(true);
        assert_eq!(
            watch.message().await.unwrap(),
            Some(readiness_response(true))
        );

        let mut unknown = client.watch(ask("x")).await.unwrap().into_inner();
        let told = unknown.message().await.unwrap().unwrap();
        assert_eq!(told.status(), ServingStatus::ServiceUnknown);
    }

    #[tokio::test]
    async fn all_services_are_listed() {
        let health = Health::new([ADS]);
        health.set_ready(true);
        let mut client = tonic::client::Grpc::new(health.service());
        let path = http::uri::PathAndQuery::from_static(LIST);
        let codec = ProstCodec::<ListRequest, ListResponse>::default();
        let answer = client
            .unary(Request::new(ListRequest {}), path, codec)
            .await;
        let statuses = answer.unwrap().into_inner().statuses;
        let all = ["", ADS].map(|service| (service.to_owned(), readiness_response(true)));
        assert_eq!(statuses, all.into());
    }
}
