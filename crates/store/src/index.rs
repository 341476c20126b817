//! Who has which name, over all files.
//!
//! Holds exactly what the files that are in it say, and no two resources that
//! contradict each other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use trunkline::{Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use crate::file::FileId;
use crate::problem::{Fault, MOST, Problem};
use crate::read::{Item, Parsed};

/// One variant of a name.
struct Held {
    file: FileId,
    parsed: Arc<Parsed>,
    item: usize,
}

impl Held {
    fn item(&self) -> &Item {
        &self.parsed.items[self.item]
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Index {
    types: HashMap<TypeUrl, Names>,
}

#[derive(Default)]
struct Names {
    held: HashMap<Name, Vec<Held>>,
    /// How many resources answer to a name that is not their own.
    aliases: HashMap<Name, usize>,
}

impl Index {
    /// Puts in all that a file says, or says why not.
    pub(crate) fn insert(&mut self, file: &FileId, parsed: &Arc<Parsed>) -> Result<(), Clash> {
        let mut clash = Clash::default();
        for (index, item) in parsed.items.iter().enumerate() {
            let names = self.types.entry(item.type_url.clone()).or_default();
            let held = names.held.entry(item.resource.name.clone()).or_default();
            let found = held.iter().find_map(|other| {
                let fault = exclude(item, other)?;
                Some((other.file.clone(), fault))
            });
            if let Some((other, fault)) = found {
                clash.add(other, parsed.problem(item, fault));
                continue;
            }
            held.push(Held {
                file: file.clone(),
                parsed: Arc::clone(parsed),
                item: index,
            });
            for alias in &item.resource.aliases {
                *names.aliases.entry(alias.clone()).or_default() += 1;
            }
        }
        if clash.problems.is_empty() {
            return Ok(());
        }
        self.remove(file, parsed);
        Err(clash)
    }

    /// Takes out what is in of a file.
    pub(crate) fn remove(&mut self, file: &FileId, parsed: &Parsed) {
        for item in &parsed.items {
            let Some(names) = self.types.get_mut(&item.type_url) else {
                continue;
            };
            let Entry::Occupied(mut held) = names.held.entry(item.resource.name.clone()) else {
                continue;
            };
            let same = |one: &Held| {
                one.file == *file && one.item().resource.constraints == item.resource.constraints
            };
            let Some(place) = held.get().iter().position(same) else {
                continue;
            };
            held.get_mut().swap_remove(place);
            if held.get().is_empty() {
                held.remove();
            }
            for alias in &item.resource.aliases {
                names.forget_alias(alias);
            }
        }
    }

    /// Whether something answers to a name.
    pub(crate) fn answers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let answers =
            |names: &Names| names.held.contains_key(name) || names.aliases.contains_key(name);
        self.types.get(type_url).is_some_and(answers)
    }

    /// Whether there is anything of a type.
    pub(crate) fn has_type(&self, type_url: &TypeUrl) -> bool {
        let any = |names: &Names| !names.held.is_empty();
        self.types.get(type_url).is_some_and(any)
    }
}

impl Names {
    fn forget_alias(&mut self, alias: &Name) {
        if let Entry::Occupied(mut count) = self.aliases.entry(alias.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Why a file cannot be put in.
#[derive(Default)]
pub(crate) struct Clash {
    pub(crate) problems: Vec<Problem>,
    /// The files that it contradicts; itself, if it does.
    pub(crate) with: Vec<FileId>,
}

impl Clash {
    fn add(&mut self, other: FileId, problem: Problem) {
        if self.problems.len() < MOST {
            self.problems.push(problem);
        }
        if !self.with.contains(&other) {
            self.with.push(other);
        }
    }
}

/// Why two resources of one name cannot both be there.
fn exclude(item: &Item, other: &Held) -> Option<Fault> {
    let type_url = item.type_url.clone();
    let name = item.resource.name.clone();
    let first = other.parsed.place(other.item());
    let (mine, others) = (&*item.resource, &*other.item().resource);
    if mine.constraints == others.constraints {
        return Some(Fault::Duplicate {
            type_url,
            name,
            first,
        });
    }
    match constraints(mine).overlap(&constraints(others)) {
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

/// A variant without constraints is for all.
fn constraints(resource: &Resource) -> Constraints {
    let own = resource.constraints.clone();
    own.unwrap_or_else(Constraints::always)
}
