//! Endpoints that are equal in all but weight (62; facts 4.2).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{World, endpoint, in_priority, plain, policy, sets, weighing};
use crate::balance::pool::Pool;
use crate::balance::{Host, Policy};

fn hosts(endpoints: &[Value]) -> Vec<Arc<Host>> {
    sets(&json!([in_priority(0, endpoints)]))
        .hosts()
        .cloned()
        .collect()
}

fn least_request(choices: u32) -> Policy {
    let config = json!({"choice_count": choices});
    let cluster = json!({"lb_policy": "LEAST_REQUEST", "least_request_lb_config": config});
    policy(&cluster).expect("a policy")
}

fn full_scan() -> Policy {
    let name = "type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest";
    let config = json!({"@type": name, "selection_method": "FULL_SCAN"});
    let list =
        json!({"policies": [{"typed_extension_config": {"name": "p", "typed_config": config}}]});
    policy(&json!({"load_balancing_policy": list})).expect("a policy")
}

fn start(hosts: &[Arc<Host>], active: &[u32]) {
    for (host, active) in hosts.iter().zip(active) {
        (0..*active).for_each(|_| host.counters().start());
    }
}

/// The index of the endpoint that a pool chooses with these random numbers.
fn choice(policy: &Policy, active: &[u32], numbers: &[u64]) -> u8 {
    let lasts: Vec<u8> = (0..).take(active.len()).collect();
    let hosts = hosts(&plain(&lasts));
    start(&hosts, active);
    let mut pool = Pool::new(hosts, policy, 0, Duration::ZERO);
    let mut numbers = numbers.iter();
    let mut random = || *numbers.next().expect("one more number");
    let host = pool.pick(Duration::ZERO, &mut random).expect("an endpoint");
    last(host)
}

fn last(host: &Host) -> u8 {
    let (ip, _) = host.address().split_once(':').expect("a port");
    let last = ip.rsplit('.').next().expect("a part");
    last.parse().expect("a number")
}

#[test]
fn d62_of_a_few_that_are_drawn_the_one_with_the_fewest_requests_is_chosen() {
    for (choices, active, numbers, expected) in [
        (2, &[2, 1, 0], &[0, 1][..], 1),
        (2, &[2, 1, 0], &[1, 0], 1),
        (2, &[1, 2, 0], &[0, 1], 0),
        // The first of two that have as many.
        (2, &[1, 1, 0], &[0, 1], 0),
        (2, &[1, 1, 0], &[1, 0], 1),
        (2, &[0, 0, 0], &[2, 1], 2),
        // The same one may be drawn twice, though another has fewer.
        (2, &[3, 0, 0], &[0, 0], 0),
        (2, &[3, 0, 1], &[3, 5], 2),
        (3, &[2, 1, 0], &[0, 1, 2], 2),
        (3, &[0, 1, 2], &[2, 1, 0], 0),
        (1, &[9, 0, 0], &[0], 0),
    ] {
        let policy = least_request(choices);
        let chosen = choice(&policy, active, numbers);
        assert_eq!(chosen, expected, "{choices} of {active:?} by {numbers:?}");
    }
}

#[test]
fn d62_a_full_scan_finds_the_fewest_requests_wherever_they_are() {
    let policy = full_scan();
    assert_eq!(choice(&policy, &[0, 1, 2], &[]), 0);
    assert_eq!(choice(&policy, &[2, 0, 1], &[]), 1);
    assert_eq!(choice(&policy, &[2, 1, 0], &[]), 2);
    // Those that have as many share evenly.
    let hosts = hosts(&plain(&[0, 1, 2, 3]));
    start(&hosts, &[1, 3, 1, 1]);
    let mut pool = Pool::new(hosts, &policy, 0, Duration::ZERO);
    let mut random = fastrand::Rng::with_seed(5);
    let mut counts = [0_u32; 4];
    for _ in 0..3_000 {
        let host = pool.pick(Duration::ZERO, &mut || random.u64(..));
        counts[usize::from(last(host.expect("an endpoint")))] += 1;
    }
    assert_eq!(counts[1], 0);
    let is_even = |count: &u32| count.abs_diff(1_000) < 130;
    assert!(
        [0, 2, 3].iter().all(|index| is_even(&counts[*index])),
        "{counts:?}"
    );
}

#[test]
fn d62_requests_under_way_lessen_a_weight_by_the_bias() {
    let shares = |bias: f64, active: &[u32]| {
        let config = json!({"active_request_bias": {"default_value": bias, "runtime_key": "b"}});
        let cluster = json!({"lb_policy": "LEAST_REQUEST", "least_request_lb_config": config});
        let policy = policy(&cluster).expect("a policy");
        let hosts = hosts(&[weighing(0, 3), weighing(1, 1)]);
        start(&hosts, active);
        let mut pool = Pool::new(hosts, &policy, 0, Duration::ZERO);
        let picks = (0..80).map(|_| last(pool.pick(Duration::ZERO, &mut || 0).expect("one")));
        picks.filter(|last| *last == 0).count()
    };
    // Idle ones get requests by weight: 3 of 4.
    assert_eq!(shares(1.0, &[0, 0]), 60);
    // 3 / (2 + 1) is 1, as the other has.
    assert_eq!(shares(1.0, &[2, 0]), 40);
    // 3 / (8 + 1) is a third.
    assert_eq!(shares(1.0, &[8, 0]), 20);
    // 3 / sqrt(8 + 1) is 1.
    assert_eq!(shares(0.5, &[8, 0]), 40);
    assert_eq!(shares(0.0, &[8, 0]), 60);
}

#[test]
fn d62_a_new_endpoint_starts_slowly_and_ends_as_an_equal() {
    let slow = json!({"slow_start_config": {"slow_start_window": "100s"}});
    for cluster in [
        json!({"lb_policy": "ROUND_ROBIN", "round_robin_lb_config": slow}),
        json!({"lb_policy": "LEAST_REQUEST", "least_request_lb_config": slow}),
    ] {
        let mut world = World::new(&cluster, &json!([in_priority(0, &plain(&[1]))]));
        world.now = Duration::from_secs(1_000);
        world.update(&json!([in_priority(0, &plain(&[1, 2]))]));
        // At first a tenth of the other's weight, then by its age.
        for (age, share) in [(0, 0.1), (50, 0.5), (100, 1.0), (500, 1.0)] {
            world.now = Duration::from_secs(1_000 + age);
            // The deadline of before is the first that passes.
            world.order(20);
            let new = f64::from(world.counts(1_100)[&2]);
            let expected = 1_100.0 * share / (1.0 + share);
            assert!((new - expected).abs() < 15.0, "{cluster}, {age}: {new}");
        }
    }
}

#[test]
fn d62_a_change_of_weight_is_a_change_of_kind() {
    for name in ["ROUND_ROBIN", "LEAST_REQUEST"] {
        let cluster = json!({"lb_policy": name});
        let mut world = World::new(&cluster, &json!([in_priority(0, &plain(&[1, 2]))]));
        // The first change makes what later ones are followed with.
        for weight in [1, 1, 3, 2, 1] {
            world.update(&json!([in_priority(
                0,
                &[weighing(1, 1), weighing(2, weight)]
            )]));
            if weight > 1 {
                let expected = [(1, 60), (2, 60 * weight)];
                let picks = 60 * (1 + weight as usize);
                assert_eq!(world.counts(picks), expected.into(), "{name} {weight}");
            }
        }
        // What has no other beside it may weigh what it likes.
        for weight in [3, 5] {
            world.update(&json!([in_priority(0, &[weighing(2, weight)])]));
            assert_eq!(world.used(), [2]);
        }
    }
}

/// The places of endpoints that went stay empty until their turn, but not for
/// ever, nor is everything made anew for each of them.
#[test]
fn d63_endpoints_that_come_and_go_leave_little_behind() {
    let policy = policy(&json!({})).expect("a policy");
    let all = hosts(
        &(0..200)
            .map(|last| weighing(last, 1 + u32::from(last % 3)))
            .collect::<Vec<_>>(),
    );
    let mut pool = Pool::new(all[..4].to_vec(), &policy, 0, Duration::ZERO);
    let mut most = 0;
    for pair in all.windows(5) {
        let (old, new) = (&pair[0], &pair[4]);
        pool.change(new.address(), Some(new), &policy, 0, Duration::ZERO);
        pool.change(old.address(), None, &policy, 0, Duration::ZERO);
        assert_eq!(pool.count(), 4);
        most = most.max(pool.places_held());
    }
    assert!(
        (9..=4 * 2 + 9).contains(&most),
        "{most} places for 4 endpoints"
    );
    let mut seen: Vec<u8> = (0..40)
        .map(|_| last(pool.pick(Duration::ZERO, &mut || 0).expect("an endpoint")))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [196, 197, 198, 199]);
}

#[test]
fn an_empty_pool_gives_nothing() {
    let policy = policy(&json!({})).expect("a policy");
    let one = hosts(&[endpoint(1, &json!({}))]);
    let mut pool = Pool::new(one.clone(), &policy, 0, Duration::ZERO);
    assert!(!pool.is_empty());
    pool.change(one[0].address(), None, &policy, 0, Duration::ZERO);
    assert!(pool.is_empty());
    assert!(pool.pick(Duration::ZERO, &mut || 0).is_none());
    // What was never there cannot go.
    pool.change("?", None, &policy, 0, Duration::ZERO);
    pool.change(one[0].address(), Some(&one[0]), &policy, 0, Duration::ZERO);
    assert_eq!((pool.count(), pool.is_empty()), (1, false));
}

/// Whatever number goes, and from whatever number.
#[test]
fn d63_places_follow_endpoints_that_go() {
    let policy = policy(&json!({})).expect("a policy");
    for count in [30, 31] {
        let all = hosts(
            &(0..count)
                .map(|last| weighing(last, 1 + u32::from(last % 3)))
                .collect::<Vec<_>>(),
        );
        let mut pool = Pool::new(all.clone(), &policy, 0, Duration::ZERO);
        for host in &all {
            pool.change(host.address(), None, &policy, 0, Duration::ZERO);
            let (held, left) = (pool.places_held(), pool.count());
            assert!(held <= 2 * left + 8, "{held} places for {left} of {count}");
        }
    }
}
