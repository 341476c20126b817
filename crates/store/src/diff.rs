//! The changes from one state of files to another.

use std::cmp::Ordering;
use std::sync::Arc;

use trunkline::checked::{Document, Item};
use trunkline::{Change, Name, TypeUrl};
use trunkline_core::params::Constraints;

/// The key of a resource: type, name and variant.
type Key<'a> = (&'a TypeUrl, &'a Name, Option<&'a Constraints>);

/// Returns the changes that create every resource of some files.
pub(crate) fn upserts<'a>(files: impl Iterator<Item = &'a Document>) -> Vec<Change> {
    files
        .flat_map(|document| &document.items)
        .map(upsert)
        .collect()
}

/// Returns the changes from one state of some files to another, upserts first.
/// A resource that stays the same is no change, even if it moves from one file
/// to another.
///
/// Both states are walked in the order of their keys: a key of `before` that is
/// less than the next one of `after` is in `before` only.
pub(crate) fn between<'a>(
    before: impl Iterator<Item = &'a Document>,
    after: impl Iterator<Item = &'a Document>,
) -> Vec<Change> {
    let mut before = sorted_by_key(before).into_iter().peekable();
    let (mut upserts, mut removals) = (Vec::new(), Vec::new());

    for item in sorted_by_key(after) {
        while let Some(gone) = before.next_if(|old| key(old) < key(item)) {
            removals.push(remove(gone));
        }

        let old = before.next_if(|old| key(old).cmp(&key(item)) == Ordering::Equal);
        if old.is_none_or(|old| old.resource != item.resource) {
            upserts.push(upsert(item));
        }
    }

    removals.extend(before.map(remove));
    upserts.append(&mut removals);
    upserts
}

/// Returns the items of some files in the order of their keys. No two files
/// have the same key.
fn sorted_by_key<'a>(files: impl Iterator<Item = &'a Document>) -> Vec<&'a Item> {
    let mut items: Vec<_> = files.flat_map(|document| &document.items).collect();
    items.sort_by(|a, b| key(a).cmp(&key(b)));
    items
}

fn key(item: &Item) -> Key<'_> {
    let constraints = item.resource.constraints.as_ref();
    (&item.type_url, &item.resource.name, constraints)
}

fn upsert(item: &Item) -> Change {
    Change::Upsert(item.type_url.clone(), Arc::clone(&item.resource))
}

fn remove(item: &Item) -> Change {
    let resource = &item.resource;
    let (name, constraints) = (resource.name.clone(), resource.constraints.clone());
    Change::RemoveVariant(item.type_url.clone(), name, constraints)
}
