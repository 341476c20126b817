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
pub(super) fn write_expr(diagram: &Diagram) -> Result<Expr, ConstraintError> {
    let mut writer = Writer {
        diagram,
        budget: Budget::new(),
    };
    writer.write_region(diagram.root, Id::YES, Id::NO)
}

/// Writes regions of one diagram, within a budget.
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
    /// Writes the condition under which a client at the node `start` gets to
    /// `true_end`. Every path from `start` leads to `true_end` or to
    /// `false_end`, and both are reached. Recurses a few times for each key.
    fn write_region(
        &mut self,
        start: Id,
        true_end: Id,
        false_end: Id,
    ) -> Result<Expr, ConstraintError> {
        let Some(node) = self.diagram.node(start) else {
            return if start == true_end {
                make_and([])
            } else {
                make_or([])
            };
        };

        // A client has to get from each gate to the next.
        let gates = self.find_gates(start, true_end, false_end)?;
        if gates.len() > 2 {
            let steps = gates.windows(2);
            let parts = steps.map(|ends| self.write_region(ends[0], ends[1], false_end));
            return make_and(parts.collect::<Result<Vec<_>, _>>()?);
        }

        // A client fails only if it gets from each gate to the next.
        let gates = self.find_gates(start, false_end, true_end)?;
        if gates.len() > 2 {
            let steps = gates.windows(2);
            let parts = steps.map(|ends| self.write_region(ends[0], true_end, ends[1]));
            return make_or(parts.collect::<Result<Vec<_>, _>>()?);
        }

        self.write_branches(node, true_end, false_end)
    }

    /// Returns the nodes that every path from `start` to `end` passes, both
    /// included, in order. Paths that end at `avoided_end` do not count.
    /// Returns an error when the budget is spent.
    fn find_gates(
        &mut self,
        start: Id,
        end: Id,
        avoided_end: Id,
    ) -> Result<Vec<Id>, ConstraintError> {
        let region = self.nodes_inside(start, end, avoided_end)?;
        let next_gate = self.next_gates(&region, end, avoided_end);
        let mut gates = vec![start];
        let mut gate = start;
        while gate != end {
            gate = next_gate.get(&gate).copied().unwrap_or(end);
            gates.push(gate);
        }
        Ok(gates)
    }

    /// Returns the nodes of the region from `start` down to two targets, which
    /// are not included. Returns an error when the budget is spent.
    fn nodes_inside(
        &mut self,
        start: Id,
        end: Id,
        avoided_end: Id,
    ) -> Result<BTreeSet<Id>, ConstraintError> {
        let mut region = BTreeSet::from([start]);
        let mut unvisited = vec![start];
        while let Some(node) = unvisited.pop().and_then(|id| self.diagram.node(id)) {
            self.budget.spend(node.len())?;
            for child in node.children() {
                let is_target = child == end || child == avoided_end;
                if !is_target && region.insert(child) {
                    unvisited.push(child);
                }
            }
        }
        Ok(region)
    }

    /// Returns the next gate of each node of a region: the first node that all
    /// its paths to `end` pass. Nodes below have the lower numbers, so their
    /// gates are known first. Two branches meet at a gate when the higher of
    /// the two moves on to its own gate, until both are the same; at the latest
    /// at `end`, which has a lower number than all of them.
    fn next_gates(&self, region: &BTreeSet<Id>, end: Id, avoided_end: Id) -> BTreeMap<Id, Id> {
        let mut gates = BTreeMap::from([(end, end)]);
        for &id in region {
            let Some(node) = self.diagram.node(id) else {
                continue;
            };

            let children = node.children().filter(|&child| child != avoided_end);
            let meeting = children.reduce(|mut left, mut right| {
                while left != right {
                    let higher = if left > right { &mut left } else { &mut right };
                    *higher = gates.get(higher).copied().unwrap_or(end);
                }
                left
            });
            gates.insert(id, meeting.unwrap_or(end));
        }
        gates
    }

    /// Writes the branches of a node as an OR: for each target that may lead to
    /// the node `true_end`, the values of the key that get there, and the
    /// region below. The node `false_end` is where the condition does not hold.
    fn write_branches(
        &mut self,
        node: &Branches,
        true_end: Id,
        false_end: Id,
    ) -> Result<Expr, ConstraintError> {
        let mut classes = classes_of(node);
        let true_class = classes.remove(&true_end).unwrap_or_default();
        classes.remove(&false_end);

        let mut alternatives = Vec::new();
        if !true_class.is_empty() {
            alternatives.push(self.write_guard(node, &true_class)?);
        }
        for (child, class) in sort_classes(classes) {
            self.budget.spend(node.len())?;

            // Where the condition holds anyway, the guard may be wider: the
            // shorter of the two is written.
            let wider_class = class.union(&true_class);
            let guard = if wider_class.guard_len(node) < class.guard_len(node) {
                self.write_guard(node, &wider_class)?
            } else {
                self.write_guard(node, &class)?
            };

            let continuation = self.write_region(child, true_end, false_end)?;
            alternatives.push(make_and([guard, continuation])?);
        }
        make_or(alternatives)
    }

    /// Writes the condition that the key of a node is in the class. A class
    /// that has all unlisted values is written by the values that it excludes,
    /// and any other class by its own values.
    fn write_guard(&self, node: &Branches, class: &Class) -> Result<Expr, ConstraintError> {
        let key = self.diagram.keys.get(node.key);
        let has_value = |value: u32| Expr::value(key, self.diagram.value(value));
        let exists = Expr::exists(key);

        let mut conditions = Vec::new();
        if class.other {
            if !class.absent {
                conditions.push(exists);
            }
            for value in class.excluded_values(node) {
                conditions.push(Expr::not(has_value(value))?);
            }
            make_and(conditions)
        } else {
            if class.absent {
                conditions.push(Expr::not(exists)?);
            }
            conditions.extend(class.values.iter().map(|&value| has_value(value)));
            make_or(conditions)
        }
    }
}

impl Class {
    /// Returns whether no branch is in the class.
    fn is_empty(&self) -> bool {
        self.values.is_empty() && !self.other && !self.absent
    }

    /// Joins two classes of one node.
    fn union(&self, second: &Self) -> Self {
        Self {
            // A class with `other` lists no values: those with the target of
            // other values are not in the diagram.
            values: [&self.values[..], &second.values[..]].concat(),
            other: self.other || second.other,
            absent: self.absent || second.absent,
        }
    }

    /// Returns the values that the node lists and the class does not have.
    fn excluded_values<'a>(&'a self, node: &'a Branches) -> impl Iterator<Item = u32> + 'a {
        let listed_values = node.values.iter().map(|&(value, _)| value);
        listed_values.filter(|value| self.values.binary_search(value).is_err())
    }

    /// Returns how many conditions [`Writer::write_guard`] writes for the
    /// class.
    fn guard_len(&self, node: &Branches) -> usize {
        if self.other {
            self.excluded_values(node).count() + usize::from(!self.absent)
        } else {
            self.values.len() + usize::from(self.absent)
        }
    }
}

/// Groups the branches of a node by target.
fn classes_of(node: &Branches) -> BTreeMap<Id, Class> {
    let mut classes: BTreeMap<Id, Class> = BTreeMap::new();
    for &(value, child) in &node.values {
        classes.entry(child).or_default().values.push(value);
    }
    classes.entry(node.other).or_default().other = true;
    classes.entry(node.absent).or_default().absent = true;
    classes
}

/// Sorts classes by their least value, so that equal diagrams are written
/// alike. Those without values come last, and absent at the very end.
fn sort_classes(classes: BTreeMap<Id, Class>) -> Vec<(Id, Class)> {
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, class)| {
        let least_value = class.values.first().copied();
        (least_value.unwrap_or(u32::MAX), !class.other)
    });
    classes
}

/// Makes the AND of a list, without nested lists or lists of one.
fn make_and(list: impl IntoIterator<Item = Expr>) -> Result<Expr, ConstraintError> {
    let members = list.into_iter().flat_map(|member| match member.node() {
        ExprNode::And(_) => member.into_list(),
        _ => vec![member],
    });
    Expr::single_or(members.collect(), Expr::and)
}

/// Makes the OR of a list, without nested lists or lists of one.
fn make_or(list: impl IntoIterator<Item = Expr>) -> Result<Expr, ConstraintError> {
    let members = list.into_iter().flat_map(|member| match member.node() {
        ExprNode::Or(_) => member.into_list(),
        _ => vec![member],
    });
    Expr::single_or(members.collect(), Expr::or)
}
