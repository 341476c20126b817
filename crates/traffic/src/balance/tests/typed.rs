//! Policies as typed extensions are the same policies.

use std::time::Duration;

use serde_json::{Value, json};

use super::{paths, policy};
use crate::balance::policy::{Kind, LocalityMode, Policy, SlowStart, ZoneAware};
use crate::balance::{RingConfig, RingFunction};
use crate::findings::Findings;

const PREFIX: &str = "type.googleapis.com/envoy.extensions.load_balancing_policies.";

fn extension(name: &str, fields: &Value) -> Value {
    let mut config = fields.clone();
    config["@type"] = format!("{PREFIX}{name}").into();
    json!({"typed_extension_config": {"name": "policy", "typed_config": config}})
}

fn list(policies: &[Value]) -> Result<Policy, Findings> {
    policy(&json!({"load_balancing_policy": {"policies": policies}}))
}

fn one(name: &str, fields: &Value) -> Policy {
    list(&[extension(name, fields)]).expect("a policy")
}

const ROUND_ROBIN: &str = "round_robin.v3.RoundRobin";
const LEAST_REQUEST: &str = "least_request.v3.LeastRequest";
const RANDOM: &str = "random.v3.Random";
const RING_HASH: &str = "ring_hash.v3.RingHash";
const MAGLEV: &str = "maglev.v3.Maglev";
const WRR_LOCALITY: &str = "wrr_locality.v3.WrrLocality";

#[test]
fn d62_each_typed_policy_is_the_one_of_its_name() {
    let least = |choices, bias, scans_all| Kind::LeastRequest {
        choices,
        bias,
        scans_all,
    };
    let ring = |min, max, function| Kind::RingHash(RingConfig { min, max, function });
    let cases = [
        (ROUND_ROBIN, json!({}), Kind::RoundRobin),
        (LEAST_REQUEST, json!({}), least(2, 1.0, false)),
        (
            LEAST_REQUEST,
            json!({
                "choice_count": 3,
                "active_request_bias": {"default_value": 2, "runtime_key": "b"},
                "selection_method": "FULL_SCAN",
            }),
            least(3, 2.0, true),
        ),
        (RANDOM, json!({}), Kind::Random),
        (RING_HASH, json!({}), ring(1024, 8 << 20, RingFunction::Xx)),
        (
            RING_HASH,
            json!({"minimum_ring_size": 5, "maximum_ring_size": 9, "hash_function": "MURMUR_HASH_2"}),
            ring(5, 9, RingFunction::Murmur2),
        ),
        (
            RING_HASH,
            json!({"hash_function": "XX_HASH"}),
            ring(1024, 8 << 20, RingFunction::Xx),
        ),
        (MAGLEV, json!({}), Kind::Maglev(65_537)),
        (MAGLEV, json!({"table_size": 11}), Kind::Maglev(11)),
    ];
    for (name, fields, expected) in cases {
        let policy = one(name, &fields);
        assert_eq!(policy.kind, expected, "{name} {fields}");
        let default = LocalityMode::ZoneAware(ZoneAware::default());
        assert_eq!(policy.localities, default, "{name}");
        assert_eq!(policy.slow_start, None, "{name}");
        assert!(!policy.uses_hostname, "{name}");
    }
}

#[test]
fn d62_the_first_typed_policy_that_is_known_is_taken() {
    let unknown = extension(
        "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
        &json!({}),
    );
    let two = [
        unknown.clone(),
        extension(RANDOM, &json!({})),
        extension(MAGLEV, &json!({})),
    ];
    assert_eq!(list(&two).expect("a policy").kind, Kind::Random);
    assert_eq!(paths(list(&[unknown])), ["load_balancing_policy"]);
    assert_eq!(paths(list(&[])), ["load_balancing_policy"]);
}

#[test]
fn d70_wrr_locality_weighs_localities_and_has_a_policy_inside() {
    let inner = json!({"policies": [extension(RANDOM, &json!({}))]});
    let policy = one(WRR_LOCALITY, &json!({"endpoint_picking_policy": inner}));
    assert_eq!(policy.kind, Kind::Random);
    assert_eq!(policy.localities, LocalityMode::Weighted);
    let empty = list(&[extension(WRR_LOCALITY, &json!({}))]);
    let path = "load_balancing_policy.policies[0].endpoint_picking_policy";
    assert_eq!(paths(empty), [path]);
}

#[test]
fn d69_d70_typed_policies_say_how_localities_are_told_apart() {
    let weighted = json!({"locality_lb_config": {"locality_weighted_lb_config": {}}});
    let zones = json!({"locality_lb_config": {"zone_aware_lb_config": {
        "routing_enabled": {"value": 30}, "min_cluster_size": 2, "fail_traffic_on_panic": true,
    }}});
    let zone_aware = LocalityMode::ZoneAware(ZoneAware {
        enabled: 30.0,
        min_cluster_size: 2,
        fails_on_panic: true,
    });
    for name in [ROUND_ROBIN, LEAST_REQUEST, RANDOM] {
        assert_eq!(one(name, &weighted).localities, LocalityMode::Weighted);
        assert_eq!(one(name, &zones).localities, zone_aware, "{name}");
    }
    for name in [RING_HASH, MAGLEV] {
        let weighted = json!({"locality_weighted_lb_config": {}});
        assert_eq!(one(name, &weighted).localities, LocalityMode::Weighted);
    }
}

#[test]
fn d62_typed_policies_start_slowly() {
    let slow = json!({"slow_start_config": {
        "slow_start_window": "5s",
        "aggression": {"default_value": 3, "runtime_key": "a"},
        "min_weight_percent": {"value": 20},
    }});
    let expected = SlowStart::new(Duration::from_secs(5), 3.0, 20.0);
    let least = json!({"slow_start_config": {"slow_start_window": "5s"}});
    let defaults = SlowStart::new(Duration::from_secs(5), 1.0, 10.0);
    for name in [ROUND_ROBIN, LEAST_REQUEST] {
        assert_eq!(one(name, &slow).slow_start, Some(expected), "{name}");
        assert_eq!(one(name, &least).slow_start, Some(defaults), "{name}");
    }
}

#[test]
fn d62_typed_hashing_by_host_name_and_what_it_cannot() {
    for name in [RING_HASH, MAGLEV] {
        let with = |fields: Value| {
            list(&[extension(
                name,
                &json!({"consistent_hashing_lb_config": fields}),
            )])
        };
        let by_name = with(json!({"use_hostname_for_hashing": true}));
        assert!(by_name.expect("a policy").uses_hostname, "{name}");
        let at = "load_balancing_policy.policies[0].consistent_hashing_lb_config";
        assert_eq!(
            paths(with(json!({"hash_balance_factor": 120}))),
            [format!("{at}.hash_balance_factor")]
        );
        let hashes = json!({"hash_policy": [{"header": {"header_name": "x"}}]});
        assert_eq!(paths(with(hashes)), [format!("{at}.hash_policy")]);
    }
    let size = list(&[extension(MAGLEV, &json!({"table_size": 12}))]);
    assert_eq!(
        paths(size),
        ["load_balancing_policy.policies[0].table_size"]
    );
    let ring = json!({"minimum_ring_size": 9, "maximum_ring_size": 8});
    let ring = list(&[extension(RING_HASH, &ring)]);
    let path = "load_balancing_policy.policies[0].minimum_ring_size";
    assert_eq!(paths(ring), [path]);
}
