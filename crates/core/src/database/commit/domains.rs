//! Checks that no client sees two virtual hosts with the same domain: Envoy
//! would reject both.
//!
//! A transaction that would give a domain to two virtual hosts is refused.
//! Virtual hosts that take domains from one another change in one slice.

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use super::super::apply::{ApplyError, find_common_client};
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
    new_domains: HashTable<NewDomain>,
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
}

impl DomainCheck {
    /// Makes a check with capacity for the domains of these edits, because a
    /// table would grow while others wait. A type without hosts has no domains.
    pub(super) fn with_capacity_for(edits: &TypeEdits) -> Self {
        let count_domains = |edit: &Edit| match edit {
            Edit::Put(resource) => resource.facts().domains.iter().count(),
            Edit::Rework(_) | Edit::Remove(_) | Edit::Applied => 0,
        };
        let has_hosts = Kind::of(&edits.url).on_demand;
        let hosts: &[Edit] = if has_hosts { &edits.edits } else { &[] };
        let domain_count = hosts.iter().map(count_domains).sum();
        Self {
            new_domains: HashTable::with_capacity(domain_count),
            groups: Groups::default(),
        }
    }

    /// Refuses a virtual host if a client could see another one with one of its
    /// domains, and keeps its domains for the hosts that are checked later. The
    /// cost depends on the transaction, not on the database. In a type without
    /// hosts, every resource passes.
    pub(super) fn check(
        &mut self,
        table: &Table,
        edits: &TypeEdits,
        host: &CheckedHost<'_>,
    ) -> Result<(), ApplyError> {
        let (Some(name), Some(index)) = (edits.edits[host.edit].name(), &table.hosts) else {
            return Ok(());
        };
        let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
            return Ok(());
        };

        for domain in domains_of(host.contents) {
            let owner = DomainOwner {
                route,
                domain,
                name,
                contents: host.contents,
            };
            let hash = index.hash(route, domain);
            self.check_earlier_edits(table, edits, &owner, hash)?;
            self.check_current_owners(table, edits, &owner, host)?;

            let edit = host.edit as u32;
            let new_domain = NewDomain { hash, edit };
            self.new_domains
                .insert_unique(spread(hash), new_domain, |new_domain| {
                    spread(new_domain.hash)
                });
        }
        Ok(())
    }

    /// Refuses a virtual host if a client could see another one to which the
    /// same transaction gives the same domain. `hash` is that of the domain.
    fn check_earlier_edits(
        &self,
        table: &Table,
        edits: &TypeEdits,
        owner: &DomainOwner<'_>,
        hash: u32,
    ) -> Result<(), ApplyError> {
        let candidates = self.new_domains.iter_hash(spread(hash));
        for new_domain in candidates.filter(|new_domain| new_domain.hash == hash) {
            let edit = new_domain.edit as usize;
            let Some(name) = edits.edits[edit].name() else {
                continue;
            };
            // Domains of other route configurations may have the same hash.
            let route = HostName::split(name.as_str()).map(|name| name.route);
            if route == Some(owner.route) {
                let entry = table.find(name.as_str());
                let old_contents =
                    entry.map_or(&[][..], |entry| table.entry(entry).content.resources());
                owner.check_exclusive(name, &edits.contents(edit, old_contents))?;
            }
        }
        Ok(())
    }

    /// Refuses a virtual host if a client could see another one that has the
    /// same domain in the database. A virtual host that the transaction edits,
    /// too, is compared by its edit. The two edits exchange a domain, so they
    /// are joined into one group.
    fn check_current_owners(
        &mut self,
        table: &Table,
        edits: &TypeEdits,
        new_owner: &DomainOwner<'_>,
        host: &CheckedHost<'_>,
    ) -> Result<(), ApplyError> {
        for owner in table.domain_owners(new_owner.route, new_owner.domain) {
            if Some(owner) == host.entry {
                continue;
            }
            let owner_entry = table.entry(owner);
            match edits.find_by_entry(owner, &owner_entry.name) {
                Some(owner_edit) => self.groups.link(host.edit as u32, owner_edit as u32),
                None => {
                    new_owner.check_exclusive(&owner_entry.name, owner_entry.content.resources())?
                }
            }
        }
        Ok(())
    }

    /// Frees the memory of the check, once all domains were checked.
    pub(super) fn free_memory(&mut self) {
        self.new_domains = HashTable::new();
    }

    /// Returns the number of edits in the group of this one, itself included.
    pub(super) fn group_size(&self, edit: usize) -> usize {
        self.groups.members(edit as u32).map_or(1, <[u32]>::len)
    }

    /// Takes the edits in the group of this one, itself included; none if it
    /// has no group.
    pub(super) fn take_group(&mut self, edit: usize) -> Vec<u32> {
        self.groups.take(edit as u32)
    }
}

/// A virtual host that the transaction gives a domain.
struct DomainOwner<'a> {
    route: &'a str,
    domain: Domain<'a>,
    name: &'a Name,
    contents: &'a [Arc<Resource>],
}

impl DomainOwner<'_> {
    /// Fails if a client could see both a variant of this virtual host and one
    /// of another, and both have the domain. `variants` are those of `other`.
    fn check_exclusive(&self, other: &Name, variants: &[Arc<Resource>]) -> Result<(), ApplyError> {
        let has_domain = |variant: &&Arc<Resource>| variant.facts().domains.contains(self.domain);
        for other_variant in variants.iter().filter(has_domain) {
            for own_variant in self.contents.iter().filter(has_domain) {
                if let Some(witness) = find_common_client(self.name, other_variant, own_variant)? {
                    return Err(ApplyError::Domain {
                        route: self.route.to_owned(),
                        domain: self.domain.to_string(),
                        first: other.clone(),
                        second: self.name.clone(),
                        witness,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Edits that have to be applied together, by number. A group is applied as a
/// whole, however large it is: in between, a domain would be there twice or not
/// at all.
#[derive(Debug, Default)]
struct Groups {
    groups: Vec<Vec<u32>>,
    group_of_edit: HashMap<u32, u32>,
}

impl Groups {
    /// Joins the groups of two edits. The smaller group is added to the larger
    /// one, so that the group of an edit that moves at least doubles.
    fn link(&mut self, first: u32, second: u32) {
        let (first_group, second_group) = (self.find_or_make(first), self.find_or_make(second));
        if first_group == second_group {
            return;
        }
        let mut sorted_groups = [first_group, second_group];
        sorted_groups.sort_by_key(|group| self.groups[*group as usize].len());
        let [smaller, larger] = sorted_groups;

        let moved_edits = std::mem::take(&mut self.groups[smaller as usize]);
        for edit in &moved_edits {
            self.group_of_edit.insert(*edit, larger);
        }
        self.groups[larger as usize].extend(moved_edits);
    }

    /// Returns the index of the group of an edit, which is made if need be.
    fn find_or_make(&mut self, edit: u32) -> u32 {
        let groups = &mut self.groups;
        *self.group_of_edit.entry(edit).or_insert_with(|| {
            groups.push(vec![edit]);
            groups.len() as u32 - 1
        })
    }

    /// Returns the edits in the group of an edit; `None` if it has no group.
    fn members(&self, edit: u32) -> Option<&[u32]> {
        let group = self.group_of_edit.get(&edit)?;
        Some(&self.groups[*group as usize])
    }

    /// Takes the edits in the group of an edit, in the order in which they
    /// would be applied alone; none if it has no group. The group is empty from
    /// then on.
    fn take(&mut self, edit: u32) -> Vec<u32> {
        let Some(group) = self.group_of_edit.get(&edit) else {
            return Vec::new();
        };
        let mut edits = std::mem::take(&mut self.groups[*group as usize]);
        edits.sort_unstable();
        edits
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
        assert_eq!(groups.members(8).map(<[u32]>::len), Some(5));
        assert_eq!(groups.members(2), None);
        assert_eq!(groups.take(2), []);
        assert_eq!(groups.take(8), [1, 5, 7, 8, 9]);
        assert_eq!(groups.take(1), []);
    }

    #[test]
    fn s85_the_table_of_domains_does_not_grow_while_others_wait() {
        const HOSTS: usize = 100;
        let upsert = |url: &str, nth: usize| {
            let facts = crate::facts::Facts {
                domains: crate::hosts::Domains::new([format!("{nth}.com"), format!("{nth}.net")]),
                ..crate::facts::Facts::default()
            };
            let host = Resource {
                facts: Some(Box::new(facts)),
                ..Resource::new(Name::new(&format!("r/{nth}")), "x".into())
            };
            crate::change::Change::Upsert(url.into(), Arc::new(host))
        };
        let check = |url: &str| {
            let changes = (0..HOSTS).map(|nth| upsert(url, nth)).collect();
            let edits = TypeEdits::from_changes(changes).unwrap();
            DomainCheck::with_capacity_for(&edits[0])
        };
        let mut hosts = check(crate::kind::VHDS);
        assert!(hosts.new_domains.capacity() >= 2 * HOSTS);
        hosts.free_memory();
        assert_eq!(hosts.new_domains.capacity(), 0);
        assert_eq!(check(crate::kind::CDS).new_domains.capacity(), 0);
    }
}
