//! What a cluster says of its policy (62).

use std::time::Duration;

use serde_json::{Value, json};

use super::{paths, policy};
use crate::balance::policy::{Kind, LocalityMode, SlowStart, ZoneAware};
use crate::balance::{RingConfig, RingFunction};

#[test]
fn d62_policies_and_their_defaults() {
    let least = |choices, bias| Kind::LeastRequest {
        choices,
        bias,
        scans_all: false,
    };
    let ring = |min, max, function| Kind::RingHash(RingConfig { min, max, function });
    let cases = [
        (json!({}), Kind::RoundRobin),
        (json!({"lb_policy": "LEAST_REQUEST"}), least(2, 1.0)),
        (
            json!({"lb_policy": "LEAST_REQUEST", "least_request_lb_config": {
                "choice_count": 4, "active_request_bias": {"default_value": 0.5, "runtime_key": "b"},
            }}),
            least(4, 0.5),
        ),
        (json!({"lb_policy": "RANDOM"}), Kind::Random),
        (
            json!({"lb_policy": "RING_HASH"}),
            ring(1024, 8 << 20, RingFunction::Xx),
        ),
        (
            json!({"lb_policy": "RING_HASH", "ring_hash_lb_config": {
                "minimum_ring_size": 32, "maximum_ring_size": 64, "hash_function": "MURMUR_HASH_2",
            }}),
            ring(32, 64, RingFunction::Murmur2),
        ),
        (json!({"lb_policy": "MAGLEV"}), Kind::Maglev(65_537)),
        (
            json!({"lb_policy": "MAGLEV", "maglev_lb_config": {"table_size": 7}}),
            Kind::Maglev(7),
        ),
    ];
    for (cluster, expected) in cases {
        let policy = policy(&cluster).expect("a policy");
        assert_eq!(policy.kind, expected, "{cluster}");
        let is_hash = matches!(expected, Kind::RingHash(_) | Kind::Maglev(_));
        assert_eq!(policy.uses_hash(), is_hash, "{cluster}");
        assert_eq!(policy.slow_start, None, "{cluster}");
    }
}

/// Envoy's test for primes says no to each even number, two included.
#[test]
fn d62_the_size_of_a_maglev_table_is_an_odd_prime() {
    let sized = |size: u32| {
        policy(&json!({"lb_policy": "MAGLEV", "maglev_lb_config": {"table_size": size}}))
    };
    for size in [3, 5, 65_537, 5_000_011] {
        let policy = sized(size).expect("a policy");
        assert_eq!(policy.kind, Kind::Maglev(u64::from(size)));
    }
    // The last one is prime, but too large.
    for size in [0, 1, 2, 4, 9, 65_536, 5_000_077] {
        assert_eq!(
            paths(sized(size)),
            ["maglev_lb_config.table_size"],
            "{size}"
        );
    }
}

#[test]
fn d62_a_ring_is_no_larger_than_its_most() {
    let ring = |min: u32, max: u32| {
        let sizes = json!({"minimum_ring_size": min, "maximum_ring_size": max});
        policy(&json!({"lb_policy": "RING_HASH", "ring_hash_lb_config": sizes}))
    };
    assert!(ring(8, 8).is_ok() && ring(7, 8).is_ok());
    let path = "ring_hash_lb_config.minimum_ring_size";
    assert_eq!(paths(ring(9, 8)), [path]);
    assert!(ring(8 << 20, 8 << 20).is_ok());
    let path = "ring_hash_lb_config.maximum_ring_size";
    assert_eq!(paths(ring(8, (8 << 20) + 1)), [path]);
}

#[test]
fn d62_what_is_not_there_is_a_finding() {
    let cases = [
        (json!({"lb_policy": "CLUSTER_PROVIDED"}), "lb_policy"),
        (
            json!({"common_lb_config": {"consistent_hashing_lb_config": {"hash_balance_factor": 150}}}),
            "common_lb_config.consistent_hashing_lb_config.hash_balance_factor",
        ),
    ];
    for (cluster, path) in cases {
        assert_eq!(paths(policy(&cluster)), [path]);
    }
}

#[test]
fn d62_slow_start_of_both_policies_that_have_it() {
    for (name, field) in [
        ("ROUND_ROBIN", "round_robin_lb_config"),
        ("LEAST_REQUEST", "least_request_lb_config"),
    ] {
        let with = |slow: Value| {
            let cluster = json!({"lb_policy": name, field: {"slow_start_config": slow}});
            policy(&cluster).expect("a policy").slow_start
        };
        let seconds = Duration::from_secs(30);
        assert_eq!(
            with(json!({"slow_start_window": "30s"})),
            Some(SlowStart::new(seconds, 1.0, 10.0))
        );
        let all = json!({
            "slow_start_window": "30.5s",
            "aggression": {"default_value": 2, "runtime_key": "a"},
            "min_weight_percent": {"value": 25},
        });
        let seconds = Duration::from_millis(30_500);
        assert_eq!(with(all), Some(SlowStart::new(seconds, 2.0, 25.0)));
        assert_eq!(with(json!({})), None);
    }
}

#[test]
fn d68_d69_d70_settings_of_all_policies() {
    let common = |fields: Value| policy(&json!({"common_lb_config": fields})).expect("a policy");
    let nothing = common(json!({}));
    assert!((nothing.panic_threshold - 50.0).abs() < 1e-9);
    assert!(!nothing.uses_hostname);
    let zone = |enabled, min_cluster_size, fails_on_panic| {
        LocalityMode::ZoneAware(ZoneAware {
            enabled,
            min_cluster_size,
            fails_on_panic,
        })
    };
    assert_eq!(nothing.localities, zone(100.0, 6, false));
    let defaults = common(json!({"zone_aware_lb_config": {}}));
    assert_eq!(defaults.localities, zone(100.0, 6, false));
    let given = common(json!({"zone_aware_lb_config": {
        "routing_enabled": {"value": 40}, "min_cluster_size": 3, "fail_traffic_on_panic": true,
    }}));
    assert_eq!(given.localities, zone(40.0, 3, true));
    let weighted = common(json!({"locality_weighted_lb_config": {}}));
    assert_eq!(weighted.localities, LocalityMode::Weighted);
    // Envoy compares whole per cents.
    let threshold = common(json!({"healthy_panic_threshold": {"value": 59.6}}));
    assert!((threshold.panic_threshold - 60.0).abs() < 1e-9);
    let hashing = json!({"consistent_hashing_lb_config": {"use_hostname_for_hashing": true}});
    assert!(common(hashing).uses_hostname);
}

/// What is older than the window is as all others.
#[test]
fn d62_slow_start_ends_with_its_window() {
    let slow = SlowStart::new(Duration::from_secs(10), 1.0, 10.0);
    for (milliseconds, is_over) in [(0, false), (9_999, false), (10_000, true), (10_001, true)] {
        let age = Duration::from_millis(milliseconds);
        assert_eq!(slow.is_over(age), is_over, "{milliseconds}");
        assert_eq!(slow.factor(age) < 1.0, !is_over, "{milliseconds}");
    }
}
