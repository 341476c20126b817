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
    /// A message in its general form: a mapping from field names.
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
            let Some(field) = self.find(of, entry) else {
                continue;
            };
            if null_is_absent(&field, &entry.node) || !self.claim(&field, entry, &mut oneofs) {
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

    /// A field under either of its names.
    fn find(&mut self, of: &MessageDescriptor, entry: &Entry) -> Option<FieldDescriptor> {
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

    /// Whether the field is the first of its oneof.
    fn claim(
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

    fn field(&mut self, field: &FieldDescriptor, node: &Node) -> Option<Value> {
        if field.is_map() {
            self.map(field, node)
        } else if field.is_list() {
            self.list(field, node)
        } else {
            self.value(&field.kind(), node)
        }
    }

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

    fn map_key(&mut self, kind: &Kind, entry: &Entry) -> Option<MapKey> {
        // A key is always text; a boolean in it is spelled as one.
        let value = match (kind, entry.key.as_str()) {
            (Kind::Bool, "true") => Tree::Bool(true),
            (Kind::Bool, "false") => Tree::Bool(false),
            (_, key) => Tree::String(key.to_owned()),
        };
        let at = entry.at;
        self.scalar(kind, &Node { at, value })?.into_map_key()
    }

    /// One value: a message or a scalar.
    pub(super) fn value(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Message(of) => self.message(of, node).map(Value::Message),
            _ => self.scalar(kind, node),
        }
    }

    /// A message in the form that its type has in JSON.
    pub(in super::super) fn message(
        &mut self,
        of: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        match self
            .well_known(of, node)
            .or_else(|| self.readable(of, node))
        {
            Some(done) => done,
            None => self.fields(of, node, &[]),
        }
    }
}

/// `null` leaves a field out, except where null is a value.
fn null_is_absent(field: &FieldDescriptor, node: &Node) -> bool {
    let takes_null = match field.kind() {
        Kind::Message(of) => of.full_name() == "google.protobuf.Value" && !field.is_list(),
        Kind::Enum(of) => of.full_name() == "google.protobuf.NullValue",
        _ => false,
    };
    node.value == Tree::Null && !takes_null
}
