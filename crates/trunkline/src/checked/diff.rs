//! The difference between what edits remove and what they add.

use std::cmp::Ordering;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::slots::ItemId;

/// A resource and its type.
pub(super) type Typed<'a> = (&'a TypeUrl, &'a Arc<Resource>);

/// The key of a resource: type, name and variant.
type Key<'a> = (&'a TypeUrl, &'a Name, Option<&'a Constraints>);

/// The difference between some resources and others.
#[derive(Debug, Default)]
pub(super) struct Diff {
    /// The changes, upserts first.
    pub(super) changes: Vec<Change>,
    /// Items that are as they were, each with the resource that it replaced.
    pub(super) unchanged: Vec<(ItemId, Arc<Resource>)>,
}

/// Compares resources with the items that replace them. Neither side has a key
/// twice.
///
/// Both sides are walked in the order of their keys: a key of `old_resources`
/// that is less than the next one of `new_items` was removed.
pub(super) fn compare<'a>(
    old_resources: Vec<Typed<'a>>,
    new_items: Vec<(ItemId, Typed<'a>)>,
) -> Diff {
    let mut diff = Diff::default();
    if old_resources.is_empty() {
        let upserts = new_items.into_iter().map(|(_, resource)| upsert(resource));
        diff.changes = upserts.collect();
        return diff;
    }
    let mut old_resources = old_resources;
    old_resources.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut new_items = new_items;
    new_items.sort_by(|(_, a), (_, b)| key(*a).cmp(&key(*b)));

    let mut old_resources = old_resources.into_iter().peekable();
    let mut removals = Vec::new();
    for (id, new_resource) in new_items {
        while let Some(removed) =
            old_resources.next_if(|old_resource| key(*old_resource) < key(new_resource))
        {
            removals.push(remove(removed));
        }

        match old_resources
            .next_if(|old_resource| key(*old_resource).cmp(&key(new_resource)) == Ordering::Equal)
        {
            Some((_, resource)) if resource == new_resource.1 => {
                diff.unchanged.push((id, Arc::clone(resource)))
            }
            _ => diff.changes.push(upsert(new_resource)),
        }
    }
    removals.extend(old_resources.map(remove));
    diff.changes.append(&mut removals);
    diff
}

/// Returns the key by which both sides are in order.
fn key<'a>((type_url, resource): Typed<'a>) -> Key<'a> {
    (type_url, &resource.name, resource.constraints.as_ref())
}

fn upsert((type_url, resource): Typed<'_>) -> Change {
    Change::Upsert(type_url.clone(), Arc::clone(resource))
}

fn remove((type_url, resource): Typed<'_>) -> Change {
    let (name, constraints) = (resource.name.clone(), resource.constraints.clone());
    Change::RemoveVariant(type_url.clone(), name, constraints)
}
