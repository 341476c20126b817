//! References that dangle once a change is made.

use std::collections::{HashMap, HashSet};

use trunkline::checked::{Document, Item, MOST_FINDINGS};
use trunkline::{Name, Reference, Server, TypeUrl, kind};
use trunkline_core::database::Database;

use super::error::Detail;
use crate::kinds;

/// Finds references of these resources to names that neither they nor the
/// server have; returns the first [`MOST_FINDINGS`].
///
/// References to routes and clusters are always checked. Other types often come
/// from another server, so they are checked if there are some of them.
pub(super) fn find_dangling(server: &Server, document: &Document) -> Vec<Detail> {
    let body = BodyNames::new(&document.items);
    let references = document.items.iter().flat_map(|item| {
        let references = item.resource.facts().references.iter();
        references.map(move |reference| (item, reference))
    });
    let unresolved: Vec<(&Item, &Reference)> = server.read(|db| {
        let is_resolved = |reference: &Reference| {
            body.has(reference) || is_held_or_optional(db, &body, reference)
        };
        let unresolved = references.filter(|(_, reference)| !is_resolved(reference));
        unresolved.collect()
    });

    // To collect aliases takes long, so they are looked up last, and not while
    // the database is read.
    let mut aliases = Aliases::new(server);
    unresolved
        .into_iter()
        .filter(|(_, reference)| !aliases.has(reference))
        .take(MOST_FINDINGS)
        .map(|(item, reference)| describe_dangling(document, item, reference))
        .collect()
}

/// The names and types of the body's resources.
#[derive(Default)]
struct BodyNames<'a> {
    names: HashSet<(&'a TypeUrl, &'a Name)>,
    types: HashSet<&'a TypeUrl>,
}

impl<'a> BodyNames<'a> {
    /// Collects the types of resources, their names and their aliases.
    fn new(items: &'a [Item]) -> Self {
        let mut body = Self::default();
        for item in items {
            let (url, resource) = (&item.type_url, &item.resource);
            body.types.insert(url);
            body.names.insert((url, &resource.name));
            let aliases = resource.aliases.iter();
            body.names.extend(aliases.map(|alias| (url, alias)));
        }
        body
    }

    fn has(&self, Reference { type_url, name }: &Reference) -> bool {
        self.names.contains(&(type_url, name))
    }
}

/// Returns whether the server has the resource of a reference, or need not have
/// it: a type of which neither it nor the body has any may come from another
/// server, and a collection may be empty.
fn is_held_or_optional(
    db: &Database,
    body: &BodyNames<'_>,
    Reference { type_url, name }: &Reference,
) -> bool {
    let id = db.find_type(type_url);
    let has_type = body.types.contains(type_url) || id.is_some_and(|id| db.len(id) > 0);
    let is_expected = has_type || [kind::RDS, kind::CDS].contains(&type_url.as_str());
    let is_collection = name.as_str().ends_with('*');
    let is_held = id.is_some_and(|id| !db.variants(id, name).is_empty());
    is_held || is_collection || !is_expected
}

/// The aliases of the server's resources; collected once for each type.
struct Aliases<'a> {
    server: &'a Server,
    by_type: HashMap<TypeUrl, HashSet<Name>>,
}

impl<'a> Aliases<'a> {
    fn new(server: &'a Server) -> Self {
        let by_type = HashMap::new();
        Self { server, by_type }
    }

    /// Returns whether a reference is to an alias of a resource. The first call
    /// for a type collects all aliases of it.
    fn has(&mut self, Reference { type_url, name }: &Reference) -> bool {
        let aliases = self.by_type.entry(type_url.clone()).or_insert_with(|| {
            let resources = self.server.all(type_url);
            let aliases = resources.iter().flat_map(|r| r.aliases.iter().cloned());
            aliases.collect()
        });
        aliases.contains(name)
    }
}

/// Describes a dangling reference, at the place of the resource that has it.
fn describe_dangling(document: &Document, item: &Item, reference: &Reference) -> Detail {
    let kind = kinds::short(&reference.type_url);
    let (by, name) = (&item.resource.name, &reference.name);
    let message = format!("{by:?} refers to {kind} {name:?}, which is not there");
    Detail::at(document, item, message)
}
