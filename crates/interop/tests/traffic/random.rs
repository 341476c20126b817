//! A random connection manager with its routes.

use fastrand::Rng;
use serde_json::{Value, json};

use super::forward::{forward, mutations, retry_policy};
use super::words::{NAMES, host, once_in, one, path};

/// A connection manager with all its routes.
pub(crate) fn manager(random: &mut Rng) -> Value {
    let mut domains: Vec<String> = Vec::new();
    for _ in 0..24 {
        let host = host(random).to_lowercase();
        let domain = match random.u8(..5) {
            0 => format!("*.{host}"),
            1 => format!("{host}.*"),
            2 => format!("*-{host}"),
            3 => format!("{host}:80"),
            _ => host,
        };
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    if random.bool() {
        domains.push("*".to_owned());
    }
    let hosts: Vec<Value> = domains
        .iter()
        .enumerate()
        .map(|(index, domain)| virtual_host(random, index, domain))
        .collect();
    let mut routes = json!({
        "name": "r",
        "virtual_hosts": hosts,
        "ignore_port_in_host_matching": random.bool(),
        "ignore_path_parameters_in_path_matching": random.bool(),
        "most_specific_header_mutations_wins": random.bool(),
    });
    mutations(random, &mut routes);
    json!({
        "stat_prefix": "s",
        "normalize_path": random.bool(),
        "merge_slashes": random.bool(),
        "path_with_escaped_slashes_action": one(random, &["KEEP_UNCHANGED", "REJECT_REQUEST", "UNESCAPE_AND_REDIRECT", "UNESCAPE_AND_FORWARD"]),
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
        "xff_num_trusted_hops": random.u8(..2),
        "route_config": routes,
        "http_filters": [router()],
    })
}

pub(crate) fn router() -> Value {
    json!({
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    })
}

fn virtual_host(random: &mut Rng, index: usize, domain: &str) -> Value {
    let count = random.usize(1..8);
    let routes: Vec<Value> = (0..count)
        .map(|route| route_of(random, &format!("v{index}r{route}")))
        .collect();
    let tls = if once_in(random, 12) { "ALL" } else { "NONE" };
    let mut host = json!({
        "name": format!("v{index}"),
        "domains": [domain],
        "routes": routes,
        "require_tls": tls,
        // The backends follow their plan by it.
        "include_request_attempt_count": true,
        "include_attempt_count_in_response": random.bool(),
    });
    mutations(random, &mut host);
    if once_in(random, 3) {
        host["retry_policy"] = retry_policy(random);
    }
    host
}

fn route_of(random: &mut Rng, name: &str) -> Value {
    let path = path(random, 3);
    let mut test = match random.u8(..6) {
        0 => json!({"path": path}),
        1 => json!({"path_separated_prefix": format!("/{}", one(random, &["a", "b", "ab/7"]))}),
        2 => {
            json!({"safe_regex": {"regex": one(random, &["/[ab]+", "/a/.*", "/(?:a|b)/\\d", ".*7", "/\\w+"])}})
        }
        _ => json!({"prefix": path}),
    };
    if random.bool() && test.get("safe_regex").is_none() {
        test["case_sensitive"] = random.bool().into();
    }
    if once_in(random, 3) {
        test["headers"] = json!([header(random)]);
    }
    if once_in(random, 4) {
        test["query_parameters"] = json!([parameter(random)]);
    }
    let mut route = json!({"name": name, "match": test});
    match random.u8(..6) {
        0 => route["redirect"] = redirect(random),
        1 | 2 => {
            let status = [200, 201, 203, 204, 302, 404][random.usize(..6)];
            route["direct_response"] = match status {
                // It has no body.
                204 => json!({"status": status}),
                _ => json!({"status": status, "body": {"inline_string": name}}),
            };
        }
        _ => route["route"] = forward(random),
    }
    mutations(random, &mut route);
    route
}

fn header(random: &mut Rng) -> Value {
    let value = one(random, &["1", "abc", "b", "22"]);
    let mut matcher = match random.u8(..7) {
        0 => json!({"string_match": {"exact": value, "ignore_case": random.bool()}}),
        1 => json!({"string_match": {"prefix": value}}),
        2 => json!({"string_match": {"suffix": value}}),
        3 => json!({"string_match": {"contains": value}}),
        4 => {
            json!({"string_match": {"safe_regex": {"regex": one(random, &["[a-c]+", "\\d*", ".+"])}}})
        }
        5 => json!({"range_match": {"start": -5, "end": 10}}),
        _ => json!({"present_match": random.bool()}),
    };
    matcher["name"] = one(random, NAMES).into();
    matcher["invert_match"] = random.bool().into();
    matcher["treat_missing_header_as_empty"] = once_in(random, 3).into();
    matcher
}

fn parameter(random: &mut Rng) -> Value {
    let mut matcher = match random.u8(..3) {
        0 => json!({"string_match": {"exact": "1"}}),
        1 => json!({"string_match": {"safe_regex": {"regex": "\\w*"}}}),
        _ => json!({"present_match": random.bool()}),
    };
    matcher["name"] = one(random, &["k", "q"]).into();
    matcher
}

fn redirect(random: &mut Rng) -> Value {
    let mut redirect = json!({
        "strip_query": random.bool(),
        "response_code": one(random, &["MOVED_PERMANENTLY", "FOUND", "PERMANENT_REDIRECT"]),
    });
    match random.u8(..4) {
        0 => redirect["path_redirect"] = one(random, &["/new", "/new?own=1"]).into(),
        1 => redirect["prefix_rewrite"] = one(random, &["/", "/n"]).into(),
        2 => {
            let regex = json!({"pattern": {"regex": "a(.)"}, "substitution": "<\\1>"});
            redirect["regex_rewrite"] = regex;
        }
        _ => {}
    }
    if random.bool() {
        redirect["host_redirect"] = "n.test".into();
    }
    if random.bool() {
        redirect["https_redirect"] = true.into();
    }
    if once_in(random, 3) {
        redirect["port_redirect"] = 8443.into();
    }
    redirect
}
