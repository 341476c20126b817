//! The admin API: the server's resources and clients, over HTTP.
//!
//! | file | concern |
//! |---|---|
//! | `guard`, `token` | who may read, who may write |
//! | `types`, `resources`, `view` | resources, shown without secrets |
//! | `write`, `remove`, `accept`, `body`, `stage`, `outcome` | changes |
//! | `history`, `backup` | revisions, the way back, and copies |
//! | `leases` | resources that stay only as long as their writer renews them |
//! | `status`, `explain`, `variant` | clients; why one gets what it gets |
//! | `wait` | the clients that have yet to answer a change |
//! | `watch`, `event`, `event_filter` | events as they happen |
//! | `files` | files and load reports |
//! | `mcp` | sources and sinks of the Mesh Configuration Protocol |
//! | `dump`, `pages` | `/config_dump`; the index, `/ready`, `/metrics` |
//! | `health` | `/ready` and `/metrics` for everybody |
//! | `asking`, `bodies` | questions and bodies within their bounds |
//! | `query`, `error` | parameters and refusals |

mod accept;
mod asking;
mod backup;
mod bodies;
mod body;
mod dump;
mod error;
mod event;
mod event_filter;
mod explain;
mod export;
mod files;
mod guard;
mod health;
mod history;
mod leases;
mod mcp;
mod outcome;
mod pages;
mod query;
mod remove;
mod resources;
mod stage;
mod status;
mod token;
mod types;
mod variant;
mod view;
mod wait;
mod watch;
mod write;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, post};
use http::StatusCode;
use tokio::sync::watch::Receiver;
use tokio::sync::{Mutex, Semaphore};
use trunkline::events::EventLog;
use trunkline::{Connection, Server};
use trunkline_store::FilesStatus;

pub(crate) use self::accept::TEXT_MEMORY;
pub(crate) use self::bodies::{ALL_BODIES, Bodies};
use self::error::{Refusal, RefusalReason};
pub(crate) use self::explain::{NODE_BYTES, NODE_MEMORY};
pub(crate) use self::export::{COUNT, REVISION};
pub(crate) use self::guard::Guard;
use self::guard::Purpose;
pub(crate) use self::health::health_router;
pub(crate) use self::stage::{MOST_OPEN, Stage};
pub(crate) use self::status::protocol_name;
pub(crate) use self::view::{encode_file_form, show_file_form, show_redacted};
pub(crate) use self::wait::MOST_WAITS;
use crate::applied::AppliedContents;
use crate::audit::{Audit, RefusedRequest};
use crate::mcp::Role;
use crate::metrics::Metrics;
use crate::settings::OnDangling;

/// The state of the API.
pub(crate) struct Admin {
    pub(crate) server: Server,
    pub(crate) metrics: Arc<Metrics>,
    /// The newest events of the server.
    pub(crate) events: EventLog,
    /// The status of the files, if contents come from files.
    pub(crate) files: Option<Receiver<Arc<FilesStatus>>>,
    pub(crate) guard: Guard,
    /// Told of requests that are refused.
    pub(crate) audit: Audit,
    /// The contents that come by `apply`.
    pub(crate) applied: Arc<AppliedContents>,
    /// The role in the Mesh Configuration Protocol, if there is one.
    pub(crate) role: Option<Role>,
    /// Whether a change that removes much is held.
    pub(crate) hold_removals: bool,
    pub(crate) dangling: OnDangling,
    pub(crate) body_limit: usize,
    /// The room for bodies that are arriving.
    pub(crate) bodies: Bodies,
    /// The parts of changes that are not complete.
    pub(crate) stage: Arc<Mutex<Stage>>,
    /// A permit for each request that waits for clients.
    pub(crate) waits: Semaphore,
}

type Shared = Arc<Admin>;

/// The author of a request, for the audit log.
#[derive(Clone, Debug)]
struct Who(String);

/// One route of the API.
struct Route {
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<Shared>,
}

macro_rules! routes {
    ($($method:ident $path:literal $handler:path;)*) => {
        &[$(Route {
            method: stringify!($method),
            path: $path,
            handler: || routes!(@ $method, $handler),
        },)*]
    };
    (@ GET, $handler:path) => { get($handler) };
    (@ POST, $handler:path) => { post($handler) };
    (@ DELETE, $handler:path) => { delete($handler) };
}

/// The path at which a change that is held is confirmed.
const CONFIRM: &str = "/api/v1/confirm";

/// Every route; `openapi.json` describes each.
const ROUTES: &[Route] = routes! {
    GET "/api/v1/types" types::list;
    GET "/api/v1/resources" resources::list_all;
    GET "/api/v1/resources/{type}" resources::list;
    POST "/api/v1/resources" write::apply;
    DELETE "/api/v1/resources" remove::delete_listed;
    DELETE "/api/v1/resources/{type}" remove::delete;
    POST "/api/v1/confirm" files::confirm;
    GET "/api/v1/history" history::list;
    GET "/api/v1/history/{revision}" history::show;
    GET "/api/v1/diff" history::diff;
    POST "/api/v1/rollback" history::roll_back;
    POST "/api/v1/backup" backup::back_up;
    POST "/api/v1/export" export::export;
    GET "/api/v1/leases" leases::list;
    POST "/api/v1/leases/{origin}" leases::renew;
    DELETE "/api/v1/leases/{origin}" leases::end;
    GET "/api/v1/status" status::list;
    GET "/api/v1/wait" wait::wait;
    GET "/api/v1/watch" watch::watch;
    GET "/api/v1/explain" explain::explain_client;
    POST "/api/v1/explain" explain::explain_node;
    GET "/api/v1/files" files::list;
    GET "/api/v1/loads" files::list_loads;
    GET "/api/v1/mcp" mcp::show;
    GET "/api/v1/openapi.json" pages::openapi;
    GET "/config_dump" dump::dump;
    GET "/debug/clients" status::list_with_resources;
    GET "/metrics" pages::metrics;
    GET "/ready" pages::ready;
    GET "/" pages::index;
};

/// Builds the API: every route, behind the guard. A request for an unknown path
/// or method is refused with a message that says where all paths are listed.
pub(crate) fn router(admin: Arc<Admin>) -> Router {
    let routes = ROUTES.iter().fold(Router::new(), |router, route| {
        router.route(route.path, (route.handler)())
    });
    routes
        .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "no such path; / lists all"))
        .method_not_allowed_fallback(async || {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Refusal::new(status, "this path has no such method; / lists all")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&admin), admit))
        .with_state(admin)
}

/// Passes a request on with its author if the guard admits it; otherwise
/// responds with the guard's refusal. Tells the audit of every refused write
/// and of every confirmed change.
async fn admit(State(admin): State<Shared>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let Some(connection) = head.extensions.get::<Connection>().cloned() else {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return Refusal::new(status, "nothing is known of the connection").into_response();
    };
    let is_write = Purpose::of(&head) == Purpose::Write;
    let request_line = format!("{} {}", head.method, head.uri);
    let is_confirm = head.uri.path() == CONFIRM;

    let (author, response) = match admin.guard.admit(&head, &connection).await {
        Ok(author) => {
            head.extensions.insert(Who(author.clone()));
            let response = next.run(Request::from_parts(head, body)).await;
            if !is_write {
                return response;
            }
            (author, response)
        }
        Err(refusal) => (
            guard::author_name(&connection, None),
            refusal.into_response(),
        ),
    };

    match response.status().is_success() {
        true if is_confirm => admin.audit.record_confirmation(&author, &request_line),
        true => {}
        false => record_refusal(&admin.audit, &author, &request_line, &response),
    }
    response
}

/// Tells the audit of a refused request, with the reason that the response has.
fn record_refusal(audit: &Audit, who: &str, request: &str, response: &Response) {
    let reason = response.extensions().get::<RefusalReason>();
    let refusal = RefusedRequest {
        request,
        status: response.status().as_u16(),
        reason: reason.map_or("", |RefusalReason(text)| text),
        suppressed: 0,
    };
    audit.record_refusal(who, refusal);
}

/// Runs long work on a thread for blocking work, so that no stream waits for
/// it.
///
/// # Errors
/// The work panicked, or the program is about to stop.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let panic_refusal =
        |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer was dropped");
    tokio::task::spawn_blocking(work)
        .await
        .map_err(panic_refusal)
}

/// Writes a time in the form of RFC 3339, cut to the millisecond. A time before
/// 1970 is written as the beginning of 1970.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or_default();
    let nanos = i32::try_from(since_epoch.subsec_millis() * 1_000_000).unwrap_or_default();
    trunkline_proto::text::print_timestamp(seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_route_is_described_and_no_other() {
        let described: Value = serde_json::from_str(pages::OPENAPI).unwrap();
        assert_eq!(described["openapi"], "3.1.0");
        let paths = described["paths"].as_object().unwrap();
        let mut told: Vec<(String, String)> = Vec::new();
        for (path, methods) in paths {
            for (method, about) in methods.as_object().unwrap() {
                assert!(about["summary"].is_string(), "{method} {path}");
                assert!(about["responses"].is_object(), "{method} {path}");
                told.push((method.to_uppercase(), path.clone()));
            }
        }
        let known = |route: &Route| (route.method.to_owned(), route.path.to_owned());
        let mut known: Vec<_> = ROUTES.iter().map(known).collect();
        told.sort();
        known.sort();
        assert_eq!(told, known);
    }

    #[test]
    fn the_page_of_the_documentation_has_every_route() {
        let page = include_str!("../../../../docs/admin-api.md");
        for Route { method, path, .. } in ROUTES {
            assert!(page.contains(&format!("| `{method} {path}` |")), "{path}");
        }
    }

    #[test]
    fn references_in_the_description_lead_somewhere() {
        fn walk(value: &Value, root: &Value) {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(root.pointer(pointer).is_some(), "{target}");
            }
            match value {
                Value::Object(map) => map.values().for_each(|inner| walk(inner, root)),
                Value::Array(list) => list.iter().for_each(|inner| walk(inner, root)),
                _ => {}
            }
        }
        let described: Value = serde_json::from_str(pages::OPENAPI).unwrap();
        walk(&described, &described);
    }
}
