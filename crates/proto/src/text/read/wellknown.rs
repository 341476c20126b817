//! The messages of `google.protobuf` that have a form of their own in JSON.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, MapKey, MessageDescriptor, Value};

use super::{
    super::{
        error::Problem,
        time::{parse_duration, parse_timestamp},
        tree::{Node, Value as Tree},
    },
    Walk,
};
use crate::path::Step;

/// Outer: whether the type has such a form. Inner: whether it could be read.
type Handled = Option<Option<DynamicMessage>>;

/// Whether a message inside an `Any` stands under the key `value`. Writers do
/// not agree on `Empty`: it is written without, and read either way.
pub(in super::super) fn has_own_form(of: &MessageDescriptor) -> bool {
    let Some(name) = of.full_name().strip_prefix("google.protobuf.") else {
        return false;
    };
    let wrapper = name.ends_with("Value") && name != "EnumValue";
    wrapper
        || matches!(
            name,
            "Any" | "Duration" | "Timestamp" | "FieldMask" | "Struct"
        )
}

impl Walk<'_> {
    pub(super) fn well_known(&mut self, of: &MessageDescriptor, node: &Node) -> Handled {
        let name = of.full_name().strip_prefix("google.protobuf.")?;
        Some(match name {
            "Any" => self.any(of, node),
            "Duration" => self.time(of, node, parse_duration, "a duration such as 0.25s or 30s"),
            "Timestamp" => {
                let example = "a timestamp such as 2024-01-31T12:00:00Z";
                self.time(of, node, parse_timestamp, example)
            }
            "FieldMask" => self.field_mask(of, node),
            "Struct" => self.structure(of, node),
            "ListValue" => self.list_value(of, node),
            "Value" => self.any_value(of, node),
            "BoolValue" | "StringValue" | "BytesValue" | "FloatValue" | "DoubleValue"
            | "Int32Value" | "UInt32Value" | "Int64Value" | "UInt64Value" => {
                let field = of.get_field(1)?;
                let value = self.scalar(&field.kind(), node);
                value.map(|value| with(of, "value", value))
            }
            _ => return None,
        })
    }

    fn time(
        &mut self,
        of: &MessageDescriptor,
        node: &Node,
        parse: fn(&str) -> Option<(i64, i32)>,
        expected: &str,
    ) -> Option<DynamicMessage> {
        let parsed = match &node.value {
            Tree::String(text) => parse(text),
            _ => None,
        };
        let Some((seconds, nanos)) = parsed else {
            return self.wrong_kind(node, expected);
        };
        let mut message = with(of, "seconds", Value::I64(seconds));
        message.set_field_by_name("nanos", Value::I32(nanos));
        Some(message)
    }

    fn field_mask(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let Tree::String(text) = &node.value else {
            return self.wrong_kind(node, "a field mask such as user.displayName,photo");
        };
        let paths = text.split(',').filter(|p| !p.is_empty()).map(|path| {
            let snake = path.chars().fold(String::new(), |mut snake, c| {
                if c.is_ascii_uppercase() {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
                snake
            });
            Value::String(snake)
        });
        Some(with(of, "paths", Value::List(paths.collect())))
    }

    fn structure(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let Tree::Map(entries) = &node.value else {
            return self.wrong_kind(node, "a mapping");
        };
        let value = of
            .parent_pool()
            .get_message_by_name("google.protobuf.Value")?;
        let mut fields = HashMap::with_capacity(entries.len());
        for entry in entries {
            let key = entry.key.clone();
            let read = self.at(Step::Key(key.clone()), |w| w.any_value(&value, &entry.node));
            fields.extend(read.map(|v| (MapKey::String(key), Value::Message(v))));
        }
        Some(with(of, "fields", Value::Map(fields)))
    }

    fn list_value(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let Tree::List(items) = &node.value else {
            return self.wrong_kind(node, "a list");
        };
        let value = of
            .parent_pool()
            .get_message_by_name("google.protobuf.Value")?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let read = self.at(Step::Index(index), |w| w.any_value(&value, item));
            values.extend(read.map(Value::Message));
        }
        Some(with(of, "values", Value::List(values)))
    }

    /// `google.protobuf.Value`: any value.
    fn any_value(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let pool = of.parent_pool();
        Some(match &node.value {
            Tree::Null => with(of, "null_value", Value::EnumNumber(0)),
            Tree::Bool(value) => with(of, "bool_value", Value::Bool(*value)),
            Tree::String(text) => with(of, "string_value", Value::String(text.clone())),
            Tree::Number(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => with(of, "number_value", Value::F64(number)),
                _ => {
                    let (value, kind) = (text.clone(), "number of JSON");
                    return self.wrong(node.at, Problem::OutOfRange { value, kind });
                }
            },
            Tree::List(_) => {
                let list = pool.get_message_by_name("google.protobuf.ListValue")?;
                with(
                    of,
                    "list_value",
                    Value::Message(self.list_value(&list, node)?),
                )
            }
            Tree::Map(_) => {
                let map = pool.get_message_by_name("google.protobuf.Struct")?;
                with(
                    of,
                    "struct_value",
                    Value::Message(self.structure(&map, node)?),
                )
            }
        })
    }
}

/// A message with one field set.
fn with(of: &MessageDescriptor, field: &str, value: Value) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    message.set_field_by_name(field, value);
    message
}
