//! The changes from some items to others.

use std::cmp::Ordering;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

/// A resource and its type.
pub(super) type Typed<'a> = (&'a TypeUrl, &'a Arc<Resource>);

/// The key of a resource: type, name and variant.
type Key<'a> = (&'a TypeUrl, &'a Name, Option<&'a Constraints>);

/// Returns the changes from some resources to others, upserts first. A resource
/// that stays the same is no change. No two of either side have one key.
///
/// Both sides are walked in the order of their keys: a key of `before` that is
/// less than the next one of `after` is in `before` only.
pub(super) fn changes_between<'a>(before: Vec<Typed<'a>>, after: Vec<Typed<'a>>) -> Vec<Change> {
    if before.is_empty() {
        return after.into_iter().map(upsert).collect();
    }
    let mut before = sorted_by_key(before).into_iter().peekable();
    let (mut upserts, mut removals) = (Vec::new(), Vec::new());

    for new in sorted_by_key(after) {
        while let Some(gone) = before.next_if(|old| key(*old) < key(new)) {
            removals.push(remove(gone));
        }

        let old = before.next_if(|old| key(*old).cmp(&key(new)) == Ordering::Equal);
        if old.is_none_or(|old| old.1 != new.1) {
            upserts.push(upsert(new));
        }
    }

    removals.extend(before.map(remove));
    upserts.append(&mut removals);
    upserts
}

fn sorted_by_key(mut resources: Vec<Typed<'_>>) -> Vec<Typed<'_>> {
    resources.sort_by(|a, b| key(*a).cmp(&key(*b)));
    resources
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
