//! References that dangle once a change is made.

use std::collections::{HashMap, HashSet};

use trunkline::{Name, Reference, Server, TypeUrl, kind};
use trunkline_core::database::Database;

use super::body::{BodyResource, MOST};
use super::error::Detail;
use crate::kinds;

/// References of these resources to names that neither they nor the server
/// have; not all, if there are many.
///
/// References to routes and clusters are always checked. Other types often come
/// from another server, so they are checked if there are some of them.
pub(super) fn dangling(server: &Server, given: &[BodyResource]) -> Vec<Detail> {
    let mut own = Own::default();
    for one in given {
        let (url, resource) = (&one.type_url, &one.resource);
        own.types.insert(url);
        own.names.insert((url, &resource.name));
        own.names
            .extend(resource.aliases.iter().map(|alias| (url, alias)));
    }
    let loose: Vec<(&BodyResource, &Reference)> = server.read(|db| {
        let all = given.iter().flat_map(|one| {
            let references = one.resource.facts().references.iter();
            references.map(move |reference| (one, reference))
        });
        all.filter(|(_, reference)| !own.has(reference) && !holds(db, &own, reference))
            .collect()
    });
    let mut aliases = Aliases::new(server);
    loose
        .into_iter()
        .filter(|(_, reference)| !aliases.has(reference))
        .take(MOST)
        .map(|(one, reference)| detail(one, reference))
        .collect()
}

/// The resources of the body.
#[derive(Default)]
struct Own<'a> {
    names: HashSet<(&'a TypeUrl, &'a Name)>,
    types: HashSet<&'a TypeUrl>,
}

impl Own<'_> {
    fn has(&self, Reference { type_url, name }: &Reference) -> bool {
        self.names.contains(&(type_url, name))
    }
}

/// Whether the server has the resource, or need not have it.
fn holds(db: &Database, own: &Own<'_>, Reference { type_url, name }: &Reference) -> bool {
    let id = db.find_type(type_url);
    let some = own.types.contains(type_url) || id.is_some_and(|id| db.len(id) > 0);
    let expected = some || [kind::RDS, kind::CDS].contains(&type_url.as_str());
    !expected || id.is_some_and(|id| !db.variants(id, name).is_empty())
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

    fn has(&mut self, Reference { type_url, name }: &Reference) -> bool {
        let all = self.by_type.entry(type_url.clone()).or_insert_with(|| {
            let held = self.server.all(type_url);
            let aliases = held.iter().flat_map(|r| r.aliases.iter().cloned());
            aliases.collect()
        });
        all.contains(name)
    }
}

fn detail(one: &BodyResource, reference: &Reference) -> Detail {
    let kind = kinds::short(&reference.type_url);
    let (by, name) = (&one.resource.name, &reference.name);
    one.place.wrong(format!(
        "{by:?} refers to {kind} {name:?}, which is not there"
    ))
}
