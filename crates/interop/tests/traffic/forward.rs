//! Random actions that forward: clusters, rewrites, retries; and mutations of
//! headers.

use fastrand::Rng;
use serde_json::{Value, json};

use super::words::{once_in, one};

const CLUSTERS: &[&str] = &["a", "b", "c"];

/// An action that forwards a request.
pub(crate) fn forward(random: &mut Rng) -> Value {
    let mut action = match random.u8(..4) {
        0 => json!({"cluster_header": "x-cluster"}),
        1 => json!({"weighted_clusters": weighted(random)}),
        _ => json!({"cluster": one(random, CLUSTERS)}),
    };
    match random.u8(..6) {
        0 => action["prefix_rewrite"] = one(random, &["/", "/n", "/n/", "n"]).into(),
        1 => {
            let pattern = one(random, &["a(.)", "^/(.*)$", "/", "(x)y"]);
            let substitution = one(random, &["Z\\1", "/w/\\1", "\\0\\0"]);
            // The second group is there in all but one.
            let substitution = match pattern {
                "/" => "/z/",
                _ => substitution,
            };
            action["regex_rewrite"] =
                json!({"pattern": {"regex": pattern}, "substitution": substitution});
        }
        _ => {}
    }
    match random.u8(..6) {
        0 => action["host_rewrite_literal"] = "h.test".into(),
        1 => action["host_rewrite_header"] = one(random, &["x-a", "x-b", "x-none"]).into(),
        2 => {
            action["host_rewrite_path_regex"] =
                json!({"pattern": {"regex": "^/([ab]+)/.*$"}, "substitution": "\\1.test"});
        }
        _ => {}
    }
    action["append_x_forwarded_host"] = random.bool().into();
    if random.bool() {
        action["timeout"] = one(random, &["7s", "0s"]).into();
    }
    if random.bool() {
        action["retry_policy"] = retry_policy(random);
    }
    if once_in(random, 4) {
        action["hedge_policy"] = json!({"hedge_on_per_try_timeout": true});
    }
    let code = one(
        random,
        &["SERVICE_UNAVAILABLE", "NOT_FOUND", "INTERNAL_SERVER_ERROR"],
    );
    action["cluster_not_found_response_code"] = code.into();
    action
}

fn weighted(random: &mut Rng) -> Value {
    let count = random.usize(1..4);
    let mut entries: Vec<Value> = (0..count)
        .map(|index| {
            let mut entry = json!({"name": CLUSTERS[index], "weight": random.u8(..60)});
            if once_in(random, 3) {
                entry["host_rewrite_literal"] = "w.test".into();
            }
            mutations(random, &mut entry);
            entry
        })
        .collect();
    // Weights may not all be 0.
    entries.push(json!({"name": "c", "weight": random.u8(1..60)}));
    json!({"clusters": entries, "header_name": "x-rand"})
}

/// A policy that retries soon.
pub(crate) fn retry_policy(random: &mut Rng) -> Value {
    let words = [
        "5xx",
        "gateway-error",
        "retriable-4xx",
        "retriable-status-codes",
        "retriable-headers",
        "unavailable",
        "internal,5xx",
        "envoy-ratelimited,gateway-error",
        "connect-failure",
        "retriable-4xx,retriable-status-codes",
    ];
    let mut policy = json!({
        "retry_on": one(random, &words),
        "retriable_status_codes": [418, 503],
        "retriable_headers": [{"name": "grpc-status"}],
        "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.002s"},
    });
    if random.bool() {
        policy["num_retries"] = random.u8(..4).into();
    }
    if once_in(random, 3) {
        policy["per_try_timeout"] = "3s".into();
    }
    policy
}

/// Adds mutations of headers to a place that can have them.
pub(crate) fn mutations(random: &mut Rng, place: &mut Value) {
    if random.bool() {
        return;
    }
    let values = [
        "lit",
        "%REQ(x-a)%",
        "%REQ(x-none?x-b)%",
        "[%REQ(:authority)%]",
        "%REQ(x-a):2%",
        "100%%",
        "%PROTOCOL%",
        "%REQ(x-none)%",
    ];
    let actions = [
        "APPEND_IF_EXISTS_OR_ADD",
        "ADD_IF_ABSENT",
        "OVERWRITE_IF_EXISTS_OR_ADD",
        "OVERWRITE_IF_EXISTS",
    ];
    for (kind, names) in [
        ("request", ["x-m-1", "x-m-2", "x-b"]),
        ("response", ["x-r-1", "x-r-2", "x-m-1"]),
    ] {
        let count = random.usize(..3);
        let added: Vec<Value> = (0..count)
            .map(|_| {
                json!({
                    "header": {"key": one(random, &names), "value": one(random, &values)},
                    "append_action": one(random, &actions),
                    "keep_empty_value": random.bool(),
                })
            })
            .collect();
        place[format!("{kind}_headers_to_add")] = added.into();
        if once_in(random, 4) {
            place[format!("{kind}_headers_to_remove")] = json!([one(random, &names)]);
        }
    }
}
