//! The tests of a route, and what comes of it.

use serde_json::{Value, json};

use super::{compile, found, of, request, table, with};
use crate::headers::Headers;
use crate::route::{Context, FilterConfig, Mismatch};
use crate::runtime::Runtime;

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
