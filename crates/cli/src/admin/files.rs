//! The files of the contents, and load reports: as JSON.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, Uri};
use serde::Serialize;
use trunkline::checked::Finding;
use trunkline_store::FileStatus;

use super::asking::Asking;
use super::error::Refusal;
use super::query::Query;
use super::{Shared, Who};

/// All files.
#[derive(Serialize)]
struct List {
    /// Whether every file has been good once.
    loaded: bool,
    files: Vec<Shown>,
    /// Why changes are not seen at once.
    warnings: Vec<String>,
}

/// A file of resources.
#[derive(Serialize)]
struct Shown {
    path: String,
    status: &'static str,
    since: String,
    resources: usize,
    /// The hash of its change, if that is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

/// `POST /api/v1/confirm?hash=...`: confirms the held change that has this
/// hash.
pub(super) async fn confirm(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
) -> Result<StatusCode, Refusal> {
    let query = Query::read(&uri, &["hash"])?;
    let hash = query.one("hash")?.unwrap_or_default();
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if hash.len() != HASH_DIGITS || !hash.chars().all(is_digit) {
        return Err(Refusal::bad(format!(
            "hash: expected the {HASH_DIGITS} digits that the held change is shown with, found \
             {hash:?}"
        )));
    }

    tracing::info!(who = who.0, hash, "a held change is confirmed");
    let hash = hash.to_owned();
    super::run_blocking(move || admin.server.confirm(&hash)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The digits of the hash of a change.
const HASH_DIGITS: usize = 16;

/// `GET /api/v1/files`: shows each file of the contents. The list is empty if
/// contents come over the API.
pub(super) async fn list(State(admin): State<Shared>) -> Response {
    let status = admin.files.as_ref().map(|files| files.borrow().clone());
    let list = match status {
        Some(status) => List {
            loaded: status.loaded,
            files: status.files.iter().map(show_file).collect(),
            warnings: to_texts(&status.unwatched),
        },
        // Contents that come over the API are there at once.
        None => List {
            loaded: true,
            files: Vec::new(),
            warnings: Vec::new(),
        },
    };
    axum::Json(list).into_response()
}

/// Shows a file: whether it is good, bad or held, since when, the number of its
/// resources that are served, and its mistakes and warnings.
fn show_file(file: &FileStatus) -> Shown {
    Shown {
        path: file.path.to_string(),
        status: match file.held() {
            Some(_) => "HELD",
            None if file.is_good() => "GOOD",
            None => "BAD",
        },
        held: file.held().map(str::to_owned),
        since: super::timestamp(file.since),
        resources: file.resources,
        errors: to_texts(&file.errors),
        warnings: to_texts(&file.warnings),
    }
}

/// Writes each finding as one text, with its place.
fn to_texts(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

/// `GET /api/v1/loads`: shows the last load reports of clients, and the number
/// of reports that were refused for want of room.
pub(super) async fn list_loads(
    State(admin): State<Shared>,
    mut asking: Asking,
) -> Result<Response, Refusal> {
    let load = admin.server.load().clone();
    let node_ids = asking.run(move || load.reports().node_ids()).await?;
    asking.hold(&node_ids)?;
    let load = admin.server.load().clone();
    let loads = node_ids
        .into_iter()
        .flat_map(move |node_id| load.reports().of_node(&node_id));
    let tail = move || {
        let refused_count = admin.server.load().reports().refused();
        format!("],\"refused\":{refused_count}}}")
    };
    asking
        .answer_list("{\"loads\":[".to_owned(), loads, tail)
        .await
}
