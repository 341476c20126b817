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
    /// Parses a list. A message may occur twice; its fields are joined.
    pub(super) fn parse(text: &str) -> Result<Self, FieldsError> {
        let mut list = Self::default();
        let mut current_message = None;
        for line in text.lines() {
            let content = line.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            match line.starts_with(char::is_whitespace) {
                true => list.add_fields(current_message, content)?,
                false => current_message = Some(list.add_message(content)?),
            }
        }
        Ok(list)
    }

    /// Adds a message, if it is new, and returns its index.
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
    ///
    /// # Errors
    /// The line is not below a message, or the message has no such field.
    fn add_fields(&mut self, message: Option<usize>, line: &str) -> Result<(), FieldsError> {
        let entry = message.and_then(|index| self.messages.get_mut(index));
        let (descriptor, fields) = entry.ok_or_else(|| FieldsError::NoMessage(line.to_owned()))?;
        for name in line.split_whitespace() {
            let field = descriptor.get_field_by_name(name);
            fields.push(field.ok_or_else(|| FieldsError::Field {
                message: descriptor.full_name().to_owned(),
                field: name.to_owned(),
            })?);
        }
        Ok(())
    }
}
