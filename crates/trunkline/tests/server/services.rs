//! The services beside discovery streams, on the same port.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use trunkline::{Change, Resource, Server, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::load_stats::v3::LoadStatsRequest;
use trunkline_proto::envoy::envoy::service::load_stats::v3::load_reporting_service_client::LoadReportingServiceClient;
use trunkline_proto::envoy::envoy::service::status::v3::ClientStatusRequest;
use trunkline_proto::envoy::envoy::service::status::v3::client_status_discovery_service_client::ClientStatusDiscoveryServiceClient;

use crate::support::{Delta, Fixture, build, fixture, put};

fn cluster(name: &str) -> Change {
    let message = Cluster {
        name: name.into(),
        ..Cluster::default()
    };
    let body = Bytes::from(message.encode_to_vec());
    Change::Upsert(kind::CDS.into(), Arc::new(Resource::new(name.into(), body)))
}

/// Polls by HTTP/1.1 and returns the status and the body.
pub(crate) async fn poll(fixture: &Fixture, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(fixture.address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: xds\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn s67_who_polls_gets_what_is_new() {
    let fixture = fixture(vec![cluster("a")]).await;
    let clusters = "/v3/discovery:clusters";
    let (code, body) = poll(&fixture, "POST", clusters, r#"{"node":{"id":"n"}}"#).await;
    assert_eq!(code, 200, "{body}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["resources"][0]["name"], "a");
    assert_eq!(body["resources"][0]["@type"], kind::CDS);

    let again = format!(
        r#"{{"node":{{"id":"n"}},"version_info":{}}}"#,
        body["version_info"]
    );
    assert_eq!(
        poll(&fixture, "POST", clusters, &again).await,
        (304, String::new())
    );
    fixture.server.apply(vec![cluster("b")]).unwrap();
    let (code, body) = poll(&fixture, "POST", clusters, &again).await;
    assert_eq!(code, 200);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["resources"].as_array().unwrap().len(), 2);

    let (code, body) = poll(&fixture, "POST", clusters, r#"{"type_url":"other"}"#).await;
    assert_eq!(code, 400, "{body}");
    assert_eq!(poll(&fixture, "GET", clusters, "").await.0, 405);
}

#[tokio::test]
async fn health_follows_the_server() {
    let fixture = build(Server::builder()).await;
    let mut client = HealthClient::new(fixture.channel.clone());
    let ads = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    for service in ["", ads] {
        let request = HealthCheckRequest {
            service: service.into(),
        };
        let status = client.check(request).await.unwrap().into_inner().status;
        assert_eq!(status, 1, "{service}");
    }
    let watched = client.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watched = watched.into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status, 1);
    let draining = tokio::spawn({
        let server = fixture.server.clone();
        async move { server.drain().await }
    });
    assert_eq!(watched.message().await.unwrap().unwrap().status, 2);
    draining.abort();
}

#[tokio::test]
async fn what_each_client_has_is_told_to_tools() {
    let fixture = fixture(vec![put("a", b"")]).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a", "none"]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    let mut client = ClientStatusDiscoveryServiceClient::new(fixture.channel.clone());
    // Until the ACK has arrived.
    loop {
        let request = ClientStatusRequest::default();
        let answer = client.fetch_client_status(request).await.unwrap();
        let config = &answer.into_inner().config[0];
        let states: Vec<(&str, i32)> = config
            .generic_xds_configs
            .iter()
            .map(|x| (&*x.name, x.client_status))
            .collect();
        if states == [("a", 3), ("none", 2)] {
            break;
        }
        assert!(states.len() == 2, "{states:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn load_is_reported_and_kept() {
    let fixture = fixture(vec![cluster("a")]).await;
    let mut client = LoadReportingServiceClient::new(fixture.channel.clone());
    let (requests, stream) = mpsc::channel(4);
    let first = LoadStatsRequest {
        node: Some(Node {
            id: "n".into(),
            ..Node::default()
        }),
        ..LoadStatsRequest::default()
    };
    requests.send(first).await.unwrap();
    let answer = client.stream_load_stats(ReceiverStream::new(stream)).await;
    let mut answers = answer.unwrap().into_inner();
    let asked = answers.message().await.unwrap().unwrap();
    // This client does not understand "all clusters".
    assert_eq!(asked.clusters, ["a"]);
    fixture.server.apply(vec![cluster("b")]).unwrap();
    let asked = answers.message().await.unwrap().unwrap();
    assert_eq!(asked.clusters, ["a", "b"]);
    assert_eq!(fixture.server.load().streams(), 1);
}
