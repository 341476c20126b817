//! The rules of a tree, by number; the model that it is compared with is in
//! `model`.

mod model;
mod rules;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Action, Content, Key, NodeId, Part, RootId, Snapshot, Tree, Update};
use crate::kind;
use crate::sink::{Cause, WatchError};

/// A tree whose values are numbers and whose keys have no source.
type TestTree = Tree<(), u32>;

/// A tree, and what its owner has done.
#[derive(Default)]
struct Owner {
    tree: TestTree,
    /// What is subscribed to.
    nodes: BTreeMap<String, NodeId>,
    /// What was shown last, and how often something was.
    shown: BTreeMap<RootId, Arc<Snapshot<(), u32>>>,
    /// What was done, in order: `+name`, `-name`, and `publish`.
    log: Vec<String>,
}

/// The key of a text such as `cds/a`.
fn key(text: &str) -> Key<()> {
    let (kind, name) = text.split_once('/').expect("a type and a name");
    let type_url = match kind {
        "lds" => kind::LDS,
        "rds" => kind::RDS,
        "cds" => kind::CDS,
        "eds" => kind::EDS,
        other => panic!("no type {other}"),
    };
    Key::new(type_url, name.into(), ())
}

/// The text of a key.
fn text(key: &Key<()>) -> String {
    let kind = match key.type_url.as_str() {
        kind::LDS => "lds",
        kind::RDS => "rds",
        kind::CDS => "cds",
        _ => "eds",
    };
    format!("{kind}/{}", key.name)
}

fn failed(cause: Cause) -> Update<(), u32> {
    Update::Failed(WatchError::new(cause, "a reason"))
}

impl Owner {
    fn root(&mut self, name: &str) -> RootId {
        let root = self.tree.add_root(key(name));
        self.run();
        root
    }

    /// Does all that is to be done, and proves the invariants.
    fn run(&mut self) {
        self.run_unchecked();
        self.tree.check().expect("invariants");
    }

    /// Does all that is to be done.
    fn run_unchecked(&mut self) {
        while let Some(action) = self.tree.poll_action() {
            match action {
                Action::Subscribe(id, key) => {
                    self.log.push(format!("+{}", text(&key)));
                    let before = self.nodes.insert(text(&key), id);
                    assert_eq!(before, None, "subscribed to twice");
                }
                Action::Unsubscribe(id) => {
                    let name = self.nodes.iter().find(|(_, of)| **of == id);
                    let name = name.expect("it is subscribed to").0.clone();
                    self.log.push(format!("-{name}"));
                    self.nodes.remove(&name);
                }
                Action::Publish(root, snapshot) => {
                    self.log.push("publish".into());
                    self.shown.insert(root, snapshot);
                }
            }
        }
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn update(&mut self, name: &str, update: Update<(), u32>) {
        let id = self.nodes[name];
        self.tree.handle_update(id, update);
        self.run();
    }

    fn value(&mut self, name: &str, value: u32, children: &[&str]) {
        self.update(name, value_of(value, children));
    }

    /// What a root shows, for example `lds/l=1(rds/r=1(cds/a=1 cds/b!))`: `!` is
    /// an error, `?` an ambient one.
    fn show(&self, root: RootId) -> String {
        self.shown.get(&root).map_or_else(String::new, |shown| {
            let mut text = show(&shown.root);
            for part in shown.subscribed.iter() {
                text += &format!(" + {}", show(part));
            }
            text
        })
    }
}

fn value_of(value: u32, children: &[&str]) -> Update<(), u32> {
    Update::Value {
        value,
        error: None,
        children: children.iter().map(|name| key(name)).collect(),
    }
}

fn show(part: &Part<(), u32>) -> String {
    let content = match &part.content {
        Content::Value(value) => format!("={value}"),
        Content::Stale(value, _) => format!("={value}?"),
        Content::Failed(_) => "!".to_owned(),
    };
    let children: Vec<_> = part.children.iter().map(|part| show(part)).collect();
    let name = text(&part.key);
    match children.is_empty() {
        true => format!("{name}{content}"),
        false => format!("{name}{content}({})", children.join(" ")),
    }
}
