//! A resource without constraints, plain or with conditions on its parts, is
//! the whole of its name: other variants are removed. A resource with
//! constraints in its wrapper is that variant.

use std::collections::HashSet;

use trunkline::checked::Document;
use trunkline::{Change, Name, Server, TypeUrl};
use trunkline_core::params::Constraints;

/// A variant of a name of a type.
type Variant = (TypeUrl, Name, Option<Constraints>);

/// Returns the removals of the variants that the resources of a body replace:
/// those of the same names, except variants that the body has itself. Variants
/// that are `removed` for another reason are not removed twice.
pub(super) fn replaced_variants(
    server: &Server,
    body: &Document,
    removed: &[Change],
) -> Vec<Change> {
    let mut others = other_variants(server, body);
    if others.is_empty() {
        return Vec::new();
    }

    let applied = body.items.iter().map(|item| {
        let resource = &item.resource;
        (&item.type_url, &resource.name, &resource.constraints)
    });
    let removed = removed.iter().filter_map(|change| match change {
        Change::RemoveVariant(url, name, constraints) => Some((url, name, constraints)),
        _ => None,
    });
    let settled: HashSet<_> = applied.chain(removed).collect();
    others.retain(|(url, name, constraints)| !settled.contains(&(url, name, constraints)));

    // Each of several variants of a name finds the others, so one may be found
    // twice.
    others.sort();
    others.dedup();
    let remove = |(url, name, constraints)| Change::RemoveVariant(url, name, constraints);
    others.into_iter().map(remove).collect()
}

/// Returns, for each resource that is the whole of its name, the server's other
/// variants of that name. Of a name whose conditions hold for no client, all
/// variants are others.
fn other_variants(server: &Server, body: &Document) -> Vec<Variant> {
    let whole = body.items.iter().filter(|item| item.written.is_none());
    let whole = whole.map(|item| (&item.type_url, &item.resource.name, Some(&item.resource)));
    let empty = body.empty.iter().map(|(url, name)| (url, name, None));

    server.read(|db| {
        let mut others = Vec::new();
        for (url, name, applied) in whole.chain(empty) {
            let Some(id) = db.find_type(url) else {
                continue;
            };
            for held in db.variants(id, name) {
                // Mostly there is one variant, and it is the applied one.
                let is_applied = applied.is_some_and(|r| r.constraints == held.constraints);
                if !is_applied {
                    others.push((url.clone(), name.clone(), held.constraints.clone()));
                }
            }
        }
        others
    })
}
