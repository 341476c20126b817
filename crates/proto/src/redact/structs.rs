//! Secrets in a `TypedStruct`: a message that is written as a `Struct`, which
//! is JSON in protobuf, beside the name of its type.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use super::{ANY, REDACTED, hide_all, table};
use crate::{canonical::MAX_DEPTH, descriptor};

const STRUCT: &str = "struct_value";
const LIST: &str = "list_value";
const TEXT: &str = "string_value";

/// The key of the type in an `Any`.
const ANY_TYPE: &str = "@type";
/// The fields of a `TypedStruct`.
const TYPE_URL: &str = "type_url";
const TYPE_URL_IN_JSON: &str = "typeUrl";
const VALUE: &str = "value";

/// Whether a message is a `TypedStruct`, under either of its names.
pub(super) fn is_typed_struct(name: &str) -> bool {
    ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"].contains(&name)
}

/// Hides the secrets in the value of a `TypedStruct`; all of the value, if its
/// type is not known. `depth` counts the messages around it.
pub(super) fn hide_secrets(message: &mut DynamicMessage, depth: usize) {
    let url = message.get_field_by_name(TYPE_URL);
    let url = url.as_deref().and_then(Value::as_str);
    let of = url.and_then(descriptor::message);

    if !message.has_field_by_name(VALUE) {
        return;
    }
    let Some(Value::Message(value)) = message.get_field_by_name_mut(VALUE) else {
        return;
    };
    match of {
        Some(of) => hide_in_struct(&of, value, depth + 1),
        None => hide_all(value, depth + 1),
    }
}

/// Hides the secrets in a `Struct` that stands for the message `of`. The value
/// of a key that is no field of it is hidden as well. `depth` counts the
/// messages around it; a `Struct` that is too deep is hidden as a whole.
fn hide_in_struct(of: &MessageDescriptor, message: &mut DynamicMessage, depth: usize) {
    if depth >= MAX_DEPTH {
        return hide_all(message, depth);
    }

    match of.full_name() {
        ANY => match text_at(message, ANY_TYPE).and_then(|url| descriptor::message(&url)) {
            // The depth bounds an `Any` in an `Any`.
            Some(inner) => hide_in_struct(&inner, message, depth + 1),
            None => hide_all(message, depth),
        },
        name if is_typed_struct(name) => hide_in_typed_struct(message, depth),
        // No message of this package has a secret field.
        name if name.starts_with("google.protobuf.") => {}
        _ => each_entry(message, |key, value| match find_field(of, key) {
            Some(field) if !table::is_secret(&field) => hide_in_field(&field, value, depth),
            // The type of an `Any` stands among its fields.
            None if key == ANY_TYPE => {}
            _ => hide(value),
        }),
    }
}

/// Hides the secrets in a `TypedStruct` that is itself written as a `Struct`;
/// all of its value, if its type is not known.
fn hide_in_typed_struct(message: &mut DynamicMessage, depth: usize) {
    let url = text_at(message, TYPE_URL).or_else(|| text_at(message, TYPE_URL_IN_JSON));
    let of = url.and_then(|url| descriptor::message(&url));
    each_entry(message, |key, value| match (key, &of) {
        (VALUE, Some(of)) => change_struct(value, |inner| hide_in_struct(of, inner, depth + 1)),
        (VALUE, None) => hide(value),
        _ => {}
    });
}

/// Finds the field of a key, which is its name or its name in JSON.
fn find_field(of: &MessageDescriptor, key: &str) -> Option<FieldDescriptor> {
    let by_name = of.get_field_by_name(key);
    by_name.or_else(|| of.get_field_by_json_name(key))
}

/// Hides the secrets in the value of a field that is not secret itself: in a
/// message, in each item of a list, or in each value of a map.
fn hide_in_field(field: &FieldDescriptor, value: &mut DynamicMessage, depth: usize) {
    let Kind::Message(of) = field.kind() else {
        return;
    };
    let hide_in_value = |of: &MessageDescriptor, value: &mut DynamicMessage| {
        change_struct(value, |message| hide_in_struct(of, message, depth + 1));
    };

    if field.is_map() {
        if let Kind::Message(of) = of.map_entry_value_field().kind() {
            change_struct(value, |map| {
                each_entry(map, |_, value| hide_in_value(&of, value))
            });
        }
        return;
    }

    // Of the two, one finds nothing: a value is a message or a list.
    hide_in_value(&of, value);
    each_item(value, |item| hide_in_value(&of, item));
}

/// Calls `change` with the `Struct` in a `google.protobuf.Value`; not at all,
/// if that holds something else.
fn change_struct(value: &mut DynamicMessage, change: impl FnOnce(&mut DynamicMessage)) {
    if value.has_field_by_name(STRUCT)
        && let Some(Value::Message(inner)) = value.get_field_by_name_mut(STRUCT)
    {
        change(inner);
    }
}

/// Calls `change` with each item of the list in a `google.protobuf.Value`; not
/// at all, if that holds something else.
fn each_item(value: &mut DynamicMessage, change: impl FnMut(&mut DynamicMessage)) {
    if value.has_field_by_name(LIST)
        && let Some(Value::Message(list)) = value.get_field_by_name_mut(LIST)
        && let Some(Value::List(items)) = list.get_field_by_name_mut("values")
    {
        let items = items.iter_mut().filter_map(Value::as_message_mut);
        items.for_each(change);
    }
}

/// Calls `change` with the key and the value of each entry of a `Struct`.
fn each_entry(message: &mut DynamicMessage, mut change: impl FnMut(&str, &mut DynamicMessage)) {
    if let Some(Value::Map(map)) = message.get_field_by_name_mut("fields") {
        for (key, value) in map {
            if let (Some(key), Value::Message(value)) = (key.as_str(), value) {
                change(key, value);
            }
        }
    }
}

/// Returns the text at a key of a `Struct`; `None` if it has no such key.
fn text_at(message: &mut DynamicMessage, wanted: &str) -> Option<String> {
    let mut found = None;
    each_entry(message, |key, value| {
        if key == wanted {
            let text = value.get_field_by_name(TEXT);
            found = text.and_then(|text| Some(text.as_str()?.to_owned()));
        }
    });
    found
}

/// Makes a `google.protobuf.Value` the text that stands for a secret.
fn hide(value: &mut DynamicMessage) {
    value.set_field_by_name(TEXT, Value::String(REDACTED.to_owned()));
}
