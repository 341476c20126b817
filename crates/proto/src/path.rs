//! A path into a message: `load_assignment.endpoints[0].metadata["k"]`.
//!
//! Reading text and validating fields both walk messages with a path, so the
//! place of a violation can be found in the text.

use std::fmt;

use prost_reflect::{FieldDescriptor, MapKey, MessageDescriptor};

/// One step.
#[derive(Clone, PartialEq, Eq)]
pub enum Step {
    /// Into a field of a message.
    Field(FieldDescriptor),
    /// Into a part of a document that is no message, such as `resources`.
    Name(&'static str),
    /// Into an item of a list.
    Index(usize),
    /// Into the value of a map.
    Key(String),
}

/// A path, from the outside in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

impl Path {
    /// Returns the path along these fields, from a message of the type
    /// `message`. The path ends before the first field that does not exist.
    #[must_use]
    pub fn of_fields(message: &MessageDescriptor, names: &[&str]) -> Self {
        let mut path = Self::default();
        let mut parent = Some(message.clone());
        for name in names {
            let Some(field) = parent.and_then(|parent| parent.get_field_by_name(name)) else {
                break;
            };
            parent = field.kind().as_message().cloned();
            path.push(Step::Field(field));
        }
        path
    }

    /// Returns the steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds a step at the inner end.
    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Removes the innermost step. Does nothing to an empty path.
    pub(crate) fn pop(&mut self) {
        self.steps.pop();
    }

    /// Returns the path that leads along this one, and from there along
    /// `inner`.
    #[must_use]
    pub fn join(&self, inner: &Path) -> Path {
        let steps = [self.steps.as_slice(), &inner.steps].concat();
        Path { steps }
    }
}

/// Returns the key of a map as a text, in the form of paths and JSON: a number
/// in decimal, a boolean by its name.
pub(crate) fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => text.clone(),
        MapKey::Bool(v) => v.to_string(),
        MapKey::I32(v) => v.to_string(),
        MapKey::I64(v) => v.to_string(),
        MapKey::U32(v) => v.to_string(),
        MapKey::U64(v) => v.to_string(),
    }
}

/// By hand: the derived form would print descriptors, which refer to each
/// other without end.
impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({self})")
    }
}

/// By hand: the derived form would print the descriptor of a field.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Step({self})")
    }
}

impl fmt::Display for Step {
    /// Writes a field by its name, and an index or a key in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(field) => f.write_str(field.name()),
            Step::Name(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key:?}]"),
        }
    }
}

impl fmt::Display for Path {
    /// Writes the steps one after another, with a dot before the name of a
    /// field unless it is the first step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            if index > 0 && matches!(step, Step::Field(_) | Step::Name(_)) {
                f.write_str(".")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}
