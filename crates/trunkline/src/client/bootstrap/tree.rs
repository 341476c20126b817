//! Parts of a text that are no message: gRPC's bootstrap, and settings of this
//! library in the metadata of a node.

use trunkline_proto::envoy::google::protobuf::{Struct, value::Kind};
use trunkline_proto::text::{Entry, Node, Position, Value};

use super::problem::Problem;
use super::report::Scope;

/// A value of a tree, and the scope in which its mistakes are reported. No
/// mistake quotes a value: it may be a secret.
#[derive(Clone, Debug)]
pub(super) struct Part<'t, 'r> {
    node: &'t Node,
    pub(super) scope: Scope<'r>,
}

impl<'t, 'r> Part<'t, 'r> {
    /// Makes a part of a text. The mistakes in it go to `scope`.
    pub(super) fn new(node: &'t Node, scope: Scope<'r>) -> Self {
        Self { node, scope }
    }

    /// Returns the value of a field; `None` if the field is not set, or null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let Value::Map(entries) = &self.node.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        let part = Self::new(&entry.node, self.scope.field(key));
        (entry.node.value != Value::Null).then_some(part)
    }

    /// Returns the text of the value; reports a mistake and returns `None` if it
    /// is anything else.
    pub(super) fn text(&self) -> Option<&'t str> {
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => self.wrong("a string"),
        }
    }

    /// Returns the text of a field; `Some(None)` if it is not set, and `None`
    /// after a mistake.
    pub(super) fn text_of(&self, key: &str) -> Option<Option<&'t str>> {
        self.get(key)
            .map_or(Some(None), |part| part.text().map(Some))
    }

    /// Returns the items of a list. A field that is no list is a mistake, and
    /// has no items.
    pub(super) fn items(&self, key: &str) -> Vec<Self> {
        let Some(list) = self.get(key) else {
            return Vec::new();
        };
        let Value::List(items) = &list.node.value else {
            return list.wrong("a list").unwrap_or_default();
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, item)| Self::new(item, self.scope.index(key, index)))
            .collect()
    }

    /// Returns `None` if a field is set and is no list. Nothing is reported:
    /// [`Part::items`] has done that.
    pub(super) fn list_or_none(&self, key: &str) -> Option<()> {
        let value = self.get(key).map(|part| &part.node.value);
        matches!(value, None | Some(Value::List(_))).then_some(())
    }

    /// Returns the entries of a map. A field that is no map is a mistake, and
    /// has no entries.
    pub(super) fn entries(&self, key: &str) -> Vec<(&'t str, Self)> {
        let Some(map) = self.get(key) else {
            return Vec::new();
        };
        let Value::Map(entries) = &map.node.value else {
            return map.wrong("a mapping").unwrap_or_default();
        };
        let entries = entries.iter().map(|Entry { key, node, .. }| {
            let part = Self::new(node, map.scope.key(key));
            (key.as_str(), part)
        });
        entries.collect()
    }

    /// Reports that the value is of another kind than `expected`, which names it
    /// with its article. Returns `None`.
    fn wrong<T>(&self, expected: &'static str) -> Option<T> {
        let found = match &self.node.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) | Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        };
        self.scope.mistake(Problem::Kind { expected, found })
    }
}

/// Converts a message that has the shape of JSON into a tree.
pub(super) fn from_struct(message: &Struct) -> Node {
    let entries = message.fields.iter().map(|(key, value)| Entry {
        at: Position::default(),
        key: key.clone(),
        node: from_kind(value.kind.as_ref()),
    });
    node(Value::Map(entries.collect()))
}

/// Converts a value that has the shape of JSON; one that is not set is null.
fn from_kind(kind: Option<&Kind>) -> Node {
    match kind {
        None | Some(Kind::NullValue(_)) => node(Value::Null),
        Some(Kind::BoolValue(value)) => node(Value::Bool(*value)),
        Some(Kind::NumberValue(value)) => node(Value::Number(value.to_string())),
        Some(Kind::StringValue(value)) => node(Value::String(value.clone())),
        Some(Kind::StructValue(value)) => from_struct(value),
        Some(Kind::ListValue(list)) => {
            let items = list.values.iter().map(|item| from_kind(item.kind.as_ref()));
            node(Value::List(items.collect()))
        }
    }
}

fn node(value: Value) -> Node {
    let at = Position::default();
    Node { at, value }
}
