//! What a table says of a request besides its route, and what cannot be
//! compiled.

mod clusters;
mod criteria;
mod findings;
mod forwarding;
mod hosts;
mod scopes;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;

use super::{Context, Forward, RouteMatch, RouteTable};
use crate::findings::Findings;
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
    found(table, request, |route, context| {
        then(&route.forward(request, context).expect("a cluster"))
    })
}
