//! Makes a change, or rehearses it, and returns the outcome.

use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use trunkline::{ApplyError, Change, Changed, Name, Server, TypeUrl, kind};
use trunkline_core::hosts::HostName;

use super::body::BodyResource;
use super::error::{Detail, Refusal};
use super::{Admin, Who, clash, resources};

/// The effect of a change.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Omitted in a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<One>>,
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
    fn of(changed: &[Changed]) -> Self {
        let mut counts = Self::default();
        for one in changed {
            match (&one.from, &one.to) {
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

/// How a change is made and reported.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Nothing is changed; only the effect is returned.
    pub(super) dry_run: bool,
    /// Changes are counted and not listed.
    pub(super) summary: bool,
}

/// A change that is about to be made.
pub(super) struct Making<'a> {
    pub(super) admin: &'a Admin,
    pub(super) who: &'a Who,
    /// The resources of the body, with their places.
    pub(super) given: &'a [BodyResource],
    pub(super) how: How,
}

/// A change that was made, or rehearsed.
pub(super) struct Made {
    pub(super) changed: Vec<Changed>,
    /// A server with the change made, if it was only rehearsed.
    pub(super) scratch: Option<Server>,
    asked: usize,
}

impl Making<'_> {
    pub(super) fn make(&self, changes: Vec<Change>) -> Result<Made, Refusal> {
        let asked = changes.len();
        let server = &self.admin.server;
        let made = match self.how.dry_run {
            true => rehearse(server, changes).map(|(scratch, changed)| (Some(scratch), changed)),
            false => server
                .apply_as(&self.who.0, changes)
                .map(|changed| (None, changed)),
        };
        let refused = |error| {
            let detail = clash::refused(&error, self.given);
            Refusal::invalid("nothing was changed", vec![detail])
        };
        let (scratch, changed) = made.map_err(refused)?;
        Ok(Made {
            changed,
            scratch,
            asked,
        })
    }

    pub(super) fn tell(&self, made: &Made, warnings: Vec<Detail>) -> Response {
        let changed = &made.changed;
        let outcome = Outcome {
            changed: (!self.how.summary).then(|| changed.iter().map(One::from).collect()),
            counts: Counts::of(changed),
            unchanged: made.asked.saturating_sub(changed.len()),
            warnings,
            dry_run: self.how.dry_run,
        };
        axum::Json(outcome).into_response()
    }
}

/// Makes changes to a copy of the resources that they concern.
fn rehearse(server: &Server, changes: Vec<Change>) -> Result<(Server, Vec<Changed>), ApplyError> {
    let mut names: Vec<(TypeUrl, Name)> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Upsert(url, resource) => Some((url.clone(), resource.name.clone())),
            Change::Remove(url, name) | Change::RemoveVariant(url, name, _) => {
                Some((url.clone(), name.clone()))
            }
            _ => None,
        })
        .collect();
    names.extend(neighbours(server, &changes));
    names.sort();
    names.dedup();
    let scratch = Server::default();
    let copies = names.iter().flat_map(|(url, name)| {
        let held = resources::held(server, url, name).into_iter();
        held.map(|resource| Change::Upsert(url.clone(), resource))
    });
    scratch.apply(copies.collect())?;
    let changed = scratch.apply(changes)?;
    Ok((scratch, changed))
}

/// The virtual hosts with a domain that another one takes.
fn neighbours(server: &Server, changes: &[Change]) -> Vec<(TypeUrl, Name)> {
    let vhds = TypeUrl::from(kind::VHDS);
    let hosts = changes.iter().filter_map(|change| match change {
        Change::Upsert(url, resource) if *url == vhds => Some(resource),
        _ => None,
    });
    server.read(|db| {
        let Some(id) = db.find_type(&vhds) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for host in hosts {
            let Some(HostName { route, .. }) = HostName::split(host.name.as_str()) else {
                continue;
            };
            for domain in host.facts().domains.iter() {
                let others = db.hosts_with_domain(id, route, domain).into_iter();
                found.extend(others.map(|name| (vhds.clone(), name)));
            }
        }
        found
    })
}
