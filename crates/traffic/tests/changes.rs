//! Changes of single endpoints (63, 64): a balancer that follows them chooses as
//! one that is made anew, and its work does not follow the number of endpoints.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    CommonLbConfig, LbPolicy,
    common_lb_config::{LocalityConfigSpecifier, LocalityWeightedLbConfig},
};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, HealthStatus, Locality, SocketAddress, address::Address as AddressKind,
    socket_address::PortSpecifier,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
};
use trunkline_proto::envoy::google::protobuf::UInt32Value;
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};

fn endpoint(number: u16, weight: u32, health: HealthStatus) -> LbEndpoint {
    let [high, low] = number.to_be_bytes();
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(AddressKind::SocketAddress(SocketAddress {
                    address: format!("10.0.{high}.{low}"),
                    port_specifier: Some(PortSpecifier::PortValue(80)),
                    ..SocketAddress::default()
                })),
            }),
            ..Endpoint::default()
        })),
        load_balancing_weight: Some(UInt32Value { value: weight }),
        health_status: health.into(),
        ..LbEndpoint::default()
    }
}

/// Endpoints by priority and zone.
type World = BTreeMap<u16, (u32, u32, u32, HealthStatus)>;

fn assignment(world: &World) -> ClusterLoadAssignment {
    let mut groups: BTreeMap<(u32, u32), Vec<LbEndpoint>> = BTreeMap::new();
    for priority in 0..2 {
        for zone in 0..2 {
            groups.insert((priority, zone), Vec::new());
        }
    }
    for (number, (priority, zone, weight, health)) in world {
        let group = groups.entry((*priority, *zone)).or_default();
        group.push(endpoint(*number, *weight, *health));
    }
    let endpoints = groups
        .into_iter()
        .map(|((priority, zone), hosts)| LocalityLbEndpoints {
            priority,
            locality: Some(Locality {
                zone: format!("z{zone}"),
                ..Locality::default()
            }),
            load_balancing_weight: Some(UInt32Value { value: zone + 1 }),
            lb_endpoints: hosts,
            ..LocalityLbEndpoints::default()
        });
    ClusterLoadAssignment {
        cluster_name: "c".to_owned(),
        endpoints: endpoints.collect(),
        ..ClusterLoadAssignment::default()
    }
}

fn cluster(policy: LbPolicy, weighs: bool) -> Cluster {
    let weighted = LocalityConfigSpecifier::LocalityWeightedLbConfig(LocalityWeightedLbConfig {});
    Cluster {
        lb_policy: policy.into(),
        common_lb_config: weighs.then(|| CommonLbConfig {
            locality_config_specifier: Some(weighted),
            ..CommonLbConfig::default()
        }),
        ..Cluster::default()
    }
}

fn shares(balancer: &mut Balancer, random: &mut fastrand::Rng) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for _ in 0..4_000 {
        let context = PickContext {
            hash: Some(random.u64(..)),
            ..PickContext::default()
        };
        let host = balancer.pick(&context, &mut || random.u64(..));
        let address = host.map_or(String::new(), |host| host.address().to_owned());
        *counts.entry(address).or_default() += 1;
    }
    counts
}

/// Two samples of the same shares differ by less than five deviations.
fn is_alike(a: &BTreeMap<String, u32>, b: &BTreeMap<String, u32>) -> bool {
    let names = a.keys().chain(b.keys());
    names.into_iter().all(|name| {
        let count = |of: &BTreeMap<String, u32>| f64::from(of.get(name).copied().unwrap_or(0));
        let mean = (count(a) + count(b)) / 8_000.0;
        let most = 5.0 * (mean * (1.0 - mean) * 2.0 / 4_000.0).sqrt();
        (count(a) - count(b)).abs() / 4_000.0 <= most + 1e-9
    })
}

#[test]
fn d63_d64_a_balancer_that_follows_changes_is_as_one_made_anew() {
    let policies = [
        LbPolicy::RoundRobin,
        LbPolicy::LeastRequest,
        LbPolicy::Random,
        LbPolicy::Maglev,
    ];
    for seed in 0..24 {
        let mut random = fastrand::Rng::with_seed(seed);
        let kind = policies[seed as usize % policies.len()];
        let policy = Arc::new(Policy::compile(&cluster(kind, random.bool())).unwrap());
        let has_weights = random.bool();
        let mut world = World::new();
        let mut hosts = HostSets::read(&assignment(&world), Duration::ZERO).unwrap();
        let mut balancer = Balancer::new(Arc::clone(&policy), &hosts, None, 3, Duration::ZERO);
        for step in 0..60 {
            let number = random.u16(..12);
            if random.u8(..5) == 0 {
                // A check or an outlier: only the health of one is another.
                let host = hosts.hosts().nth(usize::from(number)).cloned();
                if let Some(host) = host {
                    host.counters().set_ejected(random.bool());
                    balancer.apply_health(&hosts, host.address(), None, Duration::ZERO);
                }
            } else {
                match random.u8(..3) {
                    0 => drop(world.remove(&number)),
                    _ => {
                        let health = [
                            HealthStatus::Healthy,
                            HealthStatus::Healthy,
                            HealthStatus::Unhealthy,
                            HealthStatus::Degraded,
                            HealthStatus::Draining,
                        ][random.usize(..5)];
                        let weight = if has_weights { random.u32(1..4) } else { 1 };
                        let place = (random.u32(..2), random.u32(..2), weight, health);
                        world.insert(number, place);
                    }
                }
                let changes = hosts.update(&assignment(&world), Duration::ZERO).unwrap();
                balancer.apply(&hosts, &changes, None, Duration::ZERO);
            }
            let mut fresh = Balancer::new(Arc::clone(&policy), &hosts, None, 3, Duration::ZERO);
            assert_eq!(balancer.load(), fresh.load(), "seed {seed}, step {step}");
            if step % 10 == 9 {
                let here = shares(&mut balancer, &mut random);
                let anew = shares(&mut fresh, &mut random);
                assert!(
                    is_alike(&here, &anew),
                    "seed {seed}, step {step}: {kind:?}\n{here:?}\n{anew:?}"
                );
            }
        }
    }
}
