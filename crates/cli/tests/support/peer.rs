//! A client that does as a test says.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use trunkline_proto::envoy::google::rpc::Status;

use super::Server;

pub const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// A client on a delta stream.
pub struct Peer {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Peer {
    /// Connects, and subscribes to names of a type.
    pub async fn connect(server: &Server, node: &str, type_url: &str, names: &[&str]) -> Self {
        let url = format!("http://{}", server.listen);
        let mut ads = AggregatedDiscoveryServiceClient::connect(url)
            .await
            .unwrap();
        let (requests, stream) = mpsc::channel(8);
        let mut first = subscription(type_url, names);
        first.node = Some(Node {
            id: node.into(),
            ..Node::default()
        });
        requests.send(first).await.unwrap();
        let stream = ReceiverStream::new(stream);
        let responses = ads.delta_aggregated_resources(stream).await.unwrap();
        Self {
            requests,
            responses: responses.into_inner(),
        }
    }

    pub async fn subscribe(&self, type_url: &str, names: &[&str]) {
        let request = subscription(type_url, names);
        self.requests.send(request).await.unwrap();
    }

    pub async fn next(&mut self) -> DeltaDiscoveryResponse {
        self.responses.message().await.unwrap().unwrap()
    }

    /// Answers a response: an ACK, or a NACK with an error.
    pub async fn answer(&self, response: &DeltaDiscoveryResponse, error: Option<&str>) {
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail: error.map(|message| Status {
                code: 3,
                message: message.into(),
                ..Status::default()
            }),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).await.unwrap();
    }

    /// ACKs the next response.
    pub async fn accept(&mut self) -> DeltaDiscoveryResponse {
        let response = self.next().await;
        self.answer(&response, None).await;
        response
    }
}

fn subscription(type_url: &str, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: type_url.into(),
        resource_names_subscribe: names.iter().map(|&name| name.into()).collect(),
        ..DeltaDiscoveryRequest::default()
    }
}
