//! Finds a client that matches both of two constraints.
//!
//! Both diagrams are walked together. A pair of nodes from which no common
//! client was found is not entered again, so the walk is at most as long as the
//! product of the two.

use std::collections::HashSet;

use super::diagram::{Budget, Diagram, Id, pair_branches};
use super::{ConstraintError, Params};

/// Finds a client that matches both diagrams, with no parameters but those that
/// they test. Returns `None` if there is none, and an error when the budget is
/// spent.
pub(super) fn find_witness(
    left: &Diagram,
    right: &Diagram,
) -> Result<Option<Params>, ConstraintError> {
    let mut search = Search {
        left,
        right,
        path: Vec::new(),
        dead_ends: HashSet::new(),
        budget: Budget::new(),
    };
    let has_witness = search.find(left.root, right.root)?;
    Ok(has_witness.then(|| Params::from_sorted(search.path)))
}

/// A search for a common client, with the pairs of nodes that have none.
struct Search<'a> {
    left: &'a Diagram,
    right: &'a Diagram,
    // The client's parameters so far; keys ascend along every path.
    path: Vec<(Box<str>, Box<str>)>,
    dead_ends: HashSet<(Id, Id)>,
    budget: Budget,
}

impl<'a> Search<'a> {
    /// Searches for a path from these nodes to yes in both diagrams. Returns
    /// whether there is one; then `path` has its parameters, which are those of
    /// a witness. Recurses once for each key of either diagram.
    ///
    /// # Errors
    /// The budget is spent before it is known.
    fn find(&mut self, left_id: Id, right_id: Id) -> Result<bool, ConstraintError> {
        let ids = (left_id, right_id);
        if left_id == Id::NO || right_id == Id::NO || self.dead_ends.contains(&ids) {
            return Ok(false);
        }
        let left_key = self.left.key(left_id);
        let right_key = self.right.key(right_id);
        let Some(key) = [left_key, right_key].into_iter().flatten().min() else {
            // No key is left to test: both answers are yes.
            return Ok(true);
        };

        let left = Side::new(self.left, left_id, left_key == Some(key));
        let right = Side::new(self.right, right_id, right_key == Some(key));
        // Two more: the branch without the key, and that of all other values.
        self.budget
            .spend(left.values.len() + right.values.len() + 2)?;
        let branches = pair_branches((&left.values, left.other), (&right.values, right.other));
        for &(value, left_target, right_target) in &branches {
            if self.find_with(key, value, left_target, right_target)? {
                return Ok(true);
            }
        }

        // A witness without the key is shorter than one with an invented value.
        if self.find(left.absent, right.absent)? {
            return Ok(true);
        }
        if self.find_with(key, &unlisted_value(&branches), left.other, right.other)? {
            return Ok(true);
        }
        self.dead_ends.insert(ids);
        Ok(false)
    }

    /// Searches with this value of a key added to the path. Removes the value
    /// again if there is no witness.
    fn find_with(
        &mut self,
        key: &str,
        value: &str,
        left: Id,
        right: Id,
    ) -> Result<bool, ConstraintError> {
        self.path.push((key.into(), value.into()));
        let has_witness = self.find(left, right)?;
        if !has_witness {
            self.path.pop();
        }
        Ok(has_witness)
    }
}

/// The branches of one diagram for the key that is tested.
struct Side<'a> {
    values: Vec<(&'a str, Id)>,
    other: Id,
    absent: Id,
}

impl<'a> Side<'a> {
    /// Returns the branches for the key at a node. All branches of a diagram
    /// that does not test the key lead to its node.
    fn new(diagram: &'a Diagram, id: Id, tests_key: bool) -> Self {
        let Some(node) = diagram.node(id).filter(|_| tests_key) else {
            return Self {
                values: Vec::new(),
                other: id,
                absent: id,
            };
        };
        let branches = node.values.iter();
        let values = branches.map(|&(value, child)| (diagram.value(value), child));
        Self {
            values: values.collect(),
            other: node.other,
            absent: node.absent,
        }
    }
}

/// Returns a value that neither side lists: `other`, or `other` with a number.
fn unlisted_value(pairs: &[(&str, Id, Id)]) -> String {
    let listed_values: HashSet<&str> = pairs.iter().map(|&(value, ..)| value).collect();
    let mut value = String::from("other");
    let mut number = 1;
    while listed_values.contains(&*value) {
        number += 1;
        value = format!("other{number}");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_value_is_listed_nowhere() {
        let listed = |values: &[&'static str]| -> Vec<(&str, Id, Id)> {
            values
                .iter()
                .map(|&value| (value, Id::NO, Id::NO))
                .collect()
        };
        assert_eq!(unlisted_value(&listed(&["a"])), "other");
        assert_eq!(unlisted_value(&listed(&["other", "other3"])), "other2");
        assert_eq!(unlisted_value(&listed(&["other", "other2"])), "other3");
    }
}
