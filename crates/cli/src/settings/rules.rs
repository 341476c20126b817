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
    /// Reads a list of rules, each by `read_rule`, which gets the path of the
    /// rule. A missing value is an empty list.
    ///
    /// # Errors
    /// The value is not a list, has more than [`MOST`] rules, or a rule is bad.
    pub(super) fn read_list<T>(
        &self,
        node: Node,
        read_rule: impl Fn(&Self, &str, Node) -> Result<T, SettingsError>,
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
            .map(|(index, node)| read_rule(self, &format!("[{index}]"), node))
            .collect()
    }

    /// Reads the conditions of a rule on its nodes, all of which must hold. A
    /// locality and metadata have a condition for each of their parts.
    pub(super) fn read_nodes(&self, path: &str, node: Node) -> Result<NodeMatch, SettingsError> {
        let mut conditions = Vec::new();

        for entry in self.read_entries(path, node)? {
            let entry_path = format!("{path}.{}", entry.key);
            match entry.key.as_str() {
                "id" | "cluster" | "user_agent" | "listener" => {
                    conditions.push(self.read_condition(&entry_path, "", entry)?);
                }
                "locality" | "metadata" => {
                    let prefix = format!("{}.", entry.key);
                    for part in self.read_entries(&entry_path, entry.node)? {
                        let part_path = format!("{entry_path}.{}", part.key);
                        conditions.push(self.read_condition(&part_path, &prefix, part)?);
                    }
                }
                key => return Err(self.unknown_key(entry.at, path, key, &NODE_KEYS)),
            }
        }

        Ok(NodeMatch::new(conditions))
    }

    /// Reads a condition: a field of a node, and the patterns of which one must
    /// match. `prefix` is the part of the field's name up to a dot, or empty.
    fn read_condition(
        &self,
        path: &str,
        prefix: &str,
        entry: Entry,
    ) -> Result<(Field, Vec<Pattern>), SettingsError> {
        let field = format!("{prefix}{}", entry.key).parse();
        let field =
            field.map_err(|error: RuleError| self.error(entry.at, path, error.to_string()))?;
        Ok((field, self.read_texts(path, entry.node)?))
    }

    /// Returns the entries of a map, and an error at `path` if it is none.
    pub(super) fn read_entries(&self, path: &str, node: Node) -> Result<Vec<Entry>, SettingsError> {
        match node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.error(node.at, path, "expected keys and values")),
        }
    }

    /// Reads a text or a list of texts, and parses each.
    pub(super) fn read_texts<T: std::str::FromStr<Err = RuleError>>(
        &self,
        path: &str,
        node: Node,
    ) -> Result<Vec<T>, SettingsError> {
        let list = match node.value {
            Value::List(list) => list,
            value => vec![Node { value, ..node }],
        };
        let read_item = |node: Node| self.read_text(path, node);
        list.into_iter().map(read_item).collect()
    }

    /// Reads a text and parses it. Numbers and booleans count as texts.
    pub(super) fn read_text<T: std::str::FromStr<Err = RuleError>>(
        &self,
        path: &str,
        node: Node,
    ) -> Result<T, SettingsError> {
        let text = match node.value {
            Value::String(text) | Value::Number(text) | Value::Float(text) => text,
            Value::Bool(value) => value.to_string(),
            _ => return Err(self.error(node.at, path, "expected a text, or a list of texts")),
        };
        let result = text.parse();
        result.map_err(|error: RuleError| self.error(node.at, path, error.to_string()))
    }

    /// Makes the error of an unknown key. Suggests a similar one of the
    /// `known_keys` keys, or lists all of them if none is similar.
    pub(super) fn unknown_key(
        &self,
        position: Position,
        path: &str,
        key: &str,
        known_keys: &[&str],
    ) -> SettingsError {
        let hint = match nearest(
            key,
            known_keys.iter().map(|&known_key| known_key.to_owned()),
        ) {
            Some(similar_key) => format!("did you mean {similar_key:?}?"),
            None => format!("there are {}", known_keys.join(", ")),
        };
        self.error(position, path, format!("unknown key {key:?}; {hint}"))
    }

    /// Makes an error at a place of the file; `path` leads there from the key.
    pub(super) fn error(&self, at: Position, path: &str, what: impl Into<String>) -> SettingsError {
        let what = format!("{}{path}: {}", self.key, what.into());
        self.raw.error(at, what)
    }
}
