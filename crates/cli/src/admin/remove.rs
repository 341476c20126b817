//! Removals over the API: all that are named, or nothing.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{StatusCode, Uri};
use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::error::Refusal;
use super::outcome::{How, Making};
use super::query::Query;
use super::write::writable;
use super::{Admin, Shared, Who, resources};
use crate::kinds;

/// Variants that are named to somebody who asked for another.
const MOST_NAMED: usize = 10;

/// One variant; none is the one for all clients.
pub(super) type Variant = Option<Constraints>;

/// Names that go as a whole, and variants of others.
type Split = (Vec<Name>, Vec<(Name, Variant)>);

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
    let mut derived = Arc::clone(&admin.writes).lock_owned().await;
    super::aside(move || {
        let removing = Removing {
            admin: &admin,
            type_url,
            variant,
        };
        let (whole, parts) = removing.split(&names)?;
        let mut plan = derived.plan_delete(&removing.type_url, &whole, &parts);
        let mut changes = std::mem::take(&mut plan.removed);
        let url = || removing.type_url.clone();
        changes.extend(whole.into_iter().map(|name| Change::Remove(url(), name)));
        let parts = parts.into_iter();
        changes.extend(parts.map(|(name, variant)| Change::RemoveVariant(url(), name, variant)));
        let how = How {
            dry_run,
            summary: false,
        };
        let made = Making {
            admin: &admin,
            who: &who,
            given: &[],
            how,
        };
        let made = made.make(changes, Vec::new())?;
        if !dry_run {
            derived.keep(plan);
        }
        Ok(made)
    })
    .await?
}

/// A variant as people say it; the one for all clients is `always`.
fn variant(text: &str) -> Result<Variant, Refusal> {
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
    /// The one that goes; without it all of a name.
    variant: Option<Variant>,
}

impl Removing<'_> {
    /// Names that go as a whole, and variants of others.
    fn split(&self, names: &[String]) -> Result<Split, Refusal> {
        let (mut whole, mut parts, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for text in names {
            let name = Name::new(text);
            let held = resources::held(&self.admin.server, &self.type_url, &name);
            match &self.variant {
                _ if held.is_empty() => missing.push(text.as_str()),
                None => whole.push(name),
                Some(variant) if !held.iter().any(|r| r.constraints == *variant) => {
                    return Err(self.no_variant(&name, variant, &held));
                }
                Some(_) if held.len() == 1 => whole.push(name),
                Some(variant) => parts.push((name, variant.clone())),
            }
        }
        match missing.is_empty() {
            true => Ok((whole, parts)),
            false => Err(resources::missing(
                &self.admin.server,
                &self.type_url,
                &missing,
            )),
        }
    }

    fn no_variant(&self, name: &Name, variant: &Variant, held: &[Arc<Resource>]) -> Refusal {
        let said = |variant: &Variant| {
            let said = variant
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
            said(variant),
            all.join(", ")
        );
        Refusal::new(StatusCode::NOT_FOUND, message)
    }
}
