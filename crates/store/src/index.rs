//! The names and domains of all files.
//!
//! Holds exactly the resources of the files that are in it, and no two that
//! contradict each other. There may be a million, so each is kept as a number:
//! the place of its item.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline::{Name, Resource, TypeUrl};
use trunkline_core::params::{ConstraintError, Params};

use crate::domains::{self, Domains};
use crate::file::FileId;
use crate::item::{Item, Parsed};
use crate::problem::{Fault, MOST, Problem};
use crate::slots::{Held, Slots};

/// Finds the resources of all files by name, and refuses those that contradict
/// each other.
#[derive(Default)]
pub(crate) struct Index {
    files: Slots,
    hasher: DefaultHashBuilder,
    /// Every item, by the hash of its type and name.
    names: HashTable<Held>,
    domains: Domains,
    /// The number of resources of each type.
    types: HashMap<TypeUrl, usize>,
    /// How many resources have an alias.
    aliases: HashMap<(TypeUrl, Name), usize>,
}

impl Index {
    /// Inserts all resources of a file. If one contradicts another, of this
    /// file or of one in the index, none is inserted, and the contradictions
    /// are returned.
    pub(crate) fn insert(&mut self, file: &FileId, parsed: &Arc<Parsed>) -> Result<(), Clash> {
        self.files.add(file, parsed);
        self.reserve(parsed);
        let mut clash = Clash::default();
        for held in self.files.all(file) {
            if let Err((other, fault)) = self.insert_item(held) {
                let own = self.files.get(held);
                let problem = own.map(|at| at.parsed.problem(at.item, fault));
                let other = self.files.get(other).map(|at| FileId::clone(at.file));
                clash.add(other, problem);
            }
        }
        if clash.problems.is_empty() {
            return Ok(());
        }
        self.remove(file);
        Err(clash)
    }

    /// Reserves room for the resources of a file, so that the tables do not
    /// grow step by step.
    fn reserve(&mut self, parsed: &Parsed) {
        let Self { files, hasher, .. } = self;
        let rehash = |held: &Held| held_hash(hasher, files, *held);
        self.names.reserve(parsed.items.len(), rehash);
        let domains = parsed.items.iter().map(domains::count).sum();
        self.domains.reserve(domains, files);
    }

    /// Inserts one item; or returns the item that contradicts it, and why.
    fn insert_item(&mut self, held: Held) -> Result<(), (Held, Fault)> {
        let Some(at) = self.files.get(held) else {
            return Ok(());
        };
        let (item, resource) = (at.item, &at.item.resource);
        let hash = name_hash(&self.hasher, item);
        for other in self.names.iter_hash(hash) {
            if let Some(fault) = contradiction(item, &self.files, *other) {
                return Err((*other, fault));
            }
        }
        self.domains.insert(held, &self.files)?;
        let rehash = |held: &Held| held_hash(&self.hasher, &self.files, *held);
        self.names.insert_unique(hash, held, rehash);
        *self.types.entry(item.type_url.clone()).or_default() += 1;
        for alias in &resource.aliases {
            let key = (item.type_url.clone(), alias.clone());
            *self.aliases.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// Removes all items of a file, as far as they were inserted.
    pub(crate) fn remove(&mut self, file: &FileId) {
        for held in self.files.all(file) {
            let Some(at) = self.files.get(held) else {
                continue;
            };
            let hash = name_hash(&self.hasher, at.item);
            let Ok(entry) = self.names.find_entry(hash, |other| *other == held) else {
                continue;
            };
            entry.remove();
            self.domains.remove(held, &self.files);
            let type_url = &at.item.type_url;
            decrement(&mut self.types, type_url.clone());
            for alias in &at.item.resource.aliases {
                decrement(&mut self.aliases, (type_url.clone(), alias.clone()));
            }
        }
        self.files.remove(file);
    }

    /// Returns whether a resource has this name or alias.
    pub(crate) fn answers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let hash = self.hasher.hash_one((type_url, name));
        let is = |held: &Held| {
            let found = self.files.get(*held).map(|at| at.item);
            found.is_some_and(|item| item.type_url == *type_url && item.resource.name == *name)
        };
        self.names.find(hash, is).is_some()
            || (!self.aliases.is_empty()
                && self.aliases.contains_key(&(type_url.clone(), name.clone())))
    }

    /// Whether there is a resource of a type.
    pub(crate) fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }
}

fn name_hash(hasher: &DefaultHashBuilder, item: &Item) -> u64 {
    hasher.hash_one((&item.type_url, &item.resource.name))
}

/// Hashes an item of the table of names again, when it grows.
fn held_hash(hasher: &DefaultHashBuilder, files: &Slots, held: Held) -> u64 {
    let found = files.get(held);
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

/// Why a file cannot be inserted.
#[derive(Default)]
pub(crate) struct Clash {
    pub(crate) problems: Vec<Problem>,
    /// The files that it contradicts; itself, if it does.
    pub(crate) with: Vec<FileId>,
}

impl Clash {
    /// Adds a contradiction with a file, unless there are many. Of the variants
    /// that were made of one resource, one reports it.
    fn add(&mut self, other: Option<FileId>, problem: Option<Problem>) {
        let is_reported = |problem: &Problem| {
            let last = self.problems.last();
            last.is_some_and(|last| (&last.place, &last.field) == (&problem.place, &problem.field))
        };
        if self.problems.len() < MOST {
            let problem = problem.filter(|problem| !is_reported(problem));
            self.problems.extend(problem);
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
fn contradiction(item: &Item, files: &Slots, other: Held) -> Option<Fault> {
    let other = files.get(other)?;
    let (mine, others) = (&*item.resource, &*other.item.resource);
    if item.type_url != other.item.type_url || mine.name != others.name {
        return None;
    }
    let type_url = item.type_url.clone();
    let name = mine.name.clone();
    let first = other.parsed.place(other.item);
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
pub(crate) fn overlap(one: &Resource, other: &Resource) -> Result<Option<Params>, ConstraintError> {
    one.clients().overlap(&other.clients())
}
