//! Servers that restart, connections that break, updates that are rejected, at
//! random and over sockets. Trouble comes in episodes; after each, every client
//! holds what the server has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use prost::Message as _;
use trunkline::ResourceMessage;
use trunkline::client::{Client, ClientBuilder, Held, Query, Subscription};
use trunkline::core::sink::BackoffConfig;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::listener::v3::Listener;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_connection_manager::RouteSpecifier, http_filter,
};
use trunkline::kind::{CDS, LDS};
use trunkline::proto::acceptance::Policy;
use trunkline::proto::envoy::envoy::extensions::filters::http::router::v3::Router;

use super::PATIENCE;
use super::gate::Gate;
use super::resources::{ads, any, api_listener, eds_cluster};
use super::server::{Serving, cluster};

/// Types and names, and their revisions. What has the revision [`BAD`] is
/// rejected by the clients.
type Contents = BTreeMap<(&'static str, String), i64>;

const BAD: i64 = 13;
const NAMES: usize = 12;

/// How long trouble lasts before it is quiet.
const EPISODE: Duration = Duration::from_secs(2);

/// How long to make trouble: some seconds in the gate, more by a variable.
fn time_of_trouble() -> Duration {
    let seconds = std::env::var("TRUNKLINE_CHAOS_SECONDS");
    let seconds = seconds.ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    Duration::from_secs(seconds)
}

fn random_contents(rng: &mut Rng, bad: bool) -> Contents {
    let mut contents = Contents::new();
    for url in [CDS, LDS] {
        for name in (0..NAMES).map(name) {
            let revision = match bad && rng.u8(..) < 40 {
                true => BAD,
                false => rng.i64(20..1000),
            };
            if rng.u8(..) < 200 {
                contents.insert((url, name), revision);
            }
        }
    }
    contents
}

fn name(n: usize) -> String {
    format!("n{n}")
}

/// A cluster, or a listener, of a revision. A bad cluster has a type that gRPC
/// does not know, a bad listener no router.
fn message((url, name): &(&str, String), revision: i64) -> ResourceMessage {
    if *url == CDS {
        let plain = cluster(name, revision);
        return ResourceMessage::of(&match revision {
            BAD => plain,
            _ => Cluster {
                connect_timeout: plain.connect_timeout,
                ..eds_cluster(name)
            },
        });
    }
    let router = HttpFilter {
        name: "router".into(),
        config_type: Some(http_filter::ConfigType::TypedConfig(
            any(&Router::default()),
        )),
        ..HttpFilter::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: revision.to_string(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            route_config_name: "routes".into(),
            config_source: Some(ads()),
        })),
        http_filters: Vec::from_iter((revision != BAD).then_some(router)),
        ..HttpConnectionManager::default()
    };
    ResourceMessage::of(&api_listener(name, &manager))
}

/// The revision of a resource that a client holds.
fn revision(held: &Held) -> Option<i64> {
    let body = held.resources.first()?.body.clone()?;
    if held.type_url.as_str() == CDS {
        return Some(Cluster::decode(body).ok()?.connect_timeout?.seconds);
    }
    let manager = Listener::decode(body).ok()?.api_listener?.api_listener?;
    let manager = HttpConnectionManager::decode(&manager.value[..]).ok()?;
    manager.stat_prefix.parse().ok()
}

fn set(serving: &Serving, contents: &Contents) {
    let messages = contents
        .iter()
        .map(|(key, revision)| message(key, *revision));
    serving.server.set("test", messages).unwrap();
}

/// A client, and the subscriptions that it holds.
struct Watcher {
    client: Client,
    all: Option<(Subscription<Cluster>, Subscription<Listener>)>,
    named: Vec<(Subscription<Cluster>, Subscription<Listener>)>,
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
            true => watcher.all = Some(watcher.subscribe(Query::all(), Query::all())),
            false => watcher.named = (0..NAMES).map(|n| watcher.subscribe_to(n)).collect(),
        }
        watcher
    }

    fn subscribe(
        &self,
        clusters: Query<Cluster>,
        listeners: Query<Listener>,
    ) -> (Subscription<Cluster>, Subscription<Listener>) {
        let clusters = self.client.subscribe(clusters).unwrap();
        (clusters, self.client.subscribe(listeners).unwrap())
    }

    fn subscribe_to(&self, n: usize) -> (Subscription<Cluster>, Subscription<Listener>) {
        let name = name(n);
        self.subscribe(Query::name(&name), Query::name(&name))
    }

    /// Drops subscriptions and makes them again.
    fn waver(&mut self, rng: &mut Rng) {
        if !self.named.is_empty() {
            let n = rng.usize(..self.named.len());
            drop(self.named.remove(n));
            self.named.insert(n, self.subscribe_to(n));
        }
    }

    /// What the client holds beside what the server has. A server that
    /// restarted keeps clusters for a while that its clients may use (S82), so
    /// clusters that it has not are no difference; listeners are.
    fn difference(&self, contents: &Contents) -> Option<String> {
        let held = self.client.dump().into_iter().filter_map(|held| {
            let url = [CDS, LDS]
                .into_iter()
                .find(|url| *url == held.type_url.as_str())?;
            Some(((url, held.name.to_string()), revision(&held)?))
        });
        let mut held: Contents = held.collect();
        held.retain(|key, _| key.0 == LDS || contents.contains_key(key));
        (held != *contents).then(|| format!("{held:?}"))
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
    let mut done = [0; 5];
    let mut episodes = 0;
    while Instant::now() < end {
        let end_of_episode = (Instant::now() + EPISODE).min(end);
        while Instant::now() < end_of_episode {
            let kind = rng.usize(..10).min(4);
            done[kind] += 1;
            match kind {
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

        episodes += 1;
        contents = random_contents(&mut rng, false);
        set(&serving, &contents);
        let deadline = Instant::now() + PATIENCE;
        for (index, watcher) in watchers.iter().enumerate() {
            while let Some(held) = watcher.difference(&contents) {
                assert!(
                    Instant::now() < deadline,
                    "seed {seed}, episode {episodes}: watcher {index} holds {held}, \
                     the server {contents:?}"
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    let [restarts, cuts, partitions, renewed, changes] = done;
    println!(
        "{episodes} episodes: {restarts} restarts, {cuts} cuts, {partitions} partitions, \
         {renewed} times other subscriptions, {changes} changes"
    );
}
