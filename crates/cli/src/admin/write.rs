//! Changes over the API: all of a request, or nothing.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use trunkline::{Change, Changed, Name, Server, TypeUrl};
use trunkline_proto::text::Format;

use super::error::{Detail, Refusal};
use super::query::Query;
use super::{Shared, Who, accept, resources};
use crate::kinds;

/// What a change did, or would do.
#[derive(Debug, Serialize)]
struct Outcome {
    changed: Vec<One>,
    /// How many were given that are as they were.
    unchanged: usize,
    warnings: Vec<Detail>,
    dry_run: bool,
}

/// What became of one variant of a name.
#[derive(Debug, Serialize)]
struct One {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl From<&Changed> for One {
    fn from(changed: &Changed) -> Self {
        Self {
            type_url: changed.type_url.to_string(),
            name: changed.name.to_string(),
            constraints: changed.constraints.as_ref().map(ToString::to_string),
            from: changed.from.as_ref().map(ToString::to_string),
            to: changed.to.as_ref().map(ToString::to_string),
        }
    }
}

/// `POST /api/v1/resources`
pub(super) async fn apply(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let dry_run = Query::read(&uri, &["dry_run"])?.switch("dry_run")?;
    writable(&admin)?;
    let body = self::body(&admin, body)?;
    let format = format(&headers);
    let lock = Arc::clone(&admin.writes).lock_owned().await;
    super::aside(move || {
        let accepted = accept::accept(&admin.server, body, format, admin.dangling)?;
        let changes = accepted.resources.into_iter();
        let changes = changes.map(|(url, resource)| Change::Upsert(url, resource));
        let outcome = make(&admin, &who, changes.collect(), dry_run, accepted.warnings);
        drop(lock);
        outcome
    })
    .await?
}

/// `DELETE /api/v1/resources/{type}?name=...`
pub(super) async fn delete(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    Path(kind): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let query = Query::read(&uri, &["name", "dry_run"])?;
    let dry_run = query.switch("dry_run")?;
    writable(&admin)?;
    let names: Vec<String> = query.all("name").map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Refusal::bad(
            "which resources? give each as a parameter `name`",
        ));
    }
    let lock = Arc::clone(&admin.writes).lock_owned().await;
    super::aside(move || {
        let exists = |name: &&str| {
            let held = resources::held(&admin.server, &type_url, &Name::new(name));
            !held.is_empty()
        };
        let (_, gone): (Vec<&str>, Vec<&str>) =
            names.iter().map(String::as_str).partition(|n| exists(n));
        if !gone.is_empty() {
            return Err(resources::missing(&admin.server, &type_url, &gone));
        }
        let remove = |name: &String| Change::Remove(type_url.clone(), Name::new(name));
        let changes = names.iter().map(remove).collect();
        let outcome = make(&admin, &who, changes, dry_run, Vec::new());
        drop(lock);
        outcome
    })
    .await?
}

/// Files have the last word where there are files.
fn writable(admin: &super::Admin) -> Result<(), Refusal> {
    match admin.files {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "contents come from files: edit them, or start the server without --config",
        )),
    }
}

/// The body of a request, unless it is too long.
pub(super) fn body(
    admin: &super::Admin,
    body: Result<Bytes, BytesRejection>,
) -> Result<Bytes, Refusal> {
    body.map_err(|rejected| match rejected.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body has more than {} bytes; split it, or raise --max-admin-body",
                admin.body_limit
            ),
        ),
        status => Refusal::new(status, rejected.body_text()),
    })
}

pub(super) fn format(headers: &HeaderMap) -> Format {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().map(str::trim) {
        Some("application/json") => Format::Json,
        _ => Format::Yaml,
    }
}

fn make(
    admin: &super::Admin,
    Who(who): &Who,
    changes: Vec<Change>,
    dry_run: bool,
    warnings: Vec<Detail>,
) -> Result<Response, Refusal> {
    let given = changes.len();
    let changed = match dry_run {
        true => rehearse(&admin.server, changes),
        false => admin.server.apply_as(who, changes),
    };
    let changed = changed
        .map_err(|error| Refusal::invalid("nothing was changed", vec![Detail::new(error)]))?;
    let outcome = Outcome {
        changed: changed.iter().map(One::from).collect(),
        unchanged: given.saturating_sub(changed.len()),
        warnings,
        dry_run,
    };
    Ok(axum::Json(outcome).into_response())
}

/// Makes changes to a copy of what they concern.
fn rehearse(server: &Server, changes: Vec<Change>) -> Result<Vec<Changed>, trunkline::ApplyError> {
    let mut names: Vec<(TypeUrl, Name)> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Upsert(url, resource) => Some((url.clone(), resource.name.clone())),
            Change::Remove(url, name) => Some((url.clone(), name.clone())),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    let scratch = Server::default();
    let copies = names.iter().flat_map(|(url, name)| {
        let held = resources::held(server, url, name).into_iter();
        held.map(|resource| Change::Upsert(url.clone(), resource))
    });
    scratch.apply(copies.collect())?;
    scratch.apply(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_type() {
        let of = |value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            format(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        };
        assert_eq!(of("application/json; charset=utf-8"), Format::Json);
        assert_eq!(of("application/yaml"), Format::Yaml);
        assert_eq!(format(&HeaderMap::new()), Format::Yaml);
    }
}
