//! Resources over streams of both protocols.

use trunkline::client::{Cause, Client, ClientBuilder, ClientEvent, Observer, Query, State};
use trunkline::envoy::config::cluster::v3::Cluster;

use super::next;
use super::server::Serving;

fn both(serving: &Serving) -> [Client; 2] {
    let of = |adjust: fn(ClientBuilder) -> ClientBuilder| {
        let builder = Client::builder()
            .server(&serving.address.to_string())
            .unwrap();
        adjust(builder.node_id("me")).build()
    };
    [of(|builder| builder), of(ClientBuilder::state_of_the_world)]
}

fn timeout(state: &State<Cluster>) -> Option<i64> {
    state
        .value()?
        .connect_timeout
        .map(|timeout| timeout.seconds)
}

#[tokio::test]
async fn a_resource_comes_changes_and_goes() {
    let serving = Serving::start();
    serving.set(&[("a", 1), ("b", 1)]);
    for client in both(&serving) {
        serving.set(&[("a", 1), ("b", 1)]);
        let subscription = client.subscribe::<Cluster>("a").unwrap();
        let mut watch = subscription.watch();
        let mut other = client.watch::<Cluster>("a");
        let state = next(&mut watch).await;
        assert_eq!(timeout(&state), Some(1), "{state:?}");
        assert_eq!(timeout(&next(&mut other).await), Some(1));

        serving.set(&[("a", 2), ("b", 1)]);
        assert_eq!(timeout(&next(&mut watch).await), Some(2));
        serving.set(&[("b", 1)]);
        let gone = next(&mut watch).await;
        assert!(
            matches!(&gone, State::Failed(error) if error.cause == Cause::Deleted),
            "{gone:?}"
        );
    }
}

#[tokio::test]
async fn a_client_comes_back_to_a_server_that_restarted() {
    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let client = Client::builder()
        .server(&serving.address.to_string())
        .unwrap()
        .build();
    let subscription = client.subscribe::<Cluster>("a").unwrap();
    let mut watch = subscription.watch();
    assert_eq!(timeout(&next(&mut watch).await), Some(1));

    let address = serving.address;
    drop(serving);
    let serving = Serving::start_at(&address.to_string());
    serving.set(&[("a", 2)]);
    loop {
        let state = next(&mut watch).await;
        assert!(state.value().is_some(), "what is cached stays: {state:?}");
        if timeout(&state) == Some(2) {
            break;
        }
    }
}

#[tokio::test]
async fn a_wildcard_brings_all_and_is_complete() {
    let serving = Serving::start();
    serving.set(&[("a", 1), ("b", 1), ("c", 1)]);
    let client = Client::builder()
        .server(&serving.address.to_string())
        .unwrap()
        .build();
    let subscription = client.subscribe(Query::<Cluster>::all()).unwrap();
    let mut watch = subscription.watch_many();
    let mut names = Vec::new();
    while names.len() < 3 {
        let changes = tokio::time::timeout(super::PATIENCE, watch.changed())
            .await
            .unwrap();
        names.extend(changes.into_iter().map(|(name, _)| name.to_string()));
    }
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn c49_a_wildcard_hears_that_no_server_is_reached() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let client = Client::builder().server(&address).unwrap().build();
    let subscription = client.subscribe(Query::<Cluster>::all()).unwrap();
    let answered = tokio::time::timeout(super::PATIENCE, subscription.answered());
    let error = answered.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Unreachable);

    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let address = serving.address.to_string();
    let client = Client::builder().server(&address).unwrap().build();
    let subscription = client.subscribe(Query::<Cluster>::all()).unwrap();
    let answered = tokio::time::timeout(super::PATIENCE, subscription.answered());
    assert_eq!(answered.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_type_that_is_known_can_be_watched_as_bytes() {
    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let client = Client::builder()
        .server(&serving.address.to_string())
        .unwrap()
        .build();
    let query = Query::raw(trunkline::kind::CDS, "a").unwrap();
    let mut raw = client.subscribe(query).unwrap().watch();
    let mut typed = client.subscribe::<Cluster>("a").unwrap().watch();
    let state = next(&mut raw).await;
    assert_eq!(
        state.value().unwrap().body(),
        prost::Message::encode_to_vec(&super::server::cluster("a", 1))
    );
    assert_eq!(timeout(&next(&mut typed).await), Some(1));
}

/// Counts the messages of each stream.
#[derive(Default)]
struct Streams(std::sync::Mutex<Vec<(u64, &'static str)>>);

impl Observer for Streams {
    fn observe(&self, event: &ClientEvent<'_>) {
        let (stream, what) = match event {
            ClientEvent::Connected(stream) => (stream, "opened"),
            ClientEvent::Sent(stream, _) => (stream, "sent"),
            ClientEvent::Received(stream, _) => (stream, "received"),
            _ => return,
        };
        assert!(stream.path.ends_with("/DeltaAggregatedResources"));
        self.0.lock().unwrap().push((stream.number, what));
    }
}

#[tokio::test]
async fn an_observer_tells_streams_apart() {
    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let streams = std::sync::Arc::<Streams>::default();
    let client = Client::builder()
        .server(&serving.address.to_string())
        .unwrap()
        .observer(streams.clone())
        .build();
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    next(&mut watch).await;
    let seen = streams.0.lock().unwrap().clone();
    assert_eq!(seen[..3], [(1, "opened"), (1, "sent"), (1, "received")]);
}
