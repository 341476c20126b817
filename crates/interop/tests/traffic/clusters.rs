//! Random clusters.

use fastrand::Rng;
use serde_json::{Value, json};

use super::backends;
use super::words::{once_in, one};

fn pick(random: &mut Rng, numbers: [u32; 3]) -> u32 {
    numbers[random.usize(..3)]
}

/// A cluster of one backend.
pub(crate) fn single(name: &str, last: u8, port: u16) -> Value {
    json!({
        "name": name,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint(last, port)]}]},
    })
}

fn endpoint(last: u8, port: u16) -> Value {
    let address = backends::address(last).to_string();
    json!({"endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}}})
}

/// A cluster that chooses by a hash.
pub(crate) fn hashed(random: &mut Rng, name: &str, port: u16) -> Value {
    let mut cluster = cluster(random, name, port, true);
    match random.bool() {
        true => {
            cluster["lb_policy"] = "RING_HASH".into();
            cluster["ring_hash_lb_config"] = json!({
                "minimum_ring_size": pick(random, [1, 64, 1024]),
                "hash_function": one(random, &["XX_HASH", "MURMUR_HASH_2"]),
            });
        }
        false => {
            cluster["lb_policy"] = "MAGLEV".into();
            let size = pick(random, [65_537, 251, 1_009]);
            cluster["maglev_lb_config"] = json!({"table_size": size});
        }
    }
    cluster
}

/// A cluster that chooses in turn or at random.
pub(crate) fn spread(random: &mut Rng, name: &str, port: u16) -> Value {
    let mut cluster = cluster(random, name, port, false);
    cluster["lb_policy"] = one(random, &["ROUND_ROBIN", "LEAST_REQUEST", "RANDOM"]).into();
    cluster
}

/// Endpoints of some priorities, localities and healths.
fn cluster(random: &mut Rng, name: &str, port: u16, has_keys: bool) -> Value {
    let mut free: Vec<u8> = (1..=backends::COUNT).collect();
    random.shuffle(&mut free);
    let has_health = random.bool();
    let priorities = if random.bool() { 1 } else { 1 + random.u8(..3) };
    let mut groups = Vec::new();
    for priority in 0..priorities {
        for zone in 0..1 + random.u8(..2) {
            let endpoints: Vec<Value> = (0..1 + random.u8(..4))
                .filter_map(|_| free.pop())
                .map(|last| {
                    let mut host = endpoint(last, port);
                    if random.bool() {
                        host["load_balancing_weight"] = random.u8(1..6).into();
                    }
                    if has_health && random.bool() {
                        let health = one(random, &["UNHEALTHY", "DEGRADED", "DRAINING"]);
                        host["health_status"] = health.into();
                    }
                    if has_keys && once_in(random, 4) {
                        let key = json!({"hash_key": format!("key{last}")});
                        host["metadata"] = json!({"filter_metadata": {"envoy.lb": key}});
                    }
                    host
                })
                .collect();
            groups.push(json!({
                "priority": priority,
                "locality": {"region": "r", "zone": format!("z{zone}")},
                "load_balancing_weight": random.u8(1..5),
                "lb_endpoints": endpoints,
            }));
        }
    }
    let mut common = json!({"healthy_panic_threshold": {"value": pick(random, [0, 50, 75])}});
    if random.bool() {
        common["locality_weighted_lb_config"] = json!({});
    }
    json!({
        "name": name,
        "common_lb_config": common,
        "load_assignment": {
            "cluster_name": name,
            "endpoints": groups,
            "policy": {"overprovisioning_factor": pick(random, [100, 140, 200]), "weighted_priority_health": once_in(random, 3)},
        },
    })
}

/// A connection manager whose requests name their cluster.
pub(crate) fn manager(random: &mut Rng) -> Value {
    let mut policies = vec![
        json!({"header": {"header_name": "x-a"}, "terminal": random.bool()}),
        json!({"cookie": {"name": "k"}, "terminal": random.bool()}),
        json!({"query_parameter": {"name": "q"}, "terminal": random.bool()}),
        json!({"connection_properties": {"source_ip": true}}),
    ];
    random.shuffle(&mut policies);
    policies.truncate(random.usize(..4));
    policies.push(json!({"header": {"header_name": "x-key"}}));
    json!({
        "stat_prefix": "s",
        "route_config": {"name": "lb", "virtual_hosts": [{
            "name": "lb",
            "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster_header": "x-c", "hash_policy": policies}}],
        }]},
        "http_filters": [super::random::router()],
    })
}
