//! Shares of priorities by health (66-68; facts 4.3).

use serde_json::{Value, json};

use super::{PickContext, World, endpoint, in_priority, of_health, plain};
use crate::balance::host::Health;
use crate::balance::{Balancer, PriorityLoad};

fn load(counts: &[(u8, u8, u8)], threshold: u8) -> PriorityLoad {
    let mut next = 0;
    let mut some = |count: u8, health: &str| -> Vec<Value> {
        let lasts: Vec<u8> = (next..next + count).collect();
        next += count;
        of_health(&lasts, health)
    };
    let priorities = (0..)
        .zip(counts)
        .map(|(priority, (healthy, degraded, out))| {
            let mut all = some(*healthy, "HEALTHY");
            all.extend(some(*degraded, "DEGRADED"));
            all.extend(some(*out, "UNHEALTHY"));
            in_priority(priority, &all)
        });
    let priorities: Vec<Value> = priorities.collect();
    let common = json!({"healthy_panic_threshold": {"value": threshold}});
    let world = World::new(&json!({"common_lb_config": common}), &json!(priorities));
    Balancer::load(&world.balancer).clone()
}

fn shares(healthy: &[u64], degraded: &[u64], panics: &[bool]) -> PriorityLoad {
    PriorityLoad {
        healthy: healthy.to_vec(),
        degraded: degraded.to_vec(),
        panics: panics.to_vec(),
    }
}

/// Priorities as healthy, degraded and unhealthy endpoints.
#[test]
fn d66_what_rounding_leaves_goes_to_the_first_that_has_any() {
    // 46 and 7 of 53: 86 and 13.
    let rest = load(&[(0, 0, 4), (1, 0, 2), (1, 0, 19)], 0);
    assert_eq!(rest, shares(&[0, 87, 13], &[0; 3], &[false; 3]));
    let rest = load(&[(0, 0, 4), (0, 1, 2), (0, 1, 19)], 0);
    assert_eq!(rest, shares(&[0; 3], &[0, 87, 13], &[false; 3]));
    // A third each by number, where all panic.
    let rest = load(&[(0, 0, 0), (0, 0, 3), (0, 0, 3), (0, 0, 3)], 50);
    assert_eq!(rest, shares(&[0, 34, 33, 33], &[0; 4], &[true; 4]));
}

#[test]
fn d68_a_priority_panics_below_the_threshold_not_at_it() {
    for (counts, threshold, panics) in [
        ((2, 0, 2), 50, false),
        ((2, 0, 2), 51, true),
        ((1, 1, 2), 50, false),
        ((1, 0, 3), 50, true),
        ((0, 1, 3), 50, true),
        ((1, 0, 3), 25, false),
        ((1, 0, 3), 0, false),
    ] {
        let load = load(&[counts], threshold);
        assert_eq!(load.panics, [panics], "{counts:?} at {threshold}");
    }
    // Degraded ones take their part of what is left.
    let half = load(&[(1, 1, 2)], 50);
    assert_eq!(half, shares(&[50], &[50], &[false]));
}

#[test]
fn d66_without_endpoints_there_is_no_share() {
    assert_eq!(load(&[(0, 0, 0)], 50), shares(&[0], &[0], &[true]));
    let mut world = World::new(&json!({}), &json!([in_priority(0, &[])]));
    assert_eq!(world.pick(&PickContext::default()), None);
    assert_eq!(
        World::new(&json!({}), &json!([])).pick(&PickContext::default()),
        None
    );
}

/// The number of a request, from 1 to 100, falls into one of the shares: healthy
/// endpoints of all priorities first.
#[test]
fn d66_a_number_chooses_the_priority() {
    let load = shares(&[10, 20], &[30, 40], &[false, false]);
    for (number, expected) in [
        (0, (0, Health::Healthy)),
        (9, (0, Health::Healthy)),
        (10, (1, Health::Healthy)),
        (29, (1, Health::Healthy)),
        (30, (0, Health::Degraded)),
        (59, (0, Health::Degraded)),
        (60, (1, Health::Degraded)),
        (99, (1, Health::Degraded)),
        (100, (0, Health::Healthy)),
        (1_230, (0, Health::Degraded)),
    ] {
        assert_eq!(load.choose(number), Some(expected), "{number}");
    }
    assert_eq!(shares(&[0], &[0], &[false]).choose(7), None);
}

/// Weights of degraded endpoints count as those of healthy ones do.
#[test]
fn d66_d67_health_by_weight_counts_degraded_endpoints() {
    let of = |last: u8, health: &str, weight: u32| {
        endpoint(
            last,
            &json!({"health_status": health, "load_balancing_weight": weight}),
        )
    };
    let endpoints = [
        of(1, "HEALTHY", 2),
        of(2, "DEGRADED", 3),
        of(3, "UNHEALTHY", 5),
    ];
    let message = super::assignment(&json!({
        "endpoints": [in_priority(0, &endpoints), in_priority(1, &plain(&[4]))],
        "policy": {"weighted_priority_health": true},
    }));
    let hosts = super::HostSets::read(&message, std::time::Duration::ZERO).expect("endpoints");
    let load = PriorityLoad::new(&hosts, 50.0);
    // 1.4 of 2 in 10, all of the next priority but what degraded ones get then.
    assert_eq!(load, shares(&[28, 72], &[0, 0], &[false, false]));
    let message = super::assignment(&json!({
        "endpoints": [in_priority(0, &endpoints)],
        "policy": {"weighted_priority_health": true},
    }));
    let hosts = super::HostSets::read(&message, std::time::Duration::ZERO).expect("endpoints");
    // 28 and 42 of 70.
    let load = PriorityLoad::new(&hosts, 50.0);
    assert_eq!(load, shares(&[40], &[60], &[false]));
}

#[test]
fn d66_a_priority_is_at_most_128() {
    let read = |priority: u32| {
        let endpoints = json!([
            in_priority(0, &plain(&[1])),
            in_priority(priority, &plain(&[2]))
        ]);
        let message = super::assignment(&json!({"endpoints": endpoints}));
        super::HostSets::read(&message, std::time::Duration::ZERO)
    };
    assert!(read(128).is_ok());
    let findings = read(129).expect_err("a finding");
    assert_eq!(findings.list()[0].path, "endpoints[1].priority");
    assert!(read(u32::MAX).is_err());
}
