//! A crate's files, read from its root along its modules into the tree.

use std::collections::HashMap;

use syn::{Attribute, Ident, Item, ItemMacro, ItemMod, UseTree, Visibility};

use super::attrs::{self, Marks};
use super::expand::Macro;
use super::tree::{Crate, Definition, ModuleId, Tree, Use, What};
use crate::failure::{Failure, Result};

/// Gives the text of a file, if there is one.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Adds the crate with this name whose root is `lib.rs` in the folder.
pub(super) fn load(tree: &mut Tree, name: &str, folder: &str, read: Read<'_>) -> Result<()> {
    let root = tree.add_module(None, name, true);
    let name = name.to_owned();
    tree.crates.push(Crate { name, root });
    let mut loader = Loader {
        tree,
        read,
        root,
        macros: HashMap::new(),
    };
    loader.file(root, &format!("{folder}/lib.rs"), folder)
}

struct Loader<'a> {
    tree: &'a mut Tree,
    read: Read<'a>,
    root: ModuleId,
    /// The macros met so far: a call stands after the definition.
    macros: HashMap<String, Macro>,
}

impl Loader<'_> {
    /// `folder` is where the files of the module's children are.
    fn file(&mut self, module: ModuleId, path: &str, folder: &str) -> Result<()> {
        let text = (self.read)(path)
            .ok_or_else(|| Failure::new(format!("{path} is a module and cannot be read")))?;
        let file = syn::parse_file(&text)
            .map_err(|error| Failure::new(format!("{path} is not Rust: {error}")))?;
        self.items(module, file.items, folder)
    }

    fn items(&mut self, module: ModuleId, items: Vec<Item>, folder: &str) -> Result<()> {
        for item in items {
            self.item(module, item, folder)?;
        }
        Ok(())
    }

    fn item(&mut self, module: ModuleId, item: Item, folder: &str) -> Result<()> {
        if let Some((_, _, attrs)) = parts(&item)
            && attrs::only_for_tests(attrs)
        {
            return Ok(());
        }
        match item {
            Item::Mod(item) => self.module(module, item, folder)?,
            Item::Impl(item) if !attrs::only_for_tests(&item.attrs) => {
                self.tree.module_mut(module).impls.push(item);
            }
            Item::Use(item) => {
                let public = is_public(&item.vis);
                let marks = Marks::of(&item.attrs);
                for (name, path) in names(&item.tree) {
                    let marks = marks.clone();
                    let brought = Use {
                        name,
                        path,
                        public,
                        marks,
                    };
                    self.tree.module_mut(module).uses.push(brought);
                }
            }
            Item::Macro(item) => self.macro_item(module, item, folder)?,
            other => {
                if let Some((ident, vis, attrs)) = parts(&other) {
                    let (ident, public) = (ident.clone(), is_public(vis));
                    let marks = Marks::of(attrs);
                    self.define(module, &ident, public, marks, What::Item(Box::new(other)));
                }
            }
        }
        Ok(())
    }

    fn define(&mut self, module: ModuleId, ident: &Ident, public: bool, marks: Marks, what: What) {
        self.tree.define(Definition {
            module,
            name: ident.to_string(),
            public,
            marks,
            what,
        });
    }

    fn module(&mut self, parent: ModuleId, item: ItemMod, folder: &str) -> Result<()> {
        let public = is_public(&item.vis);
        let name = item.ident.to_string();
        let own = self.tree.add_module(Some(parent), &name, public);
        let marks = Marks::of(&item.attrs);
        self.define(parent, &item.ident, public, marks, What::Module(own));
        let inner = format!("{folder}/{name}");
        if let Some((_, items)) = item.content {
            return self.items(own, items, &inner);
        }
        let beside = format!("{inner}.rs");
        let path = match (self.read)(&beside) {
            Some(_) => beside,
            None => format!("{inner}/mod.rs"),
        };
        self.file(own, &path, &inner)
    }

    fn macro_item(&mut self, module: ModuleId, item: ItemMacro, folder: &str) -> Result<()> {
        if attrs::only_for_tests(&item.attrs) {
            return Ok(());
        }
        if let Some(ident) = item.ident.clone() {
            let definition = Macro::parse(item.mac.tokens.clone());
            self.macros.insert(ident.to_string(), definition);
            if attrs::has(&item.attrs, "macro_export") {
                let marks = Marks::of(&item.attrs);
                let what = What::Item(Box::new(Item::Macro(item)));
                self.define(self.root, &ident, true, marks, what);
            }
            return Ok(());
        }
        let name = item.mac.path.segments.last().map(|last| &last.ident);
        let name = name.map(ToString::to_string).unwrap_or_default();
        let path = self.tree.module(module).path.join("::");
        let Some(definition) = self.macros.get(&name) else {
            self.tree.unseen.push(format!("{name}! in {path}"));
            return Ok(());
        };
        let items = definition
            .expand(item.mac.tokens)
            .and_then(syn::parse2::<syn::File>)
            .map_err(|error| Failure::new(format!("{name}! in {path}: {error}")))?
            .items;
        self.items(module, items, folder)
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

/// The name, visibility and attributes of an item that has a name.
fn parts(item: &Item) -> Option<(&Ident, &Visibility, &[Attribute])> {
    Some(match item {
        Item::Const(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Enum(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs),
        Item::Mod(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Static(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Struct(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Trait(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Type(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Union(item) => (&item.ident, &item.vis, &item.attrs),
        _ => return None,
    })
}

/// The names of a `use`, `None` for a glob, each with its path.
fn names(tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    let under = |first: &Ident, inner: &UseTree| {
        let mut found = names(inner);
        for (name, path) in &mut found {
            path.insert(0, first.to_string());
            // `a::{self}` brings `a`.
            if path.len() == 2 && path[1] == "self" {
                path.pop();
                name.take_if(|name| name == "self");
                name.get_or_insert_with(|| first.to_string());
            }
        }
        found
    };
    match tree {
        UseTree::Path(path) => under(&path.ident, &path.tree),
        UseTree::Name(name) => vec![(Some(name.ident.to_string()), vec![name.ident.to_string()])],
        UseTree::Rename(named) => {
            vec![(
                Some(named.rename.to_string()),
                vec![named.ident.to_string()],
            )]
        }
        UseTree::Glob(_) => vec![(None, Vec::new())],
        UseTree::Group(group) => group.items.iter().flat_map(names).collect(),
    }
}
