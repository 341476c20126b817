//! The request that leaves: mutations, host and path, in Envoy's order, as random
//! requests to a live one showed.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use prost::Message as _;
use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::headers::{FormatContext, Headers};
use trunkline_traffic::route::{Context, RouteTable};
use trunkline_traffic::{Request, Runtime};

fn add(name: &str, value: &str) -> Value {
    json!({"header": {"key": name, "value": value}})
}

fn table(routes: &Value) -> RouteTable {
    let of = "envoy.config.route.v3.RouteConfiguration";
    let text = routes.to_string();
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    let bytes = read.unwrap().message.encode_to_vec();
    RouteTable::compile(&RouteConfiguration::decode(&*bytes).unwrap()).unwrap()
}

/// The request that leaves, as lines.
fn leave(routes: &Value, sent: &[(&str, &str)], endpoint: Option<&str>) -> Vec<String> {
    let table = table(routes);
    let mut headers: Headers = sent
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let received = headers.clone();
    let request = Request {
        method: "GET",
        scheme: "http",
        authority: "v.test",
        path: "/a?q",
        headers: &received,
    };
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: None,
    };
    let found = table.find(&request, &context).expect("a route");
    let forward = found.forward(&request, &context).expect("a cluster");
    let values = FormatContext {
        request: Some(request),
        ..FormatContext::default()
    };
    let leaving = found.leave(&forward, &request, &mut headers, endpoint, &values);
    let mut lines = vec![format!("{} {}", leaving.host, leaving.path)];
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = headers.iter();
    lines.extend(headers.map(|line| format!("{}: {}", utf8(line.name()), utf8(line.value()))));
    lines
}

fn routes(route: Value, host_adds: &[Value]) -> Value {
    json!({"name": "r", "virtual_hosts": [{
        "name": "v",
        "domains": ["*"],
        "routes": [route],
        "request_headers_to_add": host_adds,
    }]})
}

#[test]
fn d47_the_host_of_a_weighted_cluster_comes_before_that_of_the_route() {
    let entry = json!({
        "name": "c",
        "weight": 1,
        "host_rewrite_literal": "w.test",
        "request_headers_to_add": [add("x-entry", "%REQ(:authority)%")],
    });
    let route = json!({
        "match": {"prefix": "/"},
        "route": {
            "weighted_clusters": {"clusters": [entry]},
            "host_rewrite_literal": "h.test",
            "append_x_forwarded_host": true,
        },
    });
    assert_eq!(
        leave(
            &routes(route.clone(), &[add("x-host", "%REQ(:authority)%")]),
            &[],
            None
        ),
        [
            "h.test /a?q",
            "x-entry: v.test",
            "x-host: w.test",
            "x-forwarded-host: w.test",
            "x-envoy-original-host: w.test",
        ]
    );
    let mut only_entry = route;
    only_entry["route"]
        .as_object_mut()
        .unwrap()
        .remove("host_rewrite_literal");
    assert_eq!(
        leave(&routes(only_entry, &[]), &[], None),
        ["w.test /a?q", "x-entry: v.test"]
    );
}

#[test]
fn d38_a_host_may_be_in_a_header_that_a_mutation_made() {
    let route = json!({
        "match": {"prefix": "/"},
        "route": {"cluster": "c", "host_rewrite_header": "x-new", "prefix_rewrite": "/n/"},
        "request_headers_to_add": [add("x-new", "new.test")],
    });
    assert_eq!(
        leave(&routes(route, &[]), &[], None),
        [
            "new.test /n/a?q",
            "x-new: new.test",
            "x-envoy-original-host: v.test",
            "x-envoy-original-path: /a?q",
        ]
    );
}

#[test]
fn d38_the_name_of_the_endpoint_becomes_the_host_if_it_has_one() {
    let route = json!({
        "match": {"prefix": "/"},
        "route": {"cluster": "c", "auto_host_rewrite": true},
    });
    let left = |endpoint| leave(&routes(route.clone(), &[]), &[], endpoint);
    assert_eq!(
        left(Some("e.test")),
        ["e.test /a?q", "x-envoy-original-host: v.test"]
    );
    assert_eq!(left(None), ["v.test /a?q"]);
    assert_eq!(left(Some("")), ["v.test /a?q"]);
}

#[test]
fn mutations_see_what_those_before_them_made() {
    let route = json!({
        "match": {"prefix": "/"},
        "route": {"cluster": "c"},
        "request_headers_to_add": [add("x-a", "route")],
        "request_headers_to_remove": ["x-sent"],
    });
    let host = [add("x-b", "%REQ(x-a)%"), add("x-c", "%REQ(x-sent)%")];
    assert_eq!(
        leave(&routes(route, &host), &[("x-sent", "1")], None),
        ["v.test /a?q", "x-a: route", "x-b: route"]
    );
}

#[test]
fn a_route_leads_to_the_clusters_that_it_names() {
    let leads = |action: Value, cluster: &str| {
        let table = table(&routes(
            json!({"match": {"prefix": "/"}, "route": action}),
            &[],
        ));
        let headers = Headers::new();
        let request = Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path: "/",
            headers: &headers,
        };
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        let found = table.find(&request, &context).expect("a route");
        found.forwarding().expect("it forwards").leads_to(cluster)
    };
    assert!(leads(json!({"cluster": "a"}), "a"));
    assert!(!leads(json!({"cluster": "a"}), "b"));
    assert!(!leads(json!({"cluster_header": "a"}), "a"));
    let weighted = json!({"weighted_clusters": {"clusters": [
        {"name": "a", "weight": 1}, {"name": "b", "weight": 0}, {"cluster_header": "c", "weight": 1},
    ]}});
    assert!(leads(weighted.clone(), "a"));
    assert!(
        !leads(weighted.clone(), "b"),
        "no request would go there otherwise"
    );
    assert!(!leads(weighted, "c"));
}
