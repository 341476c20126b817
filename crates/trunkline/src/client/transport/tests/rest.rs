//! Polls, against this library's own server and others.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_core::kind;
use trunkline_proto::discovery::DiscoveryRequest;

use super::peer::listen;
use crate::client::ControlPlane;
use crate::client::transport::rest::PollError;
use crate::client::transport::{Connector, StreamError, TransportOptions};

const SOON: Duration = Duration::from_secs(10);

fn connector(max_message: usize) -> Connector {
    Connector::new(TransportOptions {
        max_message,
        ..TransportOptions::default()
    })
}

fn request(version: &str, names: &[&str]) -> Bytes {
    let request = DiscoveryRequest {
        version_info: version.to_owned(),
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        type_url: kind::CDS.to_owned(),
        ..DiscoveryRequest::default()
    };
    request.encode_to_vec().into()
}

async fn poll(
    plane: &ControlPlane,
    request: Bytes,
    max_message: usize,
) -> Result<Option<Bytes>, PollError> {
    let connector = connector(max_message);
    connector
        .poll(plane, &kind::CDS.into(), request, SOON)
        .await
}

#[cfg(feature = "server")]
#[tokio::test]
async fn a_poll_is_answered_by_this_librarys_server() {
    use trunkline_proto::discovery::DiscoveryResponse;
    use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;

    let (listener, plane) = listen().await;
    let server = crate::Server::builder().build();
    let cluster = |name: &str| {
        crate::ResourceMessage::of(&Cluster {
            name: name.to_owned(),
            ..Cluster::default()
        })
    };
    server.set("test", [cluster("a"), cluster("b")]).unwrap();
    let serving = server.clone();
    tokio::spawn(async move { serving.serve(listener).await });

    let response = poll(&plane, request("", &[]), 1 << 20).await;
    let response = response.unwrap().unwrap();
    let response = DiscoveryResponse::decode(response).unwrap();
    assert_eq!(response.resources.len(), 2);
    assert_eq!(response.type_url, kind::CDS);
    // What is held is not sent again.
    let again = poll(&plane, request(&response.version_info, &[]), 1 << 20).await;
    assert_eq!(again.unwrap(), None);
    let error = poll(&plane, request("", &[]), 40).await.unwrap_err();
    assert!(matches!(error, PollError::TooLong { limit: 40 }), "{error}");
}

/// Answers each connection with a text.
async fn answering(text: &'static str) -> ControlPlane {
    let (listener, plane) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut some = [0; 64];
            socket.read_exact(&mut some).await.unwrap();
            socket.write_all(text.as_bytes()).await.unwrap();
            if text.is_empty() {
                tokio::time::sleep(SOON * 2).await;
            }
        }
    });
    plane
}

#[tokio::test]
async fn an_answer_that_is_no_response_is_said_so() {
    let poll = async |text| {
        let plane = answering(text).await;
        poll(&plane, request("", &[]), 1 << 20).await.unwrap_err()
    };
    let error = poll("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
    assert!(matches!(error, PollError::Http(404)), "{error}");
    let error = poll("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"resources\": [{7}]}").await;
    assert!(matches!(error, PollError::Text(_)), "{error}");
    let error = poll("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n").await;
    assert!(matches!(error, PollError::TooLong { .. }), "{error}");
    let error = poll("what?\r\n\r\n").await;
    assert!(
        matches!(error, PollError::Transport(StreamError::Lost(_))),
        "{error}"
    );
}

#[tokio::test]
async fn a_poll_has_a_timeout() {
    let plane = answering("").await;
    let after = Duration::from_millis(100);
    let connector = connector(1 << 20);
    let cds = kind::CDS.into();
    let polled = connector.poll(&plane, &cds, request("", &[]), after);
    let error = polled.await.unwrap_err();
    assert!(matches!(error, PollError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_type_that_is_not_polled_is_said_so() {
    let (_listener, plane) = listen().await;
    let vhds = kind::VHDS.into();
    let polled = connector(0).poll(&plane, &vhds, Bytes::new(), SOON).await;
    assert!(matches!(polled, Err(PollError::Type(_))));
}
