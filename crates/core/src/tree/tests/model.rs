//! A tree beside a model that works everything out anew after each step.
//!
//! The steps are those of a control plane that answers subscriptions in any
//! order, changes resources, removes them, and of roots that come and go.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Owner, failed, value_of};
use crate::sink::Cause;
use crate::tree::RootId;

/// What a control plane says of a name: a value with children, or that there is
/// none.
type Said = Option<(u32, Vec<String>)>;

/// The whole tree, worked out anew.
#[derive(Default)]
struct Model {
    roots: BTreeMap<RootId, String>,
    newest: BTreeMap<String, Said>,
    active: BTreeMap<String, Said>,
}

impl Model {
    fn children(said: Option<&Said>) -> impl Iterator<Item = &String> {
        let children = said.and_then(Option::as_ref).into_iter();
        children.flat_map(|(_, children)| children)
    }

    /// The names that are reached by a version in use or by the newest.
    fn reached(&self) -> BTreeSet<String> {
        let mut open: Vec<_> = self.roots.values().cloned().collect();
        let mut reached = BTreeSet::new();
        while let Some(name) = open.pop() {
            if reached.insert(name.clone()) {
                open.extend(Self::children(self.active.get(&name)).cloned());
                open.extend(Self::children(self.newest.get(&name)).cloned());
            }
        }
        reached
    }

    /// Whether all who use a name have said that they will not, or go with it.
    fn is_leaving(&self, name: &String) -> bool {
        let refers = |said: Option<&Said>| Self::children(said).any(|of| of == name);
        let mut names = self.active.keys().chain(self.newest.keys());
        let goes_on = names.any(|of| {
            let is_meant = refers(self.newest.get(of));
            let is_kept = refers(self.active.get(of)) && self.is_withdrawn(of);
            (is_meant || is_kept) && !self.is_leaving(of)
        });
        let is_root = self.roots.values().any(|root| root == name);
        !is_root && !goes_on
    }

    /// Whether a name was removed and is in use.
    fn is_withdrawn(&self, name: &String) -> bool {
        self.newest.get(name) == Some(&None) && matches!(self.active.get(name), Some(Some(_)))
    }

    /// Takes into use what has only known children, and forgets what is not
    /// reached, until nothing changes.
    fn settle(&mut self) {
        loop {
            let is_warm = |(name, said): &(&String, &Said)| {
                self.active.get(*name) != Some(said)
                    && !(self.is_withdrawn(name) && self.is_leaving(name))
                    && Self::children(Some(said)).all(|of| self.active.contains_key(of))
            };
            let warm: Vec<_> = self.newest.iter().filter(is_warm).collect();
            let warm: Vec<_> = warm
                .into_iter()
                .map(|(n, s)| (n.clone(), s.clone()))
                .collect();
            if warm.is_empty() {
                break;
            }
            self.active.extend(warm);
        }
        let reached = self.reached();
        let count = self.newest.len() + self.active.len();
        self.newest.retain(|name, _| reached.contains(name));
        self.active.retain(|name, _| reached.contains(name));
        if count != self.newest.len() + self.active.len() {
            self.settle();
        }
    }

    fn show(&self, name: &str) -> String {
        let Some(Some((value, children))) = self.active.get(name) else {
            return format!("{name}!");
        };
        let children: BTreeSet<_> = children.iter().collect();
        let mut children: Vec<_> = children.into_iter().collect();
        // The order of keys is that of type URLs.
        children.sort_by_key(|name| super::key(name));
        let children: Vec<_> = children.into_iter().map(|name| self.show(name)).collect();
        let mark = if self.is_withdrawn(&name.to_owned()) {
            "?"
        } else {
            ""
        };
        match children.is_empty() {
            true => format!("{name}={value}{mark}"),
            false => format!("{name}={value}{mark}({})", children.join(" ")),
        }
    }
}

/// One step: a number that picks a name, and what happens to it.
#[derive(Clone, Debug)]
enum Step {
    /// A name that is subscribed to gets other contents; the bits choose its
    /// children.
    Say(usize, u16),
    /// It does not exist.
    Remove(usize),
    AddRoot(usize),
    RemoveRoot(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<usize>(), any::<u16>()).prop_map(|(at, bits)| Step::Say(at, bits)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::AddRoot),
        1 => any::<usize>().prop_map(Step::RemoveRoot),
    ]
}

/// The names that a name may refer to. Clusters refer to clusters of a greater
/// number, or in a world with cycles to any.
fn candidates(name: &str, cycles: bool) -> Vec<String> {
    let all = |kind: &str, from: u32| {
        (from..5)
            .map(move |of| format!("{kind}/{of}"))
            .collect::<Vec<_>>()
    };
    let (kind, number) = name.split_once('/').expect("a type");
    let number: u32 = number.parse().expect("a number");
    match kind {
        "lds" => [all("rds", 0), all("cds", 3)].concat(),
        "rds" => all("cds", 0),
        "cds" => [
            all("cds", if cycles { 0 } else { number + 1 }),
            all("eds", 0),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

/// Runs the steps on both. With cycles, what is shown is not compared: only the
/// invariants are.
fn run(steps: &[Step], cycles: bool) -> Result<(), TestCaseError> {
    let mut owner = Owner::default();
    let mut model = Model::default();
    for (value, step) in (1..).zip(steps) {
        let subscribed: Vec<_> = owner.nodes.keys().cloned().collect();
        let pick = |at: &usize| subscribed.get(at % subscribed.len().max(1)).cloned();
        match step {
            Step::AddRoot(at) => {
                let kind = ["lds", "rds", "cds"][at % 3];
                let name = format!("{kind}/{}", at / 3 % 5);
                let root = owner.root(&name);
                model.roots.insert(root, name);
            }
            Step::RemoveRoot(at) => {
                let root = model
                    .roots
                    .keys()
                    .nth(at % model.roots.len().max(1))
                    .copied();
                if let Some(root) = root {
                    owner.tree.remove_root(root);
                    owner.shown.remove(&root);
                    owner.run();
                    model.roots.remove(&root);
                }
            }
            Step::Remove(at) => {
                if let Some(name) = pick(at) {
                    owner.update(&name, failed(Cause::Deleted));
                    model.newest.insert(name, None);
                }
            }
            Step::Say(at, bits) => {
                if let Some(name) = pick(at) {
                    let candidates = candidates(&name, cycles).into_iter().enumerate();
                    let chosen = candidates.filter(|(at, _)| bits >> at & 1 == 1);
                    let children: Vec<_> = chosen.map(|(_, name)| name).collect();
                    let texts: Vec<_> = children.iter().map(String::as_str).collect();
                    owner.update(&name, value_of(value, &texts));
                    model.newest.insert(name, Some((value, children)));
                }
            }
        }
        if !cycles {
            model.settle();
            let subscribed: BTreeSet<_> = owner.nodes.keys().cloned().collect();
            prop_assert_eq!(subscribed, model.reached(), "what is subscribed to");
            for (root, name) in &model.roots {
                let is_known = model.active.contains_key(name);
                let expected = if is_known {
                    model.show(name)
                } else {
                    String::new()
                };
                prop_assert_eq!(owner.show(*root), expected);
            }
        }
    }
    Ok(())
}

/// Answers everything that is subscribed to in the same way, in an order that
/// the numbers choose, and returns what is shown at the end.
fn quiet(world: &BTreeMap<String, Vec<String>>, order: &[usize]) -> String {
    let mut owner = Owner::default();
    let root = owner.root("rds/0");
    let mut answered = BTreeSet::new();
    for at in order.iter().cycle() {
        let open: Vec<_> = owner
            .nodes
            .keys()
            .filter(|name| !answered.contains(*name))
            .collect();
        if open.is_empty() {
            break;
        }
        let name = open[at % open.len()].clone();
        let children: Vec<_> = world
            .get(&name)
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        owner.value(&name, 1, &children);
        answered.insert(name);
    }
    owner.show(root)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn c51_c53_c54_every_snapshot_is_what_a_model_works_out_anew(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        run(&steps, false)?;
    }

    #[test]
    fn c54_references_in_cycles_keep_the_invariants(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        run(&steps, true)?;
    }

    #[test]
    fn c54_what_is_shown_at_the_end_does_not_depend_on_the_order(
        bits in prop::collection::vec(any::<u16>(), 6),
        order in prop::collection::vec(any::<usize>(), 1..20),
    ) {
        let names = ["rds/0", "cds/0", "cds/1", "cds/2", "cds/3", "cds/4"];
        let children = |name: &str, bits: u16| {
            let candidates = candidates(name, true).into_iter().enumerate();
            let chosen = candidates.filter(move |(at, _)| bits >> at & 1 == 1);
            chosen.map(|(_, name)| name).collect::<Vec<_>>()
        };
        let world: BTreeMap<_, _> = names
            .iter()
            .zip(bits)
            .map(|(name, bits)| (name.to_string(), children(name, bits)))
            .collect();
        prop_assert_eq!(quiet(&world, &order), quiet(&world, &[0]));
    }
}
