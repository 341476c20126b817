//! Base sets: virtual hosts that a client gets without requesting them, by the
//! name of the set.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::super::entry::{Entry, EntryId};
use super::super::{Database, TypeId};
use crate::hosts::HostName;
use crate::name::Name;
use crate::resource::Resource;

/// The members of each set.
#[derive(Debug, Default)]
pub(super) struct BaseSets(HashMap<Box<str>, BTreeSet<EntryId>>);

impl BaseSets {
    /// Moves a virtual host from the sets of its old variants to those of its
    /// new ones. A set without members is dropped.
    pub(super) fn move_host(&mut self, id: EntryId, old: &[Arc<Resource>], new: &[Arc<Resource>]) {
        for set in base_sets_of(old) {
            if let Some(members) = self.0.get_mut(set) {
                members.remove(&id);
                if members.is_empty() {
                    self.0.remove(set);
                }
            }
        }

        for set in base_sets_of(new) {
            // A name is copied only for a new set.
            if !self.0.contains_key(set) {
                self.0.insert(set.into(), BTreeSet::new());
            }
            if let Some(members) = self.0.get_mut(set) {
                members.insert(id);
            }
        }
    }

    /// Returns the virtual hosts in a set; none if there is no such set.
    fn members(&self, set: &str) -> impl Iterator<Item = EntryId> + '_ {
        self.0.get(set).into_iter().flatten().copied()
    }
}

/// Returns the names of the base sets that some variants belong to.
fn base_sets_of(variants: &[Arc<Resource>]) -> impl Iterator<Item = &str> {
    let sets = variants
        .iter()
        .flat_map(|variant| variant.facts().base_sets());
    sets.map(AsRef::as_ref)
}

impl Database {
    /// Returns the hosts of a route configuration in a base set, each under the
    /// name by which a client would request it, sorted. Wildcards are left out:
    /// they cannot be requested. None if the type has no hosts.
    #[must_use]
    pub fn base_hosts(&self, type_id: TypeId, set: &str, route: &str) -> Vec<Name> {
        let table = self.table(type_id);
        let Some(index) = &table.hosts else {
            return Vec::new();
        };
        let is_of_route = |entry: &&Entry| {
            let name = HostName::split(entry.name.as_str());
            name.is_some_and(|name| name.route == route)
        };
        // Variants of one virtual host may be in different sets.
        let is_member = |variant: &&Arc<Resource>| {
            let mut sets = variant.facts().base_sets().iter();
            sets.any(|other| **other == *set)
        };

        let members = index.base.members(set).map(|id| table.entry(id));
        let virtual_hosts = members.filter(is_of_route);
        let variants = virtual_hosts.flat_map(|entry| entry.content.resources());
        let hosts = variants
            .filter(is_member)
            .flat_map(|variant| variant.facts().domains.exact());
        let names: BTreeSet<Name> = hosts
            .map(|host| Name::new(&format!("{route}/{host}")))
            .collect();
        names.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;

    use crate::fixture::put_host;

    use crate::kind::VHDS;

    fn host(name: &str, clients: Option<&str>, sets: &[&str], domains: &[&str]) -> Change {
        put_host(name, domains, clients, sets)
    }

    #[test]
    fn a_base_set_has_the_hosts_of_its_variants_in_one_route_configuration() {
        let mut db = Database::new();
        let vhds = db.type_id(&VHDS.into());
        db.apply(vec![
            host("r/a", Some("env=a"), &["one", "two"], &["b.com", "*.b.com"]),
            host("r/a", Some("env=b"), &[], &["c.com"]),
            host("r/b", None, &["one"], &["a.com"]),
            host("s/c", None, &["one"], &["d.com"]),
        ])
        .unwrap();
        let hosts = |db: &Database, set: &str, route: &str| -> Vec<String> {
            let names = db.base_hosts(vhds, set, route);
            names.iter().map(ToString::to_string).collect()
        };
        assert_eq!(hosts(&db, "one", "r"), ["r/a.com", "r/b.com"]);
        assert_eq!(hosts(&db, "one", "s"), ["s/d.com"]);
        assert_eq!(hosts(&db, "two", "r"), ["r/b.com"]);
        assert_eq!(hosts(&db, "three", "r"), [""; 0]);
        db.apply(vec![
            host("r/b", None, &["two"], &["a.com"]),
            Change::Remove(VHDS.into(), "s/c".into()),
        ])
        .unwrap();
        assert_eq!(hosts(&db, "one", "r"), ["r/b.com"]);
        assert_eq!(hosts(&db, "two", "r"), ["r/a.com", "r/b.com"]);
        assert_eq!(hosts(&db, "one", "s"), [""; 0]);
        db.apply(vec![Change::ReplaceAll(VHDS.into(), Vec::new())])
            .unwrap();
        let index = db.table(vhds).hosts.as_ref().unwrap();
        assert!(index.base.0.is_empty());
    }
}
