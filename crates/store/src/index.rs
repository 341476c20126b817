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

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Index {
    files: Slots,
    hasher: DefaultHashBuilder,
    names: HashTable<Held>,
    domains: Domains,
    /// The number of resources of each type.
    types: HashMap<TypeUrl, usize>,
    /// How many resources have an alias.
    aliases: HashMap<(TypeUrl, Name), usize>,
}

impl Index {
    /// Inserts all resources of a file, or returns why not.
    pub(crate) fn insert(&mut self, file: &FileId, parsed: &Arc<Parsed>) -> Result<(), Clash> {
        self.files.add(file, parsed);
        self.reserve(parsed);
        let mut clash = Clash::default();
        for held in self.files.all(file) {
            if let Err((other, fault)) = self.put(held) {
                let problem = self
                    .files
                    .get(held)
                    .map(|at| at.parsed.problem(at.item, fault));
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

    /// Reserves room, so that the tables do not grow step by step.
    fn reserve(&mut self, parsed: &Parsed) {
        let Self { files, hasher, .. } = self;
        let hash = |held: &Held| {
            let found = files.get(*held);
            found.map_or(0, |at| name_hash(hasher, at.item))
        };
        self.names.reserve(parsed.items.len(), hash);
        let domains = parsed.items.iter().map(domains::count).sum();
        self.domains.reserve(domains, files);
    }

    /// Inserts one item; or returns the one that contradicts it, and why.
    fn put(&mut self, held: Held) -> Result<(), (Held, Fault)> {
        let Some(at) = self.files.get(held) else {
            return Ok(());
        };
        let (item, resource) = (at.item, &at.item.resource);
        let hash = name_hash(&self.hasher, item);
        for other in self.names.iter_hash(hash) {
            if let Some(fault) = exclude(item, &self.files, *other) {
                return Err((*other, fault));
            }
        }
        self.domains.insert(held, &self.files)?;
        let rehash = |held: &Held| {
            let found = self.files.get(*held);
            found.map_or(0, |at| name_hash(&self.hasher, at.item))
        };
        self.names.insert_unique(hash, held, rehash);
        *self.types.entry(item.type_url.clone()).or_default() += 1;
        for alias in &resource.aliases {
            let key = (item.type_url.clone(), alias.clone());
            *self.aliases.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// Removes all items of a file.
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
            forget(&mut self.types, type_url.clone());
            for alias in &at.item.resource.aliases {
                forget(&mut self.aliases, (type_url.clone(), alias.clone()));
            }
        }
        self.files.remove(file);
    }

    /// Whether a resource has this name or alias.
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

/// Decrements a count, and removes it at zero.
fn forget<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: K) {
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
    fn add(&mut self, other: Option<FileId>, problem: Option<Problem>) {
        // Of variants that were made of one resource, one reports it.
        let said = |problem: &Problem| {
            let last = self.problems.last();
            last.is_some_and(|last| (&last.place, &last.field) == (&problem.place, &problem.field))
        };
        if self.problems.len() < MOST {
            let problem = problem.filter(|problem| !said(problem));
            self.problems.extend(problem);
        }
        if let Some(other) = other
            && !self.with.contains(&other)
        {
            self.with.push(other);
        }
    }
}

/// Why two resources of one name cannot both exist.
fn exclude(item: &Item, files: &Slots, other: Held) -> Option<Fault> {
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

/// The parameters of a client that would see both.
pub(crate) fn overlap(one: &Resource, other: &Resource) -> Result<Option<Params>, ConstraintError> {
    one.clients().overlap(&other.clients())
}
