//! The domains of virtual hosts, over all documents.
//!
//! Envoy refuses two virtual hosts of one route configuration that have the
//! same domain, whatever the letters' case. Variants that no client sees
//! together do not conflict.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline_core::hosts::{Domain, HostName};
use trunkline_core::kind;

use super::document::Item;
use super::finding::Fault;
use super::index::overlap;
use super::slots::{IndexedItem, ItemId, Key, Slots};

/// The bits of an entry for the domain, for the item, and for the document.
const DOMAIN_BITS: u32 = 20;
const ITEM_BITS: u32 = 27;
const DOCUMENT_BITS: u32 = u64::BITS - ITEM_BITS - DOMAIN_BITS;

/// A domain of an item, in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    /// Packs an item and the index of one of its domains. `None` if a number
    /// does not fit: such a domain is checked only when it is applied.
    fn pack(id: ItemId, domain_index: usize) -> Option<Self> {
        let domain = u64::try_from(domain_index).ok()?;
        let (document, item) = (u64::from(id.document), u64::from(id.item));

        let fits = |number: u64, bits: u32| number >> bits == 0;
        let all_fit =
            fits(domain, DOMAIN_BITS) && fits(item, ITEM_BITS) && fits(document, DOCUMENT_BITS);
        all_fit.then_some(Self((document << ITEM_BITS | item) << DOMAIN_BITS | domain))
    }

    /// Unpacks the item.
    fn item_id(self) -> ItemId {
        let item = (self.0 >> DOMAIN_BITS) & ((1 << ITEM_BITS) - 1);
        ItemId {
            document: (self.0 >> (ITEM_BITS + DOMAIN_BITS)) as u32,
            item: item as u32,
        }
    }

    /// Unpacks the index of the domain among those of the item.
    fn domain_index(self) -> usize {
        (self.0 & ((1 << DOMAIN_BITS) - 1)) as usize
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
    /// Reserves room for so many more domains.
    pub(super) fn reserve<K: Key>(&mut self, count: usize, slots: &Slots<K>) {
        let hasher = &self.hasher;
        let rehash = |entry: &Entry| hash_entry(hasher, *entry, slots);
        self.table.reserve(count, rehash);
    }

    /// Inserts all domains of an item. If another item has one of them, or this
    /// one has it twice, none is inserted, and the item that has it is returned
    /// with the contradiction.
    pub(super) fn insert<K: Key>(
        &mut self,
        id: ItemId,
        slots: &Slots<K>,
    ) -> Result<(), (ItemId, Fault)> {
        let Some(found) = slots.get(id) else {
            return Ok(());
        };
        for (index, domain) in domains_of(found.item).enumerate() {
            let hash = hash_domain(&self.hasher, route_of(found.item), domain);

            let mut others = self.table.iter_hash(hash);
            let clash = others.find_map(|other| find_clash(&found, id, domain, *other, slots));
            if let Some(clash) = clash {
                // The domains before this one were inserted.
                self.remove(id, slots);
                return Err(clash);
            }

            if let Some(entry) = Entry::pack(id, index) {
                let hasher = &self.hasher;
                let rehash = |entry: &Entry| hash_entry(hasher, *entry, slots);
                self.table.insert_unique(hash, entry, rehash);
            }
        }
        Ok(())
    }

    /// Removes the domains of an item, as far as they were inserted.
    pub(super) fn remove<K: Key>(&mut self, id: ItemId, slots: &Slots<K>) {
        let Some(found) = slots.get(id) else {
            return;
        };
        for (index, domain) in domains_of(found.item).enumerate() {
            let Some(own) = Entry::pack(id, index) else {
                continue;
            };
            let hash = hash_domain(&self.hasher, route_of(found.item), domain);
            if let Ok(entry) = self.table.find_entry(hash, |other| *other == own) {
                entry.remove();
            }
        }
    }
}

/// Counts the domains of an item; none if it is no virtual host.
pub(super) fn count_domains(item: &Item) -> usize {
    domains_of(item).count()
}

fn hash_domain(hasher: &DefaultHashBuilder, route: &str, domain: Domain<'_>) -> u64 {
    hasher.hash_one((route, domain))
}

/// Hashes an entry again, when the table grows: by the domain of its item,
/// which is there for as long as the entry is.
fn hash_entry<K: Key>(hasher: &DefaultHashBuilder, entry: Entry, slots: &Slots<K>) -> u64 {
    let hash = slots.get(entry.item_id()).and_then(|found| {
        let domain = domains_of(found.item).nth(entry.domain_index())?;
        Some(hash_domain(hasher, route_of(found.item), domain))
    });
    hash.unwrap_or_default()
}

/// The route configuration of a virtual host; empty if its name has none.
fn route_of(item: &Item) -> &str {
    let name = HostName::split(item.resource.name.as_str());
    name.map_or("", |name| name.route)
}

/// The domains of an item; only a virtual host has some.
fn domains_of(item: &Item) -> impl Iterator<Item = Domain<'_>> {
    let is_host = item.type_url.as_str() == kind::VHDS;
    let all = item.resource.facts().domains.iter();
    all.filter(move |_| is_host)
}

/// Compares a domain of an item with an entry of the same hash. They clash if
/// they are the same domain of one route configuration, and a client could see
/// both, or the entry is of the same item. Returns the item of the entry and
/// the contradiction; `None` if there is none.
fn find_clash<K: Key>(
    found: &IndexedItem<'_, K>,
    id: ItemId,
    domain: Domain<'_>,
    entry: Entry,
    slots: &Slots<K>,
) -> Option<(ItemId, Fault)> {
    let other = slots.get(entry.item_id())?;
    let has_domain = domains_of(other.item).nth(entry.domain_index()) == Some(domain);
    let has_route = route_of(other.item) == route_of(found.item);
    if !has_domain || !has_route {
        return None;
    }

    let name = found.item.resource.name.clone();
    let domain = domain.to_string().into();
    if entry.item_id() == id {
        return Some((id, Fault::DomainTwice { domain, name }));
    }

    let first = other.document.place(other.item);
    let fault = match overlap(&found.item.resource, &other.item.resource) {
        Ok(None) => return None,
        Ok(Some(witness)) => Fault::Domain {
            domain,
            name,
            other: other.item.resource.name.clone(),
            first,
            witness,
        },
        Err(source) => Fault::Undecided {
            name,
            first,
            source,
        },
    };
    Some((entry.item_id(), fault))
}
