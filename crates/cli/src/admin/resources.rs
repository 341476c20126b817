//! The server's resources: as a list, or one of them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::{StatusCode, Uri};
use trunkline::{Name, Resource, Server, TypeUrl};
use trunkline_proto::text::nearest;

use super::Shared;
use super::asking::Asking;
use super::error::{Detail, Refusal};
use super::query::Query;
use super::view::Shown;
use crate::kinds;

/// Writes the beginning of a response. The revision is from before the list: a
/// change since then may be in it.
fn head(revision: u64) -> String {
    format!("{{\"revision\":{revision},\"resources\":[")
}

/// Writes the end of a response.
fn tail() -> String {
    "]}".to_owned()
}

/// `GET /api/v1/resources`: shows the resources of all types, or those of one
/// origin. In a summary, their contents are left out.
pub(super) async fn list_all(
    State(admin): State<Shared>,
    mut asking: Asking,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["origin", "summary"])?;
    let show = choose_form(query.is_on("summary")?);
    let origin = query.one("origin")?.map(str::to_owned);

    let read_resources = move || {
        let server = &admin.server;
        let revision = server.revision();
        let mut resources = match origin {
            Some(origin) => server.read_set(|set| set.resources(&origin)),
            None => all_resources(server),
        };
        resources.sort_by(|(a_url, a), (b_url, b)| (a_url, &a.name).cmp(&(b_url, &b.name)));
        (revision, resources)
    };
    let (revision, resources) = asking.run(read_resources).await?;
    asking.hold(&resources)?;
    let items = resources.into_iter();
    let items = items.map(move |(url, resource)| show(&url, &resource));
    asking.answer_list(head(revision), items, tail).await
}

/// Returns the function that shows a resource: as a summary, or whole.
fn choose_form(is_summary: bool) -> fn(&TypeUrl, &Resource) -> Shown {
    match is_summary {
        true => Shown::summary,
        false => Shown::whole,
    }
}

/// Returns every resource of every type, with its type.
fn all_resources(server: &Server) -> Vec<(TypeUrl, Arc<Resource>)> {
    let types: Vec<TypeUrl> = server.read(|db| db.types().map(|(_, url)| url.clone()).collect());
    let resources = types.into_iter().flat_map(|url| {
        let resources = server.all(&url).into_iter();
        resources.map(move |resource| (url.clone(), resource))
    });
    resources.collect()
}

/// `GET /api/v1/resources/{type}`: shows the resources of a type, or the
/// variants of some names. In a summary, their contents are left out.
pub(super) async fn list(
    State(admin): State<Shared>,
    Path(kind): Path<String>,
    mut asking: Asking,
    uri: Uri,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let query = Query::read(&uri, &["name", "summary"])?;
    let show = choose_form(query.is_on("summary")?);
    let names: Vec<String> = query.all("name").map(str::to_owned).collect();

    let (shared, url) = (Arc::clone(&admin), type_url.clone());
    let read_resources = move || {
        let server = &shared.server;
        let revision = server.revision();
        let resources = match names.is_empty() {
            false => existing_variants(server, &url, &names)?,
            true => sorted_resources(server, &url),
        };
        Ok::<_, Refusal>((revision, resources))
    };
    let (revision, resources) = asking.run(read_resources).await??;
    asking.hold(&resources)?;

    // Contents are written without the lock of the set.
    let items = resources.into_iter().map(move |resource| {
        let (origin, place) = admin.server.read_set(|set| {
            let origin = set.origin_of(&type_url, &resource);
            (origin, set.place_of(&type_url, &resource))
        });
        Shown {
            origin: origin.map(|origin| origin.to_string()),
            place: place.map(|place| place.to_string()),
            ..show(&type_url, &resource)
        }
    });
    asking.answer_list(head(revision), items, tail).await
}

/// Returns every variant of some names.
///
/// # Errors
/// A name has no variant; the message suggests a similar name.
fn existing_variants(
    server: &Server,
    type_url: &TypeUrl,
    names: &[String],
) -> Result<Vec<Arc<Resource>>, Refusal> {
    let mut existing = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for name in names {
        let variants = variants_of(server, type_url, &Name::new(name));
        match variants.is_empty() {
            true => missing.push(name),
            false => existing.extend(variants),
        }
    }
    match missing.is_empty() {
        true => Ok(existing),
        false => Err(missing_names_refusal(server, type_url, &missing)),
    }
}

/// Returns every variant of a name; none if the type or the name is unknown.
pub(super) fn variants_of(server: &Server, type_url: &TypeUrl, name: &Name) -> Vec<Arc<Resource>> {
    server.read(|db| match db.find_type(type_url) {
        Some(type_id) => db.variants(type_id, name).to_vec(),
        None => Vec::new(),
    })
}

/// Returns every resource of a type, in the order of names and constraints.
pub(super) fn sorted_resources(server: &Server, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
    let mut resources = server.all(type_url);
    let constraints = |resource: &Resource| resource.constraints.as_ref().map(ToString::to_string);
    resources.sort_by(|a, b| {
        let by_name = a.name.cmp(&b.name);
        by_name.then_with(|| constraints(a).cmp(&constraints(b)))
    });
    resources
}

/// Makes the error for names that do not exist, with a similar name for each
/// that has one. Several names are one detail each.
pub(super) fn missing_names_refusal(
    server: &Server,
    type_url: &TypeUrl,
    names: &[&str],
) -> Refusal {
    let resources = sorted_resources(server, type_url);
    let describe_missing = |name: &&str| {
        let candidates = resources.iter().map(|resource| resource.name.to_string());
        let hint = kinds::did_you_mean(nearest(name, candidates).as_deref());
        Detail::new(format!(
            "there is no {} {name:?}{hint}",
            kinds::short(type_url)
        ))
    };

    let details: Vec<Detail> = names.iter().map(describe_missing).collect();
    let message = match &details[..] {
        [detail] => detail.message.clone(),
        _ => format!("{} names do not exist", names.len()),
    };
    Refusal {
        details: if names.len() > 1 { details } else { Vec::new() },
        ..Refusal::new(StatusCode::NOT_FOUND, message)
    }
}
