//! Settings that are more than values: rules about nodes, in the file alone.

use trunkline::node::{Field, NodeMatch, Pattern, RuleError};
use trunkline_proto::text::{Entry, Node, Position, Value, nearest};

use super::raw::Raw;
use super::resolve::SettingsError;

/// The maximum of rules of one kind, for each is evaluated for each stream.
const MOST: usize = 1000;

/// The keys of a condition on nodes.
const NODE_KEYS: [&str; 6] = [
    "id",
    "cluster",
    "locality",
    "metadata",
    "user_agent",
    "listener",
];

/// Reads the rules of one key.
pub(super) struct Reader<'a> {
    pub(super) raw: &'a Raw,
    pub(super) key: &'static str,
}

impl Reader<'_> {
    /// Reads a list of rules: each by `one`, which is passed the rule's path.
    pub(super) fn list<T>(
        &self,
        node: Node,
        one: impl Fn(&Self, &str, Node) -> Result<T, SettingsError>,
    ) -> Result<Vec<T>, SettingsError> {
        let rules = match node.value {
            Value::Null => Vec::new(),
            Value::List(rules) => rules,
            _ => return Err(self.error(node.at, "", "expected a list of rules")),
        };
        if rules.len() > MOST {
            return Err(self.error(node.at, "", format!("more than {MOST} rules")));
        }
        let rules = rules.into_iter().enumerate();
        rules
            .map(|(place, node)| one(self, &format!("[{place}]"), node))
            .collect()
    }

    /// Reads the conditions on nodes of a rule, which all must hold.
    pub(super) fn nodes(&self, path: &str, node: Node) -> Result<NodeMatch, SettingsError> {
        let mut conditions = Vec::new();
        for entry in self.entries(path, node)? {
            let inner = format!("{path}.{}", entry.key);
            match entry.key.as_str() {
                "id" | "cluster" | "user_agent" | "listener" => {
                    conditions.push(self.condition(&inner, "", entry)?);
                }
                "locality" | "metadata" => {
                    let part = format!("{}.", entry.key);
                    for entry in self.entries(&inner, entry.node)? {
                        let inner = format!("{inner}.{}", entry.key);
                        conditions.push(self.condition(&inner, &part, entry)?);
                    }
                }
                key => return Err(self.unknown(entry.at, path, key, &NODE_KEYS)),
            }
        }
        Ok(NodeMatch::new(conditions))
    }

    /// Reads a condition: a field of a node, and the patterns of which one must
    /// match. `part` is the beginning of the field's name, with its dot.
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

    /// Returns the entries of a map.
    pub(super) fn entries(&self, path: &str, node: Node) -> Result<Vec<Entry>, SettingsError> {
        match node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.error(node.at, path, "expected keys and values")),
        }
    }

    /// Reads one text or a list of texts, and parses each.
    pub(super) fn texts<T: std::str::FromStr<Err = RuleError>>(
        &self,
        path: &str,
        node: Node,
    ) -> Result<Vec<T>, SettingsError> {
        let list = match node.value {
            Value::List(list) => list,
            value => vec![Node { value, ..node }],
        };
        let one = |node: Node| self.text(path, node);
        list.into_iter().map(one).collect()
    }

    /// Reads a text and parses it; numbers and booleans are texts as well.
    pub(super) fn text<T: std::str::FromStr<Err = RuleError>>(
        &self,
        path: &str,
        node: Node,
    ) -> Result<T, SettingsError> {
        let text = match node.value {
            Value::String(text) | Value::Number(text) => text,
            Value::Bool(value) => value.to_string(),
            _ => return Err(self.error(node.at, path, "expected a text, or a list of texts")),
        };
        let read = text.parse();
        read.map_err(|bad: RuleError| self.error(node.at, path, bad.to_string()))
    }

    /// Makes the error of an unknown key, with a similar one or all that are
    /// `known`.
    pub(super) fn unknown(
        &self,
        at: Position,
        path: &str,
        key: &str,
        known: &[&str],
    ) -> SettingsError {
        let hint = match nearest(key, known.iter().map(|&known| known.to_owned())) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.error(at, path, format!("unknown key {key:?}; {hint}"))
    }

    /// Makes an error at a place of the file; `path` leads there from the key.
    pub(super) fn error(&self, at: Position, path: &str, what: impl Into<String>) -> SettingsError {
        let what = format!("{}{path}: {}", self.key, what.into());
        self.raw.error(at, what)
    }
}
