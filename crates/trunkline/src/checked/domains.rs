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
use super::slots::{Found, Held, Key, Slots};

/// The bits of an entry for the domain, for the item, and for the document.
const DOMAIN_BITS: u32 = 20;
const ITEM_BITS: u32 = 27;
const DOCUMENT_BITS: u32 = u64::BITS - ITEM_BITS - DOMAIN_BITS;

/// A domain of an item, in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    /// Packs an item and the index of its domain. `None` if a number does not
    /// fit: a domain that is not checked here is checked when it is applied.
    fn new(held: Held, domain: usize) -> Option<Self> {
        let domain = u64::try_from(domain).ok()?;
        let (document, item) = (u64::from(held.document), u64::from(held.item));
        let fits =
            domain >> DOMAIN_BITS == 0 && item >> ITEM_BITS == 0 && document >> DOCUMENT_BITS == 0;
        fits.then_some(Self((document << ITEM_BITS | item) << DOMAIN_BITS | domain))
    }

    /// Unpacks the item.
    fn held(self) -> Held {
        let item = (self.0 >> DOMAIN_BITS) & ((1 << ITEM_BITS) - 1);
        Held {
            document: (self.0 >> (ITEM_BITS + DOMAIN_BITS)) as u32,
            item: item as u32,
        }
    }

    /// Unpacks the index of the domain among those of the item.
    fn domain(self) -> usize {
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
    /// Reserves room for more domains.
    pub(super) fn reserve<K: Key>(&mut self, domains: usize, slots: &Slots<K>) {
        let hasher = &self.hasher;
        self.table
            .reserve(domains, |entry| hash_of(hasher, *entry, slots));
    }

    /// Inserts all domains of an item. If another item has one of them, none is
    /// inserted, and that item is returned with the contradiction.
    pub(super) fn insert<K: Key>(
        &mut self,
        held: Held,
        slots: &Slots<K>,
    ) -> Result<(), (Held, Fault)> {
        let Some(found) = slots.get(held) else {
            return Ok(());
        };
        for (place, domain) in domains(found.item).enumerate() {
            let hash = hash(&self.hasher, route(found.item), domain);
            let mut others = self.table.iter_hash(hash);
            let clash = others.find_map(|other| clash(&found, held, domain, *other, slots));
            if let Some(clash) = clash {
                self.remove(held, slots);
                return Err(clash);
            }
            if let Some(entry) = Entry::new(held, place) {
                let hasher = &self.hasher;
                let rehash = |entry: &Entry| hash_of(hasher, *entry, slots);
                self.table.insert_unique(hash, entry, rehash);
            }
        }
        Ok(())
    }

    /// Removes the domains of an item, as far as they were inserted.
    pub(super) fn remove<K: Key>(&mut self, held: Held, slots: &Slots<K>) {
        let Some(found) = slots.get(held) else {
            return;
        };
        for (place, domain) in domains(found.item).enumerate() {
            let Some(own) = Entry::new(held, place) else {
                continue;
            };
            let hash = hash(&self.hasher, route(found.item), domain);
            if let Ok(entry) = self.table.find_entry(hash, |other| *other == own) {
                entry.remove();
            }
        }
    }
}

/// The number of an item's domains.
pub(super) fn count(item: &Item) -> usize {
    domains(item).count()
}

fn hash(hasher: &DefaultHashBuilder, route: &str, domain: Domain<'_>) -> u64 {
    hasher.hash_one((route, domain))
}

/// Hashes an entry again, when the table grows.
fn hash_of<K: Key>(hasher: &DefaultHashBuilder, entry: Entry, slots: &Slots<K>) -> u64 {
    let found = slots.get(entry.held()).and_then(|found| {
        let domain = domains(found.item).nth(entry.domain())?;
        Some(hash(hasher, route(found.item), domain))
    });
    found.unwrap_or_default()
}

/// The route configuration of a virtual host.
fn route(item: &Item) -> &str {
    let name = HostName::split(item.resource.name.as_str());
    name.map_or("", |name| name.route)
}

/// The domains of an item; only a virtual host has some.
fn domains(item: &Item) -> impl Iterator<Item = Domain<'_>> {
    let is_host = item.type_url.as_str() == kind::VHDS;
    let all = item.resource.facts().domains.iter();
    all.filter(move |_| is_host)
}

/// Returns the contradiction of an item that has a domain and an entry of the
/// same hash: both have the domain, in one route configuration, and a client
/// could see both.
fn clash<K: Key>(
    found: &Found<'_, K>,
    held: Held,
    domain: Domain<'_>,
    entry: Entry,
    slots: &Slots<K>,
) -> Option<(Held, Fault)> {
    let other = slots.get(entry.held())?;
    let theirs = domains(other.item).nth(entry.domain());
    if theirs != Some(domain) || route(other.item) != route(found.item) {
        return None;
    }
    let name = found.item.resource.name.clone();
    let domain = domain.to_string().into();
    if entry.held() == held {
        return Some((held, Fault::DomainTwice { domain, name }));
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
    Some((entry.held(), fault))
}
