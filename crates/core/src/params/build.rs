//! Builds the diagram of an expression.
//!
//! Each leaf is a diagram of one node. Lists are combined two by two, and
//! negation is carried down to the leaves. Every combination is made once, and
//! nodes that the root does not reach are not copied into the result.

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::HashMap;

use super::diagram::{Branches, Budget, Diagram, Id, paired};
use super::expr::{Expr, ExprNode};
use super::{ConstraintError, Constraints, Keys};

/// Builds the diagram of an expression. Fails if it tests too many keys, or is
/// too complex.
pub(super) fn diagram(expr: &Expr) -> Result<Diagram, ConstraintError> {
    let mut words = Words::default();
    words.collect(expr);
    if words.keys.len() > Constraints::MAX_KEYS {
        let limit = Constraints::MAX_KEYS;
        return Err(ConstraintError::TooManyKeys { limit });
    }
    let mut builder = Builder {
        keys: numbered(&words.keys),
        values: numbered(&words.values),
        nodes: Vec::new(),
        known: HashMap::new(),
        combined: HashMap::new(),
        budget: Budget::new(),
    };
    let root = builder.expr(expr, false)?;
    Ok(finish(&words, &builder.nodes, root))
}

/// The sorted keys and values, which nodes refer to by index while they are
/// made.
#[derive(Default)]
struct Words<'a> {
    keys: BTreeSet<&'a str>,
    values: BTreeSet<&'a str>,
}

impl<'a> Words<'a> {
    /// Adds the keys and values of an expression.
    fn collect(&mut self, expr: &'a Expr) {
        match expr.node() {
            ExprNode::Value { key, value } => {
                self.keys.insert(key);
                self.values.insert(value);
            }
            ExprNode::Exists { key } => {
                self.keys.insert(key);
            }
            ExprNode::And(list) | ExprNode::Or(list) => list.iter().for_each(|it| self.collect(it)),
            ExprNode::Not(it) => self.collect(it),
        }
    }
}

fn numbered<'a>(words: &BTreeSet<&'a str>) -> HashMap<&'a str, u32> {
    words.iter().copied().zip(0..).collect()
}

/// How two diagrams are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    And,
    Or,
}

impl Op {
    /// Returns the answer that decides the result, whatever the other side is.
    fn decisive(self) -> Id {
        match self {
            Self::And => Id::NO,
            Self::Or => Id::YES,
        }
    }

    /// Returns the answer that leaves the result to the other side.
    fn neutral(self) -> Id {
        match self {
            Self::And => Id::YES,
            Self::Or => Id::NO,
        }
    }

    /// Returns the operator for negated operands, by De Morgan's laws.
    fn negated(self) -> Self {
        match self {
            Self::And => Self::Or,
            Self::Or => Self::And,
        }
    }
}

struct Builder<'a> {
    keys: HashMap<&'a str, u32>,
    values: HashMap<&'a str, u32>,
    nodes: Vec<Rc<Branches>>,
    // The inverse of `nodes`: no two are equal.
    known: HashMap<Rc<Branches>, Id>,
    combined: HashMap<(Op, Id, Id), Id>,
    budget: Budget,
}

impl Builder<'_> {
    /// Builds the node of an expression, or of its negation. Recurses as deep
    /// as the expression, which is bounded.
    fn expr(&mut self, expr: &Expr, negated: bool) -> Result<Id, ConstraintError> {
        let (yes, no) = if negated {
            (Id::NO, Id::YES)
        } else {
            (Id::YES, Id::NO)
        };
        match expr.node() {
            ExprNode::Value { key, value } => {
                let value = self.values[&**value];
                Ok(self.node(self.keys[&**key], vec![(value, yes)], no, no))
            }
            ExprNode::Exists { key } => Ok(self.node(self.keys[&**key], Vec::new(), yes, no)),
            ExprNode::And(all) => self.list(all, Op::And, negated),
            ExprNode::Or(any) => self.list(any, Op::Or, negated),
            ExprNode::Not(it) => self.expr(it, !negated),
        }
    }

    /// Combines the members of a list in rounds, not one after the other: a
    /// thousand values of one key would otherwise be copied a thousand times.
    fn list(&mut self, list: &[Expr], op: Op, negated: bool) -> Result<Id, ConstraintError> {
        let op = if negated { op.negated() } else { op };
        let each = list.iter().map(|it| self.expr(it, negated));
        let mut round = each.collect::<Result<Vec<_>, _>>()?;
        while round.len() > 1 {
            let pairs = round.chunks(2).map(|pair| match *pair {
                [a, b] => self.combine(op, a, b),
                _ => Ok(pair[0]),
            });
            round = pairs.collect::<Result<_, _>>()?;
        }
        Ok(round.first().copied().unwrap_or(op.neutral()))
    }

    /// Combines two targets, once for each pair. Recurses once for each key at
    /// most.
    fn combine(&mut self, op: Op, a: Id, b: Id) -> Result<Id, ConstraintError> {
        if a == op.neutral() || a == b {
            return Ok(b);
        }
        if b == op.neutral() {
            return Ok(a);
        }
        let (Some(node_a), Some(node_b)) = (self.branches(a), self.branches(b)) else {
            return Ok(op.decisive()); // the only answer that is left
        };
        let pair = (op, a.min(b), a.max(b));
        if let Some(&known) = self.combined.get(&pair) {
            return Ok(known);
        }
        let id = self.combine_nodes(op, (a, &node_a), (b, &node_b))?;
        self.combined.insert(pair, id);
        Ok(id)
    }

    /// Combines two nodes branch by branch, for the first key that either
    /// tests.
    fn combine_nodes(
        &mut self,
        op: Op,
        (a, node_a): (Id, &Branches),
        (b, node_b): (Id, &Branches),
    ) -> Result<Id, ConstraintError> {
        let key = node_a.key.min(node_b.key);
        let (values_a, other_a, absent_a) = branches_for(key, a, node_a);
        let (values_b, other_b, absent_b) = branches_for(key, b, node_b);
        self.budget.spend(values_a.len() + values_b.len() + 2)?;
        let mut values = Vec::new();
        for (value, a, b) in paired((values_a, other_a), (values_b, other_b)) {
            values.push((value, self.combine(op, a, b)?));
        }
        let other = self.combine(op, other_a, other_b)?;
        let absent = self.combine(op, absent_a, absent_b)?;
        Ok(self.node(key, values, other, absent))
    }

    fn branches(&self, id: Id) -> Option<Rc<Branches>> {
        id.index().map(|index| Rc::clone(&self.nodes[index]))
    }

    /// Returns the one node with these branches, or the target that all of them
    /// have.
    fn node(&mut self, key: u32, mut values: Vec<(u32, Id)>, other: Id, absent: Id) -> Id {
        values.retain(|&(_, child)| child != other);
        if values.is_empty() && other == absent {
            return other;
        }
        let node = Rc::new(Branches {
            key,
            values: values.into(),
            other,
            absent,
        });
        let next = Id::of_node(self.nodes.len());
        let id = *self.known.entry(Rc::clone(&node)).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }
}

/// Returns the branches of a node for a key: values, other values, absent. A
/// node that tests a later key leads to itself whatever this key is.
fn branches_for(key: u32, id: Id, node: &Branches) -> (&[(u32, Id)], Id, Id) {
    if node.key == key {
        (&node.values, node.other, node.absent)
    } else {
        (&[], id, id)
    }
}

/// Keeps the nodes that the root reaches, numbered in the order of the walk,
/// and the keys and values that occur in them.
fn finish(words: &Words<'_>, made: &[Rc<Branches>], root: Id) -> Diagram {
    let mut walk = Renumbering {
        made,
        kept: Vec::new(),
        renumbered: HashMap::new(),
    };
    let root = walk.keep(root);
    let mut nodes = walk.kept;
    let in_keys: BTreeSet<u32> = nodes.iter().map(|node| node.key).collect();
    let in_values = nodes.iter().flat_map(|node| node.values.iter());
    let in_values: BTreeSet<u32> = in_values.map(|&(value, _)| value).collect();
    let new_key: HashMap<u32, u32> = in_keys.iter().copied().zip(0..).collect();
    let new_value: HashMap<u32, u32> = in_values.iter().copied().zip(0..).collect();
    for node in &mut nodes {
        node.key = new_key[&node.key];
        for (value, _) in &mut node.values {
            *value = new_value[&*value];
        }
    }
    Diagram {
        keys: Keys::new(words_at(&words.keys, &in_keys)),
        values: words_at(&words.values, &in_values)
            .map(Into::into)
            .collect(),
        nodes: nodes.into(),
        root,
    }
}

/// Returns the words at some indexes, in order.
fn words_at<'a>(
    words: &'a BTreeSet<&'a str>,
    indexes: &'a BTreeSet<u32>,
) -> impl Iterator<Item = &'a str> {
    let numbered = words.iter().copied().zip(0..);
    numbered.filter_map(|(word, index)| indexes.contains(&index).then_some(word))
}

struct Renumbering<'a> {
    made: &'a [Rc<Branches>],
    kept: Vec<Branches>,
    renumbered: HashMap<Id, Id>,
}

impl Renumbering<'_> {
    /// Copies a node after those that it leads to, once. Returns its new id.
    /// Recurses once for each key at most.
    fn keep(&mut self, id: Id) -> Id {
        let Some(index) = id.index() else {
            return id;
        };
        if let Some(&known) = self.renumbered.get(&id) {
            return known;
        }
        let mut node = Branches::clone(&self.made[index]);
        for (_, child) in &mut node.values {
            *child = self.keep(*child);
        }
        node.other = self.keep(node.other);
        node.absent = self.keep(node.absent);
        let new = Id::of_node(self.kept.len());
        self.kept.push(node);
        self.renumbered.insert(id, new);
        new
    }
}
