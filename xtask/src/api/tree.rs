//! Crates as their sources have them: modules, definitions and imports.
//!
//! A tree holds several crates, so that a path can be followed from one into
//! another. Items under `#[cfg(test)]` are not in it.

use syn::{Item, ItemImpl};

use super::attrs::Marks;

/// Crates of the workspace.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    modules: Vec<Module>,
    definitions: Vec<Definition>,
    /// Calls of macros that are not defined here: their items are unknown.
    pub(super) unseen: Vec<String>,
}

pub(super) struct Crate {
    /// As paths have it: `trunkline_core`.
    pub(super) name: String,
    pub(super) root: ModuleId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModuleId(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DefinitionId(usize);

pub(super) struct Module {
    /// From the name of the crate on.
    pub(super) path: Vec<String>,
    pub(super) parent: Option<ModuleId>,
    /// Every module from the root to this one is `pub`.
    pub(super) open: bool,
    pub(super) definitions: Vec<DefinitionId>,
    pub(super) uses: Vec<Use>,
    pub(super) impls: Vec<ItemImpl>,
}

pub(super) struct Definition {
    pub(super) module: ModuleId,
    pub(super) name: String,
    pub(super) public: bool,
    pub(super) marks: Marks,
    pub(super) what: What,
}

pub(super) enum What {
    Module(ModuleId),
    Item(Box<Item>),
}

/// One name that a `use` brings, or one glob.
pub(super) struct Use {
    /// `None` is a glob.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) public: bool,
    pub(super) marks: Marks,
}

impl Tree {
    pub(super) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    pub(super) fn module_mut(&mut self, id: ModuleId) -> &mut Module {
        &mut self.modules[id.0]
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        let numbered = self.modules.iter().enumerate();
        numbered.map(|(number, module)| (ModuleId(number), module))
    }

    pub(super) fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.0]
    }

    /// Adds the module `name` to its parent; without a parent, a crate.
    pub(super) fn add_module(
        &mut self,
        parent: Option<ModuleId>,
        name: &str,
        public: bool,
    ) -> ModuleId {
        let above = parent.map(|id| self.module(id));
        let mut path = above.map_or_else(Vec::new, |module| module.path.clone());
        path.push(name.to_owned());
        let open = public && above.is_none_or(|module| module.open);
        self.modules.push(Module {
            path,
            parent,
            open,
            definitions: Vec::new(),
            uses: Vec::new(),
            impls: Vec::new(),
        });
        ModuleId(self.modules.len() - 1)
    }

    pub(super) fn define(&mut self, definition: Definition) {
        let id = DefinitionId(self.definitions.len());
        self.module_mut(definition.module).definitions.push(id);
        self.definitions.push(definition);
    }

    /// The name of the crate that a definition stands in.
    pub(super) fn home(&self, id: DefinitionId) -> &str {
        &self.module(self.definition(id).module).path[0]
    }

    pub(super) fn root_of(&self, crate_name: &str) -> Option<ModuleId> {
        let found = self.crates.iter().find(|known| known.name == crate_name);
        found.map(|known| known.root)
    }

    /// The path of a definition in the source, whether or not users reach it.
    pub(super) fn source_path(&self, id: DefinitionId) -> Vec<String> {
        let definition = self.definition(id);
        let mut path = self.module(definition.module).path.clone();
        path.push(definition.name.clone());
        path
    }
}

impl Definition {
    /// Whether the name stands for a type, a trait or a module, not a value.
    pub(super) fn is_type(&self) -> bool {
        match &self.what {
            What::Module(_) => true,
            What::Item(item) => !matches!(
                **item,
                Item::Fn(_) | Item::Const(_) | Item::Static(_) | Item::Macro(_)
            ),
        }
    }

    pub(super) fn as_module(&self) -> Option<ModuleId> {
        match self.what {
            What::Module(id) => Some(id),
            What::Item(_) => None,
        }
    }
}
