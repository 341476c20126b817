//! The descriptor walk of writing: a message into a tree.

use base64::{Engine, engine::general_purpose::STANDARD};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value as Reflected};

use super::super::{
    read::{TYPE, VALUE, has_own_form},
    time::{print_duration, print_timestamp},
    tree::{Entry, Node, Value},
};
use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
    path::key_text,
};

/// Writes a message as a tree, in the form that its type has in JSON. `depth`
/// counts the messages around it, through every `Any`.
pub(super) fn write_message(message: &DynamicMessage, depth: usize) -> Node {
    let descriptor = message.descriptor();
    let well_known_name = descriptor.full_name().strip_prefix("google.protobuf.");
    let own_form = well_known_name.and_then(|name| write_well_known(name, message, depth));
    own_form.unwrap_or_else(|| write_fields(message, depth))
}

/// Writes a message in its general form: a mapping from field names to values.
/// Fields that are not set are left out.
fn write_fields(message: &DynamicMessage, depth: usize) -> Node {
    let entries = message
        .fields()
        .map(|(field, value)| Entry::new(field.name(), write_field(&field, value, depth)));
    Node::new(Value::Map(entries.collect()))
}

/// Adds the type of a message, at the key `@type`, before its fields. A message
/// with its own JSON form is at the key `value`.
pub(super) fn add_type(url: &str, node: Node) -> Node {
    let mut entries = vec![Entry::new(TYPE, Value::String(url.to_owned()))];
    match (node.value, descriptor::message(url)) {
        (Value::Map(fields), Some(descriptor)) if !has_own_form(&descriptor) => {
            entries.extend(fields)
        }
        (value, _) => entries.push(Entry::new(VALUE, value)),
    }
    Node::new(Value::Map(entries))
}

/// Converts the value of a field: a list, a map in the order of its keys, or a
/// single value.
fn write_field(field: &FieldDescriptor, value: &Reflected, depth: usize) -> Value {
    let kind = field.kind();
    match value {
        Reflected::List(list) => {
            let items = list
                .iter()
                .map(|item| Node::new(write_single(&kind, item, depth)));
            Value::List(items.collect())
        }
        Reflected::Map(map) => {
            let value_kind = match &kind {
                Kind::Message(entry) => entry.map_entry_value_field().kind(),
                _ => kind,
            };
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            let entries = pairs.into_iter().map(|(key, value)| {
                Entry::new(key_text(key), write_single(&value_kind, value, depth))
            });
            Value::Map(entries.collect())
        }
        value => write_single(&kind, value, depth),
    }
}

/// Converts a value that is neither a list nor a map. `kind` distinguishes an
/// enum from a number.
fn write_single(kind: &Kind, value: &Reflected, depth: usize) -> Value {
    match value {
        Reflected::Bool(value) => Value::Bool(*value),
        Reflected::I32(value) => Value::Number(value.to_string()),
        Reflected::U32(value) => Value::Number(value.to_string()),
        // A number of 64 bits is a string, since JavaScript cannot represent it.
        Reflected::I64(value) => Value::String(value.to_string()),
        Reflected::U64(value) => Value::String(value.to_string()),
        Reflected::F32(value) => write_float(f64::from(*value), value.to_string()),
        Reflected::F64(value) => write_float(*value, value.to_string()),
        Reflected::String(value) => Value::String(value.clone()),
        Reflected::Bytes(value) => Value::String(STANDARD.encode(value)),
        Reflected::EnumNumber(number) => write_enum(kind, *number),
        Reflected::Message(message) => write_message(message, depth + 1).value,
        // `write_field` has converted these, and protobuf has no lists of lists.
        Reflected::List(_) | Reflected::Map(_) => Value::Null,
    }
}

/// Converts a value of an enum to its name, or to its number if the enum does
/// not define it. The value of `NullValue` is null.
fn write_enum(kind: &Kind, number: i32) -> Value {
    let defined_value = match kind {
        Kind::Enum(descriptor) if descriptor.full_name() == "google.protobuf.NullValue" => {
            return Value::Null;
        }
        Kind::Enum(descriptor) => descriptor.get_value(number),
        _ => None,
    };
    match defined_value {
        Some(value) => Value::String(value.name().to_owned()),
        None => Value::Number(number.to_string()),
    }
}

/// Converts a floating-point number to its `text`; infinity and NaN to their
/// names in JSON. The caller makes the text, which differs between 32 and 64
/// bits.
fn write_float(value: f64, text: String) -> Value {
    if value.is_nan() {
        Value::String("NaN".into())
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        Value::String(format!("{sign}Infinity"))
    } else {
        Value::Number(text)
    }
}

/// Converts the number of a `google.protobuf.Value`. In YAML, a number other
/// than a whole one of 32 bits needs a tag.
fn write_any_number(number: f64) -> Value {
    let is_plain_integer =
        number == f64::from(number as i32) && !(number == 0.0 && number.is_sign_negative());
    match write_float(number, number.to_string()) {
        Value::Number(text) if !is_plain_integer => Value::Float(text),
        value => value,
    }
}

/// Converts a message of `google.protobuf` to its own JSON form, by its `name`
/// in that package. Returns `None` if it has no such form.
fn write_well_known(name: &str, message: &DynamicMessage, depth: usize) -> Option<Node> {
    let value = match name {
        "Any" => return Some(write_any(message, depth)),
        "Duration" => {
            let (seconds, nanos) = seconds_and_nanos(message)?;
            Value::String(print_duration(seconds, nanos))
        }
        "Timestamp" => {
            let (seconds, nanos) = seconds_and_nanos(message)?;
            Value::String(print_timestamp(seconds, nanos))
        }
        "FieldMask" => {
            let paths = message.get_field_by_name("paths")?;
            let paths = paths.as_list()?.iter().filter_map(Reflected::as_str);
            let camel_case_paths: Vec<_> = paths.map(to_camel_case).collect();
            Value::String(camel_case_paths.join(","))
        }

        "Struct" => write_only_field(message, "fields", depth)?,
        "ListValue" => write_only_field(message, "values", depth)?,
        "Value" => match message.fields().next() {
            Some((_, Reflected::F64(number))) => write_any_number(*number),
            Some((field, value)) => write_single(&field.kind(), value, depth),
            None => Value::Null,
        },
        // The other names with this end are wrappers of scalars.
        _ if name.ends_with("Value") => write_only_field(message, "value", depth)?,
        _ => return None,
    };
    Some(Node::new(value))
}

/// Writes a message as the value of its field `name`, set or not. `None` if it
/// has no such field.
fn write_only_field(message: &DynamicMessage, name: &str, depth: usize) -> Option<Value> {
    let field = message.descriptor().get_field_by_name(name)?;
    Some(write_field(&field, &message.get_field(&field), depth))
}

/// Converts an `Any`. An `Any` without a type is an empty mapping. A body is in
/// base64 if its type is unknown, if it cannot be decoded, or if it nests too
/// deep, since the sender decides on the depth.
fn write_any(message: &DynamicMessage, depth: usize) -> Node {
    let Some((url, body)) = any_parts(message).filter(|(url, _)| !url.is_empty()) else {
        return Node::new(Value::Map(Vec::new()));
    };

    let descriptor = descriptor::message(&url).filter(|_| depth < MAX_DEPTH);
    let inner_message =
        descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, body.clone()).ok());
    match inner_message {
        Some(inner) => add_type(&url, write_message(&inner, depth + 1)),
        None => {
            let type_url = Entry::new(TYPE, Value::String(url));
            let value = Entry::new(VALUE, Value::String(STANDARD.encode(&body)));
            Node::new(Value::Map(vec![type_url, value]))
        }
    }
}

/// Reads the fields of a `Duration` or a `Timestamp`; `None` for another
/// message.
fn seconds_and_nanos(message: &DynamicMessage) -> Option<(i64, i32)> {
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    Some((seconds, nanos))
}

/// Converts a path such as `display_name` to `displayName`.
fn to_camel_case(path: &str) -> String {
    let mut is_after_underscore = false;
    let mut camel = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '_' => is_after_underscore = true,
            character if is_after_underscore => {
                camel.extend(character.to_uppercase());
                is_after_underscore = false;
            }
            character => camel.push(character),
        }
    }
    camel
}
