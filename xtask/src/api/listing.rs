//! The listing of one crate, and the types in it that its users cannot name.

use std::collections::{BTreeMap, BTreeSet};

use super::derive;
use super::impls::{self, Plain};
use super::items::Writer;
use super::lines::{Line, Rank};
use super::names::{Namer, Scope};
use super::reach::Reach;
use super::tree::{DefinitionId, Tree, What};

pub(super) struct Listing {
    pub(super) lines: Vec<String>,
    /// Types that signatures mention and the crate does not export, each with
    /// the paths of items that mention it.
    pub(super) unnamed: BTreeMap<String, BTreeSet<String>>,
}

/// Lists the public API of a crate.
pub(super) fn list(tree: &Tree, crate_name: &str) -> Listing {
    let reaches = tree.crates.iter().map(|one| Reach::of(tree, &one.name));
    let others: Vec<Reach> = reaches.collect();
    let reach = Reach::of(tree, crate_name);
    let namer = Namer {
        tree,
        reach: &reach,
        others: &others,
    };
    let mut lister = Lister {
        namer: &namer,
        plain: Plain::default(),
        lines: Vec::new(),
        unnamed: BTreeMap::new(),
    };
    for id in reach.definitions.keys() {
        lister.definition(*id);
    }
    for (path, way) in &reach.outside {
        let text = format!("pub use {} as {}", path.join("::"), way.path.join("::"));
        lister
            .lines
            .push(Line::new(way.path.clone(), Rank::Use, &way.marks, text));
    }
    lister.impls();
    lister.finish()
}

struct Lister<'a> {
    namer: &'a Namer<'a>,
    plain: Plain,
    lines: Vec<Line>,
    unnamed: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Lister<'a> {
    fn definition(&mut self, id: DefinitionId) {
        let (tree, reach) = (self.namer.tree, self.namer.reach);
        let definition = tree.definition(id);
        let ways = reach.definitions.get(&id).map_or(&[][..], Vec::as_slice);
        let ours = tree.home(id) == reach.crate_name;
        // Of another crate, only the re-export is ours to list.
        for way in ways.iter().skip(usize::from(ours)).filter(|way| way.by_use) {
            let from = self.namer.home_name(id).join("::");
            let text = format!("pub use {from} as {}", way.path.join("::"));
            self.lines
                .push(Line::new(way.path.clone(), Rank::Use, &way.marks, text));
        }
        let Some(way) = ways.first().filter(|_| ours) else {
            return;
        };
        let mut writer = Writer {
            scope: Scope::new(self.namer, definition.module),
            path: way.path.clone(),
            marks: way.marks.clone(),
            lines: Vec::new(),
        };
        match &definition.what {
            What::Module(_) => {
                let text = format!("pub mod {}", way.path.join("::"));
                self.lines
                    .push(Line::new(way.path.clone(), Rank::Item, &way.marks, text));
            }
            What::Item(item) => {
                writer.item(item);
                derive::derives(&mut writer, item, &mut self.plain);
                self.take(writer);
            }
        }
    }

    fn impls(&mut self) {
        let (tree, reach) = (self.namer.tree, self.namer.reach);
        for (id, module) in tree.modules() {
            if module.path[0] != reach.crate_name {
                continue;
            }
            for item in &module.impls {
                if let Some(writer) = impls::block(self.namer, id, item, &mut self.plain) {
                    self.take(writer);
                }
            }
        }
    }

    fn take(&mut self, writer: Writer<'a>) {
        let reach = self.namer.reach;
        let unnamed = writer.scope.mentioned.iter();
        for id in unnamed.filter(|id| reach.first(**id).is_none()) {
            let name = self.namer.home_name(*id).join("::");
            let places = self.unnamed.entry(name).or_default();
            places.insert(writer.path.join("::"));
        }
        self.lines.extend(writer.lines);
    }

    fn finish(mut self) -> Listing {
        self.lines.extend(self.plain.lines());
        self.lines.sort();
        self.lines.dedup();
        let lines = self.lines.into_iter().map(|line| line.text);
        Listing {
            lines: lines.collect(),
            unnamed: self.unnamed,
        }
    }
}
