//! Pages beside the API: an index, readiness, metrics, the description.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use trunkline::status::Clients as _;

use super::error::Refusal;
use super::{Admin, ROUTES, Shared};
use crate::mcp::Role;

/// The description of the API, in the form of OpenAPI 3.1.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// The header of plain text.
const TEXT: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];

/// `GET /`: lists every route in plain text, and names the path of the
/// description.
pub(super) async fn index() -> Response {
    let mut text = String::from("trunkline: admin API\n\n");
    for route in ROUTES {
        text.push_str(&format!("{:<6} {}\n", route.method, route.path));
    }
    text.push_str("\nDescribed in /api/v1/openapi.json\n");
    (TEXT, text).into_response()
}

/// `GET /api/v1/openapi.json`
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// `GET /ready`: tells whether clients should be sent here. If not, the status
/// is 503, and the text says why: the server is about to stop, or its first
/// contents are not complete, with the mistakes in its files.
pub(super) async fn ready(State(admin): State<Shared>) -> Response {
    respond_ready(unready_reason(&admin))
}

/// Responds that the server is ready, or why it is not.
pub(super) fn respond_ready(reason: Option<String>) -> Response {
    match reason {
        None => (TEXT, "LIVE\n").into_response(),
        Some(reason) => {
            let text = format!("{reason}\n");
            (StatusCode::SERVICE_UNAVAILABLE, TEXT, text).into_response()
        }
    }
}

/// Returns why clients should not be sent here: a line, and further lines with
/// details. Returns `None` if the server is ready.
pub(super) fn unready_reason(admin: &Admin) -> Option<String> {
    if admin.server.is_draining() {
        return Some("DRAINING: the server is about to stop".to_owned());
    }
    if admin.server.is_ready() {
        return None;
    }

    let mut reason = String::from("INITIALIZING: the first contents are not complete");
    let file_status = admin.files.as_ref().map(|files| files.borrow().clone());
    for error in file_status
        .iter()
        .flat_map(|file_status| file_status.errors())
    {
        reason.push_str(&format!("\n{error}"));
    }
    for origin in admin.applied.awaited_origins() {
        reason.push_str(&format!("\norigin {origin:?} has not applied yet"));
    }
    if let Some(Role::Sink(contents)) = &admin.role {
        for collection in contents.awaited() {
            reason.push_str(&format!("\nthe collection {collection} has not come yet"));
        }
    } else if file_status.is_none() {
        reason.push_str("\nbring contents with `trunkline apply`");
    }
    Some(reason)
}

/// `GET /metrics`: writes all metrics, in the text of OpenMetrics.
pub(super) async fn metrics(State(admin): State<Shared>) -> Result<Response, Refusal> {
    let text = super::run_blocking(move || metrics_text(&admin)).await?;
    Ok(respond_metrics(text))
}

/// Responds with a text of [`metrics_text`].
pub(super) fn respond_metrics(text: impl Into<Body>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], text.into()).into_response()
}

/// Returns the text of all metrics. Some are counted by visiting every client.
pub(super) fn metrics_text(admin: &Admin) -> String {
    let files = admin.files.as_ref().map(|files| files.borrow().clone());
    let clients = admin.server.clients();
    let metrics = &admin.metrics;
    let role_counts = admin
        .role
        .as_ref()
        .map(|role_counts| role_counts.status().counts());
    let mcp_counts = role_counts.unwrap_or_default();
    metrics.to_text(&admin.server, &clients, files.as_deref(), mcp_counts)
}
