//! Finds a client that matches both of two constraints.
//!
//! Both diagrams are walked together. A pair of nodes from which no common
//! client was found is not entered again, so the walk is at most as long as the
//! product of the two.

use std::collections::HashSet;

use super::diagram::{Budget, Diagram, Id, pair_branches};
use super::{ConstraintError, Params};

/// Finds a client that matches both diagrams, with no more parameters than they
/// test; `None` if there is none. Fails when the budget is spent.
pub(super) fn find_witness(a: &Diagram, b: &Diagram) -> Result<Option<Params>, ConstraintError> {
    let mut search = Search {
        a,
        b,
        path: Vec::new(),
        dead: HashSet::new(),
        budget: Budget::new(),
    };
    let found = search.find(a.root, b.root)?;
    Ok(found.then(|| Params::of_sorted(search.path)))
}

struct Search<'a> {
    a: &'a Diagram,
    b: &'a Diagram,
    // The client's parameters so far; keys ascend along every path.
    path: Vec<(Box<str>, Box<str>)>,
    dead: HashSet<(Id, Id)>,
    budget: Budget,
}

impl<'a> Search<'a> {
    /// Returns whether some path from these nodes leads to yes in both
    /// diagrams; if so, `path` has it. Recurses once for each key of either.
    fn find(&mut self, at_a: Id, at_b: Id) -> Result<bool, ConstraintError> {
        if at_a == Id::NO || at_b == Id::NO || self.dead.contains(&(at_a, at_b)) {
            return Ok(false);
        }
        let key_a = self.a.node(at_a).map(|node| self.a.keys.at(node.key));
        let key_b = self.b.node(at_b).map(|node| self.b.keys.at(node.key));
        let Some(key) = [key_a, key_b].into_iter().flatten().min() else {
            // No key is left to test: both answers are yes.
            return Ok(true);
        };

        let a = Side::new(self.a, at_a, key_a == Some(key));
        let b = Side::new(self.b, at_b, key_b == Some(key));
        self.budget.spend(a.values.len() + b.values.len() + 2)?;
        let pairs = pair_branches((&a.values, a.other), (&b.values, b.other));
        for &(value, a, b) in &pairs {
            if self.find_with(key, value, a, b)? {
                return Ok(true);
            }
        }

        // A witness without the key is shorter than one with an invented value.
        if self.find(a.absent, b.absent)? {
            return Ok(true);
        }
        if self.find_with(key, &unlisted_value(&pairs), a.other, b.other)? {
            return Ok(true);
        }
        self.dead.insert((at_a, at_b));
        Ok(false)
    }

    /// Searches with this value of a key added to the path, which is taken back
    /// if nothing is found.
    fn find_with(&mut self, key: &str, value: &str, a: Id, b: Id) -> Result<bool, ConstraintError> {
        self.path.push((key.into(), value.into()));
        let found = self.find(a, b)?;
        if !found {
            self.path.pop();
        }
        Ok(found)
    }
}

/// The branches of one diagram for the key that is tested.
struct Side<'a> {
    values: Vec<(&'a str, Id)>,
    other: Id,
    absent: Id,
}

impl<'a> Side<'a> {
    /// Returns the branches for the key at a node. A diagram that does not test
    /// the key stays at its node.
    fn new(diagram: &'a Diagram, at: Id, tests_key: bool) -> Self {
        let Some(node) = diagram.node(at).filter(|_| tests_key) else {
            return Self {
                values: Vec::new(),
                other: at,
                absent: at,
            };
        };
        let values = node.values.iter();
        let values = values.map(|&(value, child)| (diagram.value(value), child));
        Self {
            values: values.collect(),
            other: node.other,
            absent: node.absent,
        }
    }
}

/// Returns a value that neither side lists: `other`, with a number if need be.
fn unlisted_value(pairs: &[(&str, Id, Id)]) -> String {
    let listed: HashSet<&str> = pairs.iter().map(|&(value, ..)| value).collect();
    let mut value = String::from("other");
    let mut nth = 1;
    while listed.contains(&*value) {
        nth += 1;
        value = format!("other{nth}");
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
