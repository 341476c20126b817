//! Secrets in a `TypedStruct`: a message that is written as a `Struct`, which
//! is JSON in protobuf, beside the name of its type.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use super::{ANY, REDACTED, hide_all, table};
use crate::{canonical::MAX_DEPTH, descriptor};

const STRUCT: &str = "struct_value";
const LIST: &str = "list_value";
const TEXT: &str = "string_value";

/// Hides the secrets in a `TypedStruct`.
pub(super) fn typed(message: &mut DynamicMessage, depth: usize) {
    let url = message.get_field_by_number(1);
    let of = url
        .as_deref()
        .and_then(Value::as_str)
        .and_then(descriptor::message);
    if !message.has_field_by_number(2) {
        return;
    }
    let Some(Value::Message(value)) = message.get_field_by_number_mut(2) else {
        return;
    };
    match of {
        Some(of) => structure(&of, value, depth + 1),
        None => hide_all(value, depth + 1),
    }
}

/// Hides the secrets in a `Struct` that stands for a message.
fn structure(of: &MessageDescriptor, message: &mut DynamicMessage, depth: usize) {
    if depth >= MAX_DEPTH {
        return hide_all(message, depth);
    }
    match of.full_name() {
        ANY => match text_at(message, "@type").and_then(|url| descriptor::message(&url)) {
            // The depth bounds an `Any` in an `Any`.
            Some(inner) => structure(&inner, message, depth + 1),
            None => hide_all(message, depth),
        },
        "xds.type.v3.TypedStruct" | "udpa.type.v1.TypedStruct" => nested(message, depth),
        name if name.starts_with("google.protobuf.") => {}
        _ => each(message, |key, value| match field(of, key) {
            Some(field) if !table::is_secret(&field) => field_value(&field, value, depth),
            // The type of an `Any` stands among its fields.
            None if key == "@type" => {}
            _ => hide(value),
        }),
    }
}

/// A `TypedStruct` that is itself written as a `Struct`.
fn nested(message: &mut DynamicMessage, depth: usize) {
    let url = text_at(message, "type_url").or_else(|| text_at(message, "typeUrl"));
    let of = url.and_then(|url| descriptor::message(&url));
    each(message, |key, value| match (key, &of) {
        ("value", Some(of)) => in_struct(value, |inner| structure(of, inner, depth + 1)),
        ("value", None) => hide(value),
        _ => {}
    });
}

fn field(of: &MessageDescriptor, key: &str) -> Option<FieldDescriptor> {
    let by_name = of.get_field_by_name(key);
    by_name.or_else(|| of.get_field_by_json_name(key))
}

fn field_value(field: &FieldDescriptor, value: &mut DynamicMessage, depth: usize) {
    let Kind::Message(of) = field.kind() else {
        return;
    };
    if field.is_map() {
        if let Kind::Message(of) = of.map_entry_value_field().kind() {
            in_struct(value, |map| {
                each(map, |_, value| {
                    in_struct(value, |m| structure(&of, m, depth + 1))
                });
            });
        }
        return;
    }
    in_struct(value, |message| structure(&of, message, depth + 1));
    if !value.has_field_by_name(LIST) {
        return;
    }
    let Some(Value::Message(list)) = value.get_field_by_name_mut(LIST) else {
        return;
    };
    if let Some(Value::List(items)) = list.get_field_by_name_mut("values") {
        for item in items.iter_mut().filter_map(Value::as_message_mut) {
            in_struct(item, |message| structure(&of, message, depth + 1));
        }
    }
}

/// The `Struct` in a `google.protobuf.Value`, if it holds one.
fn in_struct(value: &mut DynamicMessage, change: impl FnOnce(&mut DynamicMessage)) {
    if value.has_field_by_name(STRUCT)
        && let Some(Value::Message(inner)) = value.get_field_by_name_mut(STRUCT)
    {
        change(inner);
    }
}

/// The entries of a `Struct`.
fn each(message: &mut DynamicMessage, mut change: impl FnMut(&str, &mut DynamicMessage)) {
    if let Some(Value::Map(map)) = message.get_field_by_name_mut("fields") {
        for (key, value) in map {
            if let (Some(key), Value::Message(value)) = (key.as_str(), value) {
                change(key, value);
            }
        }
    }
}

fn text_at(message: &mut DynamicMessage, at: &str) -> Option<String> {
    let mut found = None;
    each(message, |key, value| {
        if key == at {
            found = value
                .get_field_by_name(TEXT)
                .and_then(|text| Some(text.as_str()?.to_owned()));
        }
    });
    found
}

fn hide(value: &mut DynamicMessage) {
    value.set_field_by_name(TEXT, Value::String(REDACTED.to_owned()));
}
