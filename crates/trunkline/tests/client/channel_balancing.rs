//! Balancing of the channel: policies, localities, priorities, ejection.

use tokio_stream::StreamExt as _;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::PATIENCE;
use super::backend::{Backend, call, call_as};
use super::channel_world::{World, dead_port};
use super::gate::Gate;

async fn backends<const N: usize>() -> [Backend; N] {
    let mut all = Vec::new();
    for _ in 0..N {
        all.push(Backend::start().await);
    }
    all.try_into().ok().unwrap()
}

/// The calls of backends since some numbers.
fn since(backends: &[&Backend], before: &[usize]) -> Vec<usize> {
    let pairs = backends.iter().zip(before);
    pairs.map(|(of, before)| of.calls() - before).collect()
}

/// Streams that stay open, and so are calls under way.
async fn open(
    world: &World,
    count: usize,
) -> Vec<tonic::Streaming<tonic_health::pb::HealthCheckResponse>> {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut health = HealthClient::new(world.channel.clone());
        let watched = health.watch(HealthCheckRequest::default()).await.unwrap();
        let mut stream = watched.into_inner();
        stream.next().await.unwrap().unwrap();
        open.push(stream);
    }
    open
}

#[tokio::test]
async fn a27_localities_get_calls_by_their_weights() {
    let [a, b, c] = backends().await;
    let world = World::with("", &[(0, 3, vec![&a]), (0, 1, vec![&b]), (0, 0, vec![&c])]);
    world.reach(&a).await;
    world.reach(&b).await;
    let before = [a.calls(), b.calls(), c.calls()];
    for _ in 0..40 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(since(&[&a, &b, &c], &before), [30, 10, 0]);
}

#[tokio::test]
async fn a42_a_hash_stays_with_its_endpoint() {
    let [a, b, c] = backends().await;
    let mut world = World::with("lb_policy: RING_HASH", &[(0, 1, vec![&a, &b, &c])]);
    world.routes(
        "{match: {prefix: /}, route: {cluster: c, hash_policy: [{header: {header_name: user}}]}}",
        "",
    );
    world.serve();
    let all = [&a, &b, &c];
    let mut reached = [0; 3];
    for user in 0..30 {
        let user = format!("user-{user}");
        call_as(&world.channel, "user", &user).await.unwrap();
        let before = all.map(Backend::calls);
        for _ in 0..4 {
            call_as(&world.channel, "user", &user).await.unwrap();
        }
        let counts = since(&all, &before);
        let one = counts.iter().position(|count| *count == 4);
        reached[one.unwrap_or_else(|| panic!("{user} went to {counts:?}"))] += 1;
    }
    assert!(reached.iter().all(|count| *count > 0), "{reached:?}");
}

#[tokio::test]
async fn a42_a_channel_is_a_hash_of_its_own() {
    let [a, b] = backends().await;
    let mut world = World::with("lb_policy: RING_HASH", &[(0, 1, vec![&a, &b])]);
    world.routes(
        "{match: {prefix: /}, route: {cluster: c, hash_policy: [\
         {filter_state: {key: io.grpc.channel_id}}]}}",
        "",
    );
    world.serve();
    for _ in 0..20 {
        call(&world.channel).await.unwrap();
    }
    let counts = [a.calls(), b.calls()];
    assert!(counts.contains(&20), "{counts:?}");
}

#[tokio::test]
async fn a48_the_endpoint_with_fewer_calls_gets_more() {
    let [a, b] = backends().await;
    let mut world = World::with("lb_policy: LEAST_REQUEST", &[(0, 1, vec![&a])]);
    let _open = open(&world, 5).await;
    world.endpoints("c", &[(0, 1, vec![&a, &b])], "{}");
    world.serve();
    world.reach(&b).await;
    let before = [a.calls(), b.calls()];
    for _ in 0..200 {
        call(&world.channel).await.unwrap();
    }
    let counts = since(&[&a, &b], &before);
    // Both of two draws are the busy one in a quarter of all calls.
    assert!(counts[0] < 90, "{counts:?}");
}

#[tokio::test]
async fn a50_an_endpoint_that_fails_is_ejected() {
    let good = Backend::start().await;
    let bad = Backend::answering(|_, _| Err(Status::internal("bad"))).await;
    let world = World::with(
        "outlier_detection: {interval: 0.1s, base_ejection_time: 600s, max_ejection_time: 600s, \
         max_ejection_percent: 50, enforcing_success_rate: 0, enforcing_failure_percentage: 100, \
         failure_percentage_threshold: 50, failure_percentage_minimum_hosts: 1, \
         failure_percentage_request_volume: 1}",
        &[(0, 1, vec![&good, &bad])],
    );
    world.reach(&bad).await;
    let ejected = async {
        let mut succeeded = 0;
        while succeeded < 20 {
            match call(&world.channel).await {
                Ok(()) => succeeded += 1,
                Err(_) => succeeded = 0,
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ejected).await.unwrap();
    let before = bad.calls();
    for _ in 0..20 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(bad.calls(), before);
}

#[tokio::test]
async fn a56_a_priority_that_fails_gives_way_to_the_next() {
    let [best, second] = backends().await;
    let mut world = World::start();
    world.cluster("c", "");
    world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
    world.ports("c", &[(0, dead_port().await), (1, second.port())]);
    world.serve();
    for _ in 0..5 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(second.calls(), 5);
    world.ports("c", &[(0, best.port()), (1, second.port())]);
    world.serve();
    world.reach(&best).await;
    let before = second.calls();
    for _ in 0..10 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(second.calls(), before);
}

#[tokio::test]
async fn a37_leaves_of_an_aggregate_cluster_come_one_after_the_other() {
    let [by_eds, by_name] = backends().await;
    let mut world = World::start();
    world.cluster("first", "");
    world.ports("first", &[(0, dead_port().await)]);
    world.put("cluster second", &format!(
        "{{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: second, type: LOGICAL_DNS, \
         load_assignment: {{cluster_name: second, endpoints: [{{lb_endpoints: [{{endpoint: {{address: \
         {{socket_address: {{address: localhost, port_value: {}}}}}}}}}]}}]}}}}", by_name.port()));
    world.put(
        "cluster c",
        "{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, \
         lb_policy: CLUSTER_PROVIDED, cluster_type: {name: envoy.clusters.aggregate, typed_config: \
         {'@type': type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, \
         clusters: [first, second]}}}",
    );
    world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
    world.serve();
    world.reach(&by_name).await;
    world.ports("first", &[(0, by_eds.port())]);
    world.serve();
    world.reach(&by_eds).await;
}

#[tokio::test]
async fn a32_a_breaker_limits_calls_under_way() {
    let [a] = backends().await;
    let world = World::with(
        "circuit_breakers: {thresholds: [{max_requests: 1}]}",
        &[(0, 1, vec![&a])],
    );
    let mut open = open(&world, 1).await;
    let refused = call(&world.channel).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("as many calls"), "{refused}");
    open.clear();
    let free = async {
        while call(&world.channel).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
}

#[tokio::test]
async fn a27_calls_are_dropped_as_endpoints_say() {
    let [a] = backends().await;
    let mut world = World::with("", &[(0, 1, vec![&a])]);
    call(&world.channel).await.unwrap();
    let policy = "{drop_overloads: [{category: busy, drop_percentage: {numerator: 100}}]}";
    world.endpoints("c", &[(0, 1, vec![&a])], policy);
    world.serve();
    let dropped = world.failure().await;
    assert_eq!(dropped.code(), Code::Unavailable);
    assert!(dropped.message().contains("busy"), "{dropped}");
}

#[tokio::test]
async fn a52_a_policy_of_the_list_that_is_known_counts() {
    let [a, b] = backends().await;
    let world = World::with(
        "load_balancing_policy: {policies: [\
         {typed_extension_config: {name: own, typed_config: \
         {'@type': type.googleapis.com/xds.type.v3.TypedStruct, type_url: own.com/Policy}}}, \
         {typed_extension_config: {name: known, typed_config: \
         {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality, \
         endpoint_picking_policy: {policies: [{typed_extension_config: {name: rr, typed_config: \
         {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}}]}}}}]}",
        &[(0, 4, vec![&a]), (0, 1, vec![&b])],
    );
    world.reach(&a).await;
    world.reach(&b).await;
    let before = [a.calls(), b.calls()];
    for _ in 0..20 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(since(&[&a, &b], &before), [16, 4]);
}

#[tokio::test]
async fn a62_all_calls_go_to_the_first_endpoint_until_it_is_gone() {
    let [a, b] = backends().await;
    let policy = "load_balancing_policy: {policies: [{typed_extension_config: {name: first, \
         typed_config: {'@type': \
         type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst}}}]}";
    let mut world = World::with(policy, &[(0, 1, vec![&a, &b])]);
    for _ in 0..10 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!((a.calls(), b.calls()), (10, 0));
    // One that has the calls keeps them, wherever it stands.
    world.endpoints("c", &[(0, 1, vec![&b, &a])], "{}");
    world.serve();
    for _ in 0..50 {
        call(&world.channel).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!((a.calls(), b.calls()), (60, 0));
    world.endpoints("c", &[(0, 1, vec![&b])], "{}");
    world.serve();
    world.reach(&b).await;
    let before = a.calls();
    for _ in 0..10 {
        call(&world.channel).await.unwrap();
    }
    assert_eq!(a.calls(), before);
}

#[tokio::test]
async fn a62_pick_first_waits_for_no_endpoint_that_fails_and_may_shuffle() {
    let [a] = backends().await;
    let policy = "load_balancing_policy: {policies: [{typed_extension_config: {name: first, \
         typed_config: {'@type': \
         type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst, \
         shuffle_address_list: true}}}]}";
    let mut world = World::with(policy, &[]);
    world.ports(
        "c",
        &[
            (0, dead_port().await),
            (0, a.port()),
            (0, dead_port().await),
        ],
    );
    world.serve();
    world.reach(&a).await;
    call(&world.channel).await.unwrap();
}

#[tokio::test]
async fn a62_a_connection_that_is_lost_gives_way_to_the_next() {
    let [a, b] = backends().await;
    let gate = Gate::before(a.address).await;
    let policy = "load_balancing_policy: {policies: [{typed_extension_config: {name: first, \
         typed_config: {'@type': \
         type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst}}}]}";
    let mut world = World::with(policy, &[]);
    let first = gate.address.port().into();
    world.ports("c", &[(0, first), (0, b.port())]);
    world.serve();
    world.reach(&a).await;
    gate.set_shut(true);
    world.reach(&b).await;
    // It keeps the calls when the first one is back.
    gate.set_shut(false);
    let before = a.calls();
    for _ in 0..20 {
        call(&world.channel).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(a.calls(), before);
}
