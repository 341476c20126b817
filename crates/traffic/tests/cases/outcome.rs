//! What became of a request, as far as routing decides it.

use serde_json::Value;

use crate::data::{header, list, text};

/// The outcome of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: u64,
    pub(crate) location: Option<String>,
    pub(crate) grpc_status: Option<String>,
    pub(crate) body: Option<String>,
    /// The name of the route.
    pub(crate) route: String,
    /// Requests that arrived at backends, sorted.
    pub(crate) upstream: Vec<Upstream>,
}

/// A request as a backend saw it.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Upstream {
    pub(crate) cluster: String,
    pub(crate) path: String,
    pub(crate) host: String,
    pub(crate) original_path: Option<String>,
    pub(crate) original_host: Option<String>,
    pub(crate) forwarded_host: Option<String>,
}

impl Outcome {
    /// The outcome that was recorded.
    pub(crate) fn recorded(out: &Value) -> Self {
        let response = &out["r"][0];
        let headers = &response["h"];
        let log = text(&out["log"][0]);
        let route = log.split('|').nth(4).unwrap_or_default();
        let mut upstream: Vec<_> = list(&out["u"]).iter().map(Upstream::recorded).collect();
        upstream.sort();
        let body = text(&response["b"]);
        let is_local = upstream.is_empty() && !body.is_empty();
        let owned = |name| header(headers, name).map(str::to_owned);
        Self {
            status: response["s"].as_u64().expect("a status"),
            location: owned("location"),
            grpc_status: owned("grpc-status"),
            body: is_local.then(|| body.to_owned()),
            route: route.to_owned(),
            upstream,
        }
    }
}

impl Upstream {
    fn recorded(seen: &Value) -> Self {
        let headers = &seen["h"];
        let owned = |name| header(headers, name).map(str::to_owned);
        Self {
            cluster: text(&seen["up"]).to_owned(),
            path: text(&seen["p"]).to_owned(),
            host: owned("host").unwrap_or_default(),
            original_path: owned("x-envoy-original-path"),
            original_host: owned("x-envoy-original-host"),
            forwarded_host: owned("x-forwarded-host"),
        }
    }
}
