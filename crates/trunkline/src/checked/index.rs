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
use super::domains::{self, Domains};
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::slots::{Held, Key, Slots};

/// Finds the resources of all documents by name, and refuses those that
/// contradict each other. `K` is what a document is known by.
#[derive(Debug)]
pub struct Index<K> {
    slots: Slots<K>,
    hasher: DefaultHashBuilder,
    /// Every item, by the hash of its type and name.
    names: HashTable<Held>,
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
        for held in self.slots.all(key) {
            if let Err((other, fault)) = self.insert_item(held) {
                let own = self.slots.get(held);
                let finding = own.map(|at| at.document.finding(at.item, fault));
                let other = self.slots.get(other).map(|at| at.key.clone());
                clash.add(other, finding);
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
        let rehash = |held: &Held| held_hash(hasher, slots, *held);
        self.names.reserve(document.items.len(), rehash);
        let domains = document.items.iter().map(domains::count).sum();
        self.domains.reserve(domains, slots);
    }

    /// Inserts one item; or returns the item that contradicts it, and why.
    fn insert_item(&mut self, held: Held) -> Result<(), (Held, Fault)> {
        let Some(at) = self.slots.get(held) else {
            return Ok(());
        };
        let (item, resource) = (at.item, &at.item.resource);
        let hash = name_hash(&self.hasher, item);
        for other in self.names.iter_hash(hash) {
            if let Some(fault) = contradiction(item, &self.slots, *other) {
                return Err((*other, fault));
            }
        }
        self.domains.insert(held, &self.slots)?;
        let rehash = |held: &Held| held_hash(&self.hasher, &self.slots, *held);
        self.names.insert_unique(hash, held, rehash);
        *self.types.entry(item.type_url.clone()).or_default() += 1;
        for alias in &resource.aliases {
            let key = (item.type_url.clone(), alias.clone());
            *self.aliases.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// Removes all items of a document, as far as they were inserted.
    pub fn remove(&mut self, key: &K) {
        for held in self.slots.all(key) {
            let Some(at) = self.slots.get(held) else {
                continue;
            };
            let hash = name_hash(&self.hasher, at.item);
            let Ok(entry) = self.names.find_entry(hash, |other| *other == held) else {
                continue;
            };
            entry.remove();
            self.domains.remove(held, &self.slots);
            let type_url = &at.item.type_url;
            decrement(&mut self.types, type_url.clone());
            for alias in &at.item.resource.aliases {
                decrement(&mut self.aliases, (type_url.clone(), alias.clone()));
            }
        }
        self.slots.remove(key);
    }

    /// Returns whether a resource has this name or alias.
    #[must_use]
    pub fn answers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let hash = self.hasher.hash_one((type_url, name));
        let is = |held: &Held| {
            let found = self.slots.get(*held).map(|at| at.item);
            found.is_some_and(|item| item.type_url == *type_url && item.resource.name == *name)
        };
        self.names.find(hash, is).is_some()
            || (!self.aliases.is_empty()
                && self.aliases.contains_key(&(type_url.clone(), name.clone())))
    }

    /// Whether there is a resource of a type.
    #[must_use]
    pub fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }
}

fn name_hash(hasher: &DefaultHashBuilder, item: &Item) -> u64 {
    hasher.hash_one((&item.type_url, &item.resource.name))
}

/// Hashes an item of the table of names again, when it grows.
fn held_hash<K: Key>(hasher: &DefaultHashBuilder, slots: &Slots<K>, held: Held) -> u64 {
    let found = slots.get(held);
    found.map_or(0, |at| name_hash(hasher, at.item))
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
    /// Adds a contradiction with a document, unless there are many. Of the variants
    /// that were made of one resource, one reports it.
    fn add(&mut self, other: Option<K>, finding: Option<Finding>) {
        let is_reported = |finding: &Finding| {
            let last = self.findings.last();
            last.is_some_and(|last| (&last.place, &last.field) == (&finding.place, &finding.field))
        };
        if self.findings.len() < MOST_FINDINGS {
            let finding = finding.filter(|finding| !is_reported(finding));
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
fn contradiction<K: Key>(item: &Item, slots: &Slots<K>, other: Held) -> Option<Fault> {
    let other = slots.get(other)?;
    let (mine, others) = (&*item.resource, &*other.item.resource);
    if item.type_url != other.item.type_url || mine.name != others.name {
        return None;
    }
    let type_url = item.type_url.clone();
    let name = mine.name.clone();
    let first = other.document.place(other.item);
    if mine.constraints == others.constraints {
        return Some(Fault::Duplicate {
            type_url,
            name,
            first,
        });
    }
    match overlap(mine, others) {
        Ok(None) => None,
        Ok(Some(witness)) => Some(Fault::Overlap {
            type_url,
            name,
            first,
            clients: Box::new([mine, others].map(|r| r.clients().to_string())),
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
