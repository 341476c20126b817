//! A control plane that does what a test says, bad manners included.

use std::net::SocketAddr;
use std::pin::Pin;

use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use trunkline::proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use trunkline::proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use trunkline::proto::envoy::google::protobuf::Any;

use super::PATIENCE;

/// One state-of-the-world stream, as the server has it.
pub(crate) struct OpenStream {
    requests: Streaming<DiscoveryRequest>,
    responses: mpsc::Sender<Result<DiscoveryResponse, Status>>,
}

impl OpenStream {
    /// The next request.
    pub(crate) async fn request(&mut self) -> DiscoveryRequest {
        let next = tokio::time::timeout(PATIENCE, self.requests.next()).await;
        next.expect("a request in time")
            .expect("a stream that goes on")
            .unwrap()
    }

    pub(crate) async fn send(&self, version: &str, type_url: &str, resources: Vec<Any>) {
        let response = DiscoveryResponse {
            version_info: version.to_owned(),
            nonce: version.to_owned(),
            type_url: type_url.to_owned(),
            resources,
            ..DiscoveryResponse::default()
        };
        self.responses.send(Ok(response)).await.unwrap();
    }

    /// Ends the stream with an error.
    pub(crate) async fn fail(self, status: Status) {
        let _ = self.responses.send(Err(status)).await;
    }
}

/// The control plane.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    streams: mpsc::Receiver<OpenStream>,
}

impl Scripted {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (opened, streams) = mpsc::channel(8);
        let service = AggregatedDiscoveryServiceServer::new(Service { opened });
        let serve = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(async move { drop(serve.await) });
        Self { address, streams }
    }

    /// The next stream that a client opens.
    pub(crate) async fn stream(&mut self) -> OpenStream {
        let next = tokio::time::timeout(PATIENCE, self.streams.recv()).await;
        next.expect("a stream in time").unwrap()
    }
}

struct Service {
    opened: mpsc::Sender<OpenStream>,
}

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = Responses<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Responses<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (responses, sent) = mpsc::channel(8);
        let stream = OpenStream {
            requests: request.into_inner(),
            responses,
        };
        let _ = self.opened.send(stream).await;
        Ok(Response::new(Box::pin(ReceiverStream::new(sent))))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("this one speaks state of the world"))
    }
}
