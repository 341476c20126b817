//! The log of requests and responses in state of the world.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::{CLUSTER, Server, good, until};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::DiscoveryRequest;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Returns the line with this number of those with a message.
fn line(server: &Server, message: &str, number: usize) -> Value {
    until(message, || {
        let log = server.running.log().into_iter();
        log.filter(|line| line["message"] == message).nth(number)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_set_leaves_out_is_logged_as_removed() {
    let server = Server::start(&["--log-level", "debug"]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let other = CLUSTER.replace("backend", "other");
    good(&server.ask_with(&["apply", "-f", "-"], &other));

    let url = format!("http://{}", server.listen);
    let mut ads = AggregatedDiscoveryServiceClient::connect(url)
        .await
        .unwrap();
    let (requests, stream) = mpsc::channel(8);
    let first = DiscoveryRequest {
        node: Some(Node {
            id: "node-1".into(),
            ..Node::default()
        }),
        type_url: CDS.into(),
        ..DiscoveryRequest::default()
    };
    requests.send(first).await.unwrap();
    let stream = ReceiverStream::new(stream);
    let mut responses = ads
        .stream_aggregated_resources(stream)
        .await
        .unwrap()
        .into_inner();
    let response = responses.message().await.unwrap().unwrap();
    let sent = line(&server, "a response goes out", 0);
    assert_eq!(sent["names"], r#"["backend", "other"]"#);
    assert_eq!(
        (&sent["removed"], &sent["more_removed"]),
        (&"[]".into(), &0.into())
    );
    let ack = DiscoveryRequest {
        type_url: CDS.into(),
        version_info: response.version_info.clone(),
        response_nonce: response.nonce.clone(),
        ..DiscoveryRequest::default()
    };
    requests.send(ack).await.unwrap();
    let request = line(&server, "a request arrives", 1);
    assert_eq!(request["version"], response.version_info);
    assert_eq!(request["nonce"], response.nonce);

    good(&server.ask(&["delete", "cds", "other"]));
    let response = responses.message().await.unwrap().unwrap();
    assert_eq!(response.resources.len(), 1);
    let sent = line(&server, "a response goes out", 1);
    assert_eq!(sent["names"], r#"["backend"]"#);
    assert_eq!(sent["removed"], r#"["other"]"#);
}
