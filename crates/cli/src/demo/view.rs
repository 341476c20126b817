//! A client that prints its responses: delta ADS, over the wire.

use std::collections::HashSet;
use std::net::SocketAddr;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use trunkline::{TypeUrl, kind};
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};

use crate::kinds;

/// The id of its node.
pub(super) const NODE: &str = "demo-view";

/// The types that it subscribes to by wildcard.
const TYPES: [&str; 4] = [kind::LDS, kind::CDS, kind::RDS, kind::EDS];

/// A host that it subscribes to on demand.
const HOST: &str = "on-demand/shop.example";

/// Prints the responses of a server until the stream ends, and why it ended.
pub(super) async fn run(server: SocketAddr) {
    if let Err(error) = subscribe_and_print(server).await {
        println!("the client that is watched has lost the server: {error}");
    }
}

/// Subscribes to all of [`TYPES`] and to [`HOST`]. Prints and ACKs each
/// response until the server ends the stream.
async fn subscribe_and_print(
    server: SocketAddr,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let channel = Endpoint::from_shared(format!("http://{server}"))?
        .connect()
        .await?;

    // The channel has room for all first requests: they are sent before the
    // stream is open and reads them.
    let (requests, receiver) = mpsc::channel(TYPES.len() * 2);
    for type_url in TYPES {
        requests.send(first_request(type_url, "*")).await?;
    }
    requests.send(first_request(kind::VHDS, HOST)).await?;
    println!("  ? vhds {HOST:<28} {NODE} asks");

    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let mut responses = client
        .delta_aggregated_resources(ReceiverStream::new(receiver))
        .await?
        .into_inner();

    let mut held_resources = HashSet::new();
    while let Some(response) = responses.message().await? {
        print_response(&response, &mut held_resources);
        let ack = DeltaDiscoveryRequest {
            type_url: response.type_url,
            response_nonce: response.nonce,
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(ack).await?;
    }
    Ok(())
}

/// Makes the first request of a type, with the node: a subscription to a name
/// or to the wildcard.
fn first_request(type_url: &str, name: &str) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: NODE.to_owned(),
            cluster: "demo".to_owned(),
            user_agent_name: "trunkline demo".to_owned(),
            ..Node::default()
        }),
        type_url: type_url.to_owned(),
        resource_names_subscribe: vec![name.to_owned()],
        ..DeltaDiscoveryRequest::default()
    }
}

/// Prints a line for each resource of a response: new, changed or removed.
/// Updates `held_resources`, the type and name of each resource that the client has.
fn print_response(
    response: &DeltaDiscoveryResponse,
    held_resources: &mut HashSet<(String, String)>,
) {
    let type_url = TypeUrl::new(&response.type_url);
    let kind = kinds::short(&type_url);
    for resource in &response.resources {
        let key = (response.type_url.clone(), resource.name.clone());
        let sign = if held_resources.insert(key) { '+' } else { '~' };
        println!("  {sign} {kind} {:<16} {}", resource.name, resource.version);
    }
    for name in &response.removed_resources {
        // The removal of a name that the client never had is a negative answer.
        if held_resources.remove(&(response.type_url.clone(), name.clone())) {
            println!("  - {kind} {name}");
        }
    }
}
