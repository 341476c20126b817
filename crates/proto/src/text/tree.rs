//! A document as a tree of values with their places.
//!
//! YAML and JSON both end here; the readers of the tree do not know which it
//! was.

use std::fmt;

/// A place in a text, both counted from one, the column in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Position {
    /// The beginning of a text.
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The place at which it starts.
    pub at: Position,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written (decimal, or `NaN`, `Infinity`,
    /// `-Infinity`): which range it must fit depends on its field.
    Number(String),
    /// A number in a value of any kind which YAML has to mark as one, because
    /// Envoy takes it for text there. Only writing makes it.
    Float(String),
    /// Text.
    String(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the text, without two equal keys.
    Map(Vec<Entry>),
}

/// A pair of a mapping: a key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The place at which the key starts.
    pub at: Position,
    /// The key.
    pub key: String,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Makes a node without a place, for writing.
    pub(crate) fn new(value: Value) -> Self {
        let position = Position::default();
        Self {
            at: position,
            value,
        }
    }

    /// Returns whether this is a mapping without entries.
    pub(crate) fn is_empty_map(&self) -> bool {
        matches!(&self.value, Value::Map(entries) if entries.is_empty())
    }

    /// Finds the entry of a key; `None` if there is none, or if the value is no
    /// mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|e| e.key == key),
            _ => None,
        }
    }

    /// Returns words for the kind of value, such as "a list".
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) | Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// Describes the value in words, such as `the number 7`. A scalar is
    /// described by its contents, a long text is cut, and a collection is
    /// described by its kind.
    pub(crate) fn describe(&self) -> String {
        const QUOTED: usize = 40;
        match &self.value {
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Number(text) | Value::Float(text) => format!("the number {text}"),
            Value::String(text) => {
                let quoted: String = text.chars().take(QUOTED).collect();
                let ellipsis = if quoted.len() < text.len() { "…" } else { "" };
                format!("the string \"{quoted}{ellipsis}\"")
            }
            Value::Null | Value::List(_) | Value::Map(_) => self.kind().into(),
        }
    }
}

impl Entry {
    /// Makes an entry without a place, for writing.
    pub(crate) fn new(key: impl Into<String>, value: Value) -> Self {
        Self {
            at: Position::default(),
            key: key.into(),
            node: Node::new(value),
        }
    }
}
