//! What a client shares, and what it keeps apart: names by authority, and
//! clients from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline::client::{Bootstrap, Client, ClientEvent, Observer, State};
use trunkline::envoy::config::cluster::v3::Cluster;

use super::next;
use super::server::Serving;

/// A bootstrap with one server for plain names, and one for the authority `x`.
fn bootstrap(plain: &Serving, of_x: &Serving) -> Bootstrap {
    let servers = |serving: &Serving| {
        format!(
            r#"[{{"server_uri": "{}", "channel_creds": [{{"type": "insecure"}}]}}]"#,
            serving.address
        )
    };
    let text = format!(
        r#"{{"xds_servers": {}, "authorities": {{"x": {{"xds_servers": {}}}}}}}"#,
        servers(plain),
        servers(of_x)
    );
    Bootstrap::from_grpc("b.json", &text).unwrap()
}

fn timeout(state: &State<Cluster>) -> Option<i64> {
    let timeout = state.value()?.connect_timeout?;
    Some(timeout.seconds)
}

/// Counts streams.
#[derive(Default)]
struct Streams(AtomicUsize);

impl Observer for Streams {
    fn observe(&self, event: &ClientEvent<'_>) {
        if let ClientEvent::Connected(_) = event {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn c10_names_of_an_authority_are_its_own() {
    const OF_X: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/a";
    let (plain, of_x) = (Serving::start(), Serving::start());
    // Each server has both names.
    plain.set(&[("a", 1), (OF_X, 2)]);
    of_x.set(&[("a", 3), (OF_X, 4)]);
    let client = Client::builder()
        .bootstrap(bootstrap(&plain, &of_x))
        .build();
    let mut a = client.subscribe::<Cluster>("a").unwrap().watch();
    let mut x = client.subscribe::<Cluster>(OF_X).unwrap().watch();
    assert_eq!(timeout(&next(&mut a).await), Some(1));
    assert_eq!(timeout(&next(&mut x).await), Some(4));

    // What one server does to a name is nothing to the other's.
    plain.set(&[("a", 5)]);
    assert_eq!(timeout(&next(&mut a).await), Some(5));
    of_x.set(&[(OF_X, 6)]);
    assert_eq!(timeout(&next(&mut x).await), Some(6));
}

#[tokio::test]
async fn c50_clones_share_a_client_and_clients_share_nothing() {
    let serving = Serving::start();
    serving.set(&[("a", 1), ("b", 1)]);
    let streams = [Arc::<Streams>::default(), Arc::<Streams>::default()];
    let clients = streams.clone().map(|streams| {
        let builder = Client::builder().server(&serving.address.to_string());
        builder.unwrap().observer(streams).build()
    });
    let opened = || streams.each_ref().map(|of| of.0.load(Ordering::Relaxed));

    // One client for each target is one per call of `build`.
    let [one, two] = &clients;
    let mut a = one.subscribe::<Cluster>("a").unwrap().watch();
    let mut b = one.clone().subscribe::<Cluster>("b").unwrap().watch();
    assert_eq!(timeout(&next(&mut a).await), Some(1));
    assert_eq!(timeout(&next(&mut b).await), Some(1));
    assert_eq!(opened(), [1, 0]);
    let mut other = two.subscribe::<Cluster>("a").unwrap().watch();
    assert_eq!(timeout(&next(&mut other).await), Some(1));
    assert_eq!(opened(), [1, 1]);

    // The end of one is nothing to the other.
    drop((a, b));
    drop(clients.into_iter().next());
    serving.set(&[("a", 2)]);
    assert_eq!(timeout(&next(&mut other).await), Some(2));
}
