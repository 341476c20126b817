//! A resource without constraints, plain or with conditions on its parts, is
//! the whole of its name: other variants are removed. A resource with
//! constraints in its wrapper is that variant.

use std::collections::HashSet;

use trunkline::checked::Document;
use trunkline::{Change, Name, Server, TypeUrl};
use trunkline_core::params::Constraints;

/// A variant of a name of a type.
type Variant = (TypeUrl, Name, Option<Constraints>);

/// Returns the removals of the variants that the resources of a body replace.
/// Variants that are `removed` for another reason are not removed twice.
pub(super) fn replaced(server: &Server, body: &Document, removed: &[Change]) -> Vec<Change> {
    let mut others = other_variants(server, body);
    if others.is_empty() {
        return Vec::new();
    }
    let applied = body.items.iter().map(|one| {
        let resource = &one.resource;
        (&one.type_url, &resource.name, &resource.constraints)
    });
    let removed = removed.iter().filter_map(|change| match change {
        Change::RemoveVariant(url, name, constraints) => Some((url, name, constraints)),
        _ => None,
    });
    let settled: HashSet<_> = applied.chain(removed).collect();
    others.retain(|(url, name, constraints)| !settled.contains(&(url, name, constraints)));
    // Each of several variants of a name finds the others.
    others.sort();
    others.dedup();
    let remove = |(url, name, constraints)| Change::RemoveVariant(url, name, constraints);
    others.into_iter().map(remove).collect()
}

/// Returns, for each resource that is the whole of its name, the server's other
/// variants of that name.
fn other_variants(server: &Server, body: &Document) -> Vec<Variant> {
    let whole = body.items.iter().filter(|one| one.written.is_none());
    let whole = whole.map(|one| (&one.type_url, &one.resource.name, Some(one)));
    let whole = whole.chain(body.empty.iter().map(|(url, name)| (url, name, None)));
    server.read(|db| {
        let mut others = Vec::new();
        for (url, name, one) in whole {
            let Some(id) = db.find_type(url) else {
                continue;
            };
            let held = db.variants(id, name).iter();
            // Mostly there is one, and it is this one.
            let other = held
                .filter(|held| one.is_none_or(|one| one.resource.constraints != held.constraints));
            others.extend(other.map(|r| (url.clone(), name.clone(), r.constraints.clone())));
        }
        others
    })
}
