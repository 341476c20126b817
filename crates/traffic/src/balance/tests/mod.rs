//! What the rules of balancing say, asked of balancers and of their parts.

mod endpoints;
mod localities;
mod policies;
mod pools;
mod priorities;
mod subsets;
mod typed;
mod updates;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;

use super::{Balancer, Changes, HostSets, LocalCluster, PickContext, Policy};
use crate::findings::Findings;
use crate::json::message;

/// How often each endpoint was chosen, by the last part of its address.
type Counts = BTreeMap<u8, u32>;

fn cluster(json: &Value) -> Cluster {
    message("envoy.config.cluster.v3.Cluster", json)
}

fn assignment(json: &Value) -> ClusterLoadAssignment {
    message("envoy.config.endpoint.v3.ClusterLoadAssignment", json)
}

fn policy(json: &Value) -> Result<Policy, Findings> {
    Policy::compile(&cluster(json))
}

/// The paths of what cannot be compiled.
fn paths(result: Result<Policy, Findings>) -> Vec<String> {
    let findings = result.expect_err("findings");
    let list = findings.list().iter();
    list.map(|finding| finding.path.clone()).collect()
}

fn sets(localities: &Value) -> HostSets {
    let message = assignment(&json!({"endpoints": localities}));
    HostSets::read(&message, Duration::ZERO).expect("endpoints")
}

fn address(ip: &str, port: u16) -> Value {
    json!({"socket_address": {"address": ip, "port_value": port}})
}

/// The endpoint 10.0.0.`last`, with more fields.
fn endpoint(last: u8, fields: &Value) -> Value {
    let mut endpoint = fields.clone();
    if endpoint["endpoint"].is_null() {
        endpoint["endpoint"] = json!({});
    }
    endpoint["endpoint"]["address"] = address(&format!("10.0.0.{last}"), 80);
    endpoint
}

/// Endpoints that have nothing but their addresses.
fn plain(lasts: &[u8]) -> Vec<Value> {
    of_health(lasts, "UNKNOWN")
}

fn of_health(lasts: &[u8], health: &str) -> Vec<Value> {
    let fields = json!({"health_status": health});
    lasts.iter().map(|last| endpoint(*last, &fields)).collect()
}

/// An endpoint of a weight.
fn weighing(last: u8, weight: u32) -> Value {
    endpoint(last, &json!({"load_balancing_weight": weight}))
}

fn locality(zone: &str, weight: u32, endpoints: &[Value]) -> Value {
    let mut locality = json!({"locality": {"zone": zone}, "lb_endpoints": endpoints});
    if weight > 0 {
        locality["load_balancing_weight"] = weight.into();
    }
    locality
}

fn in_priority(priority: u32, endpoints: &[Value]) -> Value {
    json!({"priority": priority, "lb_endpoints": endpoints})
}

/// A cluster and one worker's balancer of it.
struct World {
    hosts: HostSets,
    balancer: Balancer,
    local: Option<LocalCluster>,
    random: fastrand::Rng,
    now: Duration,
}

impl World {
    fn new(policy: &Value, localities: &Value) -> Self {
        Self::with_local(policy, localities, None)
    }

    fn with_local(policy: &Value, localities: &Value, local: Option<LocalCluster>) -> Self {
        let hosts = sets(localities);
        let policy = Arc::new(self::policy(policy).expect("a policy"));
        let now = Duration::ZERO;
        Self {
            balancer: Balancer::new(policy, &hosts, local.as_ref(), 0, now),
            hosts,
            local,
            random: fastrand::Rng::with_seed(7),
            now,
        }
    }

    /// Takes over other endpoints.
    fn update(&mut self, localities: &Value) -> Changes {
        let message = assignment(&json!({"endpoints": localities}));
        let changes = self.hosts.update(&message, self.now).expect("endpoints");
        let local = self.local.as_ref();
        self.balancer.apply(&self.hosts, &changes, local, self.now);
        changes
    }

    /// Outlier detection ejects an endpoint, or takes it back.
    fn eject(&mut self, last: u8, is_ejected: bool) {
        let address = format!("10.0.0.{last}:80");
        let mut hosts = self.hosts.hosts();
        let host = hosts.find(|host| host.address() == address);
        host.expect("an endpoint")
            .counters()
            .set_ejected(is_ejected);
        let local = self.local.as_ref();
        self.balancer
            .apply_health(&self.hosts, &address, local, self.now);
    }

    fn pick(&mut self, context: &PickContext<'_>) -> Option<u8> {
        let random = &mut self.random;
        let host = self.balancer.pick(context, &mut || random.u64(..))?;
        let (ip, _) = host.address().split_once(':').expect("a port");
        ip.rsplit('.').next()?.parse().ok()
    }

    /// The endpoints of so many requests, one after the other.
    fn order(&mut self, times: usize) -> Vec<u8> {
        let picks = (0..times).map(|_| {
            let context = PickContext {
                hash: Some(self.random.u64(..)),
                now: self.now,
                ..PickContext::default()
            };
            self.pick(&context).expect("an endpoint")
        });
        picks.collect()
    }

    fn counts(&mut self, times: usize) -> Counts {
        let mut counts = Counts::new();
        for last in self.order(times) {
            *counts.entry(last).or_default() += 1;
        }
        counts
    }

    /// Those that get requests at all.
    fn used(&mut self) -> Vec<u8> {
        self.counts(400).into_keys().collect()
    }
}
