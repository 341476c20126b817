//! Removals over the API: all names of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{StatusCode, Uri};
use trunkline::checked::{Document, Removal, ResourceEdit};
use trunkline::{Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::error::Refusal;
use super::outcome::{ChangeRequest, Options};
use super::query::Query;
use super::write::check_writable;
use super::{Admin, Shared, Who, resources};
use crate::kinds;

/// The maximum of variants that are listed in the error about an unknown one.
const MOST_LISTED: usize = 10;

/// The constraints of a variant; `None` is for all clients.
type Clients = Option<Constraints>;

/// `DELETE /api/v1/resources/{type}?name=...`: removes all named resources of a
/// type, or one variant of each; or none, if one does not exist.
pub(super) async fn delete(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    Path(kind): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let query = Query::read(&uri, &["name", "variant", "dry_run"])?;
    let dry_run = query.is_on("dry_run")?;
    let variant = query.one("variant")?.map(parse_variant).transpose()?;
    check_writable(&admin)?;
    let names = required_names(&query)?;

    super::run_blocking(move || {
        let selection = Selection {
            admin: &admin,
            type_url,
            variant,
        };
        let removals = selection.removals(&names)?;

        let options = Options {
            dry_run,
            summary: false,
        };
        let request = ChangeRequest {
            admin: &admin,
            who: &who,
            options,
        };
        let edit = ResourceEdit {
            removals,
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        request.make(edit, Vec::new())
    })
    .await?
}

/// Returns the names of a request.
///
/// # Errors
/// There is none.
fn required_names(query: &Query) -> Result<Vec<String>, Refusal> {
    let names: Vec<String> = query.all("name").map(str::to_owned).collect();
    match names.is_empty() {
        true => Err(Refusal::bad(
            "which resources? give each as a parameter `name`",
        )),
        false => Ok(names),
    }
}

/// Parses a variant as people write it; the one for all clients is `always`.
fn parse_variant(text: &str) -> Result<Clients, Refusal> {
    let constraints: Constraints = text.parse().map_err(|error| {
        Refusal::bad(format!(
            "variant: {text:?} is no constraint: {error}; write such as env=prod, as `get` shows it"
        ))
    })?;
    Ok(Some(constraints).filter(|constraints| !constraints.is_always()))
}

/// A selection of the server's resources, by type and variant.
struct Selection<'a> {
    admin: &'a Admin,
    type_url: TypeUrl,
    /// The variant to remove; without it all of a name.
    variant: Option<Clients>,
}

impl Selection<'_> {
    /// Returns the removals of these names, or of the selected variant of each.
    ///
    /// # Errors
    /// A name, or the variant of it, does not exist.
    fn removals(&self, names: &[String]) -> Result<Vec<Removal>, Refusal> {
        let mut removals = Vec::new();
        let mut missing = Vec::new();
        for text in names {
            let name = Name::new(text);
            let held = resources::variants_of(&self.admin.server, &self.type_url, &name);
            if held.is_empty() {
                missing.push(text.as_str());
                continue;
            }
            if let Some(clients) = &self.variant
                && !held.iter().any(|resource| resource.constraints == *clients)
            {
                return Err(self.no_variant(&name, clients, &held));
            }
            removals.push(Removal {
                type_url: self.type_url.clone(),
                name,
                variant: self.variant.clone(),
            });
        }

        match missing.is_empty() {
            true => Ok(removals),
            false => Err(resources::missing_names(
                &self.admin.server,
                &self.type_url,
                &missing,
            )),
        }
    }

    /// Makes the error that a name has no such variant. It lists those that the
    /// name has, which are `held`, up to [`MOST_LISTED`].
    fn no_variant(&self, name: &Name, clients: &Clients, held: &[Arc<Resource>]) -> Refusal {
        let written = |clients: &Clients| match clients {
            Some(constraints) => format!("[{constraints}]"),
            None => "[always]".to_owned(),
        };

        let listed = held.iter().take(MOST_LISTED);
        let listed: Vec<String> = listed.map(|r| written(&r.constraints)).collect();
        let more = match held.len().saturating_sub(MOST_LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };

        let message = format!(
            "{} {name:?} has no variant {}; it has {}{more}",
            kinds::short(&self.type_url),
            written(clients),
            listed.join(", ")
        );
        Refusal::new(StatusCode::NOT_FOUND, message)
    }
}
