//! Base sets: virtual hosts that a client gets without requesting them, by the
//! name of the set.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::super::entry::EntryId;
use super::super::{Database, TypeId};
use crate::hosts::HostName;
use crate::name::Name;
use crate::resource::Resource;

/// The members of each set.
#[derive(Debug, Default)]
pub(super) struct BaseSets(HashMap<Box<str>, BTreeSet<EntryId>>);

impl BaseSets {
    /// Replaces the variants of a virtual host.
    pub(super) fn change(&mut self, id: EntryId, old: &[Arc<Resource>], new: &[Arc<Resource>]) {
        for set in sets(old) {
            if let Some(members) = self.0.get_mut(set) {
                members.remove(&id);
                if members.is_empty() {
                    self.0.remove(set);
                }
            }
        }
        for set in sets(new) {
            if !self.0.contains_key(set) {
                self.0.insert(set.into(), BTreeSet::new());
            }
            if let Some(members) = self.0.get_mut(set) {
                members.insert(id);
            }
        }
    }

    fn members(&self, set: &str) -> impl Iterator<Item = EntryId> + '_ {
        self.0.get(set).into_iter().flatten().copied()
    }
}

fn sets(variants: &[Arc<Resource>]) -> impl Iterator<Item = &str> {
    let all = variants.iter().flat_map(|r| r.facts().base_sets());
    all.map(AsRef::as_ref)
}

impl Database {
    /// The hosts of a route configuration in a base set, each under the name by
    /// which a client would request it.
    #[must_use]
    pub fn base_hosts(&self, type_id: TypeId, set: &str, route: &str) -> Vec<Name> {
        let table = self.table(type_id);
        let hosts = table.hosts.iter();
        let members = hosts.flat_map(|hosts| hosts.base.members(set));
        let entries = members.map(|id| table.entry(id)).filter(|entry| {
            let name = HostName::split(entry.name.as_str());
            name.is_some_and(|name| name.route == route)
        });
        let variants = entries.flat_map(|entry| entry.content.resources());
        let belongs = |r: &&Arc<Resource>| r.facts().base_sets().iter().any(|s| **s == *set);
        let hosts = variants.filter(belongs).flat_map(|r| {
            let hosts = r.facts().domains.exact();
            hosts.map(|host| Name::new(&format!("{route}/{host}")))
        });
        let hosts: BTreeSet<Name> = hosts.collect();
        hosts.into_iter().collect()
    }
}
