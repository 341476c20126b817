//! One endpoint: how it is described, what its health is, what makes it another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{address, assignment, endpoint, locality, sets};
use crate::balance::{Health, HostSets, Locality};

#[test]
fn d63_an_endpoint_is_as_the_assignment_describes_it() {
    let hosts = sets(&json!([{
        "locality": {"region": "r", "zone": "z", "sub_zone": "s"},
        "lb_endpoints": [
            {"endpoint": {"hostname": "a.test", "address": address("10.0.0.1", 80)}},
            {"endpoint": {"address": address("2001:db8::1", 81)}},
            // It has no address that a connection could be made to.
            {"endpoint": {"address": {"pipe": {"path": "/socket"}}}},
        ],
    }]));
    let seen: Vec<_> = hosts
        .hosts()
        .map(|host| (host.address(), host.hostname()))
        .collect();
    assert_eq!(seen, [("10.0.0.1:80", "a.test"), ("[2001:db8::1]:81", "")]);
    let place = Locality {
        region: "r".to_owned(),
        zone: "z".to_owned(),
        sub_zone: "s".to_owned(),
    };
    assert!(hosts.hosts().all(|host| *host.locality() == place));
}

#[test]
fn d67_health_is_what_the_control_plane_says() {
    for (status, health) in [
        ("UNKNOWN", Health::Healthy),
        ("HEALTHY", Health::Healthy),
        ("DEGRADED", Health::Degraded),
        ("UNHEALTHY", Health::Unhealthy),
        ("TIMEOUT", Health::Unhealthy),
        ("DRAINING", Health::Unhealthy),
    ] {
        let one = endpoint(1, &json!({"health_status": status}));
        let hosts = sets(&json!([locality("z", 0, &[one])]));
        let host = hosts.hosts().next().expect("an endpoint");
        assert_eq!(host.health(), health, "{status}");
    }
}

#[test]
fn d64_checks_and_outliers_each_take_an_endpoint_out() {
    let one = endpoint(1, &json!({"health_status": "DEGRADED"}));
    let hosts = sets(&json!([locality("z", 0, &[one])]));
    let host = hosts.hosts().next().expect("an endpoint");
    for (fails, is_ejected, health) in [
        (true, false, Health::Unhealthy),
        (true, true, Health::Unhealthy),
        (false, true, Health::Unhealthy),
        // Back again, it is what the control plane says.
        (false, false, Health::Degraded),
    ] {
        host.counters().set_fails_check(fails);
        host.counters().set_ejected(is_ejected);
        assert_eq!(host.health(), health, "{fails} {is_ejected}");
    }
}

#[test]
fn requests_under_way_are_counted() {
    let hosts = sets(&json!([locality("z", 0, &super::plain(&[1]))]));
    let counters = hosts.hosts().next().expect("an endpoint").counters();
    let mut seen = vec![counters.active()];
    for starts in [true, true, true, false] {
        match starts {
            true => counters.start(),
            false => counters.end(),
        }
        seen.push(counters.active());
    }
    assert_eq!(seen, [0, 1, 2, 3, 2]);
}

fn lb_metadata(fields: &Value) -> Value {
    json!({"filter_metadata": {"envoy.lb": fields}})
}

/// A field that is another makes the endpoint another one, and only then is it
/// built anew. What is counted stays.
#[test]
fn d63_each_field_of_an_endpoint_may_change() {
    let base = || {
        json!({
            "endpoint": {"hostname": "a.test"},
            "load_balancing_weight": 2,
            "health_status": "UNHEALTHY",
            "metadata": lb_metadata(&json!({"stage": "prod"})),
        })
    };
    let with = |field: &str, value: Value| {
        let mut fields = base();
        fields[field] = value;
        fields
    };
    let changed = [
        ("z", with("endpoint", json!({"hostname": "b.test"}))),
        ("z", with("load_balancing_weight", json!(3))),
        ("z", with("health_status", json!("DEGRADED"))),
        // Out of use as well, but it does not count any more.
        ("z", with("health_status", json!("DRAINING"))),
        (
            "z",
            with("metadata", lb_metadata(&json!({"stage": "beta"}))),
        ),
        ("z", with("metadata", lb_metadata(&json!({"stage": true})))),
        ("y", base()),
    ];
    for (zone, fields) in changed {
        let one = |zone: &str, fields: &Value| {
            let group = locality(zone, 0, &[endpoint(1, fields)]);
            assignment(&json!({"endpoints": [group]}))
        };
        let before = one("z", &base());
        let mut hosts = HostSets::read(&before, Duration::ZERO).expect("endpoints");
        let old = Arc::clone(hosts.hosts().next().expect("an endpoint"));
        old.counters().start();
        let same = hosts.update(&before, Duration::ZERO).expect("endpoints");
        assert!(same.priorities.is_empty(), "{fields}");
        assert!(Arc::ptr_eq(hosts.hosts().next().expect("one"), &old));

        let after = one(zone, &fields);
        let changes = hosts.update(&after, Duration::ZERO).expect("endpoints");
        assert_eq!(changes.priorities, [0], "{fields}");
        assert!(changes.added.is_empty() && changes.removed.is_empty());
        let new = hosts.hosts().next().expect("an endpoint");
        assert!(!Arc::ptr_eq(new, &old), "{fields}");
        assert_eq!(new.counters().active(), 1, "{fields}");
    }
}

#[test]
fn d62_the_key_of_an_endpoint_is_metadata_or_host_name_or_address() {
    let key = |fields: &Value, uses_hostname: bool| {
        let hosts = sets(&json!([locality("z", 0, &[endpoint(1, fields)])]));
        let host = hosts.hosts().next().expect("an endpoint");
        host.hash_key(uses_hostname).to_owned()
    };
    let named = json!({"endpoint": {"hostname": "a.test"}});
    let keyed = json!({
        "endpoint": {"hostname": "a.test"},
        "metadata": lb_metadata(&json!({"hash_key": "k"})),
    });
    let numbered = json!({"metadata": lb_metadata(&json!({"hash_key": 7}))});
    for (fields, uses_hostname, expected) in [
        (&named, false, "10.0.0.1:80"),
        (&named, true, "a.test"),
        (&json!({}), true, "10.0.0.1:80"),
        (&keyed, true, "k"),
        (&keyed, false, "k"),
        // A key is a text.
        (&numbered, false, "10.0.0.1:80"),
    ] {
        assert_eq!(key(fields, uses_hostname), expected, "{fields}");
    }
}
