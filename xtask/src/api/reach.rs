//! The paths by which a crate's users reach definitions, their own and those
//! of other crates.

use std::collections::BTreeMap;

use super::attrs::Marks;
use super::resolve::Meaning;
use super::tree::{Definition, DefinitionId, ModuleId, Tree, Use};

/// Everything that users of one crate reach.
pub(super) struct Reach {
    pub(super) crate_name: String,
    pub(super) definitions: BTreeMap<DefinitionId, Vec<Way>>,
    /// Re-exports that leave the tree: the path outside, and the way.
    pub(super) outside: Vec<(Vec<String>, Way)>,
}

/// One path to a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) path: Vec<String>,
    /// The marks of the modules and imports on the way.
    pub(super) marks: Marks,
    /// The way ends in a re-export, which gets a line. Other ways lead through
    /// a module, and the line of the module covers them.
    pub(super) by_use: bool,
}

impl Reach {
    pub(super) fn of(tree: &Tree, crate_name: &str) -> Self {
        let mut walk = Walk {
            tree,
            reach: Self {
                crate_name: crate_name.to_owned(),
                definitions: BTreeMap::new(),
                outside: Vec::new(),
            },
            within: Vec::new(),
        };
        if let Some(root) = tree.root_of(crate_name) {
            let way = Way {
                path: vec![crate_name.to_owned()],
                marks: Marks::default(),
                by_use: false,
            };
            walk.module(root, &way, false);
        }
        let mut reach = walk.reach;
        for (id, ways) in &mut reach.definitions {
            let own = tree.source_path(*id);
            ways.sort_by_key(|way| (way.path != own, way.path.len(), way.path.clone()));
            ways.dedup_by(|a, b| a.path == b.path);
        }
        reach
    }

    /// The path that the listing uses: the one in the source where it is
    /// public, otherwise the shortest.
    pub(super) fn first(&self, id: DefinitionId) -> Option<&Way> {
        self.definitions.get(&id)?.first()
    }
}

struct Walk<'a> {
    tree: &'a Tree,
    reach: Reach,
    /// Modules that the walk is in: a module may re-export one that holds it.
    within: Vec<ModuleId>,
}

impl Walk<'_> {
    /// `again` says that the module is listed under another path, too.
    fn module(&mut self, id: ModuleId, way: &Way, again: bool) {
        if self.within.contains(&id) {
            return;
        }
        self.within.push(id);
        let tree = self.tree;
        for definition in &tree.module(id).definitions {
            let found = tree.definition(*definition);
            if found.public {
                self.found(*definition, way.to(&found.name, &found.marks), again);
            }
        }
        for brought in tree.module(id).uses.iter().filter(|brought| brought.public) {
            match &brought.name {
                Some(name) => self.import(id, brought, way.by(name, &brought.marks, again), again),
                None => self.glob(id, brought, way, again),
            }
        }
        self.within.pop();
    }

    fn found(&mut self, id: DefinitionId, way: Way, again: bool) {
        if let Some(module) = self.tree.definition(id).as_module() {
            self.module(module, &way.inside(), again);
        }
        self.reach.definitions.entry(id).or_default().push(way);
    }

    fn import(&mut self, module: ModuleId, brought: &Use, way: Way, again: bool) {
        for meaning in self.tree.targets(module, brought) {
            match meaning {
                Meaning::Definition(id) => {
                    let definition = self.tree.definition(id);
                    if definition.public {
                        let again = again || self.listed(definition, &way);
                        let way = way.marked(&definition.marks);
                        self.found(id, way, again);
                    }
                }
                Meaning::Module(root) => {
                    let path = self.tree.module(root).path.clone();
                    self.reach.outside.push((path, way.clone()));
                    self.module(root, &way.inside(), true);
                }
                Meaning::Outside(path) => self.reach.outside.push((path, way.clone())),
            }
        }
    }

    /// Whether a definition that is imported here is listed where it stands.
    fn listed(&self, definition: &Definition, way: &Way) -> bool {
        let home = self.tree.module(definition.module);
        home.open || home.path[0] != way.path[0]
    }

    fn glob(&mut self, module: ModuleId, brought: &Use, way: &Way, again: bool) {
        let modules = self.tree.modules_of(module, &brought.path);
        if modules.is_empty() {
            let way = way.by("*", &brought.marks, again);
            self.reach.outside.push((brought.path.clone(), way));
        }
        for inside in modules {
            let way = Way {
                marks: way.marks.with(&brought.marks),
                by_use: !again,
                ..way.clone()
            };
            self.module(inside, &way, again);
        }
    }
}

impl Way {
    /// The way to a definition in the module at this one's end. `by_use` stays,
    /// for a glob brings each name by itself.
    fn to(&self, name: &str, marks: &Marks) -> Self {
        let mut path = self.path.clone();
        path.push(name.to_owned());
        Self {
            path,
            marks: self.marks.with(marks),
            by_use: self.by_use,
        }
    }

    /// The way to the names inside of the module at this one's end.
    fn inside(&self) -> Self {
        Self {
            by_use: false,
            ..self.clone()
        }
    }

    fn by(&self, name: &str, marks: &Marks, again: bool) -> Self {
        Self {
            by_use: !again,
            ..self.to(name, marks)
        }
    }

    fn marked(&self, marks: &Marks) -> Self {
        Self {
            marks: self.marks.with(marks),
            ..self.clone()
        }
    }
}
