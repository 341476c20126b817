//! Removals over the API: all names of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{StatusCode, Uri};
use trunkline::checked::Document;
use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::body::VariantId;
use super::error::Refusal;
use super::outcome::{ChangeRequest, Options};
use super::query::Query;
use super::write::check_writable;
use super::{Admin, Shared, Who, Writes, resources};
use crate::kinds;

/// The maximum of variants that are listed in the error about an unknown one.
const MOST_LISTED: usize = 10;

/// The constraints of a variant; `None` is for all clients.
type Clients = Option<Constraints>;

/// The resources that are removed.
#[derive(Default)]
struct Removals {
    /// Names of which nothing is left.
    names: Vec<Name>,
    /// Variants of names that keep others.
    variants: Vec<VariantId>,
    /// All variants that are removed, of both.
    all: Vec<VariantId>,
}

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

    let mut writes = Arc::clone(&admin.writes).lock_owned().await;
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
            document: &Document::empty(&"".into()),
            options,
        };
        make_removals(&request, &selection.type_url, removals, &mut writes)
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

/// Makes the removals of a request, or rehearses them, and responds with their
/// effect. Virtual hosts that came with a removed route configuration are
/// removed too. Only removals that were made are kept in `writes` and warned
/// of.
fn make_removals(
    request: &ChangeRequest<'_>,
    type_url: &TypeUrl,
    removals: Removals,
    writes: &mut Writes,
) -> Result<Response, Refusal> {
    let Writes { derived, known } = writes;
    let mut plan = derived.plan_delete(type_url, &removals.names, &removals.all);

    let mut changes = std::mem::take(&mut plan.removed);
    let names = removals.names.into_iter();
    changes.extend(names.map(|name| Change::Remove(type_url.clone(), name)));
    let variants = removals.variants.into_iter();
    changes.extend(variants.map(|variant| variant.removal(type_url.clone())));

    let made = request.make(changes)?;
    let mut warnings = Vec::new();
    if !request.options.dry_run {
        derived.commit(plan);
        let names = known.note(&made.changed);
        let variants = |url: &_, name: &_| resources::variants_of(&request.admin.server, url, name);
        warnings = known.warn(&names, None, variants);
    }
    Ok(request.response(&made, warnings))
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
    /// Returns the removals of all selected variants of these names. Names of
    /// which nothing is left are told from those that keep other variants.
    ///
    /// # Errors
    /// A name, or the variant of it, does not exist.
    fn removals(&self, names: &[String]) -> Result<Removals, Refusal> {
        let mut removals = Removals::default();
        let mut missing = Vec::new();
        for text in names {
            let name = Name::new(text);
            let held = resources::variants_of(&self.admin.server, &self.type_url, &name);
            if held.is_empty() {
                missing.push(text.as_str());
                continue;
            }

            let selected: Vec<VariantId> = held
                .iter()
                .filter(|resource| self.selects(resource))
                .map(|resource| VariantId::of(resource))
                .collect();
            match &self.variant {
                Some(clients) if selected.is_empty() => {
                    return Err(self.no_variant(&name, clients, &held));
                }
                _ if selected.len() == held.len() => removals.names.push(name),
                _ => removals.variants.extend(selected.iter().cloned()),
            }
            removals.all.extend(selected);
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

    /// Returns whether a variant is selected: each is, unless one is asked for.
    fn selects(&self, resource: &Resource) -> bool {
        let variant = self.variant.as_ref();
        variant.is_none_or(|clients| *clients == resource.constraints)
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
