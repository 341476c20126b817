//! Checks that no client sees two virtual hosts with the same domain: Envoy
//! would reject both.
//!
//! A transaction that would give a domain to two virtual hosts is refused.
//! Virtual hosts that take domains from one another change in one slice.

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use super::super::apply::{ApplyError, seen_together};
use super::super::entry::EntryId;
use super::super::hosts::{domains_of, spread};
use super::super::table::Table;
use super::edits::{Edit, TypeEdits};
use crate::hosts::{Domain, HostName};
use crate::kind::Kind;
use crate::name::Name;
use crate::resource::Resource;

/// The domains of a transaction, and the groups of edits that exchange them.
#[derive(Debug, Default)]
pub(super) struct DomainCheck {
    seen: HashTable<NewDomain>,
    groups: Groups,
}

/// A domain of a virtual host in the transaction.
#[derive(Debug)]
struct NewDomain {
    hash: u32,
    edit: u32,
}

/// A virtual host to check.
pub(super) struct CheckedHost<'a> {
    pub(super) edit: usize,
    pub(super) entry: Option<EntryId>,
    pub(super) contents: &'a [Arc<Resource>],
    /// Whether to record which edits exchange domains.
    pub(super) records_groups: bool,
}

impl DomainCheck {
    /// With capacity for the domains of these edits: a table that grows does so
    /// while others wait.
    pub(super) fn with_capacity_for(edits: &TypeEdits) -> Self {
        let domains = |edit: &Edit| match edit {
            Edit::Put(resource) => resource.facts().domains.iter().count(),
            _ => 0,
        };
        let on_demand = Kind::of(&edits.url).on_demand;
        let hosts: &[Edit] = if on_demand { &edits.edits } else { &[] };
        Self {
            seen: HashTable::with_capacity(hosts.iter().map(domains).sum()),
            groups: Groups::default(),
        }
    }

    /// Refuses a virtual host if a client could see another one with one of its
    /// domains. The cost depends on the transaction, not on the database.
    pub(super) fn check(
        &mut self,
        table: &Table,
        edits: &TypeEdits,
        of: &CheckedHost<'_>,
    ) -> Result<(), ApplyError> {
        let name = edits.edits[of.edit].name();
        let split = name.and_then(|name| HostName::split(name.as_str()));
        let (Some(name), Some(HostName { route, .. }), Some(hosts)) = (name, split, &table.hosts)
        else {
            return Ok(());
        };
        let new = (name, of.contents);
        for domain in domains_of(of.contents) {
            let hash = hosts.hash(route, domain);
            let same = self.seen.iter_hash(spread(hash));
            for earlier in same.filter(|earlier| earlier.hash == hash) {
                let edit = earlier.edit as usize;
                let Some(other) = edits.edits[edit].name() else {
                    continue;
                };
                if HostName::split(other.as_str()).map(|name| name.route) == Some(route) {
                    let held = table.find(other.as_str());
                    let held = held.map_or(&[][..], |entry| table.entry(entry).content.resources());
                    check_exclusive(route, domain, (other, &edits.contents(edit, held)), new)?;
                }
            }
            for owner in hosts.owners(&table.entries, route, domain) {
                if Some(owner) == of.entry {
                    continue;
                }
                let held = table.entry(owner);
                match edits.by_entry(owner, &held.name) {
                    Some(other) if of.records_groups => {
                        self.groups.link(of.edit as u32, other as u32)
                    }
                    Some(_) => {}
                    None => {
                        check_exclusive(route, domain, (&held.name, held.content.resources()), new)?
                    }
                }
            }
            let edit = of.edit as u32;
            self.seen
                .insert_unique(spread(hash), NewDomain { hash, edit }, |new| {
                    spread(new.hash)
                });
        }
        Ok(())
    }

    /// Frees the memory of the check, once all domains were checked.
    pub(super) fn free_memory(&mut self) {
        self.seen = HashTable::new();
    }

    /// The number of edits in the group of this one, itself included.
    pub(super) fn group_size(&self, edit: usize) -> usize {
        self.groups.of(edit as u32).map_or(1, <[u32]>::len)
    }

    /// Takes the edits in the group of this one, itself included; none if it
    /// has no group.
    pub(super) fn take_group(&mut self, edit: usize) -> Vec<u32> {
        self.groups.take(edit as u32)
    }
}

fn check_exclusive(
    route: &str,
    domain: Domain<'_>,
    (first, some): (&Name, &[Arc<Resource>]),
    (second, others): (&Name, &[Arc<Resource>]),
) -> Result<(), ApplyError> {
    let has_it = |r: &&Arc<Resource>| r.facts().domains.contains(domain);
    for a in some.iter().filter(has_it) {
        for b in others.iter().filter(has_it) {
            if let Some(witness) = seen_together(second, a, b)? {
                return Err(ApplyError::Domain {
                    route: route.to_owned(),
                    domain: domain.to_string(),
                    first: first.clone(),
                    second: second.clone(),
                    witness,
                });
            }
        }
    }
    Ok(())
}

/// Edits that have to be applied together, by number. A group is applied as a
/// whole, however large it is: after a part of it a domain would be there
/// twice, or not at all.
#[derive(Debug, Default)]
struct Groups {
    groups: Vec<Vec<u32>>,
    by_edit: HashMap<u32, u32>,
}

impl Groups {
    fn link(&mut self, a: u32, b: u32) {
        let (a, b) = (self.group(a), self.group(b));
        if a == b {
            return;
        }
        let larger = self.groups[a as usize].len() >= self.groups[b as usize].len();
        let (stays, joins) = if larger { (a, b) } else { (b, a) };
        let joining = std::mem::take(&mut self.groups[joins as usize]);
        for edit in &joining {
            self.by_edit.insert(*edit, stays);
        }
        self.groups[stays as usize].extend(joining);
    }

    fn group(&mut self, edit: u32) -> u32 {
        let groups = &mut self.groups;
        *self.by_edit.entry(edit).or_insert_with(|| {
            groups.push(vec![edit]);
            groups.len() as u32 - 1
        })
    }

    fn of(&self, edit: u32) -> Option<&[u32]> {
        let group = self.by_edit.get(&edit)?;
        Some(&self.groups[*group as usize])
    }

    /// In the order in which they would be applied alone.
    fn take(&mut self, edit: u32) -> Vec<u32> {
        let Some(group) = self.by_edit.get(&edit) else {
            return Vec::new();
        };
        let mut group = std::mem::take(&mut self.groups[*group as usize]);
        group.sort_unstable();
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_taken_together_once() {
        let mut groups = Groups::default();
        groups.link(5, 1);
        groups.link(7, 8);
        groups.link(9, 7);
        groups.link(9, 8);
        groups.link(1, 9);
        assert_eq!(groups.of(8).map(<[u32]>::len), Some(5));
        assert_eq!(groups.of(2), None);
        assert_eq!(groups.take(2), []);
        assert_eq!(groups.take(8), [1, 5, 7, 8, 9]);
        assert_eq!(groups.take(1), []);
    }
}
