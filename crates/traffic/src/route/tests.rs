//! What a table says of a request besides its route, and what cannot be
//! compiled.

use serde_json::{Value, json};
use trunkline_proto::acceptance::Problem;
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::ScopedRoutes as ScopedMessage;

use super::{Action, Context, FilterConfig, Forward, Mismatch, Priority, RouteMatch, RouteTable};
use super::{NoRoute, ScopedRoutes};
use crate::findings::Findings;
use crate::hash::{combine, xxh64, xxh64_seeded};
use crate::headers::Headers;
use crate::json::message;
use crate::request::Request;
use crate::runtime::Runtime;

fn compile(json: &Value) -> Result<RouteTable, Findings> {
    let message: RouteConfiguration = message("envoy.config.route.v3.RouteConfiguration", json);
    RouteTable::compile(&message)
}

/// Sets the fields of one object in another.
fn with(mut object: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().expect("fields") {
        object[key] = value.clone();
    }
    object
}

/// A table of one virtual host with these routes.
fn table(routes: &Value) -> RouteTable {
    let host = json!({"name": "v", "domains": ["*"], "routes": routes});
    compile(&json!({"virtual_hosts": [host]})).expect("a table")
}

/// A table of one route with this action.
fn forwarding(action: &Value) -> RouteTable {
    table(&json!([{"match": {"prefix": "/"}, "route": with(json!({"cluster": "c"}), action)}]))
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn request<'r>(path: &'r str, headers: &'r Headers) -> Request<'r> {
    Request {
        method: "GET",
        scheme: "http",
        authority: "v.test",
        path,
        headers,
    }
}

/// Finds the route of a request, and does something with it.
fn found<T>(
    table: &RouteTable,
    request: &Request<'_>,
    then: impl FnOnce(&RouteMatch<'_>, &Context<'_>) -> T,
) -> T {
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: Some([192, 0, 2, 7].into()),
    };
    then(&table.find(request, &context).expect("a route"), &context)
}

/// The way in which a request is forwarded.
fn forward<T>(
    table: &RouteTable,
    request: &Request<'_>,
    then: impl FnOnce(&Forward<'_>) -> T,
) -> T {
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: Some([192, 0, 2, 7].into()),
    };
    let found = table.find(request, &context).expect("a route");
    then(&found.forward(request, &context).expect("a cluster"))
}

#[test]
fn d28_the_most_specific_configuration_of_a_filter_counts() {
    let filter = |number: u32| {
        json!({"f": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
            "max_active_faults": number,
        }})
    };
    let disabled = json!({"f": {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true,
    }});
    let wrapped = json!({"f": {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": filter(5)["f"],
    }});
    let empty = json!({"f": {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
    }});
    let none = json!({});
    let config = |configs: [&Value; 4], filter: &str| {
        let [entry, route, host, table] = configs;
        let key = "typed_per_filter_config";
        let clusters = json!({"clusters": [{"name": "c", "weight": 1, key: entry}]});
        let route = json!({
            "match": {"prefix": "/"}, "route": {"weighted_clusters": clusters}, key: route,
        });
        let host = json!({"name": "v", "domains": ["*"], "routes": [route], key: host});
        let table = compile(&json!({"virtual_hosts": [host], key: table})).expect("a table");
        let headers = Headers::new();
        let request = request("/", &headers);
        found(&table, &request, |found, context| {
            let forward = found.forward(&request, context);
            found.filter_config(filter, forward.as_ref()).cloned()
        })
    };
    let number = |config: Option<FilterConfig>| match config {
        Some(FilterConfig::Config(any)) => any.value.last().copied(),
        Some(FilterConfig::Disabled) => Some(0),
        None => None,
    };
    let [one, two, three, four] = [1, 2, 3, 4].map(filter);
    for (configs, expected) in [
        ([&one, &two, &three, &four], Some(1)),
        ([&none, &two, &three, &four], Some(2)),
        ([&none, &none, &three, &four], Some(3)),
        ([&none, &none, &none, &four], Some(4)),
        ([&none; 4], None),
        ([&disabled, &two, &none, &none], Some(0)),
        ([&wrapped, &two, &none, &none], Some(5)),
        // Nothing in a wrapper is nothing said.
        ([&empty, &two, &none, &none], Some(2)),
    ] {
        assert_eq!(number(config(configs, "f")), expected, "{configs:?}");
        assert_eq!(number(config(configs, "other")), None);
    }
}

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
fn a_route_that_does_not_match_says_by_which_test() {
    let never = json!({"default_value": {"numerator": 0}});
    let route = |criteria: Value| json!({"match": with(json!({"prefix": "/"}), &criteria), "route": {"cluster": "c"}});
    let present = |name: &str| json!([{"name": name, "present_match": true}]);
    let cookie = json!([{"name": "K", "string_match": {"exact": "1"}}]);
    let table = table(&json!([
        route(json!({"runtime_fraction": never, "prefix": "/other"})),
        route(json!({"prefix": "/other", "headers": present("X-H")})),
        route(json!({"headers": present("X-H"), "query_parameters": present("Q")})),
        route(json!({"query_parameters": present("Q"), "cookies": cookie})),
        route(json!({"cookies": cookie, "grpc": {}})),
        route(json!({"grpc": {}})),
        route(json!({})),
    ]));
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: None,
    };
    let explain = |path: &str, headers: &Headers| {
        table.explain(&table.virtual_hosts()[0], &request(path, headers), &context)
    };
    let headers = Headers::new();
    let expected = [
        Err(Mismatch::Fraction),
        Err(Mismatch::Path),
        Err(Mismatch::Header("x-h")),
        Err(Mismatch::QueryParameter("Q")),
        Err(Mismatch::Cookie("K")),
        Err(Mismatch::Grpc),
        Ok(()),
    ];
    assert_eq!(explain("/", &headers), expected);
    let all = of(&[
        ("x-h", "1"),
        ("cookie", "K=1"),
        ("content-type", "application/grpc+proto"),
    ]);
    let mut matched = [Ok(()); 7];
    matched[0] = Err(Mismatch::Fraction);
    assert_eq!(explain("/other?Q", &all), matched);
}

#[test]
fn a_request_of_grpc_is_told_by_its_content_type() {
    let table = table(&json!([
        {"match": {"prefix": "/", "grpc": {}}, "route": {"cluster": "c"}},
        {"match": {"prefix": "/"}, "route": {"cluster": "c"}},
    ]));
    for (content_type, is_grpc) in [
        ("application/grpc", true),
        ("application/grpc+json", true),
        ("application/grpc-web", false),
        ("application/grpc;a", false),
        ("application/json", false),
        ("", false),
    ] {
        let headers = of(&[("content-type", content_type)]);
        let index = found(&table, &request("/", &headers), |found, _| found.index);
        assert_eq!(index == 0, is_grpc, "{content_type}");
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

#[test]
fn a_table_says_its_name_and_those_of_its_parts() {
    let table = compile(&json!({"name": "t", "virtual_hosts": [
        {"name": "a", "domains": ["A.test", "*.b"], "routes": [
            {"name": "r", "match": {"prefix": "/"}, "non_forwarding_action": {}},
        ]},
        {"name": "b", "domains": ["*"], "include_request_attempt_count": true},
        {"name": "c", "domains": ["c"], "include_attempt_count_in_response": true},
    ]}));
    let table = table.expect("a table");
    assert_eq!(table.name(), "t");
    let hosts = table.virtual_hosts().iter();
    let said: Vec<_> = hosts
        .map(|host| {
            (
                host.name(),
                host.counts_attempts(),
                host.counts_attempts_in_response(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [("a", false, false), ("b", true, false), ("c", false, true)]
    );
    let host = &table.virtual_hosts()[0];
    assert_eq!(host.domains().collect::<Vec<_>>(), ["a.test", "*.b"]);
    assert_eq!(host.routes()[0].name(), "r");
    assert!(matches!(host.routes()[0].action(), Action::None));
    assert!(found(
        &table,
        &Request {
            authority: "a.test",
            ..request("/", &Headers::new())
        },
        |found, context| {
            found
                .forward(&request("/", &Headers::new()), context)
                .is_none()
                && found.location(&request("/", &Headers::new())).is_none()
        }
    ));
    assert_eq!(table.on_demand(), 0);
}

#[test]
fn d34_a_host_is_found_in_any_case_and_of_any_length() {
    let label = "A".repeat(60);
    let long = [&*label; 5].join(".");
    let host = |name: &str, domain: &str| json!({"name": name, "domains": [domain]});
    let table = compile(&json!({"virtual_hosts": [
        host("long", &long),
        host("short", "short.test"),
        host("suffix", "*.SUFFIX"),
        host("longer", "*.longer.suffix"),
        host("prefix", "prefix.*"),
        host("any", "*"),
    ]}));
    let table = table.expect("a table");
    let headers = Headers::new();
    let upper = long.to_ascii_uppercase();
    for (authority, expected) in [
        (&*long, "long"),
        (&*upper, "long"),
        ("SHORT.test", "short"),
        ("a.Suffix", "suffix"),
        ("a.longer.suffix", "longer"),
        (".longer.suffix", "suffix"),
        // The star is at least one character.
        (".suffix", "any"),
        ("Prefix.a", "prefix"),
        ("prefix.", "any"),
        ("", "any"),
    ] {
        let request = Request {
            authority,
            ..request("/", &headers)
        };
        let host = table.find_virtual_host(&request).map(|host| host.name());
        assert_eq!(host, Some(expected), "{authority}");
    }
    let other = table.without_virtual_host("any");
    assert_eq!(other.virtual_hosts().len(), 6, "it was not there on demand");
}

#[test]
fn d34_the_host_may_be_in_a_header_and_its_port_may_not_count() {
    let host = json!({"name": "v", "domains": ["v.test"]});
    let found = |fields: &Value, authority: &str, sent: &[(&'static str, &'static str)]| {
        let table = compile(&with(json!({"virtual_hosts": [host]}), fields)).expect("a table");
        let headers = of(sent);
        let request = Request {
            authority,
            ..request("/", &headers)
        };
        table.find_virtual_host(&request).is_some()
    };
    let header = json!({"vhost_header": "X-Host"});
    let port = json!({"ignore_port_in_host_matching": true});
    assert!(found(&json!({}), "v.test", &[("x-host", "w.test")]));
    assert!(!found(&json!({}), "v.test:80", &[]));
    assert!(found(&port, "v.test:80", &[]));
    assert!(found(&port, "v.test", &[]));
    assert!(found(&header, "w.test", &[("x-host", "v.test")]));
    assert!(!found(&header, "v.test", &[("x-host", "w.test")]));
    assert!(!found(&header, "v.test", &[]));
}

#[test]
fn d35_d36_d37_a_location_is_told_of_redirects_and_of_some_direct_responses() {
    let headers = Headers::new();
    let request = request("/a?b", &headers);
    let location = |route: &Value| {
        let table = table(&json!([with(json!({"match": {"prefix": "/"}}), route)]));
        found(&table, &request, |found, _| found.location(&request))
    };
    let itself = Some("http://v.test/a?b".to_owned());
    for (status, expected) in [
        (200, &None),
        (201, &itself),
        (202, &None),
        (299, &None),
        (300, &itself),
        (399, &itself),
        (400, &None),
    ] {
        let direct = json!({"direct_response": {"status": status}});
        assert_eq!(location(&direct), *expected, "{status}");
    }
    let redirect = json!({"redirect": {"https_redirect": true, "path_redirect": "/c"}});
    assert_eq!(location(&redirect).as_deref(), Some("https://v.test/c?b"));
    assert_eq!(location(&json!({"route": {"cluster": "c"}})), None);
}

#[test]
fn d35_a_virtual_host_may_want_tls() {
    let find = |requirement: &str, scheme: &str, sent: &[(&'static str, &'static str)]| {
        let host = json!({"name": "v", "domains": ["*"], "require_tls": requirement});
        let table = compile(&json!({"virtual_hosts": [host]})).expect("a table");
        let headers = of(sent);
        let request = Request {
            scheme,
            authority: "v.test:8080",
            ..request("/a?b", &headers)
        };
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        assert_eq!(table.tls_location(&request), "https://v.test:8080/a?b");
        matches!(table.find(&request, &context), Err(NoRoute::NeedsTls(_)))
    };
    let inside = [("x-envoy-internal", "true")];
    let outside = [("x-envoy-internal", "false")];
    assert!(!find("NONE", "http", &[]));
    assert!(find("ALL", "http", &inside));
    assert!(!find("ALL", "https", &[]));
    assert!(find("EXTERNAL_ONLY", "http", &outside));
    assert!(find("EXTERNAL_ONLY", "http", &[]));
    assert!(!find("EXTERNAL_ONLY", "http", &inside));
    assert!(!find("EXTERNAL_ONLY", "https", &[]));
}

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

/// The paths of the findings of a route configuration, without that of the first
/// route.
fn route_findings(route: &Value) -> Vec<String> {
    let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
    let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
    let paths = findings.list().iter().map(|found| {
        let path = found.path.strip_prefix("virtual_hosts[0].routes[0]");
        path.unwrap_or(&found.path)
            .trim_start_matches('.')
            .to_owned()
    });
    paths.collect()
}

#[test]
fn what_a_match_cannot_have_is_a_finding() {
    let regex = json!({"regex": "("});
    for (fields, expected) in [
        (json!({"tls_context": {}}), "match.tls_context"),
        (
            json!({"dynamic_metadata": [{"filter": "f", "path": [{"key": "k"}], "value": {"present_match": true}}]}),
            "match.dynamic_metadata",
        ),
        (
            json!({"filter_state": [{"key": "k", "string_match": {"exact": "a"}}]}),
            "match.filter_state",
        ),
        (
            json!({"runtime_fraction": {}}),
            "match.runtime_fraction.default_value",
        ),
        (
            json!({"runtime_fraction": {"default_value": {"denominator": 7}}}),
            "match.runtime_fraction.default_value.denominator",
        ),
        (
            json!({"headers": [{"name": "a"}, {}]}),
            "match.headers[1].name",
        ),
        (
            json!({"headers": [{"name": "a", "safe_regex_match": regex}]}),
            "match.headers[0].safe_regex_match.regex",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {}}]}),
            "match.headers[0].string_match",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {"safe_regex": regex}}]}),
            "match.headers[0].string_match.safe_regex.regex",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {"custom": {"name": "x"}}}]}),
            "match.headers[0].string_match.custom",
        ),
        (
            json!({"query_parameters": [{"name": "a", "string_match": {}}]}),
            "match.query_parameters[0].string_match",
        ),
        (
            json!({"cookies": [{"name": "a"}]}),
            "match.cookies[0].string_match",
        ),
        (
            json!({"cookies": [{"name": "a", "string_match": {}}]}),
            "match.cookies[0].string_match",
        ),
    ] {
        let criteria = with(json!({"prefix": "/"}), &fields);
        let route = json!({"match": criteria, "route": {"cluster": "c"}});
        assert_eq!(route_findings(&route), [expected], "{fields}");
    }
    let template = |text: &str| {
        json!({"name": "t", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig",
            "path_template": text,
        }})
    };
    for (criteria, expected) in [
        (json!({}), "match"),
        (json!({"safe_regex": regex}), "match.safe_regex.regex"),
        (
            json!({"path_separated_prefix": "/a/"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_separated_prefix": "/a?"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_separated_prefix": "/a#b"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_match_policy": {"name": "t"}}),
            "match.path_match_policy",
        ),
        (
            json!({"path_match_policy": template("a")}),
            "match.path_match_policy.typed_config",
        ),
    ] {
        let route = json!({"match": criteria, "route": {"cluster": "c"}});
        assert_eq!(route_findings(&route), [expected], "{criteria}");
    }
    assert_eq!(
        route_findings(&json!({"route": {"cluster": "c"}})),
        ["match"]
    );
}

#[test]
fn what_an_action_cannot_have_is_a_finding() {
    let regex = json!({"pattern": {"regex": "("}});
    let extension = json!({"name": "x"});
    for (fields, expected) in [
        (json!({"early_data_policy": extension}), "early_data_policy"),
        (
            json!({"internal_redirect_policy": {}}),
            "internal_redirect_policy",
        ),
        (
            json!({"retry_policy": {"retry_priority": extension}}),
            "retry_policy.retry_priority",
        ),
        (json!({"path_rewrite": "%PATH%"}), "path_rewrite"),
        (
            json!({"prefix_rewrite": "/", "regex_rewrite": {"pattern": {"regex": "a"}}}),
            "",
        ),
        (
            json!({"regex_rewrite": regex}),
            "regex_rewrite.pattern.regex",
        ),
        (
            json!({"path_rewrite_policy": extension}),
            "path_rewrite_policy",
        ),
        (json!({"host_rewrite": "%PATH%"}), "host_rewrite"),
        (
            json!({"host_rewrite_path_regex": regex}),
            "host_rewrite_path_regex.pattern.regex",
        ),
        (json!({"hash_policy": [{}]}), "hash_policy[0]"),
        (
            json!({"hash_policy": [{"filter_state": {"key": "k"}}]}),
            "hash_policy[0].filter_state",
        ),
        (
            json!({"hash_policy": [{"header": {"header_name": "a", "regex_rewrite": regex}}]}),
            "hash_policy[0].header.regex_rewrite.pattern.regex",
        ),
        (
            json!({"request_mirror_policies": [{"cluster": "m", "runtime_fraction": {}}]}),
            "request_mirror_policies[0].runtime_fraction.default_value",
        ),
    ] {
        let action = with(json!({"cluster": "c"}), &fields);
        let route = json!({"match": {"prefix": "/"}, "route": action});
        let expected = format!("route.{expected}");
        assert_eq!(
            route_findings(&route),
            [expected.trim_end_matches('.')],
            "{fields}"
        );
    }
    let entry = |fields: Value| json!({"weighted_clusters": {"clusters": [fields]}});
    let big = u32::MAX;
    for (action, expected) in [
        (json!({}), ""),
        (
            json!({"cluster_specifier_plugin": "p"}),
            "cluster_specifier_plugin",
        ),
        (
            json!({"inline_cluster_specifier_plugin": {"extension": extension}}),
            "inline_cluster_specifier_plugin",
        ),
        (entry(json!({"name": "c"})), "weighted_clusters"),
        (
            json!({"weighted_clusters": {"clusters": [{"name": "a", "weight": big}, {"name": "b", "weight": 1}]}}),
            "weighted_clusters",
        ),
        (
            json!({"weighted_clusters": {"runtime_key_prefix": "k", "clusters": [{"name": "a", "weight": big}]}}),
            "weighted_clusters.runtime_key_prefix",
        ),
    ] {
        let route = json!({"match": {"prefix": "/"}, "route": action});
        let expected = format!("route.{expected}");
        assert_eq!(
            route_findings(&route),
            [expected.trim_end_matches('.')],
            "{action}"
        );
    }
    for (fields, problem) in [
        (json!({}), Problem::Missing.to_string()),
        (
            json!({"name": "a", "cluster_header": "b"}),
            "cluster_header".to_owned(),
        ),
    ] {
        let weighted =
            json!({"clusters": [with(json!({"weight": 1}), &fields), {"name": "b", "weight": 1}]});
        let route = json!({"match": {"prefix": "/"}, "route": {"weighted_clusters": weighted}});
        let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
        let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
        let found = &findings.list()[0];
        assert!(
            found.path.ends_with("weighted_clusters.clusters[0].name"),
            "{found}"
        );
        assert!(found.problem.to_string().contains(&problem), "{found}");
    }
}

#[test]
fn what_other_actions_cannot_have_is_a_finding() {
    let regex = json!({"pattern": {"regex": "("}});
    for (action, expected) in [
        (json!({}), &[""][..]),
        (json!({"filter_action": {}}), &["filter_action"]),
        (
            json!({"redirect": {"response_code": 9}}),
            &["redirect.response_code"],
        ),
        (
            json!({"redirect": {"port_redirect": 65_536}}),
            &["redirect.port_redirect"],
        ),
        (
            json!({"redirect": {"regex_rewrite": regex}}),
            &["redirect.regex_rewrite.pattern.regex"],
        ),
        (
            json!({"redirect": {"path_rewrite": "%PATH%"}}),
            &["redirect.path_rewrite"],
        ),
        (
            json!({"direct_response": {"status": 199}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 600}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 65_736}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 200, "body": {"filename": "f"}}}),
            &["direct_response.body"],
        ),
        (
            json!({"direct_response": {"status": 200, "body_format": {"text_format": "a"}}}),
            &["direct_response.body_format"],
        ),
        (
            json!({"direct_response": {"status": 200, "body": {"inline_string": "a".repeat(4097)}}}),
            &["direct_response.body"],
        ),
    ] {
        let route = with(json!({"match": {"prefix": "/"}}), &action);
        assert_eq!(route_findings(&route), expected, "{action}");
    }
    let direct = |fields: &Value, body: &Value| {
        let direct = json!({"status": 599, "body": body});
        let route = json!({"match": {"prefix": "/"}, "direct_response": direct});
        let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
        let table = compile(&with(json!({"virtual_hosts": [host]}), fields))?;
        match table.virtual_hosts()[0].routes()[0].action() {
            Action::DirectResponse(direct) => Ok::<_, Findings>(direct.body.len()),
            other => panic!("{other:?}"),
        }
    };
    let largest = json!({"inline_string": "a".repeat(4096)});
    assert_eq!(direct(&json!({}), &largest), Ok(4096));
    assert_eq!(direct(&json!({}), &json!({"inline_bytes": "AAAA"})), Ok(3));
    assert_eq!(direct(&json!({}), &json!({})), Ok(0));
    let smaller = json!({"max_direct_response_body_size_bytes": 4095});
    assert!(direct(&smaller, &largest).is_err());
}

#[test]
fn what_a_virtual_host_or_a_table_cannot_have_is_a_finding() {
    let header = |name: &str, value: &str| json!([{"header": {"key": name, "value": value}}]);
    for (fields, expected) in [
        (json!({"domains": []}), "domains"),
        (json!({"domains": ["*", "*"]}), "domains[1]"),
        (json!({"matcher": {}}), "matcher"),
        (json!({"require_tls": 9}), "require_tls"),
        (
            json!({"retry_policy": {"retry_priority": {"name": "x"}}}),
            "retry_policy.retry_priority",
        ),
        (
            json!({"request_headers_to_add": [{}]}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"request_headers_to_add": header(":path", "a")}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"request_headers_to_add": header("Host", "a")}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"response_headers_to_add": header("a", "%X%")}),
            "response_headers_to_add[0].header.value",
        ),
        (
            json!({"request_headers_to_remove": ["a", "host"]}),
            "request_headers_to_remove[1]",
        ),
        (
            json!({"response_headers_to_remove": [":status"]}),
            "response_headers_to_remove[0]",
        ),
    ] {
        let host = with(json!({"name": "v", "domains": ["*"]}), &fields);
        let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
        let paths: Vec<_> = findings
            .list()
            .iter()
            .map(|found| found.path.clone())
            .collect();
        assert_eq!(paths, [format!("virtual_hosts[0].{expected}")], "{fields}");
    }
    for (fields, expected) in [
        (
            json!({"internal_only_headers": ["a"]}),
            "internal_only_headers",
        ),
        (
            json!({"request_mirror_policies": [{"cluster": "m", "runtime_fraction": {}}]}),
            "request_mirror_policies[0].runtime_fraction.default_value",
        ),
    ] {
        let findings = compile(&fields).expect_err("a finding");
        assert_eq!(findings.list()[0].path, expected, "{fields}");
    }
}

fn scoped(json: &Value) -> Result<ScopedRoutes, Findings> {
    let of = "envoy.extensions.filters.network.http_connection_manager.v3.ScopedRoutes";
    ScopedRoutes::compile(&message::<ScopedMessage>(of, json))
}

fn fragment(extractor: &Value) -> Value {
    json!({"header_value_extractor": with(json!({"name": "X-Scope"}), extractor)})
}

fn scope(name: &str, keys: &[&str]) -> Value {
    let fragments: Vec<Value> = keys.iter().map(|key| json!({"string_key": key})).collect();
    json!({
        "name": name,
        "key": {"fragments": fragments},
        "route_configuration": {"name": name},
    })
}

#[test]
fn d52_a_scope_is_found_by_the_fragments_of_its_key() {
    let elements = json!({"element_separator": ";", "element": {"separator": "=", "key": "k"}});
    let second = json!({"element_separator": ";", "index": 1});
    let first = json!({"index": 0});
    for (extractor, value, expected) in [
        (&elements, "a=x;k=one", Some("one")),
        (&elements, "k=two", Some("two")),
        (&elements, "k=two;k=one", Some("two")),
        (&elements, "k", None),
        (&elements, "a; k=one", None),
        (&elements, "k=three", None),
        (&second, "two;one", Some("one")),
        (&second, "one", None),
        (&second, "a; one", None),
        // Without a separator the value is one element.
        (&first, "one", Some("one")),
        (&first, "one;two", None),
    ] {
        let routes = scoped(&json!({
            "name": "s",
            "scope_key_builder": {"fragments": [fragment(extractor)]},
            "scoped_route_configurations_list": {
                "scoped_route_configurations": [scope("one", &["one"]), scope("two", &["two"])],
            },
        }));
        let routes = routes.expect("scopes");
        let headers: Headers = [("x-scope", value), ("x-scope", "one")]
            .into_iter()
            .collect();
        let found = routes.find(&headers).map(RouteTable::name);
        assert_eq!(found, expected, "{extractor} {value}");
        assert!(routes.find(&Headers::new()).is_none());
    }
}

#[test]
fn d52_what_a_scope_cannot_have_is_a_finding() {
    let good = fragment(&json!({"index": 0}));
    let list = |scopes: Value| json!({"scoped_route_configurations": scopes});
    let wrong_table = with(
        scope("s", &["a"]),
        &json!({"route_configuration": {"virtual_hosts": [{"name": "v"}]}}),
    );
    let start = "scoped_route_configurations_list.scoped_route_configurations";
    for (fragments, scopes, expected) in [
        (
            json!([{}]),
            json!([]),
            "scope_key_builder.fragments[0]".to_owned(),
        ),
        (
            json!([good, fragment(&json!({}))]),
            json!([]),
            "scope_key_builder.fragments[1].header_value_extractor".to_owned(),
        ),
        (
            json!([good]),
            json!([scope("s", &["a"]), {"name": "t"}]),
            format!("{start}[1].route_configuration"),
        ),
        (
            json!([good]),
            json!([wrong_table]),
            format!("{start}[0].route_configuration.virtual_hosts[0].domains"),
        ),
    ] {
        let routes = scoped(&json!({
            "scope_key_builder": {"fragments": fragments},
            "scoped_route_configurations_list": list(scopes),
        }));
        let findings = routes.expect_err("a finding");
        assert_eq!(findings.list()[0].path, expected);
    }
    let listed = json!({"scope_key_builder": {"fragments": [good]}, "scoped_rds": {}});
    let findings = scoped(&listed).expect_err("a finding");
    assert_eq!(findings.list()[0].path, "scoped_rds");
}
