//! `/ready` and `/metrics` for everybody, on an address of their own: what they
//! cost is bounded, however often they are requested, and they quote nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Mutex;

use super::error::Refusal;
use super::{Admin, pages};

/// How old the metrics may be: they visit all clients, and are written anew no
/// more often than this.
const METRICS_AGE: Duration = Duration::from_secs(1);

/// The state of the pages.
struct Health {
    admin: Arc<Admin>,
    /// The newest metrics. Locked while they are written, so that they are
    /// written once for all who wait.
    metrics: Mutex<Option<(Instant, Bytes)>>,
}

/// Builds the router of `/ready` and `/metrics`; every other path is refused.
pub(crate) fn health_router(admin: Arc<Admin>) -> Router {
    let metrics = Mutex::new(None);
    let health = Arc::new(Health { admin, metrics });
    Router::new()
        .route("/ready", get(ready))
        .route("/metrics", get(recent_metrics))
        .fallback(async || {
            let message = "this address has /ready and /metrics only";
            Refusal::new(StatusCode::NOT_FOUND, message)
        })
        .with_state(health)
}

/// `GET /ready`: as on the admin address, without the mistakes in files, which
/// quote them.
async fn ready(State(health): State<Arc<Health>>) -> Response {
    let reason = pages::unready_reason(&health.admin);
    pages::respond_ready(reason.map(|reason| reason.lines().take(1).collect()))
}

/// `GET /metrics`: responds with the same text as the admin address, which may
/// be as old as [`METRICS_AGE`].
async fn recent_metrics(State(health): State<Arc<Health>>) -> Result<Response, Refusal> {
    let mut cached_metrics = health.metrics.lock().await;
    if let Some((time, text)) = &*cached_metrics
        && time.elapsed() < METRICS_AGE
    {
        return Ok(pages::respond_metrics(text.clone()));
    }
    let admin = Arc::clone(&health.admin);
    let text = super::run_blocking(move || pages::metrics_text(&admin)).await?;
    let text = Bytes::from(text);
    *cached_metrics = Some((Instant::now(), text.clone()));
    Ok(pages::respond_metrics(text))
}
