//! The table of supported fields, made of a text and the descriptors.
//!
//! A message that is not listed is supported as a whole, but one that is listed
//! may be inside it, or an `Any` with one. Such a message is in the table too,
//! with the fields that lead on.

use std::collections::{HashMap, HashSet};

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::list::{FieldsError, List};

const ANY: &str = "google.protobuf.Any";

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    by_name: HashMap<String, usize>,
}

/// A message of the table.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: String,
    /// Whether fields that are not here are not supported.
    pub(super) is_listed: bool,
    /// The fields, by number.
    pub(super) fields: Vec<Field>,
}

/// A supported field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) inner: Inner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Map,
}

/// What there is to search in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inner {
    /// Nothing: it is supported as a whole.
    All,
    /// The message at an index of the table.
    Message(usize),
    /// The message of an `Any`.
    Any,
}

impl Table {
    /// Makes the table of a list.
    pub(super) fn parse(list: &str) -> Result<Self, FieldsError> {
        let list = List::parse(list)?;
        let reached = reach(&list);
        let leading = find_leading(&list, &reached);

        let mut messages = list.messages;
        messages.extend(reached.into_values().filter_map(|of| {
            let is_leading = leading.contains(of.full_name());
            let fields = of.fields().collect();
            is_leading.then_some((of, fields))
        }));
        let listed = list.by_name.len();
        let names = messages.iter().enumerate();
        let by_name = names.map(|(index, (of, _))| (of.full_name().to_owned(), index));
        let by_name = by_name.collect();
        let rows = messages.into_iter().enumerate();
        let messages = rows
            .map(|(index, (of, fields))| Message::new(&of, &fields, index < listed, &by_name))
            .collect();
        Ok(Self { messages, by_name })
    }

    /// Finds a message by its full name.
    pub(super) fn find(&self, message: &str) -> Option<&Message> {
        self.get(*self.by_name.get(message)?)
    }

    /// Returns the message at an index.
    pub(super) fn get(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }
}

/// Returns the messages that are not listed and that a listed one may hold, at
/// any depth.
fn reach(list: &List) -> HashMap<String, MessageDescriptor> {
    let mut reached = HashMap::new();
    let fields = list.messages.iter().flat_map(|(_, fields)| fields);
    let mut left: Vec<_> = fields.filter_map(value_message).collect();
    while let Some(descriptor) = left.pop() {
        let name = descriptor.full_name();
        if name == ANY || list.by_name.contains_key(name) || reached.contains_key(name) {
            continue;
        }
        left.extend(
            descriptor
                .fields()
                .filter_map(|field| value_message(&field)),
        );
        reached.insert(name.to_owned(), descriptor);
    }
    reached
}

/// Returns the names of those messages that may hold a listed one or an `Any`.
fn find_leading(list: &List, reached: &HashMap<String, MessageDescriptor>) -> HashSet<String> {
    let mut leading: HashSet<String> = HashSet::new();
    loop {
        let before = leading.len();
        for (name, of) in reached {
            let leads = of
                .fields()
                .filter_map(|field| value_message(&field))
                .any(|of| {
                    let inner = of.full_name();
                    inner == ANY || list.by_name.contains_key(inner) || leading.contains(inner)
                });
            if leads {
                leading.insert(name.clone());
            }
        }
        if leading.len() == before {
            return leading;
        }
    }
}

/// Returns the message that a field holds, or the values of a map.
fn value_message(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            entry.map_entry_value_field().kind().as_message().cloned()
        }
        Kind::Message(message) => Some(message),
        _ => None,
    }
}

impl Message {
    fn new(
        message: &MessageDescriptor,
        fields: &[FieldDescriptor],
        is_listed: bool,
        by_name: &HashMap<String, usize>,
    ) -> Self {
        let fields = fields.iter().map(|field| Field::new(field, by_name));
        let mut fields: Vec<_> = fields.collect();
        fields.sort_by_key(|field| field.number);
        fields.dedup_by_key(|field| field.number);
        Self {
            name: message.full_name().to_owned(),
            is_listed,
            fields,
        }
    }

    /// Finds a field by its number: its index and itself.
    pub(super) fn field(&self, number: u32) -> Option<(usize, &Field)> {
        let index = self
            .fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        Some((index, self.fields.get(index)?))
    }
}

impl Field {
    fn new(field: &FieldDescriptor, by_name: &HashMap<String, usize>) -> Self {
        let inner = match value_message(field) {
            Some(message) if message.full_name() == ANY => Inner::Any,
            Some(message) => {
                let index = by_name.get(message.full_name());
                index.map_or(Inner::All, |&index| Inner::Message(index))
            }
            None => Inner::All,
        };
        let shape = match () {
            () if field.is_map() => Shape::Map,
            () if field.is_list() => Shape::List,
            () => Shape::One,
        };
        Self {
            number: field.number(),
            name: field.name().to_owned(),
            shape,
            inner,
        }
    }
}
