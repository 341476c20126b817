//! Weighted clusters, and copies for others.

use serde_json::{Value, json};

use super::{compile, forward, forwarding, of, request, table, with};
use crate::hash::xxh64;
use crate::headers::Headers;
use crate::route::{Context, RouteTable};
use crate::runtime::Runtime;

#[test]
fn d47_a_weighted_cluster_is_chosen_by_a_number() {
    let clusters = json!([
        {"name": "a", "weight": 1},
        {"name": "b", "weight": 0},
        {"cluster_header": "X-Cluster", "weight": 2},
        {"name": "d"},
    ]);
    let weighted = |fields: &Value| {
        let weighted = with(json!({"clusters": clusters}), fields);
        let route = json!({
            "weighted_clusters": weighted, "hash_policy": [{"query_parameter": {"name": "q"}}],
        });
        table(&json!([{"match": {"prefix": "/"}, "route": route}]))
    };
    let choose =
        |table: &RouteTable, random: u64, path: &str, sent: &[(&'static str, &'static str)]| {
            let headers = of(sent);
            let request = request(path, &headers);
            let runtime = Runtime::default();
            let context = Context {
                random,
                runtime: &runtime,
                peer: None,
            };
            let found = table.find(&request, &context).expect("a route");
            let forward = found.forward(&request, &context).expect("it forwards");
            assert!(forward.cluster.entry.is_some());
            forward.cluster.name.map(str::to_owned)
        };
    let named = [("x-cluster", "c")];
    let plain = weighted(&json!({}));
    for (random, expected) in [(0, "a"), (1, "c"), (2, "c"), (3, "a"), (5, "c")] {
        let chosen = choose(&plain, random, "/", &named);
        assert_eq!(chosen.as_deref(), Some(expected), "{random}");
    }
    assert_eq!(choose(&plain, 1, "/", &[]), None, "the header is missing");
    assert_eq!(choose(&plain, 1, "/", &[("x-cluster", "")]), None);

    let by_header = weighted(&json!({"header_name": "X-Random"}));
    for (value, expected) in [("0", "a"), ("1", "c"), ("3", "a"), ("x", "c")] {
        let headers: Headers = [("x-random", value), ("x-cluster", "c")]
            .into_iter()
            .collect();
        let chosen = forward(&by_header, &request("/", &headers), |forward| {
            forward.cluster.name.map(str::to_owned)
        });
        // The random number of the request is 0.
        let expected = if value == "x" { "a" } else { expected };
        assert_eq!(chosen.as_deref(), Some(expected), "{value}");
    }
    let twice = [("x-random", "0"), ("x-random", "0"), ("x-cluster", "c")];
    assert_eq!(choose(&by_header, 1, "/", &twice).as_deref(), Some("c"));

    for (uses, path) in [
        (true, "/?q=1"),
        (true, "/?q=2"),
        (true, "/?q=3"),
        (true, "/"),
        (false, "/?q=1"),
    ] {
        let by_hash = weighted(&json!({"use_hash_policy": uses}));
        for random in 0..3 {
            let hash = path
                .strip_prefix("/?q=")
                .map(|value| xxh64(value.as_bytes()));
            let number = hash.filter(|_| uses).unwrap_or(random);
            let expected = if number % 3 == 0 { "a" } else { "c" };
            let chosen = choose(&by_hash, random, path, &named);
            assert_eq!(chosen.as_deref(), Some(expected), "{path} {random}");
        }
    }
}

#[test]
fn d47_metadata_of_a_route_is_that_of_its_clusters_but_for_keys_of_their_own() {
    let metadata = |fields: Value| json!({"filter_metadata": {"envoy.lb": fields}});
    let text = |value: &str| format!("{value:?}");
    let table = table(&json!([{"match": {"prefix": "/"}, "route": {
        "metadata_match": metadata(json!({"a": "1", "b": "2"})),
        "weighted_clusters": {"clusters": [
            {"name": "c", "weight": 1, "metadata_match": metadata(json!({"b": "3"}))},
        ]},
    }}]));
    let headers = Headers::new();
    let merged = forward(&table, &request("/", &headers), |forward| {
        forward.metadata.cloned().expect("metadata")
    });
    let merged: Vec<_> = merged.into_iter().collect();
    assert_eq!(
        merged,
        [("a".to_owned(), text("1")), ("b".to_owned(), text("3"))]
    );
    let plain = forwarding(&json!({}));
    assert!(forward(&plain, &request("/", &headers), |forward| forward
        .metadata
        .is_none()));
}

#[test]
fn a_copy_of_a_request_goes_to_a_cluster_by_name_or_by_header() {
    let copies = |policies: Value, action: &Value, sent: &[(&'static str, &'static str)]| {
        let action = with(json!({"request_mirror_policies": policies}), action);
        let table = forwarding(&action);
        let headers = of(sent);
        forward(&table, &request("/", &headers), |forward| {
            let mirrors = forward.mirrors.iter();
            mirrors
                .map(|mirror| format!("{} {}", mirror.cluster, mirror.host))
                .collect::<Vec<_>>()
        })
    };
    let some = json!({"default_value": {"numerator": 1, "denominator": "MILLION"}});
    let none = json!({"default_value": {"numerator": 0}});
    let header = json!([{"cluster_header": "X-M"}]);
    let nothing = &json!({});
    for (policies, action, sent, expected) in [
        (
            json!([{"cluster": "m"}]),
            nothing,
            &[][..],
            &["m v.test-shadow"][..],
        ),
        (
            json!([{"cluster": "m", "runtime_fraction": some}]),
            nothing,
            &[],
            &["m v.test-shadow"],
        ),
        (
            json!([{"cluster": "m", "runtime_fraction": none}]),
            nothing,
            &[],
            &[],
        ),
        (
            json!([{"cluster": "m"}, {"cluster": "n"}]),
            nothing,
            &[],
            &["m v.test-shadow", "n v.test-shadow"],
        ),
        (
            header.clone(),
            nothing,
            &[("x-m", "h")],
            &["h v.test-shadow"],
        ),
        (header.clone(), nothing, &[("x-m", "")], &[]),
        (header, nothing, &[], &[]),
        (
            json!([{"cluster": "m", "disable_shadow_host_suffix_append": true}]),
            nothing,
            &[],
            &["m v.test"],
        ),
        (
            json!([{"cluster": "m", "host_rewrite_literal": "l"}]),
            nothing,
            &[],
            &["m l"],
        ),
        (
            json!([{"cluster": "m"}]),
            &json!({"host_rewrite_literal": "w:80"}),
            &[],
            &["m w-shadow:80"],
        ),
    ] {
        assert_eq!(
            copies(policies.clone(), action, sent),
            expected,
            "{policies}"
        );
    }
}

#[test]
fn copies_are_those_of_the_most_specific_place_that_has_any() {
    let policy = |cluster: &str| json!({"request_mirror_policies": [{"cluster": cluster}]});
    let none = json!({});
    for (table_policy, host, route, expected) in [
        (&policy("t"), &policy("h"), &policy("r"), &["r"][..]),
        (&policy("t"), &policy("h"), &none, &["h"]),
        (&policy("t"), &none, &none, &["t"]),
        (&none, &none, &none, &[]),
    ] {
        let route =
            json!({"match": {"prefix": "/"}, "route": with(json!({"cluster": "c"}), route)});
        let host = with(
            json!({"name": "v", "domains": ["*"], "routes": [route]}),
            host,
        );
        let table =
            compile(&with(json!({"virtual_hosts": [host]}), table_policy)).expect("a table");
        let headers = Headers::new();
        let clusters: Vec<String> = forward(&table, &request("/", &headers), |forward| {
            let mirrors = forward.mirrors.iter();
            mirrors.map(|mirror| mirror.cluster.to_owned()).collect()
        });
        assert_eq!(clusters, expected);
    }
}
