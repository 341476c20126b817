//! The meaning of a path in a module: a definition of the tree, or something
//! outside.

use std::collections::BTreeSet;

use super::tree::{DefinitionId, ModuleId, Tree, Use};

/// The meaning of the first `used` names of a path. The names after them are
/// variants or associated items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) what: Meaning,
    pub(super) used: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Definition(DefinitionId),
    /// The root of a crate, or a module that was named with `self` or `super`.
    Module(ModuleId),
    /// A path that leaves the tree.
    Outside(Vec<String>),
}

impl Tree {
    /// Everything that the path may mean: a type and a function can have one
    /// name.
    pub(super) fn resolve(&self, module: ModuleId, path: &[String]) -> Vec<Found> {
        self.follow(module, path, &mut BTreeSet::new())
    }

    /// Imports that are being followed are in `seen`: `use accept::accept`
    /// begins with a name that it brings itself.
    fn follow(&self, module: ModuleId, path: &[String], seen: &mut Seen) -> Vec<Found> {
        let Some(first) = path.first() else {
            return vec![Found::new(Meaning::Module(module), 0)];
        };
        let start = match first.as_str() {
            "crate" => self.root_of(&self.module(module).path[0]),
            "self" => Some(module),
            "super" => self.module(module).parent,
            _ => None,
        };
        if let Some(start) = start {
            let rest = self.follow(start, &path[1..], seen);
            return rest.into_iter().map(|found| found.after(1)).collect();
        }
        let mut meanings = self.lookup(module, first, seen);
        if meanings.is_empty() {
            // Not a name of this module: a crate, or a name of the prelude.
            meanings.push(match self.root_of(first) {
                Some(root) => Meaning::Module(root),
                None => Meaning::Outside(vec![first.clone()]),
            });
        }
        let each = meanings.into_iter();
        each.flat_map(|meaning| self.step(meaning, &path[1..], seen))
            .map(|found| found.after(1))
            .collect()
    }

    fn step(&self, meaning: Meaning, rest: &[String], seen: &mut Seen) -> Vec<Found> {
        let inside = match &meaning {
            Meaning::Module(id) => Some(*id),
            Meaning::Definition(id) => self.definition(*id).as_module(),
            Meaning::Outside(_) => None,
        };
        let (Some(inside), Some(next)) = (inside, rest.first()) else {
            return vec![Found::new(meaning, 0)];
        };
        let meanings = self.lookup(inside, next, seen).into_iter();
        meanings
            .flat_map(|meaning| self.step(meaning, &rest[1..], seen))
            .map(|found| found.after(1))
            .collect()
    }

    /// The meanings of a name in a module, by definition or by import.
    fn lookup(&self, id: ModuleId, name: &str, seen: &mut Seen) -> Vec<Meaning> {
        let module = self.module(id);
        let defined = module.definitions.iter().copied();
        let mut meanings: Vec<Meaning> = defined
            .filter(|id| self.definition(*id).name == name)
            .map(Meaning::Definition)
            .collect();
        if !seen.insert((id, name.to_owned())) {
            return meanings;
        }
        let named = module.uses.iter().filter(|brought| brought.brings(name));
        for brought in named {
            meanings.extend(self.target(id, brought, seen));
        }
        let globs = module.uses.iter().filter(|brought| brought.name.is_none());
        for glob in globs.filter(|_| meanings.is_empty()).collect::<Vec<_>>() {
            for inside in self.modules_at(id, &glob.path, seen) {
                let found = self.lookup(inside, name, seen);
                meanings.extend(found);
            }
        }
        seen.remove(&(id, name.to_owned()));
        meanings
    }

    /// The meanings of an import. A variant of an enum has none: it is no
    /// definition.
    fn target(&self, module: ModuleId, brought: &Use, seen: &mut Seen) -> Vec<Meaning> {
        let found = self.follow(module, &brought.path, seen).into_iter();
        found
            .filter_map(|found| match found.what {
                Meaning::Outside(mut path) => {
                    path.extend_from_slice(&brought.path[found.used..]);
                    Some(Meaning::Outside(path))
                }
                what => (found.used == brought.path.len()).then_some(what),
            })
            .collect()
    }

    /// The modules of the tree that a path leads to.
    pub(super) fn modules_of(&self, module: ModuleId, path: &[String]) -> Vec<ModuleId> {
        self.modules_at(module, path, &mut BTreeSet::new())
    }

    fn modules_at(&self, module: ModuleId, path: &[String], seen: &mut Seen) -> Vec<ModuleId> {
        let found = self.follow(module, path, seen).into_iter();
        let whole = found.filter(|found| found.used == path.len());
        whole
            .filter_map(|found| match found.what {
                Meaning::Module(id) => Some(id),
                Meaning::Definition(id) => self.definition(id).as_module(),
                Meaning::Outside(_) => None,
            })
            .collect()
    }

    /// The meanings of an import, followed from its start.
    pub(super) fn targets(&self, module: ModuleId, brought: &Use) -> Vec<Meaning> {
        self.target(module, brought, &mut BTreeSet::new())
    }
}

type Seen = BTreeSet<(ModuleId, String)>;

impl Found {
    fn new(what: Meaning, used: usize) -> Self {
        Self { what, used }
    }

    fn after(mut self, names: usize) -> Self {
        self.used += names;
        self
    }
}

impl Use {
    fn brings(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}
