//! Removals over the API: all names of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{StatusCode, Uri};
use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::derived::Variant;
use super::error::Refusal;
use super::outcome::{How, Making};
use super::query::Query;
use super::write::writable;
use super::{Admin, Shared, Who, Writes, resources};
use crate::kinds;

/// Variants that are listed in the error about an unknown one.
const MOST_NAMED: usize = 10;

/// The constraints of a variant; `None` is for all clients.
type Clients = Option<Constraints>;

/// The parts of a removal.
#[derive(Default)]
struct Split {
    /// Names as a whole.
    names: Vec<Name>,
    /// Variants of other names.
    parts: Vec<Variant>,
    /// All variants that are removed.
    all: Vec<Variant>,
}

/// `DELETE /api/v1/resources/{type}?name=...`
pub(super) async fn delete(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    Path(kind): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let type_url = kinds::parse(&kind).map_err(Refusal::bad)?;
    let query = Query::read(&uri, &["name", "variant", "dry_run"])?;
    let dry_run = query.switch("dry_run")?;
    let variant = query.one("variant")?.map(variant).transpose()?;
    writable(&admin)?;
    let names: Vec<String> = query.all("name").map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Refusal::bad(
            "which resources? give each as a parameter `name`",
        ));
    }
    let mut writes = Arc::clone(&admin.writes).lock_owned().await;
    super::aside(move || {
        let Writes { derived, known } = &mut *writes;
        let removing = Removing {
            admin: &admin,
            type_url,
            variant,
        };
        let split = removing.split(&names)?;
        let mut plan = derived.plan_delete(&removing.type_url, &split.names, &split.all);
        let mut changes = std::mem::take(&mut plan.removed);
        let url = || removing.type_url.clone();
        let names = split.names.into_iter();
        changes.extend(names.map(|name| Change::Remove(url(), name)));
        let parts = split.parts.into_iter();
        changes.extend(parts.map(|(name, clients)| Change::RemoveVariant(url(), name, clients)));
        let how = How {
            dry_run,
            summary: false,
        };
        let making = Making {
            admin: &admin,
            who: &who,
            given: &[],
            how,
        };
        let made = making.make(changes)?;
        let mut warnings = Vec::new();
        if !dry_run {
            derived.keep(plan);
            let names = known.note(&made.changed);
            let held = |url: &_, name: &_| resources::held(&admin.server, url, name);
            warnings = known.warn(&names, &[], held);
        }
        Ok(making.tell(&made, warnings))
    })
    .await?
}

/// A variant as people write it; the one for all clients is `always`.
fn variant(text: &str) -> Result<Clients, Refusal> {
    let read: Constraints = text.parse().map_err(|error| {
        Refusal::bad(format!(
            "variant: {text:?} is no constraint: {error}; write such as env=prod, as `get` shows it"
        ))
    })?;
    Ok(Some(read).filter(|read| !read.is_always()))
}

struct Removing<'a> {
    admin: &'a Admin,
    type_url: TypeUrl,
    /// The variant to remove; without it all of a name.
    variant: Option<Clients>,
}

impl Removing<'_> {
    /// Names to remove as a whole, and variants of others.
    fn split(&self, names: &[String]) -> Result<Split, Refusal> {
        let (mut split, mut missing) = (Split::default(), Vec::new());
        for text in names {
            let name = Name::new(text);
            let held = resources::held(&self.admin.server, &self.type_url, &name);
            let clients = held.iter().map(|resource| &resource.constraints);
            let goes = |clients: &&Clients| self.variant.as_ref().is_none_or(|v| v == *clients);
            let going: Vec<Variant> = clients
                .filter(goes)
                .map(|clients| (name.clone(), clients.clone()))
                .collect();
            match &self.variant {
                _ if held.is_empty() => missing.push(text.as_str()),
                Some(clients) if going.is_empty() => {
                    return Err(self.no_variant(&name, clients, &held));
                }
                _ if going.len() == held.len() => split.names.push(name),
                _ => split.parts.extend(going.iter().cloned()),
            }
            split.all.extend(going);
        }
        match missing.is_empty() {
            true => Ok(split),
            false => Err(resources::missing(
                &self.admin.server,
                &self.type_url,
                &missing,
            )),
        }
    }

    fn no_variant(&self, name: &Name, clients: &Clients, held: &[Arc<Resource>]) -> Refusal {
        let said = |clients: &Clients| {
            let said = clients
                .as_ref()
                .map_or("always".into(), ToString::to_string);
            format!("[{said}]")
        };
        let all = held.iter().take(MOST_NAMED).map(|r| said(&r.constraints));
        let all: Vec<String> = all.collect();
        let more = match held.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "{} {name:?} has no variant {}; it has {}{more}",
            kinds::short(&self.type_url),
            said(clients),
            all.join(", ")
        );
        Refusal::new(StatusCode::NOT_FOUND, message)
    }
}
