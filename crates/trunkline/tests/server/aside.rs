//! Long requests and streams with many names are handled aside (S85): in order
//! with what follows, and nothing stays of a stream that ends meanwhile.

use std::time::Duration;

use trunkline::status::Clients as _;
use trunkline::{Server, kind};
use trunkline_proto::envoy::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use crate::support::{Delta, Fixture, build};

/// More names than are decoded at once, of more than 256 KiB.
const MANY: usize = 20_000;

async fn fixture() -> Fixture {
    build(Server::builder()).await
}

fn long_request() -> DeltaDiscoveryRequest {
    let name = |nth: usize| format!("a-name-of-some-length-{nth}");
    DeltaDiscoveryRequest {
        type_url: kind::EDS.into(),
        resource_names_subscribe: (0..MANY).map(name).collect(),
        ..DeltaDiscoveryRequest::default()
    }
}

/// Waits until the database has no subscriptions and no types.
async fn wait_until_forgotten(fixture: &Fixture) {
    let is_forgotten = || {
        let server = &fixture.server;
        server.read(|db| db.missing_weight() == 0 && db.types().count() == 0)
    };
    for _ in 0..1000 {
        if is_forgotten() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("names or types of a stream that has ended are kept");
}

#[tokio::test]
async fn s85_a_long_request_is_handled_before_the_next_one() {
    let fixture = fixture().await;
    let mut stream = Delta::open(&fixture).await;
    stream.requests.send(long_request()).await.unwrap();
    let unsubscribe = DeltaDiscoveryRequest {
        type_url: kind::EDS.into(),
        resource_names_unsubscribe: long_request().resource_names_subscribe,
        resource_names_subscribe: vec!["last".into()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(unsubscribe).await.unwrap();
    loop {
        let response = stream.next().await;
        stream.accept(&response).await;
        if response.removed_resources.contains(&"last".to_owned()) {
            break;
        }
    }
    let clients = fixture.server.clients();
    assert_eq!(clients[0].types[0].subscriptions, 1);
}

#[tokio::test]
async fn s85_a_stream_that_leaves_with_many_names_is_forgotten() {
    let fixture = fixture().await;
    let mut stream = Delta::open(&fixture).await;
    stream.requests.send(long_request()).await.unwrap();
    let mut answered = 0;
    while answered < MANY {
        let response = stream.next().await;
        stream.accept(&response).await;
        answered += response.removed_resources.len();
    }
    drop(stream);
    wait_until_forgotten(&fixture).await;
    assert!(fixture.server.clients().is_empty());
}

#[tokio::test]
async fn s85_a_stream_that_ends_within_a_long_request_is_forgotten() {
    let fixture = fixture().await;
    let other = Delta::open(&fixture).await;
    other.ask(&["a"]).await;
    for _ in 0..3 {
        let stream = Delta::open(&fixture).await;
        stream.requests.send(long_request()).await.unwrap();
        tokio::task::yield_now().await;
        drop(stream);
    }
    drop(other);
    wait_until_forgotten(&fixture).await;
}
