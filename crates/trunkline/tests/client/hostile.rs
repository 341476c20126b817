//! A control plane that sends what it should not, or nothing at all.

use std::time::Duration;

use prost::Message as _;
use tonic::Status;
use trunkline::client::transport::TransportOptions;
use trunkline::client::{Cause, Client, ClientBuilder, State, Watch};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::kind::{CDS, EDS};
use trunkline::proto::envoy::google::protobuf::Any;

use super::next;
use super::scripted::{OpenStream, Scripted};
use super::server::cluster;

fn any(name: &str, seconds: i64) -> Any {
    Any {
        type_url: CDS.to_owned(),
        value: cluster(name, seconds).encode_to_vec(),
    }
}

/// A client of the script that watches `a` and `b`, and the stream that it
/// opened with its two requests read.
async fn watching(
    script: &mut Scripted,
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> (Client, Watch<Cluster>, Watch<Cluster>, OpenStream) {
    let builder = Client::builder()
        .server(&script.address.to_string())
        .unwrap();
    let client = adjust(builder.node_id("me").state_of_the_world()).build();
    let a = client.subscribe::<Cluster>("a").unwrap().watch();
    let b = client.subscribe::<Cluster>("b").unwrap().watch();
    let mut stream = script.stream().await;
    while stream.request().await.resource_names != ["a", "b"] {}
    (client, a, b, stream)
}

fn is_rejected(state: &State<Cluster>) -> bool {
    state
        .error()
        .is_some_and(|error| error.cause == Cause::Rejected)
}

#[tokio::test]
async fn c26_c27_what_cannot_be_decoded_costs_itself_alone() {
    let mut script = Scripted::start().await;
    let (_client, mut a, mut b, mut stream) = watching(&mut script, |b| b).await;
    stream.send("1", CDS, vec![any("a", 1), any("b", 1)]).await;
    next(&mut a).await;
    next(&mut b).await;
    let ack = stream.request().await;
    assert_eq!(
        (ack.version_info.as_str(), ack.response_nonce.as_str()),
        ("1", "1")
    );
    assert!(ack.error_detail.is_none());

    // The name can be read, and the rest is no cluster.
    let mut broken = any("a", 2);
    broken.value.extend_from_slice(b"\x0a\xff\xff\xff\xff\x01");
    stream.send("2", CDS, vec![broken, any("b", 2)]).await;
    let state = next(&mut b).await;
    assert_eq!(state.value().unwrap().connect_timeout.unwrap().seconds, 2);
    let nack = stream.request().await;
    assert_eq!(
        (nack.version_info.as_str(), nack.response_nonce.as_str()),
        ("1", "2")
    );
    let error = nack.error_detail.unwrap();
    assert_eq!(error.code, 3, "{error:?}");
    let state = a.state();
    assert_eq!(
        state.value().unwrap().connect_timeout.unwrap().seconds,
        1,
        "the last good one"
    );
}

#[tokio::test]
async fn a_resource_of_another_type_is_rejected() {
    let mut script = Scripted::start().await;
    let (_client, mut a, _b, mut stream) = watching(&mut script, |b| b).await;
    let mut other = any("a", 1);
    other.type_url = EDS.to_owned();
    stream.send("1", CDS, vec![other]).await;
    let nack = stream.request().await;
    assert!(nack.error_detail.is_some(), "{nack:?}");
    stream.send("2", CDS, vec![any("a", 2)]).await;
    loop {
        let state = next(&mut a).await;
        if state.value().is_some() {
            break;
        }
        assert!(is_rejected(&state), "{state:?}");
    }
}

#[tokio::test]
async fn e9_a_name_twice_rejects_the_response() {
    let mut script = Scripted::start().await;
    let (_client, a, _b, mut stream) = watching(&mut script, |b| b).await;
    stream.send("1", CDS, vec![any("a", 1), any("a", 2)]).await;
    let nack = stream.request().await;
    assert!(
        nack.error_detail
            .is_some_and(|error| error.message.contains('a'))
    );
    let mut a = a;
    assert!(a.state().value().is_none());
}

#[tokio::test]
async fn c20_a_type_that_nobody_asked_for_is_ignored() {
    let mut script = Scripted::start().await;
    let (_client, mut a, _b, mut stream) = watching(&mut script, |b| b).await;
    stream.send("1", EDS, Vec::new()).await;
    stream.send("2", CDS, vec![any("a", 1)]).await;
    assert!(next(&mut a).await.value().is_some());
    let request = stream.request().await;
    assert_eq!(request.type_url, CDS, "and gets no answer");
}

#[tokio::test]
async fn a_message_beyond_the_limit_ends_the_stream_and_nothing_else() {
    let mut script = Scripted::start().await;
    let small = TransportOptions {
        max_message: 64 << 10,
        ..TransportOptions::default()
    };
    let (_client, mut a, _b, stream) = watching(&mut script, |b| b.transport(small)).await;
    stream.send("1", CDS, vec![any("a", 1)]).await;
    assert!(next(&mut a).await.value().is_some());
    let huge = "x".repeat(100 << 10);
    stream.send("2", CDS, vec![any(&huge, 1)]).await;
    let mut again = script.stream().await;
    let request = again.request().await;
    assert_eq!(request.version_info, "1", "C19: the version is kept");
    assert!(a.state().value().is_some(), "and so is the resource");
}

#[tokio::test]
async fn c36_a_stream_without_a_response_is_an_error_for_everyone() {
    let mut script = Scripted::start().await;
    let (_client, mut a, mut b, stream) = watching(&mut script, |b| b).await;
    stream.fail(Status::permission_denied("who are you")).await;
    for watch in [&mut a, &mut b] {
        let state = next(watch).await;
        let State::Failed(error) = &state else {
            panic!("{state:?}");
        };
        assert_eq!(error.cause, Cause::Unreachable);
        assert!(error.message.contains("who are you"), "{error:?}");
    }
    let mut again = script.stream().await;
    again.request().await;
    again.send("1", CDS, vec![any("a", 1), any("b", 1)]).await;
    assert!(next(&mut a).await.value().is_some());
}

#[tokio::test]
async fn a_server_that_says_nothing_keeps_nobody_from_leaving() {
    let mut script = Scripted::start().await;
    let (client, a, b, _stream) = watching(&mut script, |b| b).await;
    assert!(client.dump().iter().all(|held| held.resources.is_empty()));
    drop((a, b, client));
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// A server that knows no more of a cluster than its name lists it like this, so
/// that the client keeps the one that it has.
#[tokio::test]
async fn s82_a_cluster_without_a_source_of_endpoints_leaves_the_one_before() {
    let mut script = Scripted::start().await;
    let (_client, mut a, mut b, mut stream) = watching(&mut script, |b| b).await;
    stream.send("1", CDS, vec![any("a", 1), any("b", 1)]).await;
    next(&mut a).await;
    next(&mut b).await;
    stream.request().await;
    let mut invalid = any("a", 2);
    invalid.value = b"\x0a\x01a\x10\x03".to_vec();
    stream.send("2", CDS, vec![invalid, any("b", 2)]).await;
    let state = next(&mut b).await;
    assert_eq!(state.value().unwrap().connect_timeout.unwrap().seconds, 2);
    let nack = stream.request().await;
    assert!(nack.error_detail.is_some(), "{nack:?}");
    let state = a.state();
    assert_eq!(state.value().unwrap().connect_timeout.unwrap().seconds, 1);
}
