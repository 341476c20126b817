//! How a server ends its streams (S79).

use std::time::Duration;

use tonic::Code;
use trunkline::Server;

use crate::support::{Delta, PATIENCE, bodies, build, put};

#[tokio::test]
async fn s79_a_server_that_drains_goes_on_serving_until_each_stream_has_ended() {
    let fixture = build(Server::builder().options(|o| o.drain = Duration::from_secs(2))).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    // The last of these ends late enough to hear of a change meanwhile.
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = Delta::open(&fixture).await;
        stream.ask(&["a"]).await;
        let response = stream.next().await;
        stream.accept(&response).await;
        streams.push(stream);
    }
    let draining = tokio::spawn({
        let server = fixture.server.clone();
        async move { server.drain().await }
    });
    while !fixture.server.is_draining() {
        tokio::task::yield_now().await;
    }
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    let mut served = 0;
    for stream in &mut streams {
        let next = tokio::time::timeout(PATIENCE, stream.responses.message());
        match next.await.unwrap() {
            Ok(Some(response)) => {
                assert_eq!(bodies(&response), [("a", &b"2"[..])]);
                served += 1;
                assert_eq!(stream.end().await, Code::Unavailable);
            }
            Ok(None) => panic!("an end without a word"),
            Err(status) => assert_eq!(status.code(), Code::Unavailable),
        }
    }
    assert!(served >= 4, "{served} of 8 heard of the change");
    tokio::time::timeout(PATIENCE, draining)
        .await
        .unwrap()
        .unwrap();
    tokio::time::timeout(PATIENCE, fixture.serving)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn s79_a_connection_that_is_too_old_is_ended_in_order() {
    let builder = Server::builder().options(|o| {
        o.max_age = Some(Duration::from_millis(300));
        o.drain = Duration::from_millis(300);
    });
    let fixture = build(builder).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    assert_eq!(stream.end().await, Code::Unavailable);
    // The client reconnects by itself, on a new connection.
    let mut again = Delta::open(&fixture).await;
    again.ask(&["a"]).await;
    assert_eq!(bodies(&again.next().await), [("a", &b"1"[..])]);
}
