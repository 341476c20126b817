//! Matching nodes.

use std::fmt;

use super::described::Described;
use super::field::Field;
use super::pattern::Pattern;

/// Conditions on fields of a node. All must hold; without any, every node
/// matches. A field that a node does not have matches nothing, not even `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMatch(Vec<(Field, Vec<Pattern>)>);

impl NodeMatch {
    /// Makes conditions: each field has to match one of its patterns.
    pub fn new(conditions: impl IntoIterator<Item = (Field, Vec<Pattern>)>) -> Self {
        Self(conditions.into_iter().collect())
    }

    /// Returns whether a node has all the fields, and each matches one of its
    /// patterns.
    #[must_use]
    pub fn matches(&self, node: &Described) -> bool {
        let holds = |(field, patterns): &(Field, Vec<Pattern>)| {
            let value = node.get(field);
            value.is_some_and(|value| patterns.iter().any(|pattern| pattern.matches(value)))
        };
        self.0.iter().all(holds)
    }

    /// Returns the fields that it reads.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().map(|(field, _)| field)
    }
}

impl fmt::Display for NodeMatch {
    /// Writes the conditions for people: `cluster=edge-*|core, id=a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("every node");
        }
        for (index, (field, patterns)) in self.0.iter().enumerate() {
            let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{field}={}", patterns.join("|"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RuleError, Wanted};
    use super::*;
    use trunkline_proto::discovery::{Locality, Node};

    fn rule(conditions: &[(&str, &[&str])]) -> NodeMatch {
        let one = |(field, patterns): &(&str, &[&str])| {
            let patterns = patterns.iter().map(|one| one.parse());
            let patterns = patterns.collect::<Result<_, RuleError>>();
            (field.parse().unwrap(), patterns.unwrap())
        };
        NodeMatch::new(conditions.iter().map(one))
    }

    #[test]
    fn all_conditions_hold_and_one_pattern_of_each() {
        let node = Node {
            id: "edge-7".into(),
            cluster: "shop".into(),
            locality: Some(Locality {
                zone: "eu-1a".into(),
                ..Locality::default()
            }),
            ..Node::default()
        };
        let node = Described::new(&node, &Wanted::default());
        for (conditions, expected) in [
            (&[][..], true),
            (&[("cluster", &["shop"][..])], true),
            (&[("cluster", &["bank", "sh*"])], true),
            (&[("cluster", &["bank"])], false),
            (&[("cluster", &["shop"]), ("id", &["edge-*"])], true),
            (&[("cluster", &["shop"]), ("id", &["core-*"])], false),
            (&[("locality.zone", &["eu-*"])], true),
            (&[("locality.region", &["*"])], false),
            (&[("metadata.NS", &["*"])], false),
        ] {
            let rule = rule(conditions);
            assert_eq!(rule.matches(&node), expected, "{rule}");
        }
        let shown = rule(&[("cluster", &["a", "b*"]), ("metadata.x.y", &["*"])]);
        assert_eq!(shown.to_string(), "cluster=a|b*, metadata.x.y=*");
        assert_eq!(NodeMatch::default().to_string(), "every node");
    }
}
