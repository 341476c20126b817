//! The server's resources: as a list, or one of them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, Uri};
use serde::Serialize;
use trunkline::{Name, Resource, Server, TypeUrl};
use trunkline_proto::text::nearest;

use super::Shared;
use super::error::{Detail, Refusal};
use super::query::Query;
use super::view::Shown;
use crate::kinds;

/// The resources of a response.
#[derive(Serialize)]
struct List {
    resources: Vec<Shown>,
}

/// `GET /api/v1/resources/{type}`: shows the resources of a type, or those of one
/// name.
pub(super) async fn list(
    State(admin): State<Shared>,
    Path(kind): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let query = Query::read(&uri, &["name", "summary"])?;
    let summary = query.switch("summary")?;
    let found = match query.one("name")? {
        Some(name) => existing(&admin.server, &type_url, name)?,
        None => all(&admin.server, &type_url),
    };
    super::run_blocking(move || {
        let show = match summary {
            true => Shown::summary,
            false => Shown::whole,
        };
        let resources = found.iter().map(|resource| show(&type_url, resource));
        let resources = resources.collect();
        axum::Json(List { resources }).into_response()
    })
    .await
}

/// Returns every variant of a name.
///
/// # Errors
/// The name does not exist.
fn existing(
    server: &Server,
    type_url: &TypeUrl,
    name: &str,
) -> Result<Vec<Arc<Resource>>, Refusal> {
    let variants = held(server, type_url, &Name::new(name));
    match variants.is_empty() {
        true => Err(missing(server, type_url, &[name])),
        false => Ok(variants),
    }
}

/// Returns every variant of a name; none if it does not exist.
pub(super) fn held(server: &Server, type_url: &TypeUrl, name: &Name) -> Vec<Arc<Resource>> {
    server.read(|db| {
        let id = db.find_type(type_url);
        id.map_or_else(Vec::new, |id| db.variants(id, name).to_vec())
    })
}

/// Returns every resource of a type, in the order of names and constraints.
pub(super) fn all(server: &Server, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
    let mut all = server.all(type_url);
    let constraints = |r: &Resource| r.constraints.as_ref().map(ToString::to_string);
    all.sort_by(|a, b| {
        let names = a.name.cmp(&b.name);
        names.then_with(|| constraints(a).cmp(&constraints(b)))
    });
    all
}

/// Makes the error for names that do not exist, with a similar name for each.
pub(super) fn missing(server: &Server, type_url: &TypeUrl, names: &[&str]) -> Refusal {
    let known = all(server, type_url);
    let detail = |name: &&str| {
        let candidates = known.iter().map(|resource| resource.name.to_string());
        let hint = match nearest(name, candidates) {
            Some(near) => format!("; did you mean {near:?}?"),
            None => String::new(),
        };
        Detail::new(format!(
            "there is no {} {name:?}{hint}",
            kinds::short(type_url)
        ))
    };
    let details: Vec<Detail> = names.iter().map(detail).collect();
    let message = match &details[..] {
        [only] => only.message.clone(),
        several => format!("{} names do not exist", several.len()),
    };
    Refusal {
        details: if names.len() > 1 { details } else { Vec::new() },
        ..Refusal::new(StatusCode::NOT_FOUND, message)
    }
}
