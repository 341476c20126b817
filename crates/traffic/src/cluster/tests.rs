//! What the rules say of breakers (61) and outliers (73), at their bounds.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, OutlierDetection};

use super::{Breakers, Ejection, Limits, OutlierConfig, Outliers, Percent};
use crate::findings::Findings;
use crate::json::message;
use crate::route::Priority;

fn config(json: &Value) -> Result<OutlierConfig, Findings> {
    let of = "envoy.config.cluster.v3.OutlierDetection";
    OutlierConfig::compile(&message::<OutlierDetection>(of, json))
}

/// Endpoints h0, h1 and so on.
fn outliers(count: usize, json: &Value) -> Outliers {
    let config = config(json).expect("settings");
    let hosts = (0..count).map(|index| format!("h{index}"));
    Outliers::new(config, hosts, Duration::ZERO)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn out(host: &str) -> Ejection {
    Ejection::Out(host.to_owned())
}

fn back(host: &str) -> Ejection {
    Ejection::Back(host.to_owned())
}

/// The responses of an endpoint; the number of the one that ejected it.
fn ejecting(outliers: &mut Outliers, host: &str, statuses: &[u16], random: u64) -> Option<usize> {
    let mut statuses = statuses.iter();
    let found = statuses.position(|status| {
        let change = outliers.handle_status(host, *status, seconds(1), random);
        change == Some(out(host))
    });
    found.map(|index| index + 1)
}

/// So many responses of each endpoint, of which some fail in no long row.
fn requests(outliers: &mut Outliers, failures: &[(u32, u32)]) {
    for (host, (failed, all)) in failures.iter().enumerate() {
        for index in 0..*all {
            let status = if index < *failed { 503 } else { 200 };
            let change = outliers.handle_status(&format!("h{host}"), status, seconds(1), 0);
            assert_eq!(change, None);
        }
    }
}

fn tick(outliers: &mut Outliers, at: u64) -> Vec<Ejection> {
    outliers.handle_timeout(seconds(at), &mut || 0)
}

#[test]
fn d73_defaults_are_those_of_envoy() {
    let config = config(&json!({})).expect("settings");
    assert_eq!(config.consecutive_5xx, (5, Percent(100)));
    assert_eq!(config.consecutive_gateway, (5, Percent(0)));
    assert_eq!(config.interval, seconds(10));
    assert_eq!((config.base, config.max), (seconds(30), seconds(300)));
    assert_eq!(
        (config.max_ejection, config.always_one),
        (Percent(10), false)
    );
    let rate = config.success_rate;
    assert_eq!(
        (rate.enforcing, rate.min_hosts, rate.min_requests),
        (Percent(100), 5, 100)
    );
    assert!((rate.deviations - 1.9).abs() < 1e-9);
    let failures = config.failures;
    assert_eq!(failures.enforcing, Percent(0));
    assert_eq!((failures.min_hosts, failures.min_requests), (5, 50));
    assert_eq!(failures.threshold, Percent(85));
}

#[test]
fn d73_what_is_not_there_is_a_finding() {
    for field in [
        "split_external_local_origin_errors",
        "detect_degraded_hosts",
    ] {
        let findings = config(&json!({field: true})).expect_err("a finding");
        assert_eq!(findings.list()[0].path, field);
        assert!(config(&json!({field: false})).is_ok());
    }
    let jitter = config(&json!({"max_ejection_time_jitter": "1s"}));
    assert_eq!(jitter.expect_err("a finding").list().len(), 1);
    // The longest time is no shorter than the base.
    let long = config(&json!({"base_ejection_time": "400s"})).expect("settings");
    assert_eq!(long.max, seconds(400));
}

#[test]
fn d73_errors_in_a_row_are_from_500_to_599() {
    let two = json!({"consecutive_5xx": 2, "max_ejection_percent": 100});
    for (statuses, expected) in [
        (&[500, 599][..], Some(2)),
        (&[503, 503], Some(2)),
        (&[499, 499, 499], None),
        (&[600, 600, 600], None),
        (&[500, 404, 500], None),
        (&[500, 200, 500, 500], Some(4)),
    ] {
        let mut outliers = outliers(2, &two);
        assert_eq!(
            ejecting(&mut outliers, "h0", statuses, 0),
            expected,
            "{statuses:?}"
        );
    }
}

#[test]
fn d73_gateway_errors_in_a_row_are_502_to_504() {
    let two = |enforcing: u32| {
        json!({
            "consecutive_5xx": 100,
            "consecutive_gateway_failure": 2,
            "enforcing_consecutive_gateway_failure": enforcing,
            "max_ejection_percent": 100,
        })
    };
    for (statuses, expected) in [
        (&[502, 504][..], Some(2)),
        (&[503, 503], Some(2)),
        (&[501, 501, 501], None),
        (&[505, 505, 505], None),
        (&[503, 500, 503], None),
        (&[503, 200, 503], None),
        (&[503, 500, 502, 503], Some(4)),
    ] {
        let mut outliers = outliers(2, &two(100));
        assert_eq!(
            ejecting(&mut outliers, "h0", statuses, 0),
            expected,
            "{statuses:?}"
        );
    }
    let mut not_enforced = outliers(2, &two(0));
    assert_eq!(ejecting(&mut not_enforced, "h0", &[503; 9], 0), None);
}

#[test]
fn d73_a_part_of_ejections_may_be_enforced() {
    let half =
        json!({"consecutive_5xx": 1, "enforcing_consecutive_5xx": 50, "max_ejection_percent": 100});
    for (random, expected) in [
        (0, Some(1)),
        (49, Some(1)),
        (50, None),
        (99, None),
        (149, Some(1)),
    ] {
        let mut outliers = outliers(2, &half);
        assert_eq!(
            ejecting(&mut outliers, "h0", &[500], random),
            expected,
            "{random}"
        );
    }
    assert!(Percent(100).includes(99));
    assert!(!Percent(0).includes(100));
}

#[test]
fn d73_no_more_are_out_than_may_be() {
    let percent = |percent: u32, always: bool| {
        json!({
            "consecutive_5xx": 1,
            "max_ejection_percent": percent,
            "always_eject_one_host": always,
        })
    };
    // Of ten endpoints, how many go.
    for (settings, expected) in [
        (percent(9, false), 0),
        (percent(10, false), 1),
        (percent(29, false), 2),
        (percent(30, false), 3),
        (percent(100, false), 10),
        (percent(0, true), 1),
        (percent(20, true), 2),
    ] {
        let mut outliers = outliers(10, &settings);
        let hosts = (0..10).map(|index| format!("h{index}"));
        let gone = hosts.filter(|host| ejecting(&mut outliers, host, &[500], 0).is_some());
        assert_eq!(gone.count(), expected, "{settings}");
    }
}

#[test]
fn d73_endpoints_come_and_go() {
    let half = json!({"consecutive_5xx": 1, "max_ejection_percent": 50});
    let mut outliers = outliers(1, &half);
    assert_eq!(
        ejecting(&mut outliers, "h0", &[500], 0),
        None,
        "it is all there is"
    );
    outliers.add("h1");
    assert_eq!(ejecting(&mut outliers, "h0", &[500], 0), Some(1));
    assert_eq!(ejecting(&mut outliers, "h1", &[500], 0), None);
    // What is added again is as it was; what went is not out any more.
    outliers.add("h0");
    assert_eq!(ejecting(&mut outliers, "h1", &[500], 0), None);
    outliers.remove("h0");
    outliers.add("h2");
    assert_eq!(ejecting(&mut outliers, "h0", &[500], 0), None, "it is gone");
    assert_eq!(ejecting(&mut outliers, "h1", &[500], 0), Some(1));
}

#[test]
fn d73_a_time_out_grows_with_each_ejection_up_to_the_longest() {
    let settings = json!({
        "consecutive_5xx": 1,
        "max_ejection_percent": 100,
        "base_ejection_time": "20s",
        "max_ejection_time": "50s",
    });
    let mut outliers = outliers(2, &settings);
    assert_eq!(outliers.next_deadline(), seconds(10));
    let mut now = 0;
    // The interval in which it is ejected again is not one without failures.
    for expected in [20, 40, 50, 50] {
        outliers.handle_status("h0", 500, seconds(now), 0);
        // An endpoint that is out is not ejected again.
        assert_eq!(outliers.handle_status("h0", 500, seconds(now + 1), 0), None);
        let end = now + expected;
        while now < end {
            now += 10;
            assert_eq!(tick(&mut outliers, now - 1), [], "before its time");
            let changes = tick(&mut outliers, now);
            assert_eq!(outliers.next_deadline(), seconds(now + 10));
            assert_eq!(changes == [back("h0")], now == end, "{changes:?}");
        }
    }
}

#[test]
fn d73_intervals_without_failures_are_forgiven_one_by_one() {
    let settings =
        json!({"consecutive_5xx": 1, "max_ejection_percent": 100, "base_ejection_time": "10s"});
    let mut outliers = outliers(2, &settings);
    let time_out = |outliers: &mut Outliers, now: &mut u64| {
        outliers.handle_status("h0", 500, seconds(*now), 0);
        // It is never out for longer than five minutes.
        let mut times = (1..=31).map(|interval| interval * 10);
        let time = times.find(|time| !tick(outliers, *now + time).is_empty());
        let time = time.expect("it is back");
        *now += time;
        time
    };
    let mut now = 0;
    assert_eq!(time_out(&mut outliers, &mut now), 10);
    assert_eq!(time_out(&mut outliers, &mut now), 20);
    assert_eq!(time_out(&mut outliers, &mut now), 30);
    for _ in 0..2 {
        now += 10;
        assert_eq!(tick(&mut outliers, now), []);
    }
    assert_eq!(
        time_out(&mut outliers, &mut now),
        20,
        "two of three are forgiven"
    );
    for _ in 0..9 {
        now += 10;
        assert_eq!(tick(&mut outliers, now), []);
    }
    assert_eq!(time_out(&mut outliers, &mut now), 10);
}

/// Of five endpoints one is always two deviations below the mean, however many
/// of its requests failed.
#[test]
fn d73_a_success_rate_so_many_deviations_below_the_mean_ejects() {
    let rate = |factor: u32, enforcing: u32| {
        json!({
            "consecutive_5xx": 1000,
            "max_ejection_percent": 100,
            "success_rate_stdev_factor": factor,
            "enforcing_success_rate": enforcing,
        })
    };
    let good = (0, 100);
    for (settings, requests_made, expected) in [
        (
            rate(1_900, 100),
            [(30, 100), good, good, good, good],
            vec![out("h0")],
        ),
        (
            rate(2_100, 100),
            [(30, 100), good, good, good, good],
            vec![],
        ),
        (rate(1_900, 0), [(30, 100), good, good, good, good], vec![]),
        // A request too few, of the one or of another.
        (rate(1_900, 100), [(30, 99), good, good, good, good], vec![]),
        (
            rate(1_900, 100),
            [(30, 100), good, good, good, (0, 99)],
            vec![],
        ),
        // All are the same.
        (rate(1_900, 100), [(30, 100); 5], vec![]),
        (rate(0, 100), [(30, 100); 5], vec![]),
    ] {
        let mut outliers = outliers(5, &settings);
        requests(&mut outliers, &requests_made);
        assert_eq!(
            tick(&mut outliers, 10),
            expected,
            "{settings} {requests_made:?}"
        );
        // Each interval is judged by itself.
        assert_eq!(tick(&mut outliers, 20), []);
    }
}

#[test]
fn d73_a_part_of_failures_ejects() {
    let settings = |enforcing: u32| {
        json!({
            "consecutive_5xx": 1000,
            "max_ejection_percent": 100,
            "enforcing_success_rate": 0,
            "enforcing_failure_percentage": enforcing,
        })
    };
    let good = (0, 100);
    for (enforcing, first, expected) in [
        (100, (85, 100), vec![out("h0")]),
        (100, (84, 100), vec![]),
        (100, (50, 50), vec![out("h0")]),
        (100, (49, 49), vec![]),
        (0, (100, 100), vec![]),
    ] {
        let mut outliers = outliers(5, &settings(enforcing));
        requests(&mut outliers, &[first, good, good, good, good]);
        assert_eq!(tick(&mut outliers, 10), expected, "{first:?}");
    }
    // Four are too few to be compared.
    let mut four = outliers(4, &settings(100));
    requests(&mut four, &[(100, 100), good, good, good]);
    assert_eq!(tick(&mut four, 10), []);
    // Half an interval before and half of it after are two.
    let mut outliers = outliers(5, &settings(100));
    requests(&mut outliers, &[(30, 30), good, good, good, good]);
    assert_eq!(tick(&mut outliers, 10), []);
    requests(&mut outliers, &[(30, 30), good, good, good, good]);
    assert_eq!(tick(&mut outliers, 20), []);
}

fn limits(thresholds: &Value, priority: Priority) -> Result<Limits, Findings> {
    let json = json!({"circuit_breakers": {"thresholds": thresholds}});
    let cluster: Cluster = message("envoy.config.cluster.v3.Cluster", &json);
    Limits::compile(&cluster, priority)
}

/// How often something is let in, at most 2 000 times.
fn allowed(enter: impl Fn() -> bool) -> usize {
    (0..2_000).take_while(|_| enter()).count()
}

#[test]
fn d61_each_priority_has_limits_of_its_own() {
    let thresholds = json!([
        {"priority": "HIGH", "max_connections": 1, "max_requests": 5},
        {"max_connections": 2, "max_pending_requests": 3, "max_requests": 4, "max_retries": 6},
    ]);
    for (priority, expected) in [
        (Priority::Default, [2, 3, 4, 6]),
        (Priority::High, [1, 1024, 5, 3]),
    ] {
        let breakers = Breakers::new(limits(&thresholds, priority).expect("limits"));
        let counts = [
            allowed(|| breakers.try_connection(1)),
            allowed(|| breakers.try_pending()),
            allowed(|| breakers.try_request()),
            allowed(|| breakers.try_retry()),
        ];
        assert_eq!(counts, expected);
        // What ended makes place for one more, each of its kind.
        breakers.end_connection();
        assert_eq!(allowed(|| breakers.try_connection(1)), 1);
        breakers.end_pending();
        assert_eq!(allowed(|| breakers.try_pending()), 1);
        breakers.end_request();
        assert_eq!(allowed(|| breakers.try_request()), 1);
        breakers.end_retry();
        assert_eq!(allowed(|| breakers.try_retry()), 1);
        assert!(breakers.try_connection(0), "an endpoint gets one always");
    }
    let none = limits(&json!([]), Priority::Default).expect("limits");
    let breakers = Breakers::new(none);
    assert_eq!(allowed(|| breakers.try_connection(1)), 1024);
    assert_eq!(allowed(|| breakers.try_pending()), 1024);
    assert_eq!(allowed(|| breakers.try_request()), 1024);
    assert_eq!(allowed(|| breakers.try_retry()), 3);
}

#[test]
fn d43_a_retry_budget_counts_requests_that_wait_too() {
    let budget = |percent: f64, least: u32| {
        let budget = json!({"budget_percent": {"value": percent}, "min_retry_concurrency": least});
        limits(&json!([{"retry_budget": budget}]), Priority::Default)
    };
    let breakers = Breakers::new(budget(50.0, 2).expect("limits"));
    assert_eq!(allowed(|| breakers.try_retry()), 2);
    (0..4).for_each(|_| assert!(breakers.try_pending()));
    assert_eq!(allowed(|| breakers.try_retry()), 0, "half of four are two");
    (0..5).for_each(|_| assert!(breakers.try_request()));
    assert_eq!(allowed(|| breakers.try_retry()), 2, "half of nine are four");
    let default = limits(&json!([{"retry_budget": {}}]), Priority::Default);
    let breakers = Breakers::new(default.expect("limits"));
    (0..20).for_each(|_| assert!(breakers.try_request()));
    assert_eq!(allowed(|| breakers.try_retry()), 4, "a fifth of twenty");
    let path = "circuit_breakers.thresholds[0].retry_budget";
    for wrong in [-1.0, 100.5] {
        let findings = budget(wrong, 1).expect_err("a finding");
        assert_eq!(findings.list()[0].path, path, "{wrong}");
    }
    assert!(budget(0.0, 1).is_ok() && budget(100.0, 1).is_ok());
}

#[test]
fn d61_a_limit_of_pools_is_a_finding() {
    let pools = |max: u32| limits(&json!([{"max_connection_pools": max}]), Priority::Default);
    let path = "circuit_breakers.thresholds[0].max_connection_pools";
    assert_eq!(pools(7).expect_err("a finding").list()[0].path, path);
    // It is the default, and no limit.
    assert!(pools(u32::MAX).is_ok());
}

#[test]
fn d73_endpoints_are_looked_at_when_an_interval_is_over_and_not_before() {
    let mut outliers = outliers(
        1,
        &json!({"consecutive_5xx": 1, "base_ejection_time": "1s", "max_ejection_percent": 100}),
    );
    assert_eq!(ejecting(&mut outliers, "h0", &[500], 0), Some(1));
    assert_eq!(tick(&mut outliers, 9), [], "an interval has ten seconds");
    assert_eq!(outliers.next_deadline(), seconds(10));
    assert_eq!(tick(&mut outliers, 12), [back("h0")], "late is no matter");
    assert_eq!(outliers.next_deadline(), seconds(22));
}
