//! Contents of all origins, settled with each other, on their way to the
//! database.

use std::sync::{Arc, MutexGuard, PoisonError};

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};

use super::contents::Changed;
use super::shared::Shared;
use crate::checked::{ContentSet, Effect, Proposal, Settlement};

/// The number of changes in one part of a first load.
const PART: usize = 100_000;

impl Shared {
    /// Settles a proposal, and applies its changes if it says so. One proposal
    /// waits for the one before.
    pub(super) fn settle(
        self: &Arc<Self>,
        author: &str,
        proposal: Proposal<'_>,
    ) -> Settlement<Vec<Changed>> {
        let effect = proposal.effect;
        let apply = |changes| match effect {
            Effect::Applied => self.apply(author, changes),
            Effect::Rehearsed => Ok(self.preview(changes)),
            Effect::Held => Ok(Vec::new()),
        };
        self.lock_set().settle(proposal, apply)
    }

    /// Applies all resources of an origin, whose proposals were held so far. In
    /// parts, because the changes of one part are freed before the next is
    /// applied; no stream is served before the contents are loaded (S51).
    pub(super) fn apply_held(
        self: &Arc<Self>,
        author: &str,
        origin: &str,
    ) -> Result<(), ApplyError> {
        let set = self.lock_set();
        let resources = set.resources(origin);
        for (nth, part) in resources.chunks(PART).enumerate() {
            let upsert = |(type_url, resource): &(TypeUrl, Arc<Resource>)| {
                Change::Upsert(type_url.clone(), Arc::clone(resource))
            };
            if let Err(error) = self.apply(author, part.iter().map(upsert).collect()) {
                self.remove_held(author, &resources[..nth * PART]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the resources of earlier parts, because a later part was
    /// refused.
    fn remove_held(self: &Arc<Self>, author: &str, resources: &[(TypeUrl, Arc<Resource>)]) {
        let removals = resources.iter().map(|(type_url, resource)| {
            let (name, constraints) = (resource.name.clone(), resource.constraints.clone());
            Change::RemoveVariant(type_url.clone(), name, constraints)
        });
        // A removal contradicts nothing, so it is not refused.
        let _ = self.apply(author, removals.collect());
    }

    /// Returns the effect that changes would have.
    fn preview(&self, changes: Vec<Change>) -> Vec<Changed> {
        let mut changed: Vec<Changed> = self.with(|db| {
            let previews = changes.into_iter().filter_map(|change| preview(db, change));
            previews.collect()
        });
        changed.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
        changed
    }

    /// Locks the contents of all origins.
    pub(super) fn lock_set(&self) -> MutexGuard<'_, ContentSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the effect that a change of one variant would have; `None` if it is
/// not about one variant, or would change nothing.
fn preview(db: &Database, change: Change) -> Option<Changed> {
    let (type_url, name, constraints, to) = match change {
        Change::Upsert(type_url, resource) => (
            type_url,
            resource.name.clone(),
            resource.constraints.clone(),
            Some(resource.version.clone()),
        ),
        Change::RemoveVariant(type_url, name, constraints) => (type_url, name, constraints, None),
        _ => return None,
    };
    let from = current_version(db, &type_url, &name, &constraints);
    (from != to).then_some(Changed {
        type_url,
        name,
        constraints,
        from,
        to,
    })
}

/// Returns the version of a variant in the database.
fn current_version(
    db: &Database,
    type_url: &TypeUrl,
    name: &Name,
    constraints: &Option<Constraints>,
) -> Option<Version> {
    let variants = db.variants(db.find_type(type_url)?, name);
    let variant = variants
        .iter()
        .find(|variant| variant.constraints == *constraints);
    variant.map(|variant| variant.version.clone())
}
