//! How a request is forwarded: by which hash, after how many attempts.

use serde_json::{Value, json};

use super::{compile, forward, forwarding, found, of, request, with};
use crate::hash::{combine, xxh64, xxh64_seeded};
use crate::headers::Headers;
use crate::route::Priority;

#[test]
fn d50_the_hash_of_a_request_is_that_of_its_policies() {
    let header = json!({"header": {"header_name": "X-A"}});
    let rewritten = json!({"header": {
        "header_name": "x-a",
        "regex_rewrite": {"pattern": {"regex": "[0-9]"}, "substitution": "n"},
    }});
    let method = json!({"header": {"header_name": ":method"}});
    let cookie = json!({"cookie": {"name": "k"}});
    let query = json!({"query_parameter": {"name": "q"}});
    let address = json!({"connection_properties": {"source_ip": true}});
    let nothing = json!({"connection_properties": {"source_ip": false}});
    let last = |policy: &Value| with(policy.clone(), &json!({"terminal": true}));
    let [a, k, q, ip, get] = [&b"a1"[..], b"key", b"7", b"192.0.2.7", b"GET"].map(xxh64);
    let several = xxh64_seeded(b"b", xxh64(b"a"));
    let both = |first, second| combine(Some(first), second);
    for (policies, sent, path, expected) in [
        (json!([]), &[][..], "/", None),
        (json!([header]), &[], "/", None),
        (json!([header]), &[("x-a", "a1")], "/", Some(a)),
        // Several lines are hashed in their order by value.
        (
            json!([header]),
            &[("x-a", "b"), ("x-a", "a")],
            "/",
            Some(several),
        ),
        (
            json!([header]),
            &[("x-a", "a"), ("x-a", "b")],
            "/",
            Some(several),
        ),
        (
            json!([rewritten]),
            &[("x-a", "a1")],
            "/",
            Some(xxh64(b"an")),
        ),
        (json!([method]), &[], "/", Some(get)),
        (
            json!([cookie]),
            &[("cookie", "a=b; k=\"key\"")],
            "/",
            Some(k),
        ),
        (json!([cookie]), &[("cookie", "a=k")], "/", None),
        (json!([query]), &[], "/?p=1&q=7&q=8", Some(q)),
        (json!([query]), &[], "/?p=1", None),
        (json!([query]), &[], "/", None),
        (json!([address]), &[], "/", Some(ip)),
        (json!([query, address]), &[], "/?q=7", Some(both(q, ip))),
        (json!([address, query]), &[], "/?q=7", Some(both(ip, q))),
        // A policy that hashes nothing is none, nor is it the last one.
        (json!([nothing]), &[], "/", None),
        (
            json!([query, last(&nothing), address]),
            &[],
            "/?q=7",
            Some(both(q, ip)),
        ),
        // A policy that is the last one is so if there is a hash by then.
        (json!([last(&query), address]), &[], "/?q=7", Some(q)),
        (json!([last(&query), address]), &[], "/", Some(ip)),
        (json!([address, last(&query), method]), &[], "/", Some(ip)),
    ] {
        let table = forwarding(&json!({"hash_policy": policies}));
        let headers = of(sent);
        let hash = forward(&table, &request(path, &headers), |forward| forward.hash);
        assert_eq!(hash, expected, "{policies} {sent:?} {path}");
    }
}

#[test]
fn d50_a_cookie_that_is_missing_is_made_if_it_has_a_time() {
    let cookie =
        |name: &str, fields: &Value| json!({"cookie": with(json!({"name": name}), fields)});
    let table = forwarding(&json!({"hash_policy": [
        cookie("a", &json!({"ttl": "5s"})),
        cookie("b", &json!({})),
        cookie("c", &json!({"ttl": "0s"})),
        {"header": {"header_name": "d"}},
    ]}));
    for (sent, expected) in [
        (&[][..], &["a", "c"][..]),
        (&[("cookie", "a=1")], &["c"]),
        (&[("cookie", "c=; b=2")], &["a"]),
        (&[("cookie", "a=1"), ("cookie", "c=2")], &[]),
    ] {
        let headers = of(sent);
        let request = request("/", &headers);
        let missing: Vec<String> = found(&table, &request, |found, _| {
            let forwarding = found.forwarding().expect("it forwards");
            let missing = forwarding.missing_cookies(&request);
            missing.map(str::to_owned).collect()
        });
        assert_eq!(missing, expected, "{sent:?}");
    }
}

#[test]
fn d40_d43_d45_attempts_are_those_of_the_route_or_of_its_virtual_host() {
    let policy = |on: &str| {
        json!({"retry_on": on, "retry_host_predicate": [{
            "name": "p",
            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"},
        }]})
    };
    let hedged = json!({"hedge_on_per_try_timeout": true});
    let unhedged = json!({"hedge_on_per_try_timeout": false});
    // host, route; whether previous endpoints are avoided, and attempts hedged
    for (host, route, avoids, hedges) in [
        (json!({}), json!({}), false, false),
        (
            json!({"retry_policy": policy("5xx")}),
            json!({}),
            true,
            false,
        ),
        (
            json!({"retry_policy": policy("5xx")}),
            json!({"retry_policy": {}}),
            false,
            false,
        ),
        (
            json!({}),
            json!({"retry_policy": policy("5xx")}),
            true,
            false,
        ),
        (json!({"hedge_policy": hedged}), json!({}), false, true),
        (
            json!({"hedge_policy": hedged}),
            json!({"hedge_policy": unhedged}),
            false,
            false,
        ),
        (json!({}), json!({"hedge_policy": hedged}), false, true),
    ] {
        let route = with(json!({"cluster": "c"}), &route);
        let routes = json!([{"match": {"prefix": "/"}, "route": route}]);
        let host = with(
            json!({"name": "v", "domains": ["*"], "routes": routes}),
            &host,
        );
        let table = compile(&json!({"virtual_hosts": [host]})).expect("a table");
        for (asked, expected) in [
            (None, hedges),
            (Some("true"), true),
            (Some("false"), false),
            (Some("x"), hedges),
        ] {
            let mut headers = Headers::new();
            if let Some(asked) = asked {
                headers.append("x-envoy-hedge-on-per-try-timeout", asked);
            }
            let request = request("/", &headers);
            found(&table, &request, |found, _| {
                let forwarding = found.forwarding().expect("it forwards");
                let attempts = forwarding.retry_policy().host_attempts();
                assert_eq!(attempts.is_some(), avoids, "{host}");
                assert_eq!(forwarding.hedges(&request), expected, "{host} {asked:?}");
            });
        }
    }
}

#[test]
fn a_route_says_more_of_how_it_forwards() {
    let headers = Headers::new();
    let request = request("/", &headers);
    let plain = forwarding(&json!({}));
    let full = forwarding(&json!({
        "priority": "HIGH",
        "timeout": "3s",
        "cluster_not_found_response_code": "NOT_FOUND",
        "upgrade_configs": [{"upgrade_type": "WebSocket"}, {"upgrade_type": "x", "enabled": false}],
    }));
    let internal = forwarding(&json!({"cluster_not_found_response_code": "INTERNAL_SERVER_ERROR"}));
    let secs = std::time::Duration::from_secs;
    for (table, priority, response, status, upgrades) in [
        (&plain, Priority::Default, 15, 503, [None, None]),
        (&full, Priority::High, 3, 404, [Some(true), Some(false)]),
        (&internal, Priority::Default, 15, 500, [None, None]),
    ] {
        found(table, &request, |found, _| {
            let forwarding = found.forwarding().expect("it forwards");
            assert_eq!(forwarding.priority(), priority);
            assert_eq!(forwarding.cluster_not_found_status(), status);
            let timeouts = forwarding.timeouts(&request, Some(secs(1)), Some(secs(2)));
            let of = (timeouts.response, timeouts.idle, timeouts.stream);
            assert_eq!(of, (Some(secs(response)), Some(secs(1)), Some(secs(2))));
            let allowed = ["WEBSOCKET", "x"].map(|upgrade| forwarding.allows_upgrade(upgrade));
            assert_eq!(allowed, upgrades);
            assert_eq!(forwarding.allows_upgrade("y"), None);
        });
    }
}
