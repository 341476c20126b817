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
    /// Makes the table from a list of supported fields.
    pub(super) fn parse(list: &str) -> Result<Self, FieldsError> {
        let list = List::parse(list)?;
        let reachable = find_reachable(&list);
        let on_path = find_on_path(&list, &reachable);

        let mut messages = list.messages;
        messages.extend(reachable.into_values().filter_map(|message| {
            let is_on_path = on_path.contains(message.full_name());
            let fields = message.fields().collect();
            is_on_path.then_some((message, fields))
        }));

        let listed_count = list.by_name.len();
        let names = messages.iter().enumerate();
        let by_name = names.map(|(index, (message, _))| (message.full_name().to_owned(), index));
        let by_name = by_name.collect();

        let rows = messages.into_iter().enumerate();
        let messages = rows
            .map(|(index, (message, fields))| {
                Message::new(&message, &fields, index < listed_count, &by_name)
            })
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

/// Returns the messages that are not listed, but that a listed one contains at
/// some depth.
fn find_reachable(list: &List) -> HashMap<String, MessageDescriptor> {
    let mut reachable = HashMap::new();
    let fields = list.messages.iter().flat_map(|(_, fields)| fields);
    let mut pending: Vec<_> = fields.filter_map(value_message).collect();
    while let Some(descriptor) = pending.pop() {
        let name = descriptor.full_name();
        if name == ANY || list.by_name.contains_key(name) || reachable.contains_key(name) {
            continue;
        }
        pending.extend(
            descriptor
                .fields()
                .filter_map(|field| value_message(&field)),
        );
        reachable.insert(name.to_owned(), descriptor);
    }
    reachable
}

/// Returns the names of the reachable messages that contain a listed message or
/// an `Any` at some depth. Repeats until no name is added, since messages may
/// contain each other.
fn find_on_path(list: &List, reachable: &HashMap<String, MessageDescriptor>) -> HashSet<String> {
    let mut on_path: HashSet<String> = HashSet::new();
    loop {
        let old_count = on_path.len();
        for (name, message) in reachable {
            let contains_listed = message
                .fields()
                .filter_map(|field| value_message(&field))
                .any(|message| {
                    let inner = message.full_name();
                    inner == ANY || list.by_name.contains_key(inner) || on_path.contains(inner)
                });
            if contains_listed {
                on_path.insert(name.clone());
            }
        }
        if on_path.len() == old_count {
            return on_path;
        }
    }
}

/// Returns the type of the message that a field, or the values of its map,
/// hold. Returns `None` for a scalar.
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
    /// Makes the row of a message from its supported fields. `by_name` has the
    /// indexes of all rows.
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
    /// Makes the entry of a field. `by_name` has the indexes of all rows.
    fn new(field: &FieldDescriptor, by_name: &HashMap<String, usize>) -> Self {
        let inner = match value_message(field) {
            Some(message) if message.full_name() == ANY => Inner::Any,
            Some(message) => {
                let index = by_name.get(message.full_name());
                index.map_or(Inner::All, |&index| Inner::Message(index))
            }
            None => Inner::All,
        };

        let shape = if field.is_map() {
            Shape::Map
        } else if field.is_list() {
            Shape::List
        } else {
            Shape::One
        };
        Self {
            number: field.number(),
            name: field.name().to_owned(),
            shape,
            inner,
        }
    }
}
