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

/// Compares some resources with the items that replace them. No two of either
/// side have one key.
///
/// Both sides are walked in the order of their keys: a key of `before` that is
/// less than the next one of `after` is in `before` only.
pub(super) fn compare<'a>(before: Vec<Typed<'a>>, after: Vec<(ItemId, Typed<'a>)>) -> Diff {
    let mut diff = Diff::default();
    if before.is_empty() {
        diff.changes = after.into_iter().map(|(_, new)| upsert(new)).collect();
        return diff;
    }
    let mut before = before;
    before.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut after = after;
    after.sort_by(|(_, a), (_, b)| key(*a).cmp(&key(*b)));

    let mut before = before.into_iter().peekable();
    let mut removals = Vec::new();
    for (id, new) in after {
        while let Some(gone) = before.next_if(|old| key(*old) < key(new)) {
            removals.push(remove(gone));
        }

        match before.next_if(|old| key(*old).cmp(&key(new)) == Ordering::Equal) {
            Some(old) if old.1 == new.1 => diff.unchanged.push((id, Arc::clone(old.1))),
            _ => diff.changes.push(upsert(new)),
        }
    }
    removals.extend(before.map(remove));
    diff.changes.append(&mut removals);
    diff
}

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
