//! The messages of `google.protobuf` that have a form of their own in JSON.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, MapKey, MessageDescriptor, Value};

use super::{
    super::{
        budget::{MESSAGE, SCALAR},
        error::Problem,
        time::{parse_duration, parse_timestamp},
        tree::{Node, Value as Tree},
    },
    Walk,
};
use crate::path::Step;

/// The message for a value of any kind.
const VALUE: &str = "google.protobuf.Value";

/// Outer: whether the type has such a form. Inner: whether it could be read.
type Handled = Option<Option<DynamicMessage>>;

/// Returns whether a message has its own JSON form, so that in an `Any` it is
/// at the key `value`. `Empty` counts as having none: this crate writes it
/// without the key, and reads it with and without.
pub(in super::super) fn has_own_form(message: &MessageDescriptor) -> bool {
    let Some(name) = message.full_name().strip_prefix("google.protobuf.") else {
        return false;
    };
    let is_wrapper = name.ends_with("Value") && name != "EnumValue";
    is_wrapper
        || matches!(
            name,
            "Any" | "Duration" | "Timestamp" | "FieldMask" | "Struct"
        )
}

impl Walk<'_> {
    /// Reads a message of `google.protobuf` in its own JSON form. Returns
    /// `None` if its type has no such form, or the value is a mapping from its
    /// fields. Returns `Some(None)` if a mistake was reported.
    pub(super) fn read_well_known(&mut self, message: &MessageDescriptor, node: &Node) -> Handled {
        let name = message.full_name().strip_prefix("google.protobuf.")?;
        match &node.value {
            // Envoy also accepts a mapping from the fields, such as `{seconds: 3}`.
            Tree::Map(_) if !matches!(name, "Any" | "Struct" | "Value") => return None,
            Tree::Null
                if !matches!(name, "Any" | "Value" | "FieldMask") && has_own_form(message) =>
            {
                return Some(Some(DynamicMessage::new(message.clone())));
            }
            _ => {}
        }

        if self.charge(node.at, MESSAGE).is_none() {
            return Some(None);
        }

        Some(match name {
            "Any" => self.read_any(message, node),
            "Duration" => {
                let expected = "a duration such as 0.25s or 30s";
                self.read_duration_or_timestamp(message, node, parse_duration, expected)
            }
            "Timestamp" => {
                let expected = "a timestamp such as 2024-01-31T12:00:00Z";
                self.read_duration_or_timestamp(message, node, parse_timestamp, expected)
            }
            "FieldMask" => self.read_field_mask(message, node),
            "Struct" => self.read_struct(message, node),
            "ListValue" => self.read_list_value(message, node),
            "Value" => self.read_any_value(message, node),
            "BoolValue" | "StringValue" | "BytesValue" | "FloatValue" | "DoubleValue"
            | "Int32Value" | "UInt32Value" | "Int64Value" | "UInt64Value" => {
                let field = message.get_field(1)?;
                let value = self.read_scalar(&field.kind(), node);
                value.map(|value| message_with(message, "value", value))
            }
            _ => return None,
        })
    }

    /// Reads a text as a `Duration` or a `Timestamp`, which have the same
    /// fields. `parse` returns seconds and nanoseconds, or `None` for a text of
    /// another form. Reports such a text with the `expected` form, and returns
    /// `None`.
    fn read_duration_or_timestamp(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
        parse: fn(&str) -> Option<(i64, i32)>,
        expected: &str,
    ) -> Option<DynamicMessage> {
        let parsed = match &node.value {
            Tree::String(text) => parse(text),
            _ => None,
        };
        let Some((seconds, nanos)) = parsed else {
            return self.report_wrong_kind(node, expected);
        };
        let mut message = message_with(descriptor, "seconds", Value::I64(seconds));
        message.set_field_by_name("nanos", Value::I32(nanos));
        Some(message)
    }

    /// Reads a `FieldMask`: paths with commas between them. The paths are in
    /// camel case in JSON, but in snake case in the message.
    fn read_field_mask(
        &mut self,
        message: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let Tree::String(text) = &node.value else {
            return self.report_wrong_kind(node, "a field mask such as user.displayName,photo");
        };
        let comma_count = text.bytes().filter(|&byte| byte == b',').count() as u64;
        self.charge(node.at, comma_count * SCALAR)?;
        let paths = text.split(',').filter(|_| !text.is_empty());
        let paths = paths.map(|path| Value::String(to_snake_case(path)));
        Some(message_with(message, "paths", Value::List(paths.collect())))
    }

    /// Reads a `Struct`, a mapping with values of any kind. An entry with a
    /// mistake is reported and left out.
    fn read_struct(&mut self, message: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let Tree::Map(entries) = &node.value else {
            return self.report_wrong_kind(node, "a mapping");
        };
        let value_type = message.parent_pool().get_message_by_name(VALUE)?;

        self.charge(node.at, MESSAGE)?;
        let mut fields = HashMap::with_capacity(entries.len());
        for entry in entries {
            let key = entry.key.clone();
            let value = self.walk_at(Step::Key(key.clone()), |walk| {
                walk.read_any_value(&value_type, &entry.node)
            });
            fields.extend(value.map(|value| (MapKey::String(key), Value::Message(value))));
        }
        Some(message_with(message, "fields", Value::Map(fields)))
    }

    /// Reads a `ListValue`, a list of values of any kind. An item with a
    /// mistake is reported and left out.
    fn read_list_value(
        &mut self,
        message: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let Tree::List(items) = &node.value else {
            return self.report_wrong_kind(node, "a list");
        };
        let value_type = message.parent_pool().get_message_by_name(VALUE)?;

        self.charge(node.at, MESSAGE)?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = self.walk_at(Step::Index(index), |walk| {
                walk.read_any_value(&value_type, item)
            });
            values.extend(value.map(Value::Message));
        }
        Some(message_with(message, "values", Value::List(values)))
    }

    /// Reads a `google.protobuf.Value`, which has a field for each kind of
    /// value. Infinity and NaN are reported, since JSON does not have them.
    fn read_any_value(
        &mut self,
        message: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        self.charge(node.at, MESSAGE)?;
        let pool = message.parent_pool();

        Some(match &node.value {
            Tree::Null => message_with(message, "null_value", Value::EnumNumber(0)),
            Tree::Bool(value) => message_with(message, "bool_value", Value::Bool(*value)),
            Tree::String(text) => {
                message_with(message, "string_value", Value::String(text.clone()))
            }
            Tree::Number(text) | Tree::Float(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    message_with(message, "number_value", Value::F64(number))
                }
                _ => {
                    let (value, kind) = (text.clone(), "number of JSON");
                    return self.report(node.at, Problem::OutOfRange { value, kind });
                }
            },

            Tree::List(_) => {
                let list = pool.get_message_by_name("google.protobuf.ListValue")?;
                let inner = self.read_list_value(&list, node)?;
                message_with(message, "list_value", Value::Message(inner))
            }
            Tree::Map(_) => {
                let map = pool.get_message_by_name("google.protobuf.Struct")?;
                let inner = self.read_struct(&map, node)?;
                message_with(message, "struct_value", Value::Message(inner))
            }
        })
    }
}

/// Converts a path such as `displayName` to `display_name`.
fn to_snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len());
    for character in camel.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Makes a message in which one field is set.
fn message_with(descriptor: &MessageDescriptor, field: &str, value: Value) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    message.set_field_by_name(field, value);
    message
}
