//! Updates of endpoints (63, 64), override hosts, and what stays.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};

fn assignment(endpoints: Value) -> ClusterLoadAssignment {
    use prost::Message;
    let of = "envoy.config.endpoint.v3.ClusterLoadAssignment";
    let text = json!({"cluster_name": "c", "endpoints": endpoints}).to_string();
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    ClusterLoadAssignment::decode(&*read.unwrap().message.encode_to_vec()).unwrap()
}

fn endpoint(last: u8, health: &str, weight: u32) -> Value {
    json!({
        "endpoint": {"address": {"socket_address": {
            "address": format!("10.0.0.{last}"), "port_value": 80,
        }}},
        "health_status": health,
        "load_balancing_weight": weight,
    })
}

fn groups(first: Vec<Value>, second: Vec<Value>) -> Value {
    json!([{"lb_endpoints": first}, {"priority": 1, "lb_endpoints": second}])
}

#[test]
fn d63_only_priorities_that_changed_are_told() {
    let first = || vec![endpoint(1, "HEALTHY", 1), endpoint(2, "HEALTHY", 1)];
    let before = assignment(groups(first(), vec![endpoint(3, "HEALTHY", 1)]));
    let mut sets = HostSets::read(&before, Duration::ZERO).unwrap();
    let same = sets.update(&before, Duration::ZERO).unwrap();
    assert!(same.priorities.is_empty(), "nothing changed");

    let host = Arc::clone(sets.hosts().next().unwrap());
    host.counters().start();
    let after = assignment(groups(
        vec![endpoint(1, "HEALTHY", 5), endpoint(4, "HEALTHY", 1)],
        vec![endpoint(3, "HEALTHY", 1)],
    ));
    let changes = sets.update(&after, Duration::from_secs(1)).unwrap();
    assert_eq!(changes.priorities, [0]);
    assert_eq!(changes.added, ["10.0.0.4:80"]);
    assert_eq!(changes.removed, ["10.0.0.2:80"]);
    let host = sets.hosts().next().unwrap();
    assert_eq!(host.counters().active(), 1, "counters outlive a change");
}

#[test]
fn d64_a_change_of_health_reaches_the_balancer() {
    let all = vec![endpoint(1, "HEALTHY", 1), endpoint(2, "HEALTHY", 1)];
    let sets = HostSets::read(&assignment(groups(all, vec![])), Duration::ZERO).unwrap();
    let policy = Arc::new(Policy::compile(&Cluster::default()).unwrap());
    let mut balancer = Balancer::new(policy, &sets, None, 0, Duration::ZERO);
    sets.hosts().next().unwrap().counters().set_ejected(true);
    balancer.refresh(&sets, &[0], None, Duration::ZERO);
    let mut random = || 0;
    for _ in 0..4 {
        let host = balancer.pick(&PickContext::default(), &mut random).unwrap();
        assert_eq!(host.address(), "10.0.0.2:80");
    }
}

#[test]
fn d62_an_override_host_is_taken_while_it_is_usable() {
    let all = vec![endpoint(1, "HEALTHY", 1), endpoint(2, "UNHEALTHY", 1)];
    let sets = HostSets::read(&assignment(groups(all, vec![])), Duration::ZERO).unwrap();
    let policy = Arc::new(Policy::compile(&Cluster::default()).unwrap());
    let mut balancer = Balancer::new(policy, &sets, None, 0, Duration::ZERO);
    // The address that is asked for, and the one that is taken.
    let cases = [
        ("10.0.0.1:80", "10.0.0.1:80"),
        ("10.0.0.2:80", "10.0.0.1:80"),
        ("?", "10.0.0.1:80"),
    ];
    for (asked, taken) in cases {
        let context = PickContext {
            override_host: Some(asked),
            ..PickContext::default()
        };
        let host = balancer.pick(&context, &mut || 0).unwrap();
        assert_eq!(host.address(), taken, "{asked}");
    }
}

fn balancer(endpoints: Value, policy: Value, cluster: &Cluster) -> (HostSets, Balancer) {
    let mut message = assignment(endpoints);
    let text = json!({"cluster_name": "c", "policy": policy}).to_string();
    let of = "envoy.config.endpoint.v3.ClusterLoadAssignment";
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    let bytes = prost::Message::encode_to_vec(&read.unwrap().message);
    let parsed: ClusterLoadAssignment = prost::Message::decode(&*bytes).unwrap();
    message.policy = parsed.policy;
    let sets = HostSets::read(&message, Duration::ZERO).unwrap();
    let policy = Arc::new(Policy::compile(cluster).unwrap());
    let balancer = Balancer::new(policy, &sets, None, 0, Duration::ZERO);
    (sets, balancer)
}

#[test]
fn d68_an_endpoint_that_drains_counts_for_nothing_but_panic() {
    let drains = |count: u8| {
        let mut all = vec![endpoint(1, "HEALTHY", 1)];
        all.extend((2..2 + count).map(|last| endpoint(last, "DRAINING", 1)));
        balancer(groups(all, vec![]), json!({}), &Cluster::default()).1
    };
    // One of one, whatever drains beside it; unhealthy ones would be panic.
    assert_eq!(drains(4).load().panics, [false, false]);
    let all = vec![
        endpoint(1, "HEALTHY", 1),
        endpoint(2, "UNHEALTHY", 1),
        endpoint(3, "UNHEALTHY", 1),
    ];
    let (_, panics) = balancer(groups(all, vec![]), json!({}), &Cluster::default());
    assert!(panics.load().panics[0]);
    // With nothing else they get the requests.
    let only = groups(vec![endpoint(1, "DRAINING", 1)], vec![]);
    let (_, mut balancer) = balancer(only, json!({}), &Cluster::default());
    let host = balancer.pick(&PickContext::default(), &mut || 0).unwrap();
    assert_eq!(host.address(), "10.0.0.1:80");
}

#[test]
fn d66_the_health_of_a_priority_may_be_that_of_its_weights() {
    let sets = || {
        groups(
            vec![endpoint(1, "HEALTHY", 1), endpoint(2, "UNHEALTHY", 9)],
            vec![endpoint(3, "HEALTHY", 1)],
        )
    };
    let load = |weighs: bool| {
        let policy = json!({"weighted_priority_health": weighs});
        let (_, balancer) = balancer(sets(), policy, &Cluster::default());
        balancer.load().healthy.clone()
    };
    // 1.4 of a half, and of a tenth.
    assert_eq!(load(false), [70, 30]);
    assert_eq!(load(true), [14, 86]);
}
