//! Messages, fields, lists and maps.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::{
    super::{
        Unknown,
        budget::MESSAGE,
        error::Problem,
        near::nearest,
        slip::Slip,
        tree::{Entry, Node, Position, Value as Tree},
    },
    Walk,
};
use crate::path::Step;

/// The characters of a key that an error quotes.
const QUOTED: usize = 40;

/// Keys of a mapping that are not fields: the caller has read them.
pub(in super::super) type Ignore<'a> = &'a [&'a str];

impl Walk<'_> {
    /// Reads a message in its general form, a mapping from field names to
    /// values. Skips the keys in `ignore`. A field with a mistake is reported
    /// and left out. Returns `None` only if the value is not a mapping.
    pub(in super::super) fn read_fields(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
        ignore: Ignore<'_>,
    ) -> Option<DynamicMessage> {
        let Tree::Map(entries) = &node.value else {
            return self.report_no_mapping(descriptor, node);
        };

        self.charge(node.at, MESSAGE)?;
        let mut message = DynamicMessage::new(descriptor.clone());
        let mut oneofs = HashMap::new();
        // The previous field, if it has no value: an unknown key after it may have
        // lost its indentation.
        let mut empty_field = None;
        let is_field = |entry: &&Entry| !ignore.contains(&entry.key.as_str());
        for entry in entries.iter().filter(is_field) {
            let Some(field) = self.find_field(descriptor, entry, empty_field.as_ref()) else {
                continue;
            };
            empty_field = Some(field.clone()).filter(|_| entry.node.value == Tree::Null);

            if is_absent(&field, &entry.node) || !self.claim_oneof(&field, entry, &mut oneofs) {
                continue;
            }
            if message.has_field(&field) {
                let problem = Problem::DuplicateField(field.name().to_owned());
                self.report::<()>(entry.at, problem);
                continue;
            }

            let value = self.walk_at(Step::Field(field.clone()), |walk| {
                walk.read_field(&field, &entry.node)
            });
            if let Some(value) = value {
                message.set_field(&field, value);
            }
        }
        Some(message)
    }

    /// Reports a value that should be the mapping of a message: as a key without
    /// a space after its colon if it looks like one, else by its kind. Returns
    /// `None`.
    fn report_no_mapping<T>(&mut self, descriptor: &MessageDescriptor, node: &Node) -> Option<T> {
        let slip = match &node.value {
            Tree::String(text) => missing_space(descriptor, node.at, text),
            _ => None,
        };
        match slip {
            Some((position, slip)) => self.report(position, slip),
            None => self.report_wrong_kind(node, format!("a mapping ({})", descriptor.name())),
        }
    }

    /// Finds the field of a key, by its name in the `.proto` file or in JSON.
    /// Reports an unknown key: as one that belongs below the `empty_field` field
    /// before it, or with the nearest name.
    fn find_field(
        &mut self,
        message: &MessageDescriptor,
        entry: &Entry,
        empty_field: Option<&FieldDescriptor>,
    ) -> Option<FieldDescriptor> {
        let name = entry.key.as_str();
        let field = field_by_name(message, name);
        if field.is_none() && self.drops_unknown() {
            self.total += usize::from(self.options.unknown == Unknown::Refuse);
        } else if field.is_none() {
            match missing_space(message, entry.at, name) {
                Some((position, slip)) => drop(self.report::<()>(position, slip)),
                None => {
                    let problem = empty_field.and_then(|parent| not_indented(parent, name));
                    let problem = problem.unwrap_or_else(|| unknown_field(message, name));
                    self.report_unknown(entry.at, problem);
                }
            }
        }
        field
    }

    /// Records that a field is set in its oneof. Returns `false` and reports
    /// the field if another field of the oneof is set already. `oneofs` has the
    /// field that is set, by oneof.
    fn claim_oneof(
        &mut self,
        field: &FieldDescriptor,
        entry: &Entry,
        oneofs: &mut HashMap<String, String>,
    ) -> bool {
        let Some(oneof) = field.containing_oneof() else {
            return true;
        };

        let second_field = field.name().to_owned();
        let oneof = oneof.name().to_owned();
        match oneofs.insert(oneof.clone(), second_field.clone()) {
            Some(first_field) if first_field != second_field => {
                let problem = Problem::Oneof {
                    oneof,
                    first: first_field,
                    second: second_field,
                };
                self.report::<()>(entry.at, problem);
                false
            }
            _ => true,
        }
    }

    /// Reads the value of a field: a map, a list, or a single value.
    fn read_field(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        if field.is_map() {
            self.read_map(field, node)
        } else if field.is_list() {
            self.read_list(field, node)
        } else {
            self.read_value(&field.kind(), node)
        }
    }

    /// Reads a list. An item with a mistake is reported and left out. A single
    /// value counts as a list of one, as in Envoy.
    fn read_list(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        let kind = field.kind();
        let mut list = Vec::new();
        match &node.value {
            Tree::List(items) => self.read_items(&kind, items, &mut list),
            _ => list.push(self.read_value(&kind, node)?),
        }
        Some(Value::List(list))
    }

    /// Reads the items of a list into `list`. The items of an inner list are
    /// items too, unless a list can be a value of this kind. The recursion is
    /// bounded, since the parser limits the levels of a tree.
    fn read_items(&mut self, kind: &Kind, items: &[Node], list: &mut Vec<Value>) {
        for (index, item) in items.iter().enumerate() {
            self.walk_at(Step::Index(index), |walk| match &item.value {
                Tree::List(inner) if !takes_list(kind) => walk.read_items(kind, inner, list),
                _ => list.extend(walk.read_value(kind, item)),
            });
        }
    }

    /// Reads a map. An entry with a mistake is reported and left out. Returns
    /// `None` if the value is not a mapping, which is reported.
    fn read_map(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        let (Tree::Map(entries), Kind::Message(entry_type)) = (&node.value, field.kind()) else {
            return self.report_wrong_kind(node, "a mapping");
        };
        let key_kind = entry_type.map_entry_key_field().kind();
        let value_kind = entry_type.map_entry_value_field().kind();

        let mut map = HashMap::with_capacity(entries.len());
        for entry in entries {
            let pair = self.walk_at(Step::Key(entry.key.clone()), |walk| {
                let key = walk.read_map_key(&key_kind, entry)?;
                Some((key, walk.read_value(&value_kind, &entry.node)?))
            });
            map.extend(pair);
        }
        Some(Value::Map(map))
    }

    /// Reads the key of a map's entry, which is a string in the text, whatever
    /// its `kind`. A number is decimal, and a boolean has one spelling. Returns
    /// `None` if the key is not of the kind, which is reported.
    fn read_map_key(&mut self, kind: &Kind, entry: &Entry) -> Option<MapKey> {
        let key = entry.key.as_str();
        let value = match (kind, key, key.trim_ascii().parse::<i128>()) {
            (Kind::String, ..) => Tree::String(key.to_owned()),
            (Kind::Bool, "true", _) => Tree::Bool(true),
            (Kind::Bool, "false", _) => Tree::Bool(false),
            (Kind::Bool, ..) => Tree::Null,
            (_, _, Ok(number)) => Tree::Number(number.to_string()),
            (_, _, Err(_)) => Tree::Null,
        };

        let node = Node {
            at: entry.at,
            value,
        };
        match node.value {
            Tree::Null => {
                let value = key.chars().take(QUOTED).collect();
                let kind = "key of this map";
                self.report(entry.at, Problem::OutOfRange { value, kind })
            }
            _ => self.read_scalar(kind, &node)?.into_map_key(),
        }
    }

    /// Reads a single value, a message or a scalar. Null in a list or a map is
    /// the default value, except for a kind that has null as a value.
    pub(super) fn read_value(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        if node.value == Tree::Null && !takes_null(kind) {
            return Some(Value::default_value(kind));
        }
        match kind {
            Kind::Message(descriptor) => self.read_message(descriptor, node).map(Value::Message),
            _ => self.read_scalar(kind, node),
        }
    }

    /// Reads a message in its JSON form: one of its own, constraints as a text,
    /// or else a mapping from field names.
    pub(in super::super) fn read_message(
        &mut self,
        message: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let own_form = self.read_well_known(message, node);
        match own_form.or_else(|| self.read_constraints(message, node)) {
            Some(message) => message,
            None => self.read_fields(message, node, &[]),
        }
    }
}

/// Finds the field of a message by its name in the `.proto` file, or by its
/// name in JSON.
fn field_by_name(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let by_name = message.get_field_by_name(name);
    by_name.or_else(|| message.get_field_by_json_name(name))
}

/// Makes the mistake of a key that is not a field of a message, with the
/// nearest field in the same spelling, camel case or snake case.
fn unknown_field(message: &MessageDescriptor, name: &str) -> Problem {
    let is_camel_case = name.contains(|c: char| c.is_ascii_uppercase());
    let field_names = message.fields().map(|field| match is_camel_case {
        true => field.json_name().to_owned(),
        false => field.name().to_owned(),
    });
    Problem::UnknownField {
        name: name.to_owned(),
        message: message.name().to_owned(),
        near: nearest(name, field_names),
    }
}

/// Makes the mistake of a key that is a field of the message in `parent`, which
/// is the field above and has no value. Returns `None` if the key is not such a
/// field.
fn not_indented(parent: &FieldDescriptor, name: &str) -> Option<Problem> {
    let kind = parent.kind();
    field_by_name(kind.as_message()?, name)?;
    Some(Problem::NotIndented {
        name: name.to_owned(),
        above: parent.name().to_owned(),
    })
}

/// Makes the mistake of a text such as `name:backend`, which begins with a
/// field: YAML needs a space after the colon of a key. The mistake is at the
/// colon; `position` is that of the text. Returns `None` for other texts.
fn missing_space(
    message: &MessageDescriptor,
    position: Position,
    text: &str,
) -> Option<(Position, Problem)> {
    let (name, _) = text.split_once(':')?;
    field_by_name(message, name)?;
    let colon = Position {
        column: position.column + name.chars().count(),
        ..position
    };
    Some((colon, Problem::Slip(Slip::ColonSpace(name.to_owned()))))
}

/// Returns whether a field counts as not set: `null` says so, except where null
/// is a value.
fn is_absent(field: &FieldDescriptor, node: &Node) -> bool {
    node.value == Tree::Null && (field.is_list() || !takes_null(&field.kind()))
}

/// Returns whether null is a value of a kind.
fn takes_null(kind: &Kind) -> bool {
    matches!(kind, Kind::Message(descriptor) if descriptor.full_name() == "google.protobuf.Value")
}

/// Returns whether a list is a value of a kind.
fn takes_list(kind: &Kind) -> bool {
    let names = ["google.protobuf.Value", "google.protobuf.ListValue"];
    matches!(kind, Kind::Message(descriptor) if names.contains(&descriptor.full_name()))
}
