//! A list of fields as a text.

use std::collections::HashMap;

use prost_reflect::{FieldDescriptor, MessageDescriptor};

use crate::descriptor;

/// Why a list of fields cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A message that does not exist.
    #[error("there is no message {0}")]
    Message(String),
    /// A field that does not exist.
    #[error("{message} has no field {field}")]
    Field {
        /// The message.
        message: String,
        /// The field.
        field: String,
    },
    /// Fields before the first message.
    #[error("{0:?} is a field without a message; the first line must name a message")]
    NoMessage(String),
}

/// The messages of a list, each with its fields.
#[derive(Default)]
pub(super) struct List {
    pub(super) messages: Vec<(MessageDescriptor, Vec<FieldDescriptor>)>,
    /// The index of each message.
    pub(super) by_name: HashMap<String, usize>,
}

impl List {
    /// Reads a list. A message may occur twice: all its fields are in the list.
    pub(super) fn parse(text: &str) -> Result<Self, FieldsError> {
        let mut list = Self::default();
        let mut current = None;
        for line in text.lines() {
            let words = line.trim();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            match line.starts_with(char::is_whitespace) {
                true => list.add_fields(current, words)?,
                false => current = Some(list.add_message(words)?),
            }
        }
        Ok(list)
    }

    /// Adds a message, unless it is there, and returns its index.
    fn add_message(&mut self, name: &str) -> Result<usize, FieldsError> {
        if let Some(&index) = self.by_name.get(name) {
            return Ok(index);
        }
        let descriptor =
            descriptor::message(name).ok_or_else(|| FieldsError::Message(name.to_owned()))?;
        let index = self.messages.len();
        self.by_name.insert(name.to_owned(), index);
        self.messages.push((descriptor, Vec::new()));
        Ok(index)
    }

    /// Adds the fields of a line to a message.
    fn add_fields(&mut self, message: Option<usize>, words: &str) -> Result<(), FieldsError> {
        let entry = message.and_then(|index| self.messages.get_mut(index));
        let (of, fields) = entry.ok_or_else(|| FieldsError::NoMessage(words.to_owned()))?;
        for name in words.split_whitespace() {
            let field = of.get_field_by_name(name);
            fields.push(field.ok_or_else(|| FieldsError::Field {
                message: of.full_name().to_owned(),
                field: name.to_owned(),
            })?);
        }
        Ok(())
    }
}
