//! Writes a diagram as an expression: deterministic, and short where the
//! diagram has structure.
//!
//! An expression is written for a *region*: the part of the diagram from a node
//! down to the two targets that stand for "holds" and "fails". If every path to
//! "holds" passes one node, the region is an AND of the parts before and after
//! that node; if every path to "fails" does, it is an OR. Only otherwise are
//! the branches of the node written out.

use std::collections::{BTreeMap, BTreeSet};

use super::ConstraintError;
use super::diagram::{Branches, Budget, Diagram, Id};
use super::expr::{Expr, ExprNode};

/// Writes a diagram as an expression. Fails if that costs too much: an
/// expression has to repeat parts that a diagram shares.
pub(super) fn expr(diagram: &Diagram) -> Result<Expr, ConstraintError> {
    let mut writer = Writer {
        diagram,
        budget: Budget::new(),
    };
    writer.region(diagram.root, Id::YES, Id::NO)
}

struct Writer<'a> {
    diagram: &'a Diagram,
    budget: Budget,
}

/// The values of one key whose branches have one target.
#[derive(Clone, Default)]
struct Class {
    // Sorted, at least in a class that has `other`.
    values: Vec<u32>,
    other: bool,
    absent: bool,
}

impl Writer<'_> {
    /// Writes the condition that a client at `from` gets to `holds`. Every path
    /// from there leads to `holds` or to `fails`, and both are reached.
    ///
    /// Recurses a few times for each key.
    fn region(&mut self, from: Id, holds: Id, fails: Id) -> Result<Expr, ConstraintError> {
        let Some(node) = self.diagram.node(from) else {
            return if from == holds { all([]) } else { any([]) };
        };
        let gates = self.gates(from, holds, fails)?;
        if gates.len() > 2 {
            let parts = gates.windows(2);
            let parts = parts.map(|ends| self.region(ends[0], ends[1], fails));
            return all(parts.collect::<Result<Vec<_>, _>>()?);
        }
        let gates = self.gates(from, fails, holds)?;
        if gates.len() > 2 {
            let parts = gates.windows(2);
            let parts = parts.map(|ends| self.region(ends[0], holds, ends[1]));
            return any(parts.collect::<Result<Vec<_>, _>>()?);
        }
        self.branches(node, holds, fails)
    }

    /// Returns the nodes that every path from `from` to `to` passes, both
    /// included, in order. Paths that end at `avoiding` do not count.
    fn gates(&mut self, from: Id, to: Id, avoiding: Id) -> Result<Vec<Id>, ConstraintError> {
        let inside = self.nodes_inside(from, to, avoiding)?;
        let next = self.next_gates(&inside, to, avoiding);
        let mut gates = vec![from];
        let mut at = from;
        while at != to {
            at = next.get(&at).copied().unwrap_or(to);
            gates.push(at);
        }
        Ok(gates)
    }

    /// Returns the nodes of the region from a node down to two targets, which
    /// are not included.
    fn nodes_inside(
        &mut self,
        from: Id,
        to: Id,
        avoiding: Id,
    ) -> Result<BTreeSet<Id>, ConstraintError> {
        let mut inside = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(node) = open.pop().and_then(|id| self.diagram.node(id)) {
            self.budget.spend(node.len())?;
            for child in node.children() {
                if child != to && child != avoiding && inside.insert(child) {
                    open.push(child);
                }
            }
        }
        Ok(inside)
    }

    /// Returns the next gate of each node of a region: the first node that all
    /// its paths to `to` pass. Nodes below have the lower numbers, and `to` has
    /// the lowest of all that lead to it, so the higher of two has to move.
    fn next_gates(&self, inside: &BTreeSet<Id>, to: Id, avoiding: Id) -> BTreeMap<Id, Id> {
        let mut next = BTreeMap::from([(to, to)]);
        for &id in inside {
            let Some(node) = self.diagram.node(id) else {
                continue;
            };
            let ways = node.children().filter(|&child| child != avoiding);
            let gate = ways.reduce(|mut a, mut b| {
                while a != b {
                    let higher = if a > b { &mut a } else { &mut b };
                    *higher = next.get(higher).copied().unwrap_or(to);
                }
                a
            });
            next.insert(id, gate.unwrap_or(to));
        }
        next
    }

    /// Writes the branches of a node, by target.
    fn branches(&mut self, node: &Branches, holds: Id, fails: Id) -> Result<Expr, ConstraintError> {
        let mut classes = classes(node);
        let held = classes.remove(&holds).unwrap_or_default();
        classes.remove(&fails);
        let mut ways = Vec::new();
        if !held.is_nothing() {
            ways.push(self.guard(node, &held)?);
        }
        for (child, class) in in_order(classes) {
            self.budget.spend(node.len())?;
            // Where the region holds anyway, the guard may be wider.
            let wider = class.union(&held);
            let guard = if wider.words(node) < class.words(node) {
                self.guard(node, &wider)?
            } else {
                self.guard(node, &class)?
            };
            ways.push(all([guard, self.region(child, holds, fails)?])?);
        }
        any(ways)
    }

    /// Writes the condition that the key of a node is in the class.
    fn guard(&self, node: &Branches, class: &Class) -> Result<Expr, ConstraintError> {
        let key = self.diagram.keys.at(node.key);
        let is = |value: u32| Expr::value(key, self.diagram.value(value));
        let exists = Expr::exists(key);
        if class.other {
            let present = (!class.absent).then_some(exists);
            let not = class.left_out(node).map(|value| Expr::not(is(value)));
            return all(present
                .map(Ok)
                .into_iter()
                .chain(not)
                .collect::<Result<Vec<_>, _>>()?);
        }
        let absent = class.absent.then(|| Expr::not(exists)).transpose()?;
        any(absent
            .into_iter()
            .chain(class.values.iter().map(|&value| is(value))))
    }
}

impl Class {
    fn is_nothing(&self) -> bool {
        self.values.is_empty() && !self.other && !self.absent
    }

    /// Joins two classes of one node.
    fn union(&self, with: &Self) -> Self {
        Self {
            // A class with `other` lists no values: those with the target of
            // other values are not in the diagram.
            values: [&self.values[..], &with.values[..]].concat(),
            other: self.other || with.other,
            absent: self.absent || with.absent,
        }
    }

    /// Values that the node lists and the class does not have.
    fn left_out<'a>(&'a self, node: &'a Branches) -> impl Iterator<Item = u32> + 'a {
        let listed = node.values.iter().map(|&(value, _)| value);
        listed.filter(|value| self.values.binary_search(value).is_err())
    }

    /// Returns the length of the class's guard.
    fn words(&self, node: &Branches) -> usize {
        if self.other {
            self.left_out(node).count() + usize::from(!self.absent)
        } else {
            self.values.len() + usize::from(self.absent)
        }
    }
}

/// Groups the branches of a node by target.
fn classes(node: &Branches) -> BTreeMap<Id, Class> {
    let mut classes: BTreeMap<Id, Class> = BTreeMap::new();
    for &(value, child) in &node.values {
        classes.entry(child).or_default().values.push(value);
    }
    classes.entry(node.other).or_default().other = true;
    classes.entry(node.absent).or_default().absent = true;
    classes
}

/// Sorts classes by their least value. Those without values come last, and
/// absent at the very end.
fn in_order(classes: BTreeMap<Id, Class>) -> Vec<(Id, Class)> {
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, class)| {
        let least = class.values.first().copied();
        (least.unwrap_or(u32::MAX), !class.other)
    });
    classes
}

/// Makes the AND of a list, without nested lists or lists of one.
fn all(list: impl IntoIterator<Item = Expr>) -> Result<Expr, ConstraintError> {
    let flat = list.into_iter().flat_map(|it| match it.node() {
        ExprNode::And(_) => it.into_list(),
        _ => vec![it],
    });
    Expr::single(flat.collect(), Expr::and)
}

/// Makes the OR of a list, without nested lists or lists of one.
fn any(list: impl IntoIterator<Item = Expr>) -> Result<Expr, ConstraintError> {
    let flat = list.into_iter().flat_map(|it| match it.node() {
        ExprNode::Or(_) => it.into_list(),
        _ => vec![it],
    });
    Expr::single(flat.collect(), Expr::or)
}
