//! Random configurations and requests, put to a real Envoy and to
//! `trunkline-traffic`: both give the same responses, the backends see the same
//! requests, a key gets the same endpoint, and endpoints the same shares.
//!
//! `TRAFFIC_REQUESTS` says how many requests are put to it, some hundred without
//! it; `TRAFFIC_SEED` is the first seed. One Envoy has everything of a seed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "traffic/backends.rs"]
mod backends;
#[path = "traffic/balance.rs"]
mod balance;
#[path = "traffic/client.rs"]
mod client;
#[path = "traffic/clusters.rs"]
mod clusters;
#[path = "traffic/forward.rs"]
mod forward;
#[path = "traffic/ours.rs"]
mod ours;
#[path = "traffic/random.rs"]
mod random;
#[path = "traffic/requests.rs"]
mod requests;
#[path = "traffic/seen.rs"]
mod seen;
#[path = "traffic/words.rs"]
mod words;

use client::Connection;
use interop::Envoy;
use prost::Message;
use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::connection_manager::ConnectionManager;

const MANAGER: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Requests of one seed: to random routes, and to each cluster that hashes.
const ROUTED: usize = 380;
const KEYED: usize = 30;

/// Clusters of one seed that hash, and that do not.
const HASHED: usize = 4;
const SPREAD: usize = 2;

#[test]
fn random_requests_are_answered_as_by_envoy() {
    let number = |name: &str| -> Option<usize> { std::env::var(name).ok()?.parse().ok() };
    let seeds = match number("TRAFFIC_REQUESTS") {
        Some(count) => count.div_ceil(ROUTED + HASHED * KEYED),
        None => 1,
    };
    let first = number("TRAFFIC_SEED").unwrap_or(0);
    let port = backends::start();
    for seed in first..first + seeds {
        World::new(seed as u64, port).compare();
    }
}

/// Everything of one seed.
struct World {
    seed: u64,
    random: fastrand::Rng,
    manager: Value,
    balancing: Value,
    clusters: Vec<Value>,
    envoy: Envoy,
}

impl World {
    fn new(seed: u64, port: u16) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let manager = random::manager(&mut random);
        let balancing = clusters::manager(&mut random);
        let mut all: Vec<Value> = (1..)
            .zip(ours::CLUSTERS)
            .map(|(last, name)| clusters::single(name, last, port))
            .collect();
        for index in 0..HASHED {
            all.push(clusters::hashed(&mut random, &format!("h{index}"), port));
        }
        for index in 0..SPREAD {
            all.push(clusters::spread(&mut random, &format!("s{index}"), port));
        }
        let listeners = [
            listener("routes", &manager),
            listener("balancing", &balancing),
        ];
        let bootstrap = json!({
            "admin": {"address": any_port()},
            "static_resources": {"listeners": listeners, "clusters": all},
        });
        Self {
            seed,
            random,
            manager,
            balancing,
            clusters: all,
            envoy: Envoy::start(&bootstrap.to_string()),
        }
    }

    fn compare(mut self) {
        let mut wrong = self.compare_routes();
        let count = wrong.len();
        wrong.truncate(5);
        let shown = wrong.join("\n");
        let (seed, manager) = (self.seed, &self.manager);
        assert_eq!(count, 0, "seed {seed}:\n{shown}\nmanager: {manager}");
        for (index, cluster) in self
            .clusters
            .clone()
            .iter()
            .enumerate()
            .skip(ours::CLUSTERS.len())
        {
            let wrong = self.compare_endpoints(cluster, index);
            let (shown, manager) = (wrong.join("\n"), &self.balancing);
            assert!(
                wrong.is_empty(),
                "seed {seed}:\n{shown}\ncluster: {cluster}\nmanager: {manager}"
            );
        }
    }

    fn compare_routes(&mut self) -> Vec<String> {
        let message: HttpConnectionManager = typed(MANAGER, &self.manager);
        let ours = ConnectionManager::compile(&message).unwrap();
        let listener = self.envoy.listener("routes").expect("a listener");
        let mut client = Connection::new(listener);
        let mut wrong = Vec::new();
        for _ in 0..ROUTED {
            let request = requests::request(&mut self.random);
            let theirs = client.send(&request);
            let here = ours::decide(&ours, &request);
            if theirs != here {
                wrong.push(format!("{request:?}\n  Envoy {theirs:?}\n  here  {here:?}"));
            }
        }
        wrong
    }

    fn compare_endpoints(&mut self, cluster: &Value, index: usize) -> Vec<String> {
        let listener = self.envoy.listener("balancing").expect("a listener");
        let mut client = Connection::new(listener);
        let mut ours = balance::Ours::new(&self.balancing, cluster, self.seed);
        let name = cluster["name"].as_str().unwrap();
        match index < ours::CLUSTERS.len() + HASHED {
            true => balance::compare_keys(&mut client, &mut ours, name, KEYED, &mut self.random),
            false => balance::compare_shares(&mut client, &mut ours, name, &mut self.random),
        }
    }
}

/// Reads a message that is written as JSON.
fn typed<M: Message + Default>(of: &str, json: &Value) -> M {
    let text = json.to_string();
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    M::decode(&*read.unwrap().message.encode_to_vec()).unwrap()
}

fn any_port() -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}})
}

fn listener(name: &str, manager: &Value) -> Value {
    let mut config = manager.clone();
    config["@type"] = format!("type.googleapis.com/{MANAGER}").into();
    json!({
        "name": name,
        "address": any_port(),
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": config,
        }]}],
    })
}
