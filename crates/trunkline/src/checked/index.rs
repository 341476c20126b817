//! The names and domains of all documents.
//!
//! Holds exactly the resources of the documents that are in it, and no two that
//! contradict each other. There may be a million, so each is kept as a number:
//! the place of its item.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline_core::name::Name;
use trunkline_core::params::{ConstraintError, Params};
use trunkline_core::resource::{Resource, TypeUrl};

use super::document::{Document, Item};
use super::domains::{Domains, count_domains};
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::slots::{ItemId, Key, Slots};

/// Finds the resources of all documents by name, and refuses those that
/// contradict each other. `K` is what a document is known by.
#[derive(Debug)]
pub struct Index<K> {
    slots: Slots<K>,
    hasher: DefaultHashBuilder,
    /// Every item, by the hash of its type and name.
    names: HashTable<ItemId>,
    domains: Domains,
    /// The number of resources of each type.
    types: HashMap<TypeUrl, usize>,
    /// How many resources have an alias.
    aliases: HashMap<(TypeUrl, Name), usize>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self {
            slots: Slots::default(),
            hasher: DefaultHashBuilder::default(),
            names: HashTable::new(),
            domains: Domains::default(),
            types: HashMap::new(),
            aliases: HashMap::new(),
        }
    }
}

impl<K: Key> Index<K> {
    /// Inserts all resources of a document.
    ///
    /// # Errors
    /// If one contradicts another, of this document or of one in the index;
    /// none is inserted then.
    pub fn insert(&mut self, key: &K, document: &Arc<Document>) -> Result<(), Clash<K>> {
        self.slots.add(key, document);
        self.reserve(document);
        let mut clash = Clash {
            findings: Vec::new(),
            with: Vec::new(),
        };
        for id in self.slots.item_ids(key) {
            if let Err((other_id, fault)) = self.insert_item(id) {
                let own = self.slots.get(id);
                let finding = own.map(|own| own.document.finding(own.item, fault));
                let other_key = self.slots.get(other_id).map(|other| other.key.clone());
                clash.add(other_key, finding);
            }
        }

        if clash.findings.is_empty() {
            return Ok(());
        }
        self.remove(key);
        Err(clash)
    }

    /// Reserves room for the resources of a document, so that the tables do not
    /// grow step by step.
    fn reserve(&mut self, document: &Document) {
        let Self { slots, hasher, .. } = self;
        let rehash = |id: &ItemId| hash_item(hasher, slots, *id);
        self.names.reserve(document.items.len(), rehash);
        let domain_count = document.items.iter().map(count_domains).sum();
        self.domains.reserve(domain_count, slots);
    }

    /// Inserts one item with its domains, and counts its type and its aliases.
    /// If an item contradicts it, nothing is inserted, and that item is
    /// returned with the reason.
    fn insert_item(&mut self, id: ItemId) -> Result<(), (ItemId, Fault)> {
        let Some(found) = self.slots.get(id) else {
            return Ok(());
        };
        let (item, resource) = (found.item, &found.item.resource);

        let hash = hash_name(&self.hasher, item);
        for other_id in self.names.iter_hash(hash) {
            if let Some(fault) = contradiction(item, &self.slots, *other_id) {
                return Err((*other_id, fault));
            }
        }
        self.domains.insert(id, &self.slots)?;

        let rehash = |id: &ItemId| hash_item(&self.hasher, &self.slots, *id);
        self.names.insert_unique(hash, id, rehash);
        *self.types.entry(item.type_url.clone()).or_default() += 1;
        for alias in &resource.aliases {
            let key = (item.type_url.clone(), alias.clone());
            *self.aliases.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// Removes a document and all its items, as far as they were inserted.
    pub fn remove(&mut self, key: &K) {
        for id in self.slots.item_ids(key) {
            let Some(found) = self.slots.get(id) else {
                continue;
            };
            let hash = hash_name(&self.hasher, found.item);
            // An item without an entry was not inserted, nor was a part of it.
            let Ok(entry) = self.names.find_entry(hash, |other| *other == id) else {
                continue;
            };
            entry.remove();
            self.domains.remove(id, &self.slots);

            let type_url = &found.item.type_url;
            decrement(&mut self.types, type_url.clone());
            for alias in &found.item.resource.aliases {
                decrement(&mut self.aliases, (type_url.clone(), alias.clone()));
            }
        }
        self.slots.remove(key);
    }

    /// Returns whether a resource of this type has this name or alias.
    #[must_use]
    pub fn answers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let hash = self.hasher.hash_one((type_url, name));
        let has_name = |id: &ItemId| {
            let item = self.slots.get(*id).map(|found| found.item);
            item.is_some_and(|item| item.type_url == *type_url && item.resource.name == *name)
        };
        if self.names.find(hash, has_name).is_some() {
            return true;
        }
        // Most contents have no alias, and need no key to look for one.
        !self.aliases.is_empty() && self.aliases.contains_key(&(type_url.clone(), name.clone()))
    }

    /// Whether there is a resource of a type.
    #[must_use]
    pub fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }
}

fn hash_name(hasher: &DefaultHashBuilder, item: &Item) -> u64 {
    hasher.hash_one((&item.type_url, &item.resource.name))
}

/// Hashes an item again, when the table of names grows.
fn hash_item<K: Key>(hasher: &DefaultHashBuilder, slots: &Slots<K>, id: ItemId) -> u64 {
    let found = slots.get(id);
    found.map_or(0, |found| hash_name(hasher, found.item))
}

/// Decrements a count, and removes it at zero.
fn decrement<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// Why a document cannot be inserted.
#[derive(Debug)]
pub struct Clash<K> {
    /// The contradictions, each at the item that came later.
    pub findings: Vec<Finding>,
    /// The documents that it contradicts; itself, if it does.
    pub with: Vec<K>,
}

impl<K: Key> Clash<K> {
    /// Adds a contradiction with a document. Beyond [`MOST_FINDINGS`] only the
    /// document is added. Variants that were made of one resource are at one
    /// place, and only the first of them is reported.
    fn add(&mut self, other: Option<K>, finding: Option<Finding>) {
        let is_at_last_place = |finding: &Finding| {
            let last = self.findings.last();
            last.is_some_and(|last| last.place == finding.place && last.field == finding.field)
        };
        if self.findings.len() < MOST_FINDINGS {
            let finding = finding.filter(|finding| !is_at_last_place(finding));
            self.findings.extend(finding);
        }

        if let Some(other) = other
            && !self.with.contains(&other)
        {
            self.with.push(other);
        }
    }
}

/// Returns why an item and one of the index cannot both exist: they have one
/// name, and a client could see both. `None` if they can.
fn contradiction<K: Key>(item: &Item, slots: &Slots<K>, other_id: ItemId) -> Option<Fault> {
    let other = slots.get(other_id)?;
    let (own_resource, other_resource) = (&*item.resource, &*other.item.resource);
    // Other names may have the same hash.
    if item.type_url != other.item.type_url || own_resource.name != other_resource.name {
        return None;
    }

    let type_url = item.type_url.clone();
    let name = own_resource.name.clone();
    let first = other.document.place(other.item);
    if own_resource.constraints == other_resource.constraints {
        return Some(Fault::Duplicate {
            type_url,
            name,
            first,
        });
    }

    match overlap(own_resource, other_resource) {
        Ok(None) => None,
        Ok(Some(witness)) => Some(Fault::Overlap {
            type_url,
            name,
            first,
            clients: Box::new([own_resource, other_resource].map(|r| r.clients().to_string())),
            witness,
        }),
        Err(source) => Some(Fault::Undecided {
            name,
            first,
            source,
        }),
    }
}

/// Returns the parameters of a client that would see both resources; `None` if
/// there is no such client.
pub(super) fn overlap(one: &Resource, other: &Resource) -> Result<Option<Params>, ConstraintError> {
    one.clients().overlap(&other.clients())
}
