//! Builds the diagram of an expression.
//!
//! Each leaf is a diagram of one node. Lists are combined two by two, and
//! negation is carried down to the leaves. Every combination is made once, and
//! nodes that the root does not reach are not copied into the result.

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::HashMap;

use super::diagram::{Branches, Budget, Diagram, Id, pair_branches};
use super::expr::{Expr, ExprNode};
use super::{ConstraintError, Constraints, Keys};

/// Builds the diagram of an expression. Returns an error if it tests too many
/// keys, or is too complex.
pub(super) fn build_diagram(expr: &Expr) -> Result<Diagram, ConstraintError> {
    let mut words = Words::default();
    words.collect(expr);
    if words.keys.len() > Constraints::MAX_KEYS {
        let limit = Constraints::MAX_KEYS;
        return Err(ConstraintError::TooManyKeys { limit });
    }

    let mut builder = Builder {
        keys: number_words(&words.keys),
        values: number_words(&words.values),
        nodes: Vec::new(),
        node_ids: HashMap::new(),
        results: HashMap::new(),
        budget: Budget::new(),
    };
    let root = builder.build(expr, false)?;
    Ok(keep_reached(&words, &builder.nodes, root))
}

/// The sorted keys and values, which nodes refer to by index while they are
/// made.
#[derive(Default)]
struct Words<'a> {
    keys: BTreeSet<&'a str>,
    values: BTreeSet<&'a str>,
}

impl<'a> Words<'a> {
    /// Adds the keys and values of an expression. The recursion is as deep as
    /// the expression, whose depth is limited.
    fn collect(&mut self, expr: &'a Expr) {
        match expr.node() {
            ExprNode::Value { key, value } => {
                self.keys.insert(key);
                self.values.insert(value);
            }
            ExprNode::Exists { key } => {
                self.keys.insert(key);
            }
            ExprNode::And(list) | ExprNode::Or(list) => {
                for member in list {
                    self.collect(member);
                }
            }
            ExprNode::Not(inner) => self.collect(inner),
        }
    }
}

/// Numbers words in their order, from zero.
fn number_words<'a>(words: &BTreeSet<&'a str>) -> HashMap<&'a str, u32> {
    words.iter().copied().zip(0..).collect()
}

/// The operator that combines two diagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    And,
    Or,
}

impl Op {
    /// Returns the answer that decides the result, whatever the other side is.
    fn decisive_answer(self) -> Id {
        match self {
            Self::And => Id::NO,
            Self::Or => Id::YES,
        }
    }

    /// Returns the answer that leaves the result to the other side.
    fn neutral_answer(self) -> Id {
        match self {
            Self::And => Id::YES,
            Self::Or => Id::NO,
        }
    }

    /// Returns the operator for negated operands, by De Morgan's laws.
    fn negate(self) -> Self {
        match self {
            Self::And => Self::Or,
            Self::Or => Self::And,
        }
    }
}

/// The nodes that are made so far.
struct Builder<'a> {
    keys: HashMap<&'a str, u32>,
    values: HashMap<&'a str, u32>,
    nodes: Vec<Rc<Branches>>,
    // The inverse of `nodes`: no two are equal.
    node_ids: HashMap<Rc<Branches>, Id>,
    // The result of each pair that was combined.
    results: HashMap<(Op, Id, Id), Id>,
    budget: Budget,
}

impl Builder<'_> {
    /// Builds the node of an expression, or of its negation, and returns its
    /// id, or that of an answer. The recursion is as deep as the expression,
    /// whose depth is limited.
    fn build(&mut self, expr: &Expr, negated: bool) -> Result<Id, ConstraintError> {
        let holds = if negated { Id::NO } else { Id::YES };
        let fails = if negated { Id::YES } else { Id::NO };
        match expr.node() {
            ExprNode::Value { key, value } => {
                let (key, value) = (self.keys[&**key], self.values[&**value]);
                Ok(self.intern_node(key, vec![(value, holds)], fails, fails))
            }
            ExprNode::Exists { key } => {
                let key = self.keys[&**key];
                Ok(self.intern_node(key, Vec::new(), holds, fails))
            }
            ExprNode::And(list) => self.build_list(list, Op::And, negated),
            ExprNode::Or(list) => self.build_list(list, Op::Or, negated),
            ExprNode::Not(inner) => self.build(inner, !negated),
        }
    }

    /// Builds the members of a list, or their negations, and combines them. An
    /// empty list is the neutral answer. Members are combined in rounds of
    /// pairs, not one after the other: a thousand values of one key would
    /// otherwise be copied a thousand times.
    fn build_list(&mut self, list: &[Expr], op: Op, negated: bool) -> Result<Id, ConstraintError> {
        let op = if negated { op.negate() } else { op };
        let members = list.iter().map(|member| self.build(member, negated));
        let mut round = members.collect::<Result<Vec<_>, _>>()?;
        while round.len() > 1 {
            let pairs = round.chunks(2).map(|pair| match *pair {
                [left, right] => self.combine(op, left, right),
                _ => Ok(pair[0]),
            });
            round = pairs.collect::<Result<_, _>>()?;
        }
        Ok(round.first().copied().unwrap_or(op.neutral_answer()))
    }

    /// Combines two targets and returns the id of the result, which is cached
    /// for each pair. Recurses at most once for each key. Returns an error when
    /// the budget is spent.
    fn combine(&mut self, op: Op, left: Id, right: Id) -> Result<Id, ConstraintError> {
        if left == op.neutral_answer() || left == right {
            return Ok(right);
        }
        if right == op.neutral_answer() {
            return Ok(left);
        }

        let (Some(left_node), Some(right_node)) = (self.branches(left), self.branches(right))
        else {
            // One side is an answer, and the neutral one was handled above.
            return Ok(op.decisive_answer());
        };

        let pair = (op, left.min(right), left.max(right));
        if let Some(&result) = self.results.get(&pair) {
            return Ok(result);
        }

        let id = self.combine_nodes(op, (left, &left_node), (right, &right_node))?;
        self.results.insert(pair, id);
        Ok(id)
    }

    /// Combines two nodes branch by branch, for the first key that either node
    /// tests.
    fn combine_nodes(
        &mut self,
        op: Op,
        (left, left_node): (Id, &Branches),
        (right, right_node): (Id, &Branches),
    ) -> Result<Id, ConstraintError> {
        let key = left_node.key.min(right_node.key);
        let left = KeyBranches::new(key, left, left_node);
        let right = KeyBranches::new(key, right, right_node);
        self.budget
            .spend(left.values.len() + right.values.len() + 2)?;

        let mut values = Vec::new();
        let pairs = pair_branches((left.values, left.other), (right.values, right.other));
        for (value, left_target, right_target) in pairs {
            values.push((value, self.combine(op, left_target, right_target)?));
        }
        let other = self.combine(op, left.other, right.other)?;
        let absent = self.combine(op, left.absent, right.absent)?;
        Ok(self.intern_node(key, values, other, absent))
    }

    /// Returns the node of an id; `None` for an answer.
    fn branches(&self, id: Id) -> Option<Rc<Branches>> {
        id.index().map(|index| Rc::clone(&self.nodes[index]))
    }

    /// Returns the node with these branches, and adds it if it is new. If all
    /// branches have one target, that target is returned instead of a node.
    fn intern_node(&mut self, key: u32, mut values: Vec<(u32, Id)>, other: Id, absent: Id) -> Id {
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
        let next_id = Id::of_node(self.nodes.len());
        let id = *self.node_ids.entry(Rc::clone(&node)).or_insert(next_id);
        if id == next_id {
            self.nodes.push(node);
        }
        id
    }
}

/// The branches of a node for one key.
struct KeyBranches<'a> {
    values: &'a [(u32, Id)],
    other: Id,
    absent: Id,
}

impl<'a> KeyBranches<'a> {
    /// Returns the branches of a node for a key. All branches of a node that
    /// tests a later key lead to that node.
    fn new(key: u32, id: Id, node: &'a Branches) -> Self {
        if node.key != key {
            return Self {
                values: &[],
                other: id,
                absent: id,
            };
        }
        Self {
            values: &node.values,
            other: node.other,
            absent: node.absent,
        }
    }
}

/// Returns the diagram of the nodes that the root reaches, numbered in the
/// order of the walk, with the keys and values that occur in them.
fn keep_reached(words: &Words<'_>, all_nodes: &[Rc<Branches>], root: Id) -> Diagram {
    let mut walk = Renumbering {
        all_nodes,
        kept_nodes: Vec::new(),
        new_ids: HashMap::new(),
    };
    let root = walk.keep(root);
    let mut nodes = walk.kept_nodes;

    let used_keys: BTreeSet<u32> = nodes.iter().map(|node| node.key).collect();
    let value_branches = nodes.iter().flat_map(|node| node.values.iter());
    let used_values: BTreeSet<u32> = value_branches.map(|&(value, _)| value).collect();

    let new_keys: HashMap<u32, u32> = used_keys.iter().copied().zip(0..).collect();
    let new_values: HashMap<u32, u32> = used_values.iter().copied().zip(0..).collect();
    for node in &mut nodes {
        node.key = new_keys[&node.key];
        for (value, _) in &mut node.values {
            *value = new_values[&*value];
        }
    }

    let values = words_at(&words.values, &used_values);
    Diagram {
        keys: Keys::new(words_at(&words.keys, &used_keys)),
        values: values.map(Into::into).collect(),
        nodes: nodes.into(),
        root,
    }
}

/// Returns the words at some indexes, in order.
fn words_at<'a>(
    words: &'a BTreeSet<&'a str>,
    indexes: &'a BTreeSet<u32>,
) -> impl Iterator<Item = &'a str> {
    let numbered_words = words.iter().copied().zip(0..);
    numbered_words.filter_map(|(word, index)| indexes.contains(&index).then_some(word))
}

/// A walk that copies nodes and gives them new ids.
struct Renumbering<'a> {
    all_nodes: &'a [Rc<Branches>],
    kept_nodes: Vec<Branches>,
    new_ids: HashMap<Id, Id>,
}

impl Renumbering<'_> {
    /// Copies a node after the nodes that it leads to, and returns its new id.
    /// A node that was copied before is not copied again, and the id of an
    /// answer does not change. Recurses at most once for each key.
    fn keep(&mut self, id: Id) -> Id {
        let Some(index) = id.index() else {
            return id;
        };
        if let Some(&new_id) = self.new_ids.get(&id) {
            return new_id;
        }

        let mut node = Branches::clone(&self.all_nodes[index]);
        for (_, child) in &mut node.values {
            *child = self.keep(*child);
        }
        node.other = self.keep(node.other);
        node.absent = self.keep(node.absent);

        let new_id = Id::of_node(self.kept_nodes.len());
        self.kept_nodes.push(node);
        self.new_ids.insert(id, new_id);
        new_id
    }
}
