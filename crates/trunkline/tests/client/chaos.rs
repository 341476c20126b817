//! Servers that restart, connections that break, updates that are rejected, at
//! random and over sockets: in the end each client holds what the server has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use trunkline::client::{Client, ClientBuilder, Query, Subscription};
use trunkline::core::sink::BackoffConfig;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::proto::acceptance::Policy;

use super::PATIENCE;
use super::gate::Gate;
use super::server::Serving;

/// Names, and their timeouts in seconds. A timeout of [`BAD`] makes a cluster
/// that the clients reject.
type Contents = BTreeMap<String, i64>;

const BAD: i64 = 13;
const NAMES: usize = 12;

/// How long to make trouble: some seconds in the gate, more by a variable.
fn time_of_trouble() -> Duration {
    let seconds = std::env::var("TRUNKLINE_CHAOS_SECONDS");
    let seconds = seconds.ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    Duration::from_secs(seconds)
}

fn random_contents(rng: &mut Rng, bad: bool) -> Contents {
    let names = (0..NAMES)
        .filter(|_| rng.u8(..) < 200)
        .map(|n| format!("c{n}"));
    let seconds = |rng: &mut Rng| match bad && rng.u8(..) < 40 {
        true => BAD,
        false => rng.i64(20..1000),
    };
    let names: Vec<_> = names.collect();
    names.into_iter().map(|name| (name, seconds(rng))).collect()
}

fn set(serving: &Serving, contents: &Contents) {
    let clusters: Vec<_> = contents
        .iter()
        .map(|(name, s)| (name.as_str(), *s))
        .collect();
    serving.set_eds(&clusters, BAD);
}

/// A client, and the subscriptions that it holds.
struct Watcher {
    client: Client,
    all: Option<Subscription<Cluster>>,
    named: Vec<Subscription<Cluster>>,
}

impl Watcher {
    fn start(gate: &Gate, wildcard: bool, adjust: fn(ClientBuilder) -> ClientBuilder) -> Self {
        let backoff = BackoffConfig {
            base: Duration::from_millis(20),
            max: Duration::from_millis(100),
            floor: Duration::from_millis(5),
        };
        let builder = Client::builder().server(&gate.address.to_string()).unwrap();
        let builder = builder.backoff(backoff).policy(Policy::grpc());
        let client = adjust(builder).build();
        let mut watcher = Self {
            client,
            all: None,
            named: Vec::new(),
        };
        match wildcard {
            true => watcher.all = Some(watcher.client.subscribe(Query::<Cluster>::all()).unwrap()),
            false => watcher.named = (0..NAMES).map(|n| watcher.subscribe(n)).collect(),
        }
        watcher
    }

    fn subscribe(&self, n: usize) -> Subscription<Cluster> {
        self.client.subscribe::<Cluster>(&format!("c{n}")).unwrap()
    }

    /// Drops a subscription and makes it again.
    fn waver(&mut self, rng: &mut Rng) {
        if !self.named.is_empty() {
            let n = rng.usize(..self.named.len());
            drop(self.named.remove(n));
            self.named.insert(n, self.subscribe(n));
        }
    }

    /// Whether the client holds what the server has. A server that restarted
    /// does not remove clusters for a while that its clients may use (S82), so
    /// more is right, too.
    fn is_right(&self, contents: &Contents) -> bool {
        let mut held = self.held();
        held.retain(|name, _| contents.contains_key(name));
        held == *contents
    }

    fn held(&self) -> Contents {
        let held = self.client.dump().into_iter().filter_map(|held| {
            let body = held.resources.first()?.body.clone()?;
            let cluster: Cluster = prost::Message::decode(body).unwrap();
            let timeout = cluster.connect_timeout.map_or(0, |timeout| timeout.seconds);
            Some((held.name.to_string(), timeout))
        });
        held.collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_any_trouble_a_client_holds_what_the_server_has() {
    let seed = std::env::var("TRUNKLINE_CHAOS_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("TRUNKLINE_CHAOS_SEED={seed}");
    let mut rng = Rng::with_seed(seed);

    let mut contents = random_contents(&mut rng, false);
    let mut serving = Serving::start();
    set(&serving, &contents);
    let gate = Gate::before(serving.address).await;
    let mut watchers = [
        Watcher::start(&gate, true, |builder| builder),
        Watcher::start(&gate, false, |builder| builder),
        Watcher::start(&gate, true, ClientBuilder::state_of_the_world),
        Watcher::start(&gate, false, ClientBuilder::state_of_the_world),
    ];

    let end = Instant::now() + time_of_trouble();
    let mut rounds = 0;
    while Instant::now() < end {
        rounds += 1;
        match rng.u8(..10) {
            0 => {
                drop(serving);
                serving = Serving::start_with(|serving| set(serving, &contents));
                gate.cut(serving.address);
            }
            1 => gate.cut(serving.address),
            2 => {
                gate.set_shut(true);
                tokio::time::sleep(Duration::from_millis(rng.u64(..300))).await;
                gate.set_shut(false);
            }
            3 => watchers
                .iter_mut()
                .for_each(|watcher| watcher.waver(&mut rng)),
            _ => {
                contents = random_contents(&mut rng, true);
                set(&serving, &contents);
            }
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(..40))).await;
    }

    contents = random_contents(&mut rng, false);
    set(&serving, &contents);
    let deadline = Instant::now() + PATIENCE;
    for (index, watcher) in watchers.iter().enumerate() {
        while !watcher.is_right(&contents) {
            assert!(
                Instant::now() < deadline,
                "seed {seed}, {rounds} rounds: watcher {index} holds {:?}, the server {contents:?}",
                watcher.held()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
