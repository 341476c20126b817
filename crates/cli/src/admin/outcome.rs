//! Makes a change, or rehearses it, and reports the outcome.

use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use trunkline::checked::Document;
use trunkline::{ApplyError, Change, Changed, Name, Server, TypeUrl, kind};

use super::error::{Detail, Refusal};
use super::{Admin, Who, clash, domains, resources};

/// The effect of a change.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Omitted in a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<ChangedVariant>>,
    counts: Counts,
    /// How many resources of the request are as they were.
    unchanged: usize,
    warnings: Vec<Detail>,
    dry_run: bool,
}

/// The number of each kind of change.
#[derive(Debug, Default, Serialize)]
struct Counts {
    created: usize,
    changed: usize,
    deleted: usize,
}

impl Counts {
    /// Counts variants by whether there was a version before and is one now.
    fn of(changed: &[Changed]) -> Self {
        let mut counts = Self::default();
        for change in changed {
            match (&change.from, &change.to) {
                (None, _) => counts.created += 1,
                (Some(_), Some(_)) => counts.changed += 1,
                (Some(_), None) => counts.deleted += 1,
            }
        }
        counts
    }
}

/// The effect on one variant of a name.
#[derive(Debug, Serialize)]
struct ChangedVariant {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl From<&Changed> for ChangedVariant {
    /// Writes the change of a variant; a version is missing if there was none
    /// before, or is none after it.
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

/// The options of a change: how it is made and reported.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Nothing is changed; only the effect is returned.
    pub(super) dry_run: bool,
    /// Changes are counted and not listed.
    pub(super) summary: bool,
}

/// The request for a change.
pub(super) struct ChangeRequest<'a> {
    pub(super) admin: &'a Admin,
    pub(super) who: &'a Who,
    /// The body.
    pub(super) document: &'a Document,
    pub(super) options: Options,
}

/// A change that was made, or rehearsed.
pub(super) struct Made {
    pub(super) changed: Vec<Changed>,
    /// A server with the change made, if it was only rehearsed.
    pub(super) scratch: Option<Server>,
    /// The number of variants that the request mentions, changed or not.
    requested: usize,
}

impl ChangeRequest<'_> {
    /// Makes the changes, all or none. In a dry run they are made to a scratch
    /// server instead.
    ///
    /// # Errors
    /// The server refuses one; the error has its place in the body.
    pub(super) fn make(&self, changes: Vec<Change>) -> Result<Made, Refusal> {
        let requested = changes.len();
        let server = &self.admin.server;
        let refusal = |error| {
            let detail = clash::describe_clash(&error, self.document);
            Refusal::invalid("nothing was changed", vec![detail])
        };

        if self.options.dry_run {
            let (scratch, changed) = rehearse(server, changes).map_err(refusal)?;
            return Ok(Made {
                changed,
                scratch: Some(scratch),
                requested,
            });
        }
        let changed = server.apply_as(&self.who.0, changes).map_err(refusal)?;
        Ok(Made {
            changed,
            scratch: None,
            requested,
        })
    }

    /// Makes the response to the request: the effect of the change, and the
    /// warnings about it. A summary has the numbers of changes and not each of
    /// them.
    pub(super) fn response(&self, made: &Made, warnings: Vec<Detail>) -> Response {
        let changed = &made.changed;
        let list = || changed.iter().map(ChangedVariant::from).collect();
        let outcome = Outcome {
            changed: (!self.options.summary).then(list),
            counts: Counts::of(changed),
            unchanged: made.requested.saturating_sub(changed.len()),
            warnings,
            dry_run: self.options.dry_run,
        };
        axum::Json(outcome).into_response()
    }
}

/// Makes changes to a new server, which has a copy of the resources that the
/// changes concern: those of the same names, and virtual hosts that have a
/// domain of an added one. Returns that server, and the changes that took
/// effect.
fn rehearse(server: &Server, changes: Vec<Change>) -> Result<(Server, Vec<Changed>), ApplyError> {
    let mut names = changed_names(&changes);
    names.extend(domain_holders(server, &changes));
    names.sort();
    names.dedup();

    let scratch = Server::default();
    let copies = names.iter().flat_map(|(url, name)| {
        let held = resources::variants_of(server, url, name).into_iter();
        held.map(|resource| Change::Upsert(url.clone(), resource))
    });
    scratch.apply(copies.collect())?;

    let changed = scratch.apply(changes)?;
    Ok((scratch, changed))
}

/// Returns the names that changes add, change or remove; one for each change.
fn changed_names(changes: &[Change]) -> Vec<(TypeUrl, Name)> {
    let names = changes.iter().filter_map(|change| match change {
        Change::Upsert(url, resource) => Some((url.clone(), resource.name.clone())),
        Change::Remove(url, name) | Change::RemoveVariant(url, name, _) => {
            Some((url.clone(), name.clone()))
        }
        _ => None,
    });
    names.collect()
}

/// Returns the server's virtual hosts that have a domain of an added one. A
/// rehearsal needs them, because the server refuses two hosts of one domain.
fn domain_holders(server: &Server, changes: &[Change]) -> Vec<(TypeUrl, Name)> {
    let vhds = TypeUrl::from(kind::VHDS);
    let hosts = changes.iter().filter_map(|change| match change {
        Change::Upsert(url, resource) if *url == vhds => Some(resource),
        _ => None,
    });
    server.read(|db| {
        let Some(id) = db.find_type(&vhds) else {
            return Vec::new();
        };
        let holders = hosts.flat_map(|host| domains::holders(db, id, host));
        holders.map(|name| (vhds.clone(), name)).collect()
    })
}
