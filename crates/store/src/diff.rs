//! What has to change, from what files said to what they say.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use crate::read::Parsed;

/// Which resource, and which variant of it.
type Key<'a> = (&'a TypeUrl, &'a Name, Option<&'a Constraints>);

/// The changes that make everything from nothing.
pub(crate) fn all(resources: Vec<(TypeUrl, Arc<Resource>)>) -> Vec<Change> {
    let upsert = |(type_url, resource)| Change::Upsert(type_url, resource);
    resources.into_iter().map(upsert).collect()
}

/// The changes between what some files said and what they say. What stays the
/// same, in whichever of them, is no change.
pub(crate) fn between<'a>(
    before: impl Iterator<Item = &'a Parsed>,
    after: impl Iterator<Item = &'a Parsed>,
) -> Vec<Change> {
    let (mut before, after) = (by_key(before), by_key(after));
    let mut changes = Vec::new();
    for (key, resource) in after {
        if before.remove(&key).is_none_or(|old| old != resource) {
            let type_url = key.0.clone();
            changes.push(Change::Upsert(type_url, Arc::clone(resource)));
        }
    }
    for (type_url, name, constraints) in before.into_keys() {
        let (type_url, name) = (type_url.clone(), name.clone());
        changes.push(Change::RemoveVariant(type_url, name, constraints.cloned()));
    }
    changes
}

fn by_key<'a>(files: impl Iterator<Item = &'a Parsed>) -> BTreeMap<Key<'a>, &'a Arc<Resource>> {
    let items = files.flat_map(|parsed| &parsed.items);
    items
        .map(|item| {
            let resource = &item.resource;
            let constraints = resource.constraints.as_ref();
            ((&item.type_url, &resource.name, constraints), resource)
        })
        .collect()
}
