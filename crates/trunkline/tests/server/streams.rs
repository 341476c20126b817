//! Responses on streams, and the end of streams.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use trunkline::{Change, Name, Resource, kind};
use trunkline_proto::envoy::envoy::service::cluster::v3::cluster_discovery_service_client::ClusterDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DiscoveryRequest,
};

use crate::support::{Delta, PATIENCE, bodies, fixture, put};

#[tokio::test]
async fn a_change_reaches_those_who_ask_for_it() {
    let fixture = fixture(vec![put("a", b"1"), put("b", b"1")]).await;
    let (mut first, mut second) = (Delta::open(&fixture).await, Delta::open(&fixture).await);
    first.ask(&["a"]).await;
    second.ask(&["b"]).await;
    let response = first.next().await;
    assert_eq!(bodies(&response), [("a", &b"1"[..])]);
    first.accept(&response).await;
    let response = second.next().await;
    second.accept(&response).await;

    fixture.server.apply(vec![put("b", b"2")]).unwrap();
    assert_eq!(bodies(&second.next().await), [("b", &b"2"[..])]);
    fixture.server.apply(vec![put("a", b"3")]).unwrap();
    // Neither its ACK nor the change of another name caused a response.
    assert_eq!(bodies(&first.next().await), [("a", &b"3"[..])]);
}

/// The revision grows by one with each transaction.
#[tokio::test]
async fn s68_the_control_plane_names_itself_and_the_revision_of_its_contents() {
    let fixture = fixture(vec![put("a", b"1")]).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    for revision in ["1", "2"] {
        let response = stream.next().await;
        assert_eq!(response.system_version_info, revision);
        let speaker = response.control_plane.as_ref().unwrap();
        assert_eq!(speaker.identifier, "under test");
        stream.accept(&response).await;
        fixture.server.apply(vec![put("a", b"2")]).unwrap();
    }
}

#[tokio::test]
async fn a_slow_peer_gets_the_newest_state_next() {
    let fixture = fixture(vec![put("a", b"1")]).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    let response = stream.next().await;
    for body in [b"2", b"3", b"4"] {
        fixture.server.apply(vec![put("a", body)]).unwrap();
    }
    stream.accept(&response).await;
    assert_eq!(bodies(&stream.next().await), [("a", &b"4"[..])]);
}

#[tokio::test]
async fn s3_a_request_without_a_type_ends_its_stream_and_no_other() {
    let mut fixture = fixture(vec![put("a", b"1")]).await;
    let mut good = Delta::open(&fixture).await;
    good.ask(&["a"]).await;
    let response = good.next().await;
    good.accept(&response).await;
    let mut bad = Delta::open(&fixture).await;
    bad.requests.send(Default::default()).await.unwrap();
    assert_eq!(bad.end().await, Code::InvalidArgument);
    assert_eq!(fixture.closed.recv().await, Some(1));
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    assert_eq!(bodies(&good.next().await), [("a", &b"2"[..])]);
}

#[tokio::test]
async fn a_stream_is_forgotten_whoever_ends_it() {
    let mut fixture = fixture(vec![put("a", b"1")]).await;
    let mut polite = Delta::open(&fixture).await;
    polite.ask(&["a"]).await;
    polite.next().await;
    drop(polite.requests);
    assert!(polite.responses.message().await.unwrap().is_none());
    assert_eq!(fixture.closed.recv().await, Some(0));

    let mut vanished = Delta::open(&fixture).await;
    vanished.ask(&["a"]).await;
    vanished.next().await;
    drop(vanished);
    assert_eq!(fixture.closed.recv().await, Some(1));
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let fixture = fixture(vec![put("a", b"1")]).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    stream.next().await;
    fixture.server.stop();
    assert_eq!(stream.end().await, Code::Unavailable);
    let ended = tokio::time::timeout(PATIENCE, fixture.serving).await;
    ended.expect("in time").unwrap();
}

/// On a stream of one type, requests need no type (S3).
#[tokio::test]
async fn s3_a_type_has_a_stream_of_its_own() {
    let resource = Resource::new(Name::new("c"), Bytes::from_static(b"\x0a\x01c"));
    let fixture = fixture(vec![Change::Upsert(kind::CDS.into(), Arc::new(resource))]).await;
    let mut clusters = ClusterDiscoveryServiceClient::new(fixture.channel.clone());
    let (requests, stream) = mpsc::channel(8);
    requests.send(DiscoveryRequest::default()).await.unwrap();
    let answer = clusters.stream_clusters(ReceiverStream::new(stream)).await;
    let response = answer.unwrap().into_inner().message().await.unwrap();
    let response = response.expect("a response");
    assert_eq!(response.type_url, kind::CDS);
    assert_eq!(response.resources.len(), 1);
}

#[tokio::test]
async fn what_is_not_served_is_said_to_be_so() {
    let fixture = fixture(Vec::new()).await;
    let mut clusters = ClusterDiscoveryServiceClient::new(fixture.channel.clone());
    let answer = clusters.fetch_clusters(DiscoveryRequest::default()).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
}

/// What a reconnecting Envoy sends may pass the usual limit of four megabytes.
#[tokio::test]
async fn s80_a_request_may_be_large() {
    let fixture = fixture(Vec::new()).await;
    let mut stream = Delta::open(&fixture).await;
    let names: Vec<String> = (0..50_000).map(|n| format!("{n:0>100}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stream.ask(&names).await;
    // They do not exist, and the client is told so.
    let mut gone = 0;
    while gone < names.len() {
        let response = stream.next().await;
        gone += response.removed_resources.len();
        stream.accept(&response).await;
    }
    assert_eq!(gone, names.len());
}

/// The names of a client that resumes are evaluated in slices: a push follows
/// although nothing else happens.
#[tokio::test]
async fn s85_a_stream_that_resumes_much_is_told_what_is_new_behind_it() {
    let names: Vec<String> = (0..5000).map(|n| format!("{n:04}")).collect();
    let fixture = fixture(names.iter().map(|name| put(name, b"1")).collect()).await;
    let version = Resource::new(Name::new("0000"), b"1"[..].into()).version;
    let held = names[..4999].iter();
    let mut stream = Delta::open(&fixture).await;
    let request = DeltaDiscoveryRequest {
        type_url: kind::EDS.into(),
        resource_names_subscribe: names.clone(),
        initial_resource_versions: held.map(|n| (n.clone(), version.to_string())).collect(),
        ..Default::default()
    };
    stream.requests.send(request).await.unwrap();
    assert_eq!(bodies(&stream.next().await), [("4999", &b"1"[..])]);
}
