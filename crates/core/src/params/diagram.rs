//! The meaning of a constraint: a reduced, ordered decision diagram.
//!
//! Keys are tested in sorted order. A node tests one key and has a branch for
//! each value that matters, one for every other value, and one for the key
//! being absent:
//!
//! ```text
//!            env?                  env=prod AND NOT version=v1
//!   prod ─┐   ├─ other ── no
//!         │   └─ absent ─ no
//!      version?
//!   v1 ── no  ├─ other ── yes
//!             └─ absent ─ yes
//! ```
//!
//! A node whose branches all have the same target is left out, a value with the
//! target of all other values is not listed, no two nodes are equal, and nodes
//! are numbered in the order of a walk. So there is exactly one diagram for a
//! set of matching clients, and comparing diagrams compares meanings.

use std::cmp::Ordering;

use super::{ConstraintError, Keys, Params};

/// Branches that may be followed for one constraint or one comparison.
pub(super) const MAX_BRANCHES: usize = 1 << 17;

/// The target of a branch: an answer or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) u32);

impl Id {
    pub(super) const NO: Self = Self(0);
    pub(super) const YES: Self = Self(1);
    /// Nodes are numbered after the two answers.
    const FIRST_NODE: u32 = 2;

    /// Returns the id of the node at an index.
    pub(super) fn of_node(index: usize) -> Self {
        // The budget runs out long before the numbers do.
        Self(index as u32 + Self::FIRST_NODE)
    }

    /// Returns the index of the node; `None` for an answer.
    pub(super) fn index(self) -> Option<usize> {
        let index = self.0.checked_sub(Self::FIRST_NODE)?;
        Some(index as usize)
    }
}

/// The branches of one key. Keys and values are indexes into sorted tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Branches {
    pub(super) key: u32,
    // Sorted by value; none has the target of `other`.
    pub(super) values: Box<[(u32, Id)]>,
    pub(super) other: Id,
    pub(super) absent: Id,
}

impl Branches {
    /// Returns the targets of the branches, in the order of the walk.
    pub(super) fn children(&self) -> impl Iterator<Item = Id> + '_ {
        let values = self.values.iter().map(|&(_, child)| child);
        values.chain([self.other, self.absent])
    }

    /// Returns the number of branches.
    pub(super) fn len(&self) -> usize {
        self.values.len() + 2
    }

    /// Returns the target of a value; `compare` compares a listed value with
    /// it.
    fn target(&self, compare: impl Fn(u32) -> Ordering) -> Id {
        let index = self.values.binary_search_by(|&(listed, _)| compare(listed));
        index.map_or(self.other, |index| self.values[index].1)
    }
}

/// A whole diagram. Comparing diagrams compares meanings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Diagram {
    // The keys that some node tests.
    pub(super) keys: Keys,
    // The values that some branch has, sorted.
    pub(super) values: Box<[Box<str>]>,
    // A node comes after the nodes that it leads to.
    pub(super) nodes: Box<[Branches]>,
    pub(super) root: Id,
}

impl Diagram {
    /// Returns the node of an id; `None` for an answer.
    pub(super) fn node(&self, id: Id) -> Option<&Branches> {
        id.index().map(|index| &self.nodes[index])
    }

    /// Returns the key that the node of an id tests; `None` for an answer.
    pub(super) fn key(&self, id: Id) -> Option<&str> {
        let node = self.node(id)?;
        Some(self.keys.get(node.key))
    }

    /// Returns the value at an index of the table.
    pub(super) fn value(&self, index: u32) -> &str {
        &self.values[index as usize]
    }

    /// Returns whether a client with these parameters matches, by one branch
    /// for each tested key.
    pub(super) fn matches(&self, params: &Params) -> bool {
        let mut target = self.root;
        while let Some(node) = self.node(target) {
            target = match params.get(self.keys.get(node.key)) {
                None => node.absent,
                Some(value) => node.target(|listed| self.value(listed).cmp(value)),
            };
        }
        target == Id::YES
    }
}

/// Returns, for each value that either of two nodes with one key lists, the
/// targets of the value in both, in the order of values. A node is given as its
/// values with their targets, and the target of all other values.
pub(super) fn pair_branches<V: Ord + Copy>(
    (left_values, left_other): (&[(V, Id)], Id),
    (right_values, right_other): (&[(V, Id)], Id),
) -> Vec<(V, Id, Id)> {
    let mut pairs = Vec::with_capacity(left_values.len() + right_values.len());
    let mut left = left_values.iter().peekable();
    let mut right = right_values.iter().peekable();
    loop {
        let next_value = match (left.peek(), right.peek()) {
            (None, None) => return pairs,
            (Some(&&(value, _)), None) | (None, Some(&&(value, _))) => value,
            (Some(&&(next_left, _)), Some(&&(next_right, _))) => next_left.min(next_right),
        };

        let left_branch = left.next_if(|(value, _)| *value == next_value);
        let right_branch = right.next_if(|(value, _)| *value == next_value);
        pairs.push((
            next_value,
            left_branch.map_or(left_other, |&(_, child)| child),
            right_branch.map_or(right_other, |&(_, child)| child),
        ));
    }
}

/// Counts branches down, which bounds the cost of an expression.
pub(super) struct Budget(usize);

impl Budget {
    /// Makes a budget from which nothing is spent yet.
    pub(super) fn new() -> Self {
        Self(MAX_BRANCHES)
    }

    /// Takes branches from the budget; fails if it has too few.
    pub(super) fn spend(&mut self, branches: usize) -> Result<(), ConstraintError> {
        let limit = MAX_BRANCHES;
        let remaining = self.0.checked_sub(branches);
        self.0 = remaining.ok_or(ConstraintError::TooComplex { limit })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_nodes_have_ids() {
        assert_eq!((Id::NO.index(), Id::YES.index()), (None, None));
        assert_eq!(Id::of_node(0).index(), Some(0));
        assert_eq!(Id::of_node(7).index(), Some(7));
    }

    #[test]
    fn branches_are_paired_by_value() {
        let (a, b) = ([(1, Id(10)), (3, Id(30))], [(2, Id(20)), (3, Id(31))]);
        let pairs = pair_branches((&a, Id::NO), (&b, Id::YES));
        let expected = [
            (1, Id(10), Id::YES),
            (2, Id::NO, Id(20)),
            (3, Id(30), Id(31)),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(pair_branches::<u32>((&[], Id::NO), (&[], Id::NO)), []);
    }

    #[test]
    fn a_budget_is_spent_to_the_last_branch() {
        let mut budget = Budget::new();
        assert_eq!(budget.spend(MAX_BRANCHES - 1), Ok(()));
        assert_eq!(budget.spend(1), Ok(()));
        assert_eq!(budget.spend(0), Ok(()));
        let limit = MAX_BRANCHES;
        assert_eq!(budget.spend(1), Err(ConstraintError::TooComplex { limit }));
    }
}
