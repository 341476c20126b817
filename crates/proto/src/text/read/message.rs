//! Messages, fields, lists and maps.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::{
    super::{
        error::Problem,
        near::nearest,
        tree::{Entry, Node, Value as Tree},
    },
    Walk,
};
use crate::path::Step;

/// Keys of a mapping that are not fields: the caller has read them.
pub(in super::super) type Ignore<'a> = &'a [&'a str];

impl Walk<'_> {
    /// Reads a message in its general form: a mapping from field names to
    /// values. A field with a mistake is reported and left out.
    pub(in super::super) fn fields(
        &mut self,
        of: &MessageDescriptor,
        node: &Node,
        ignore: Ignore<'_>,
    ) -> Option<DynamicMessage> {
        let Tree::Map(entries) = &node.value else {
            return self.wrong_kind(node, format!("a mapping ({})", of.name()));
        };
        let mut message = DynamicMessage::new(of.clone());
        let mut oneofs = HashMap::new();
        for entry in entries.iter().filter(|e| !ignore.contains(&e.key.as_str())) {
            let Some(field) = self.find_field(of, entry) else {
                continue;
            };
            if is_absent(&field, &entry.node) || !self.claim_oneof(&field, entry, &mut oneofs) {
                continue;
            }
            if message.has_field(&field) {
                let problem = Problem::DuplicateField(field.name().to_owned());
                self.wrong::<()>(entry.at, problem);
                continue;
            }
            let value = self.at(Step::Field(field.clone()), |w| w.field(&field, &entry.node));
            if let Some(value) = value {
                message.set_field(&field, value);
            }
        }
        Some(message)
    }

    /// Finds the field of a key: its name in the `.proto` file, or its name in
    /// JSON. Reports a key that is neither.
    fn find_field(&mut self, of: &MessageDescriptor, entry: &Entry) -> Option<FieldDescriptor> {
        let name = entry.key.as_str();
        let found = of
            .get_field_by_name(name)
            .or_else(|| of.get_field_by_json_name(name));
        if found.is_none() {
            let problem = Problem::UnknownField {
                name: name.to_owned(),
                message: of.name().to_owned(),
                near: nearest(name, of.fields().map(|f| f.name().to_owned())),
            };
            self.unknown(entry.at, problem);
        }
        found
    }

    /// Records that a field is set in its oneof, and reports a second one.
    /// `oneofs` has the field that is set, by oneof. Returns whether the field
    /// may be set.
    fn claim_oneof(
        &mut self,
        field: &FieldDescriptor,
        entry: &Entry,
        oneofs: &mut HashMap<String, String>,
    ) -> bool {
        let Some(oneof) = field.containing_oneof() else {
            return true;
        };
        let second = field.name().to_owned();
        let oneof = oneof.name().to_owned();
        match oneofs.insert(oneof.clone(), second.clone()) {
            Some(first) if first != second => {
                let problem = Problem::Oneof {
                    oneof,
                    first,
                    second,
                };
                self.wrong::<()>(entry.at, problem);
                false
            }
            _ => true,
        }
    }

    /// Reads the value of a field: a map, a list, or a single value.
    fn field(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        if field.is_map() {
            self.map(field, node)
        } else if field.is_list() {
            self.list(field, node)
        } else {
            self.value(&field.kind(), node)
        }
    }

    /// Reads a list; an item with a mistake is left out.
    fn list(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        let Tree::List(items) = &node.value else {
            return self.wrong_kind(node, "a list (begin each item with `- `)");
        };
        let kind = field.kind();
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            list.extend(self.at(Step::Index(index), |w| w.value(&kind, item)));
        }
        Some(Value::List(list))
    }

    /// Reads a map; an entry with a mistake is left out.
    fn map(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        let (Tree::Map(entries), Kind::Message(pair)) = (&node.value, field.kind()) else {
            return self.wrong_kind(node, "a mapping");
        };
        let key_kind = pair.map_entry_key_field().kind();
        let value_kind = pair.map_entry_value_field().kind();
        let mut map = HashMap::with_capacity(entries.len());
        for entry in entries {
            let pair = self.at(Step::Key(entry.key.clone()), |w| {
                let key = w.map_key(&key_kind, entry)?;
                Some((key, w.value(&value_kind, &entry.node)?))
            });
            map.extend(pair);
        }
        Some(Value::Map(map))
    }

    /// Reads the key of a map. In the text it is always a string, whatever its
    /// kind is in the message.
    fn map_key(&mut self, kind: &Kind, entry: &Entry) -> Option<MapKey> {
        let value = match (kind, entry.key.as_str()) {
            (Kind::Bool, "true") => Tree::Bool(true),
            (Kind::Bool, "false") => Tree::Bool(false),
            (_, key) => Tree::String(key.to_owned()),
        };
        let at = entry.at;
        self.scalar(kind, &Node { at, value })?.into_map_key()
    }

    /// Reads a single value: a message or a scalar.
    pub(super) fn value(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Message(of) => self.message(of, node).map(Value::Message),
            _ => self.scalar(kind, node),
        }
    }

    /// Reads a message in the form that its type has in JSON: its own form, a
    /// text that stands for it, or a mapping from field names.
    pub(in super::super) fn message(
        &mut self,
        of: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let own_form = self.well_known(of, node);
        match own_form.or_else(|| self.readable(of, node)) {
            Some(read) => read,
            None => self.fields(of, node, &[]),
        }
    }
}

/// Whether a field is left out: `null` does that, except where null is a value.
fn is_absent(field: &FieldDescriptor, node: &Node) -> bool {
    let takes_null = match field.kind() {
        Kind::Message(of) => of.full_name() == "google.protobuf.Value" && !field.is_list(),
        Kind::Enum(of) => of.full_name() == "google.protobuf.NullValue",
        _ => false,
    };
    node.value == Tree::Null && !takes_null
}
