//! The domains of virtual hosts, over all documents.
//!
//! Envoy refuses two virtual hosts of one route configuration that have the
//! same domain, whatever the letters' case. Variants that no client sees
//! together do not conflict.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline_core::hosts::{Domain, HostName};
use trunkline_core::kind;
use trunkline_core::resource::{Resource, TypeUrl};

use super::finding::Fault;
use super::index::overlap;
use super::place::saturate;
use super::slots::{ItemId, SlotItem, Slots};

/// A domain of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    item: ItemId,
    /// The index of the domain among those of the item.
    domain_index: u32,
}

impl Entry {
    /// Returns the entry of the domain with this index among those of an item.
    fn new(item: ItemId, domain_index: usize) -> Self {
        Self {
            item,
            domain_index: saturate(domain_index),
        }
    }
}

/// Finds the virtual host that has a domain of a route configuration.
#[derive(Debug, Default)]
pub(super) struct Domains {
    hasher: DefaultHashBuilder,
    /// Every domain, by the hash of the route configuration and itself.
    table: HashTable<Entry>,
}

impl Domains {
    /// Reserves room for `count` more domains.
    pub(super) fn reserve(&mut self, count: usize, slots: &Slots) {
        let hasher = &self.hasher;
        let rehash = |entry: &Entry| hash_entry(hasher, *entry, slots);
        self.table.reserve(count, rehash);
    }

    /// Inserts all domains of an item. If another item has one of them, or this
    /// item has one twice, none is inserted, and the error has that item with
    /// the contradiction. Does nothing for an item that is not in `slots`.
    pub(super) fn insert(&mut self, id: ItemId, slots: &Slots) -> Result<(), (ItemId, Fault)> {
        let Some(item) = slots.get(id) else {
            return Ok(());
        };
        for (index, domain) in domains_of(item.type_url, item.resource).enumerate() {
            let hash = hash_domain(&self.hasher, route_of(item.resource), domain);

            let candidates = self.table.iter_hash(hash);
            let clashes =
                candidates.filter_map(|entry| find_clash((id, item), domain, *entry, slots));
            // The order of a hash table changes from run to run.
            if let Some(clash) = clashes.min_by_key(|(other, _)| *other) {
                // The domains before this one were inserted.
                self.remove(id, slots);
                return Err(clash);
            }

            let hasher = &self.hasher;
            let rehash = |entry: &Entry| hash_entry(hasher, *entry, slots);
            self.table
                .insert_unique(hash, Entry::new(id, index), rehash);
        }
        Ok(())
    }

    /// Removes the domains of an item. Domains that were not inserted are
    /// skipped.
    pub(super) fn remove(&mut self, id: ItemId, slots: &Slots) {
        let Some(item) = slots.get(id) else {
            return;
        };
        for (index, domain) in domains_of(item.type_url, item.resource).enumerate() {
            let removed = Entry::new(id, index);
            let hash = hash_domain(&self.hasher, route_of(item.resource), domain);
            if let Ok(entry) = self.table.find_entry(hash, |other| *other == removed) {
                entry.remove();
            }
        }
    }
}

/// Counts the domains of a resource; none if it is no virtual host.
pub(super) fn count_domains(type_url: &TypeUrl, resource: &Resource) -> usize {
    domains_of(type_url, resource).count()
}

/// Returns the hash under which a domain of a route configuration is in the
/// table.
fn hash_domain(hasher: &DefaultHashBuilder, route: &str, domain: Domain<'_>) -> u64 {
    hasher.hash_one((route, domain))
}

/// Returns the hash of an entry, for when the table grows: the same as
/// [`hash_domain`] of its domain.
fn hash_entry(hasher: &DefaultHashBuilder, entry: Entry, slots: &Slots) -> u64 {
    let hash = slots.get(entry.item).and_then(|item| {
        let domain = nth_domain(item, entry.domain_index)?;
        Some(hash_domain(hasher, route_of(item.resource), domain))
    });
    // The domain is always found: entries are removed before their item is, and
    // the domains of an item never change.
    hash.unwrap_or_default()
}

/// Returns the route configuration of a virtual host; an empty text if its name
/// has none.
fn route_of(host: &Resource) -> &str {
    let name = HostName::split(host.name.as_str());
    name.map_or("", |name| name.route)
}

/// Returns the domains of a virtual host; other resources have none here.
fn domains_of<'a>(
    type_url: &TypeUrl,
    resource: &'a Resource,
) -> impl Iterator<Item = Domain<'a>> + use<'a> {
    let is_host = type_url.as_str() == kind::VHDS;
    let domains = resource.facts().domains.iter();
    domains.filter(move |_| is_host)
}

/// Returns the domain of an item at an index; `None` if it has fewer domains.
fn nth_domain(item: SlotItem<'_>, index: u32) -> Option<Domain<'_>> {
    domains_of(item.type_url, item.resource).nth(index as usize)
}

/// Compares `domain`, one of an item's, with an entry of the same hash. Returns
/// the entry's item and the contradiction if both have the same domain in one
/// route configuration and a client could see both, or if both are the same
/// item.
fn find_clash(
    (id, item): (ItemId, SlotItem<'_>),
    domain: Domain<'_>,
    entry: Entry,
    slots: &Slots,
) -> Option<(ItemId, Fault)> {
    let other_item = slots.get(entry.item)?;
    let has_domain = nth_domain(other_item, entry.domain_index) == Some(domain);
    let has_route = route_of(other_item.resource) == route_of(item.resource);
    if !has_domain || !has_route {
        return None;
    }

    let name = item.resource.name.clone();
    let domain = domain.to_string().into();
    if entry.item == id {
        return Some((id, Fault::DomainTwice { domain, name }));
    }

    let first = slots.place(other_item);
    let fault = match overlap(item.resource, other_item.resource) {
        Ok(None) => return None,
        Ok(Some(witness)) => Fault::Domain {
            domain,
            name,
            other: other_item.resource.name.clone(),
            first,
            witness,
        },
        Err(source) => Fault::Undecided {
            name,
            first,
            source,
        },
    };
    Some((entry.item, fault))
}
