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
pub(super) fn dangling(server: &Server, document: &Document) -> Vec<Detail> {
    let body = BodyNames::new(&document.items);
    let unresolved: Vec<(&Item, &Reference)> = server.read(|db| {
        let all = document.items.iter().flat_map(|one| {
            let references = one.resource.facts().references.iter();
            references.map(move |reference| (one, reference))
        });
        all.filter(|(_, reference)| !body.has(reference) && !holds(db, &body, reference))
            .collect()
    });
    let mut aliases = Aliases::new(server);
    unresolved
        .into_iter()
        .filter(|(_, reference)| !aliases.has(reference))
        .take(MOST_FINDINGS)
        .map(|(one, reference)| detail(document, one, reference))
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
        for one in items {
            let (url, resource) = (&one.type_url, &one.resource);
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

/// Returns whether the server has the resource, or need not have it.
fn holds(db: &Database, body: &BodyNames<'_>, Reference { type_url, name }: &Reference) -> bool {
    let id = db.find_type(type_url);
    let has_type = body.types.contains(type_url) || id.is_some_and(|id| db.len(id) > 0);
    let expected = has_type || [kind::RDS, kind::CDS].contains(&type_url.as_str());
    // A whole collection may be empty.
    let is_collection = name.as_str().ends_with('*');
    !expected || is_collection || id.is_some_and(|id| !db.variants(id, name).is_empty())
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

    /// Returns whether a reference is to an alias.
    fn has(&mut self, Reference { type_url, name }: &Reference) -> bool {
        let all = self.by_type.entry(type_url.clone()).or_insert_with(|| {
            let held = self.server.all(type_url);
            let aliases = held.iter().flat_map(|r| r.aliases.iter().cloned());
            aliases.collect()
        });
        all.contains(name)
    }
}

/// Reports a dangling reference at the resource that has it.
fn detail(document: &Document, one: &Item, reference: &Reference) -> Detail {
    let kind = kinds::short(&reference.type_url);
    let (by, name) = (&one.resource.name, &reference.name);
    let message = format!("{by:?} refers to {kind} {name:?}, which is not there");
    Detail::at(document, one, message)
}
