//! The one setting that is more than values: rules for base sets.
//!
//! ```yaml
//! base_sets:
//! - node: {cluster: "edge-*", metadata: {NAMESPACE: shop}}
//!   sets: ["{metadata.NAMESPACE}"]
//!   hosts: [routes/www.example.com]
//! ```

use trunkline::node::{BaseRule, Field, NodeMatch, Pattern, RuleError};
use trunkline_proto::text::{Entry, Node, Position, Value, nearest};

use super::raw::Raw;
use super::resolve::SettingsError;

/// Its key in the file. It has no flag.
pub(super) const KEY: &str = "base_sets";

/// What the example file says of it.
pub(super) const EXAMPLE: &str = r#"
# ── On demand

# Virtual hosts that a client gets without asking, by what its node says of
# itself: id, cluster, locality and metadata, where a star stands for anything
# and a list for one of several. Every rule that matches counts; one without
# `node` matches all. A virtual host belongs to the sets that it names in its own
# metadata: filter_metadata: {trunkline: {base_sets: [shop]}}. In sets and hosts,
# {id}, {cluster}, {locality.region}, {locality.zone}, {locality.sub_zone} and
# {metadata.KEY} stand for what the node says; if it does not, nothing is given.
#
# base_sets:
# - node:
#     cluster: "edge-*"
#     locality: {zone: [eu-1a, eu-1b]}
#     metadata: {NAMESPACE: "*"}
#   sets: ["{metadata.NAMESPACE}", common]
#   hosts: [routes/www.example.com]
"#;

/// Rules; more are not wanted, for each is looked at for each stream.
const MOST: usize = 1000;

/// Reads the rules.
pub(super) fn read(raw: &Raw, node: Node) -> Result<Vec<BaseRule>, SettingsError> {
    let reader = Reader { raw };
    let rules = match node.value {
        Value::Null => Vec::new(),
        Value::List(rules) => rules,
        _ => return Err(reader.error(node.at, "", "expected a list of rules")),
    };
    if rules.len() > MOST {
        return Err(reader.error(node.at, "", format!("more than {MOST} rules")));
    }
    let rule = |(place, node)| reader.rule(&format!("[{place}]"), node);
    rules.into_iter().enumerate().map(rule).collect()
}

struct Reader<'a> {
    raw: &'a Raw,
}

impl Reader<'_> {
    fn rule(&self, path: &str, node: Node) -> Result<BaseRule, SettingsError> {
        let at = node.at;
        let (mut nodes, mut sets, mut hosts) = (NodeMatch::default(), Vec::new(), Vec::new());
        for entry in self.entries(path, node)? {
            let (at, inner) = (entry.at, format!("{path}.{}", entry.key));
            match entry.key.as_str() {
                "node" => nodes = self.nodes(&inner, entry.node)?,
                "sets" => sets = self.texts(&inner, entry.node)?,
                "hosts" => hosts = self.texts(&inner, entry.node)?,
                key => return Err(self.unknown(at, path, key, &["node", "sets", "hosts"])),
            }
        }
        if sets.is_empty() && hosts.is_empty() {
            return Err(self.error(at, path, "gives nothing: say which `sets` or `hosts`"));
        }
        BaseRule::new(nodes, sets, hosts).map_err(|bad| self.error(at, path, bad.to_string()))
    }

    /// Which nodes a rule is for.
    fn nodes(&self, path: &str, node: Node) -> Result<NodeMatch, SettingsError> {
        let mut conditions = Vec::new();
        for entry in self.entries(path, node)? {
            let inner = format!("{path}.{}", entry.key);
            match entry.key.as_str() {
                "id" | "cluster" => conditions.push(self.condition(&inner, "", entry)?),
                "locality" | "metadata" => {
                    let part = format!("{}.", entry.key);
                    for entry in self.entries(&inner, entry.node)? {
                        let inner = format!("{inner}.{}", entry.key);
                        conditions.push(self.condition(&inner, &part, entry)?);
                    }
                }
                key => {
                    let known = ["id", "cluster", "locality", "metadata"];
                    return Err(self.unknown(entry.at, path, key, &known));
                }
            }
        }
        Ok(NodeMatch::new(conditions))
    }

    fn condition(
        &self,
        path: &str,
        part: &str,
        entry: Entry,
    ) -> Result<(Field, Vec<Pattern>), SettingsError> {
        let field = format!("{part}{}", entry.key).parse();
        let field = field.map_err(|bad: RuleError| self.error(entry.at, path, bad.to_string()))?;
        Ok((field, self.texts(path, entry.node)?))
    }

    fn entries(&self, path: &str, node: Node) -> Result<Vec<Entry>, SettingsError> {
        match node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.error(node.at, path, "expected keys and values")),
        }
    }

    /// One text or several, each of which means something.
    fn texts<T: std::str::FromStr<Err = RuleError>>(
        &self,
        path: &str,
        node: Node,
    ) -> Result<Vec<T>, SettingsError> {
        let list = match node.value {
            Value::List(list) => list,
            value => vec![Node { value, ..node }],
        };
        let one = |node: Node| {
            let text = match node.value {
                Value::String(text) | Value::Number(text) => text,
                Value::Bool(value) => value.to_string(),
                _ => return Err(self.error(node.at, path, "expected a text, or a list of texts")),
            };
            let read = text.parse();
            read.map_err(|bad: RuleError| self.error(node.at, path, bad.to_string()))
        };
        list.into_iter().map(one).collect()
    }

    fn unknown(&self, at: Position, path: &str, key: &str, known: &[&str]) -> SettingsError {
        let hint = match nearest(key, known.iter().map(|&known| known.to_owned())) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.error(at, path, format!("unknown key {key:?}; {hint}"))
    }

    fn error(&self, at: Position, path: &str, what: impl Into<String>) -> SettingsError {
        self.raw.error(at, format!("{KEY}{path}: {}", what.into()))
    }
}
