//! Secrets in a `TypedStruct`: a message that is written as a `Struct`, which
//! is JSON in protobuf, beside the name of its type.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use super::{ANY, Hider, REDACTED, sounds_secret, table, words};
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

/// Returns whether a message is a `TypedStruct`, under either of its names.
pub(super) fn is_typed_struct(name: &str) -> bool {
    ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"].contains(&name)
}

/// Hides the secrets in the value of a `TypedStruct`. Hides the whole value if
/// its type is unknown. `depth` is the number of enclosing messages.
pub(super) fn hide_secrets(hider: &mut Hider, message: &mut DynamicMessage, depth: usize) {
    // A mutable borrow of an absent field would set it.
    if !message.has_field_by_name(VALUE) {
        return;
    }
    let url = message.get_field_by_name(TYPE_URL);
    let url = url.as_deref().and_then(Value::as_str);
    let descriptor = url.and_then(descriptor::message);

    let Some(Value::Message(value)) = message.get_field_by_name_mut(VALUE) else {
        return;
    };
    match descriptor {
        Some(descriptor) => hide_in_struct(hider, &descriptor, value, depth + 1),
        None => hider.hide_all(value, depth + 1),
    }
}

/// Hides the secrets in a `Struct` that stands for a message of the type
/// `descriptor`. Hides the value of a key that is not a field of the type too.
/// `depth` is the number of enclosing messages; a `Struct` that nests too deep
/// is hidden as a whole.
fn hide_in_struct(
    hider: &mut Hider,
    descriptor: &MessageDescriptor,
    message: &mut DynamicMessage,
    depth: usize,
) {
    if depth >= MAX_DEPTH {
        return hider.hide_all(message, depth);
    }

    match descriptor.full_name() {
        ANY => match find_text(message, ANY_TYPE).and_then(|url| descriptor::message(&url)) {
            // The depth bounds an `Any` in an `Any`.
            Some(inner) => hide_in_struct(hider, &inner, message, depth + 1),
            None => hider.hide_all(message, depth),
        },
        name if is_typed_struct(name) => hide_in_typed_struct(hider, message, depth),
        // A well-known type has its own JSON form, which is not that of its
        // fields.
        name if name.starts_with("google.protobuf.") => hider.hide_secrets(message, depth + 1),
        _ => hide_in_fields(hider, descriptor, message, depth),
    }
}

/// Hides the secrets among the entries of a `Struct` that stand for the fields
/// of a message of the type `descriptor`.
fn hide_in_fields(
    hider: &mut Hider,
    descriptor: &MessageDescriptor,
    message: &mut DynamicMessage,
    depth: usize,
) {
    let rules = table::rules(descriptor.full_name());
    let pair = rules.and_then(|rules| rules.pair);
    let is_secret_pair = pair.is_some_and(|pair| {
        let name = find_text(message, pair.name);
        name.is_some_and(|name| sounds_secret(&name))
    });

    for_each_entry(message, |key, value| match find_field(descriptor, key) {
        Some(field) if rules.is_some_and(|rules| rules.is_secret(&field)) => {
            hider.has_key |= rules.is_some_and(|rules| rules.is_key(&field));
            hide(hider, value);
        }
        Some(field) if rules.is_some_and(|rules| rules.is_map(&field)) => {
            change_struct(value, |map| {
                for_each_entry(map, |key, value| match sounds_secret(key) {
                    true => hide(hider, value),
                    false => hider.hide_secrets(value, depth + 1),
                });
            });
        }
        Some(field) if pair.is_some_and(|pair| pair.values.contains(&field.name())) => {
            match is_secret_pair {
                true => hide(hider, value),
                false => hide_credential(hider, value),
            }
        }
        Some(field) => hide_in_field(hider, &field, value, depth),
        // The type of an `Any` is an entry beside its fields, and no secret.
        None if key == ANY_TYPE => {}
        None => hide(hider, value),
    });
}

/// Hides the secrets in a `TypedStruct` that is itself written as a `Struct`.
/// Hides its whole value if its type is unknown.
fn hide_in_typed_struct(hider: &mut Hider, message: &mut DynamicMessage, depth: usize) {
    let url = find_text(message, TYPE_URL).or_else(|| find_text(message, TYPE_URL_IN_JSON));
    let descriptor = url.and_then(|url| descriptor::message(&url));
    for_each_entry(message, |key, value| match (key, &descriptor) {
        (VALUE, Some(descriptor)) => {
            change_struct(value, |inner| {
                hide_in_struct(hider, descriptor, inner, depth + 1)
            });
        }
        (VALUE, None) => hide(hider, value),
        _ => {}
    });
}

/// Finds the field of a key, which is its name or its name in JSON.
fn find_field(message: &MessageDescriptor, key: &str) -> Option<FieldDescriptor> {
    let named_field = message.get_field_by_name(key);
    named_field.or_else(|| message.get_field_by_json_name(key))
}

/// Hides the secrets in the value of a field that is not secret itself: in a
/// text, in a message, in each item of a list, or in each value of a map.
fn hide_in_field(
    hider: &mut Hider,
    field: &FieldDescriptor,
    value: &mut DynamicMessage,
    depth: usize,
) {
    let Kind::Message(descriptor) = field.kind() else {
        if text_of(value).is_some_and(|text| words::is_secret_text(&text)) {
            hide(hider, value);
        }
        return;
    };
    let mut hide_in_value = |descriptor: &MessageDescriptor, value: &mut DynamicMessage| {
        change_struct(value, |message| {
            hide_in_struct(hider, descriptor, message, depth + 1);
        });
    };

    if field.is_map() {
        if let Kind::Message(descriptor) = descriptor.map_entry_value_field().kind() {
            change_struct(value, |map| {
                for_each_entry(map, |_, value| hide_in_value(&descriptor, value));
            });
        }
        return;
    }

    // The value is a message or a list, so one of these does nothing.
    hide_in_value(&descriptor, value);
    for_each_item(value, |item| hide_in_value(&descriptor, item));
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

/// Calls `change` with each item of the list in a `google.protobuf.Value`. Does
/// nothing if the value is not a list.
fn for_each_item(value: &mut DynamicMessage, change: impl FnMut(&mut DynamicMessage)) {
    if value.has_field_by_name(LIST)
        && let Some(Value::Message(list)) = value.get_field_by_name_mut(LIST)
        && let Some(Value::List(items)) = list.get_field_by_name_mut("values")
    {
        let items = items.iter_mut().filter_map(Value::as_message_mut);
        items.for_each(change);
    }
}

/// Calls `change` with the key and the value of each entry of a `Struct`.
fn for_each_entry(message: &mut DynamicMessage, mut change: impl FnMut(&str, &mut DynamicMessage)) {
    if let Some(Value::Map(map)) = message.get_field_by_name_mut("fields") {
        for (key, value) in map {
            if let (Some(key), Value::Message(value)) = (key.as_str(), value) {
                change(key, value);
            }
        }
    }
}

/// Returns the text at a key of a `Struct`. Returns `None` if there is no text
/// at this key.
fn find_text(message: &mut DynamicMessage, searched_key: &str) -> Option<String> {
    let mut text = None;
    for_each_entry(message, |key, value| {
        if key == searched_key {
            text = text_of(value);
        }
    });
    text
}

/// Returns the text in a `google.protobuf.Value`; `None` if it holds something
/// else.
fn text_of(value: &DynamicMessage) -> Option<String> {
    let text = value.get_field_by_name(TEXT);
    text.and_then(|text| Some(text.as_str()?.to_owned()))
}

/// Hides a `google.protobuf.Value` that is a credential by itself. Others stay.
pub(super) fn hide_credential(hider: &mut Hider, value: &mut DynamicMessage) {
    if text_of(value).is_some_and(|text| words::is_credential(&text)) {
        hide(hider, value);
    }
}

/// Makes a `google.protobuf.Value` the text that stands for a secret, and
/// collects the texts in it.
pub(super) fn hide(hider: &mut Hider, value: &mut DynamicMessage) {
    collect(hider, value, 0);
    value.set_field_by_name(TEXT, Value::String(REDACTED.to_owned()));
}

/// Collects all texts in a `google.protobuf.Value`, down to a depth of
/// [`MAX_DEPTH`]. Does nothing if the caller does not want them.
fn collect(hider: &mut Hider, value: &mut DynamicMessage, depth: usize) {
    if hider.values.is_none() || depth >= MAX_DEPTH {
        return;
    }
    if let Some(text) = text_of(value) {
        hider.collect(text.as_bytes());
    }
    for_each_item(value, |item| collect(hider, item, depth + 1));
    change_struct(value, |inner| {
        for_each_entry(inner, |_, value| collect(hider, value, depth + 1));
    });
}
