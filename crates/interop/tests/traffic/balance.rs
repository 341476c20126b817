//! Endpoints, chosen by Envoy and here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::connection_manager::{ConnectionManager, Routes};
use trunkline_traffic::route::Context;
use trunkline_traffic::{Request, Runtime};

use super::client::Connection;
use super::ours::received;
use super::requests::{RandomRequest, keyed, plain};
use super::seen::{Body, Seen};
use super::typed;

/// Requests to a cluster that chooses in turn or at random.
const SAMPLE: u32 = 200;

/// How many more are made here, so that sampling is the other side's.
const MORE: u32 = 20;

/// A cluster as this crate has it.
pub(crate) struct Ours {
    manager: ConnectionManager,
    balancer: Balancer,
}

impl Ours {
    pub(crate) fn new(manager: &Value, cluster: &Value, seed: u64) -> Self {
        let of =
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
        let cluster: Cluster = typed("envoy.config.cluster.v3.Cluster", cluster);
        let assignment = cluster.load_assignment.clone().unwrap_or_default();
        let hosts = HostSets::read(&assignment, Duration::ZERO).expect("endpoints");
        let policy = Arc::new(Policy::compile(&cluster).expect("a policy"));
        Self {
            manager: ConnectionManager::compile(&typed(of, manager)).expect("a manager"),
            balancer: Balancer::new(policy, &hosts, None, seed, Duration::ZERO),
        }
    }

    /// Returns the address of the endpoint; empty if there is none.
    fn pick(&mut self, sent: &RandomRequest, random: &mut Rng) -> String {
        let hash = received(&self.manager, sent, |request| {
            let request = request.unwrap_or_else(|seen| panic!("{seen:?}"));
            hash(&self.manager, request)
        });
        let context = PickContext {
            hash,
            ..PickContext::default()
        };
        let host = self.balancer.pick(&context, &mut || random.u64(..));
        let address = host.map(|host| host.address().to_owned());
        let address = address.unwrap_or_default();
        address.split(':').next().unwrap_or_default().to_owned()
    }
}

fn hash(manager: &ConnectionManager, request: &Request<'_>) -> Option<u64> {
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: Some([127, 0, 0, 1].into()),
    };
    let Routes::Table(table) = manager.routes() else {
        panic!("a table");
    };
    let found = table.find(request, &context).expect("a route");
    found.forward(request, &context).expect("a cluster").hash
}

fn address(seen: &Seen) -> String {
    match &seen.body {
        Body::Upstream(upstream) => upstream.address.clone(),
        Body::Text(_) => String::new(),
    }
}

/// Puts keys to both, and returns those whose endpoints differ.
pub(crate) fn compare_keys(
    client: &mut Connection,
    ours: &mut Ours,
    cluster: &str,
    count: usize,
    random: &mut Rng,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for _ in 0..count {
        let request = keyed(random, cluster);
        let theirs = address(&client.send(&request));
        let here = ours.pick(&request, random);
        if theirs != here {
            wrong.push(format!("{request:?}\n  Envoy {theirs}\n  here  {here}"));
        }
    }
    wrong
}

/// Counts the endpoints of many requests on both sides, and returns those whose
/// shares differ by more than sampling explains.
pub(crate) fn compare_shares(
    client: &mut Connection,
    ours: &mut Ours,
    cluster: &str,
    random: &mut Rng,
) -> Vec<String> {
    let request = plain(cluster);
    let mut counts: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for _ in 0..SAMPLE {
        counts.entry(address(&client.send(&request))).or_default()[0] += 1;
    }
    for _ in 0..SAMPLE * MORE {
        counts.entry(ours.pick(&request, random)).or_default()[1] += 1;
    }
    let differing = counts.iter().filter_map(|(address, [theirs, here])| {
        let (a, b) = (share(*theirs, SAMPLE), share(*here, SAMPLE * MORE));
        let mean = f64::from(theirs + here) / f64::from(SAMPLE * (MORE + 1));
        let samples = 1.0 / f64::from(SAMPLE) + 1.0 / f64::from(SAMPLE * MORE);
        // Five standard deviations are never seen by chance.
        let most = 5.0 * (mean * (1.0 - mean) * samples).sqrt();
        let differs = (a - b).abs() > most + 1e-9;
        differs.then(|| format!("{cluster} {address}: Envoy {a:.3}, here {b:.3}"))
    });
    differing.collect()
}

fn share(count: u32, of: u32) -> f64 {
    f64::from(count) / f64::from(of)
}
