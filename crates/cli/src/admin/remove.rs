//! Removals over the API: all names of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use trunkline::checked::{Document, Removal, ResourceEdit};
use trunkline::{Connection, Name, Resource, Server, TypeUrl};
use trunkline_core::params::Constraints;

use super::error::Refusal;
use super::outcome::{ChangeRequest, OPTIONS, Options};
use super::query::Query;
use super::{Shared, Who, bodies, resources};
use crate::kinds;

/// The maximum of variants that are listed in the error about an unknown one.
const MOST_LISTED: usize = 10;

/// The constraints of a variant; `None` is for all clients.
type Clients = Option<Constraints>;

/// `DELETE /api/v1/resources/{type}?name=...`: removes all named resources of a
/// type, or one variant of each. If one does not exist, removes none, unless
/// `missing_ok` is on.
pub(super) async fn delete(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    Path(kind): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let parameters = [&["name", "variant", "missing_ok"][..], &OPTIONS].concat();
    let query = Query::read(&uri, &parameters)?;
    let mut options = Options::read(&query, &headers)?;
    options.hash_request(&uri, &[]);

    let variant = query.one("variant")?.map(parse_variant).transpose()?;
    let names = read_names(&query)?.into_iter().map(|name| Removal {
        type_url: type_url.clone(),
        name,
        variant: variant.clone(),
    });
    let removed_names = RemovedNames {
        names: names.collect(),
        missing_ok: query.is_on("missing_ok")?,
    };
    remove(admin, who, options, removed_names).await
}

/// The body of a request that lists the resources to remove.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemovalList {
    names: Vec<RemovalEntry>,
}

/// A resource to remove.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemovalEntry {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    /// The one variant to remove, as people write it.
    variant: Option<String>,
}

/// `DELETE /api/v1/resources`: removes the resources that the body lists, of
/// any types. If one does not exist, removes none, unless `missing_ok` is on.
pub(super) async fn delete_listed(
    State(admin): State<Shared>,
    Extension(connection): Extension<Connection>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &[&["missing_ok"][..], &OPTIONS].concat())?;
    let mut options = Options::read(&query, &headers)?;
    let missing_ok = query.is_on("missing_ok")?;
    let body = bodies::read(&admin, &connection, body, admin.body_limit).await?;
    options.hash_request(&uri, &body.bytes);
    let names = super::run_blocking(move || parse_list(&body.bytes)).await??;
    remove(admin, who, options, RemovedNames { names, missing_ok }).await
}

/// Parses the body of a request that lists the resources to remove.
///
/// # Errors
/// The body is not such a list, or a type or a variant in it cannot be parsed.
fn parse_list(body: &[u8]) -> Result<Vec<Removal>, Refusal> {
    let list: RemovalList = serde_json::from_slice(body).map_err(|error| {
        Refusal::bad(format!(
            "the body: {error}; expected {{\"names\": [{{\"type\": \"cds\", \"name\": \
             \"backend\"}}]}}"
        ))
    })?;
    let removals = list.names.into_iter().map(|entry| {
        let variant = entry.variant.as_deref().map(parse_variant);
        Ok(Removal {
            type_url: kinds::parse(&entry.kind).map_err(Refusal::bad)?,
            name: Name::new(&entry.name),
            variant: variant.transpose()?,
        })
    });
    removals.collect()
}

/// Removes resources, and responds with the effect.
///
/// # Errors
/// A resource does not exist, and `missing_ok` is off.
async fn remove(
    admin: Shared,
    who: Who,
    options: Options,
    removed_names: RemovedNames,
) -> Result<Response, Refusal> {
    super::run_blocking(move || {
        let request = ChangeRequest {
            admin: &admin,
            who: &who,
            options: options.without_guard(),
            text: None,
        };
        let edit = ResourceEdit {
            removals: removed_names.select_existing(&admin.server)?,
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        request.make(edit, Vec::new())
    })
    .await?
}

/// Returns the values of the parameter `name`.
///
/// # Errors
/// The request has no such parameter.
fn read_names(query: &Query) -> Result<Vec<Name>, Refusal> {
    let names: Vec<Name> = query.all("name").map(Name::new).collect();
    match names.is_empty() {
        true => Err(Refusal::bad(
            "which resources? give each as a parameter `name`",
        )),
        false => Ok(names),
    }
}

/// Parses a variant in the form that `get` shows; `always` is the variant for
/// all clients.
fn parse_variant(text: &str) -> Result<Clients, Refusal> {
    let constraints: Constraints = text.parse().map_err(|error| {
        Refusal::bad(format!(
            "variant: {text:?} is no constraint: {error}; write such as env=prod, as `get` shows it"
        ))
    })?;
    Ok(Some(constraints).filter(|constraints| !constraints.is_always()))
}

/// Names that a request removes.
pub(super) struct RemovedNames {
    pub(super) names: Vec<Removal>,
    /// Whether a name may be one that does not exist.
    pub(super) missing_ok: bool,
}

impl RemovedNames {
    /// Returns the removals of the variants and names that exist.
    ///
    /// # Errors
    /// A name, or the requested variant of it, does not exist, and `missing_ok`
    /// is off.
    pub(super) fn select_existing(self, server: &Server) -> Result<Vec<Removal>, Refusal> {
        let mut removals = Vec::new();
        let mut missing_names: Vec<(TypeUrl, Name)> = Vec::new();

        for removal in self.names {
            let Removal {
                type_url,
                name,
                variant,
            } = &removal;
            let variants = resources::variants_of(server, type_url, name);

            let has_variant = match variant {
                Some(clients) => variants
                    .iter()
                    .any(|variant| variant.constraints == *clients),
                None => true,
            };

            if variants.is_empty() || (self.missing_ok && !has_variant) {
                missing_names.push((removal.type_url, removal.name));
                continue;
            }
            if let Some(clients) = variant.as_ref().filter(|_| !has_variant) {
                return Err(no_variant(type_url, name, clients, &variants));
            }
            removals.push(removal);
        }

        match missing_names.first() {
            Some((type_url, _)) if !self.missing_ok => {
                Err(missing_refusal(server, type_url, &missing_names))
            }
            _ => Ok(removals),
        }
    }
}

/// Makes the error for the missing names of one type. Those of other types are
/// left out.
fn missing_refusal(
    server: &Server,
    type_url: &TypeUrl,
    missing_names: &[(TypeUrl, Name)],
) -> Refusal {
    let of_type = missing_names.iter().filter(|(url, _)| url == type_url);
    let names: Vec<&str> = of_type.map(|(_, name)| name.as_str()).collect();
    resources::missing_names_refusal(server, type_url, &names)
}

/// Makes the error that a name does not have the requested variant. The message
/// lists the variants that the name has, at most [`MOST_LISTED`].
fn no_variant(
    type_url: &TypeUrl,
    name: &Name,
    clients: &Clients,
    variants: &[Arc<Resource>],
) -> Refusal {
    let write_clients = |clients: &Clients| match clients {
        Some(constraints) => format!("[{constraints}]"),
        None => "[always]".to_owned(),
    };

    let first_variants = variants.iter().take(MOST_LISTED);
    let variant_texts: Vec<String> = first_variants
        .map(|variant| write_clients(&variant.constraints))
        .collect();
    let omission = match variants.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };

    let message = format!(
        "{} {name:?} has no variant {}; it has {}{omission}",
        kinds::short(type_url),
        write_clients(clients),
        variant_texts.join(", ")
    );
    Refusal::new(StatusCode::NOT_FOUND, message)
}
