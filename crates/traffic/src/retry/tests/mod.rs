//! Conditions, timeouts and attempts, at their bounds (40-45).

mod exchanges;
mod judging;
mod timeouts;

use std::time::Duration;

use serde_json::Value;
use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::route::v3::RetryPolicy as PolicyMessage;

use super::{RetryContext, RetryPolicy};
use crate::findings::Findings;
use crate::headers::Headers;
use crate::json::message;
use crate::request::Request;

fn policy(json: &Value) -> RetryPolicy {
    let message: PolicyMessage = message("envoy.config.route.v3.RetryPolicy", json);
    let mut findings = Findings::default();
    let policy = RetryPolicy::compile(&message, &Place::ROOT, &mut findings);
    findings.finish(policy).expect("a policy")
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn request(headers: &Headers) -> Request<'_> {
    Request {
        method: "GET",
        scheme: "http",
        authority: "a.test",
        path: "/",
        headers,
    }
}

const NOTHING: RetryContext = RetryContext {
    random: 0,
    unix: Duration::ZERO,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
