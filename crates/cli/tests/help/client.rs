//! A client of the server: it accepts one response, rejects the next, and so on.

use std::net::SocketAddr;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::google::rpc::Status;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A client that is connected until it is dropped.
pub(crate) struct Client(JoinHandle<()>);

impl Client {
    /// Connects a client with a node id. Returns when it has got a response.
    pub(crate) async fn connect(server: SocketAddr, node: &str) -> Self {
        let mut ads = AggregatedDiscoveryServiceClient::connect(format!("http://{server}"))
            .await
            .unwrap();
        let (requests, stream) = mpsc::channel(8);
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: node.to_owned(),
                ..Node::default()
            }),
            type_url: CDS.into(),
            resource_names_subscribe: vec!["*".into()],
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).await.unwrap();
        let stream = ReceiverStream::new(stream);
        let responses = ads.delta_aggregated_resources(stream).await.unwrap();
        let mut responses = responses.into_inner();
        let mut next = responses.message().await.unwrap();
        Self(tokio::spawn(async move {
            let mut rejects = false;
            while let Some(response) = next {
                let error = rejects.then(|| Status {
                    code: 3,
                    message: "rejected by a test".into(),
                    ..Status::default()
                });
                rejects = !rejects;
                let answer = DeltaDiscoveryRequest {
                    type_url: CDS.into(),
                    response_nonce: response.nonce,
                    error_detail: error,
                    ..DeltaDiscoveryRequest::default()
                };
                if requests.send(answer).await.is_err() {
                    return;
                }
                next = responses.message().await.unwrap_or_default();
            }
        }))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.abort();
    }
}
