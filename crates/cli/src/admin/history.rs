//! The history of contents: revisions, what they changed, and the way back.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use serde_json::Value;
use trunkline::checked::{Edit, Row, RowChange, RowEdit};
use trunkline::{Name, Store, StoreError, TransactionInfo, TypeUrl};
use trunkline_store::{HistoryError, changes_between};

use super::error::Refusal;
use super::outcome::{ChangeRequest, OPTIONS, Options};
use super::query::Query;
use super::view::show_file_form;
use super::{Admin, Shared, Who};
use crate::kinds;

/// Revisions that are listed, unless the request says how many.
const LISTED: usize = 50;
/// The most that are listed.
const MOST_LISTED: usize = 1000;

/// Some revisions, newest first.
#[derive(Serialize)]
struct List {
    revisions: Vec<Revision>,
}

/// One revision.
#[derive(Serialize)]
struct Revision {
    revision: u64,
    time: String,
    author: String,
    origin: String,
    /// The revision whose contents it restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    restores: Option<u64>,
    created: u64,
    changed: u64,
    deleted: u64,
    /// What became of the resource that was asked for, or of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ShownChange>,
}

/// The change of one variant of a name.
#[derive(Serialize)]
struct ShownChange {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    origin: String,
    from: Option<String>,
    to: Option<String>,
    /// The resource before, without secrets, where it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// The resource after.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// `GET /api/v1/history`: lists revisions. With a type, or a type and a name,
/// lists those that changed such resources.
pub(super) async fn list(State(admin): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["before", "limit", "type", "name"])?;
    let end_revision = read_number(&query, "before")?;
    let limit = read_number(&query, "limit")?;
    let limit = limit.map_or(LISTED, |limit| {
        usize::try_from(limit).unwrap_or(MOST_LISTED)
    });
    let limit = limit.min(MOST_LISTED);
    let kind = query.one("type")?.map(kinds::parse).transpose();
    let kind = kind.map_err(Refusal::bad)?;
    let name = query.one("name")?.map(Name::new);

    super::run_blocking(move || {
        let store = store_of(&admin)?;
        let revisions = match (kind, name) {
            (None, None) => {
                let infos = store
                    .transactions(end_revision, limit)
                    .map_err(store_refusal)?;
                infos.into_iter().map(Revision::of).collect()
            }
            (Some(kind), name) => find_revisions(store, end_revision, limit, &kind, name.as_ref())
                .map_err(store_refusal)?,
            (None, Some(_)) => return Err(Refusal::bad("name: of which type? give it as `type`")),
        };
        Ok(axum::Json(List { revisions }).into_response())
    })
    .await?
}

/// `GET /api/v1/history/{revision}`: shows what a revision changed.
pub(super) async fn show(
    State(admin): State<Shared>,
    Path(revision): Path<u64>,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    super::run_blocking(move || {
        let store = store_of(&admin)?;
        let infos = store.transactions(Some(revision + 1), 1);
        let info = infos.map_err(store_refusal)?.into_iter().next();
        let info = info.filter(|info| info.revision == revision);
        let changes = store.changes(revision).map_err(store_refusal)?;
        let (Some(info), Some(changes)) = (info, changes) else {
            let message = format!("revision {revision} is not one that is kept");
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };

        let shown_revision = Revision {
            changes: changes
                .iter()
                .map(|change| ShownChange::of(change, false))
                .collect(),
            ..Revision::of(info)
        };
        Ok(axum::Json(shown_revision).into_response())
    })
    .await?
}

/// The differences between two revisions.
#[derive(Serialize)]
struct Differences {
    from: u64,
    to: u64,
    changes: Vec<ShownChange>,
}

/// `GET /api/v1/diff`: shows how the contents of two revisions differ, with the
/// resources.
pub(super) async fn diff(State(admin): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["from", "to"])?;
    let from_revision = read_number(&query, "from")?;
    let from_revision = from_revision.ok_or_else(|| Refusal::bad("from: which revision?"))?;
    let to_revision = read_number(&query, "to")?;

    super::run_blocking(move || {
        let store = store_of(&admin)?;
        let to_revision = match to_revision {
            Some(to_revision) => to_revision,
            None => newest(store)?,
        };
        let changes =
            changes_between(store, from_revision, to_revision).map_err(history_refusal)?;
        let changes = changes
            .iter()
            .map(|change| ShownChange::of(change, true))
            .collect();
        Ok(axum::Json(Differences {
            from: from_revision,
            to: to_revision,
            changes,
        })
        .into_response())
    })
    .await?
}

/// `POST /api/v1/rollback`: makes the contents equal to those of an earlier
/// revision. The change is made and checked as any other.
pub(super) async fn roll_back(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &[&["revision"][..], &OPTIONS].concat())?;
    let mut options = Options::read(&query, &headers)?;
    options.hash_request(&uri, &[]);
    let revision = read_number(&query, "revision")?;
    let revision = revision.ok_or_else(|| Refusal::bad("revision: to which one?"))?;

    super::run_blocking(move || {
        let store = store_of(&admin)?;
        let newest_revision = newest(store)?;

        // A change that comes after this line must not be undone unseen: the
        // options expect this revision.
        let current_revision = admin.server.revision();
        let changes = changes_between(store, newest_revision, revision).map_err(history_refusal)?;

        options.origin = main_origin(&changes).unwrap_or(options.origin);
        options.restores = Some(revision);
        options.expect_revision(current_revision);
        let rows = changes.into_iter().map(|change| (change.key, change.after));
        let edit = Edit::Rows(RowEdit {
            rows: rows.collect(),
        });

        let request = ChangeRequest {
            admin: &admin,
            who: &who,
            options,
            text: None,
        };
        request.make_edit(edit, Vec::new())
    })
    .await?
}

/// Returns the origin that loses the most resources, which the guard against
/// large removals looks at. If none is removed, returns an origin of any
/// change; `None` without changes.
fn main_origin(changes: &[RowChange]) -> Option<String> {
    let mut removal_counts: std::collections::BTreeMap<&str, usize> = Default::default();
    for change in changes {
        *removal_counts.entry(&change.key.origin).or_default() +=
            usize::from(change.after.is_none());
    }
    let largest = removal_counts.into_iter().max_by_key(|(_, count)| *count);
    largest.map(|(origin, _)| origin.to_owned())
}

/// Lists the newest revisions before `end_revision` that changed resources of a
/// type, or of one name of the type. The list has at most `limit` revisions.
fn find_revisions(
    store: &dyn Store,
    end_revision: Option<u64>,
    limit: usize,
    kind: &TypeUrl,
    name: Option<&Name>,
) -> Result<Vec<Revision>, StoreError> {
    let mut revisions = Vec::new();
    let mut page_end = end_revision;
    loop {
        let infos = store.transactions(page_end, LISTED)?;
        let Some(last_info) = infos.last() else {
            return Ok(revisions);
        };
        page_end = Some(last_info.revision);

        for info in infos {
            let changes = store.changes(info.revision)?.unwrap_or_default();
            let matching_changes = changes.iter().filter(|change| {
                change.key.type_url == *kind && name.is_none_or(|name| change.key.name == *name)
            });
            let changes: Vec<ShownChange> = matching_changes
                .map(|change| ShownChange::of(change, false))
                .collect();
            if !changes.is_empty() {
                revisions.push(Revision {
                    changes,
                    ..Revision::of(info)
                });
            }
            if revisions.len() == limit {
                return Ok(revisions);
            }
        }
    }
}

impl Revision {
    /// Describes a revision, without its changes.
    fn of(info: TransactionInfo) -> Self {
        let [created, changed, deleted] = info.counts;
        Self {
            revision: info.revision,
            time: super::timestamp(info.at),
            author: info.author,
            origin: info.origin,
            restores: info.restores,
            created,
            changed,
            deleted,
            changes: Vec::new(),
        }
    }
}

impl ShownChange {
    /// Shows a change; `with_resources` says whether with the resources
    /// themselves.
    fn of(change: &RowChange, with_resources: bool) -> Self {
        let key = &change.key;
        let version = |row: &Option<Row>| row.as_ref().map(|row| row.resource.version.to_string());
        let resource = |row: &Option<Row>| {
            let row = row.as_ref().filter(|_| with_resources);
            row.map(|row| show_file_form(&key.type_url, &row.resource))
        };
        Self {
            type_url: key.type_url.to_string(),
            name: key.name.to_string(),
            constraints: key.constraints.as_ref().map(ToString::to_string),
            origin: key.origin.to_string(),
            from: version(&change.before),
            to: version(&change.after),
            before: resource(&change.before),
            after: resource(&change.after),
        }
    }
}

/// Returns the newest revision of the store.
fn newest(store: &dyn Store) -> Result<u64, Refusal> {
    let infos = store.transactions(None, 1).map_err(store_refusal)?;
    let newest = infos.first().map(|info| info.revision);
    newest.ok_or_else(|| history_refusal(HistoryError::Empty))
}

/// Returns the store of a server.
pub(super) fn store_of(admin: &Admin) -> Result<&dyn Store, Refusal> {
    let store = admin.server.store().map(|store| &**store);
    store.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "the server has no store"))
}

/// Reads a parameter that is a number; `None` if the request does not have it.
///
/// # Errors
/// The value is not a number, or the parameter is given twice.
fn read_number(query: &Query, key: &str) -> Result<Option<u64>, Refusal> {
    let number = query.one(key)?.map(|text| {
        let bad = |_| Refusal::bad(format!("{key}: expected a number, found {text:?}"));
        text.parse().map_err(bad)
    });
    number.transpose()
}

/// Makes the error for a store that cannot be read.
pub(super) fn store_refusal(error: StoreError) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
}

/// Makes the error for a history that cannot be read, or that lacks a revision.
fn history_refusal(error: HistoryError) -> Refusal {
    match error {
        HistoryError::Store(error) => store_refusal(error),
        error => Refusal::new(StatusCode::NOT_FOUND, error),
    }
}
