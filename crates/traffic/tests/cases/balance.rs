//! `lb.json`: policies, hash keys, priorities, panic, localities, subsets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_traffic::balance::{Balancer, HostSets, LocalCluster, Locality, PickContext, Policy};
use trunkline_traffic::connection_manager::{ConnectionManager, Routes};
use trunkline_traffic::headers::Headers;
use trunkline_traffic::route::Context;
use trunkline_traffic::{Request, Runtime};

use crate::data::{Recorded, connection_manager, header, list, message, text};
use crate::sampling;

/// Cases that are decided by another machine, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("od3:", "outlier detection ejects between the requests"),
    ("cb", "circuit breakers refuse before an endpoint is chosen"),
];

#[test]
fn endpoints_are_those_of_envoy() {
    let recorded = Recorded::read(include_str!("../data/lb.json"));
    let mut failed = Vec::new();
    let (mut passed, mut elsewhere) = (0, 0);
    for (group, case) in recorded.cases() {
        let name = text(&case["name"]);
        if ELSEWHERE.iter().any(|(start, _)| name.starts_with(start)) {
            elsewhere += 1;
            continue;
        }
        match World::new(&recorded, group, case).difference(case) {
            None => passed += 1,
            Some(wrong) => failed.push(format!("{name}: {wrong}")),
        }
    }
    assert!(failed.is_empty(), "{passed} passed\n{}", failed.join("\n"));
    assert_eq!((passed, elsewhere), (54, 6));
}

struct World {
    manager: ConnectionManager,
    policy: Arc<Policy>,
    hosts: HostSets,
    local: LocalCluster,
}

fn hosts_of(cluster: &Cluster) -> HostSets {
    let assignment = cluster.load_assignment.clone().unwrap_or_default();
    HostSets::read(&assignment, Duration::ZERO).expect("endpoints")
}

impl World {
    fn new(recorded: &Recorded, group: &Value, case: &Value) -> Self {
        let cluster = |name: &str| {
            let mut clusters = list(&recorded.head()["clusters"]).iter();
            let found = clusters.find(|cluster| text(&cluster["name"]) == name);
            let json = found.expect("a cluster");
            message::<Cluster>("envoy.config.cluster.v3.Cluster", json)
        };
        let own = cluster(header(&case["h"], "x-c").expect("the name of a cluster"));
        Self {
            manager: ConnectionManager::compile(&connection_manager(group)).expect("a manager"),
            policy: Arc::new(Policy::compile(&own).expect("a policy")),
            hosts: hosts_of(&own),
            local: LocalCluster {
                hosts: hosts_of(&cluster("local")),
                locality: Locality {
                    zone: "z0".to_owned(),
                    ..Locality::default()
                },
            },
        }
    }

    fn difference(&self, case: &Value) -> Option<String> {
        let out = &case["out"];
        let times = case["reps"].as_u64().expect("a number of requests");
        if case["exact"].is_u64() {
            let ours = self.sequence(case, times, 1).join(" ");
            return (ours != text(&out["seq"])).then_some(ours);
        }
        if case["seq"].is_u64() {
            // The order is Envoy's for some start of the worker.
            let recorded = text(&out["seq"]);
            let is_seen = (0..2_000).any(|seed| {
                let ours = self.sequence(case, times, seed).join(" ");
                ours.starts_with(recorded)
            });
            return (!is_seen).then(|| "the order is never seen".to_owned());
        }
        let mut counts = BTreeMap::new();
        for up in self.sequence(case, times * 10, 0) {
            let key = match (text(&case["count_by"]), up.as_str()) {
                ("none", "503") => "503".to_owned(),
                ("none", _) => "200".to_owned(),
                _ => up,
            };
            *counts.entry(key).or_default() += 1;
        }
        sampling::differences(&out["count"], &counts)
    }

    /// The endpoints of so many requests, one after the other.
    fn sequence(&self, case: &Value, times: u64, seed: u64) -> Vec<String> {
        let policy = Arc::clone(&self.policy);
        let mut balancer =
            Balancer::new(policy, &self.hosts, Some(&self.local), seed, Duration::ZERO);
        let mut random = fastrand::Rng::with_seed(seed);
        (0..times)
            .map(|index| self.request(case, index, &mut balancer, &mut random))
            .collect()
    }

    fn request(
        &self,
        case: &Value,
        index: u64,
        balancer: &mut Balancer,
        random: &mut fastrand::Rng,
    ) -> String {
        let headers: Headers = list(&case["h"])
            .iter()
            .map(|pair| {
                let value = text(&pair[1]).replace("{i}", &index.to_string());
                (text(&pair[0]).to_owned(), value)
            })
            .collect();
        let request = Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path: case["p"].as_str().unwrap_or("/"),
            headers: &headers,
        };
        let runtime = Runtime::default();
        let context = Context {
            random: random.u64(..),
            runtime: &runtime,
            peer: None,
        };
        let Routes::Table(table) = self.manager.routes() else {
            panic!("a table");
        };
        let found = table.find(&request, &context).expect("a route");
        let forward = found.forward(&request, &context).expect("a cluster");
        let mut draw = || random.u64(..);
        if self.hosts.drops().decide(&mut draw).is_some() {
            return "503".to_owned();
        }
        let pick = PickContext {
            hash: forward.hash,
            metadata: forward.metadata,
            ..PickContext::default()
        };
        let host = balancer.pick(&pick, &mut draw);
        host.map_or("503".to_owned(), |host| backend(host.address()))
    }
}

/// The name of a backend: `h10` is at 127.0.57.10.
fn backend(address: &str) -> String {
    let ip = address.split(':').next().unwrap_or_default();
    format!("h{}", ip.rsplit('.').next().unwrap_or_default())
}
