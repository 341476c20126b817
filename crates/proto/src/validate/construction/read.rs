//! Fields of a message as plain values, and reports at a part of it.

use std::borrow::Cow;

use prost::encoding as wire;
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use super::rejected::Rejected;
use crate::path::Step;
use crate::validate::{broken::Broken, walk::Walk};
use crate::vhosts;

/// A step from a message to a part of it.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Field(&'static str),
    Index(usize),
}

/// Reports a mistake at a part of the message where the walk is. The path ends
/// before a field that does not exist.
pub(super) fn report_at(
    walk: &mut Walk,
    message: &DynamicMessage,
    parts: &[Part],
    rejected: Rejected,
) {
    let mut descriptor = Some(message.descriptor());
    let mut steps = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Index(index) => steps.push(Step::Index(*index)),
            Part::Field(name) => {
                let parent = descriptor.as_ref();
                let Some(field) = parent.and_then(|parent| parent.get_field_by_name(name)) else {
                    break;
                };
                descriptor = field.kind().as_message().cloned();
                steps.push(Step::Field(field));
            }
        }
    }
    walk.report_along(steps, Broken::Rejected(rejected));
}

/// Returns the value of a field. Returns `None` if the field is not set.
fn value<'a>(message: &'a DynamicMessage, field: &str) -> Option<&'a Value> {
    if !message.has_field_by_name(field) {
        return None;
    }
    match message.get_field_by_name(field)? {
        Cow::Borrowed(value) => Some(value),
        Cow::Owned(_) => None,
    }
}

/// Returns whether a field is set.
pub(super) fn has(message: &DynamicMessage, field: &str) -> bool {
    message.has_field_by_name(field)
}

/// Returns the message in a field that is set.
pub(super) fn inner<'a>(message: &'a DynamicMessage, field: &str) -> Option<&'a DynamicMessage> {
    value(message, field)?.as_message()
}

/// Returns the message that these fields lead to, each inside the one before.
/// Returns `None` if a field is not set.
pub(super) fn inner_along<'a>(
    message: &'a DynamicMessage,
    fields: &[&str],
) -> Option<&'a DynamicMessage> {
    let mut message = message;
    for field in fields {
        message = inner(message, field)?;
    }
    Some(message)
}

/// Returns the text in a field, empty if it is not set.
pub(super) fn text<'a>(message: &'a DynamicMessage, field: &str) -> &'a str {
    let value = value(message, field);
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether a boolean field is true.
pub(super) fn is_true(message: &DynamicMessage, field: &str) -> bool {
    value(message, field).and_then(Value::as_bool) == Some(true)
}

/// Returns the number of an enum, zero if it is not set.
pub(super) fn enum_number(message: &DynamicMessage, field: &str) -> i32 {
    let value = value(message, field);
    value.and_then(Value::as_enum_number).unwrap_or_default()
}

/// Returns the number in the wrapper in a field, such as a `UInt32Value`;
/// `None` if the field is not set.
pub(super) fn wrapped_number(message: &DynamicMessage, field: &str) -> Option<u64> {
    let wrapper = inner(message, field)?;
    let number = wrapper.get_field_by_name("value")?;
    let wide = number.as_u64();
    wide.or_else(|| number.as_u32().map(u64::from))
}

/// Returns the items of a list.
fn items<'a>(message: &'a DynamicMessage, field: &str) -> &'a [Value] {
    let value = value(message, field);
    value.and_then(Value::as_list).unwrap_or_default()
}

/// Returns the messages of a list.
pub(super) fn messages<'a>(message: &'a DynamicMessage, field: &str) -> Vec<&'a DynamicMessage> {
    let items = items(message, field).iter();
    items.filter_map(Value::as_message).collect()
}

/// Returns the texts of a list.
pub(super) fn texts<'a>(
    message: &'a DynamicMessage,
    field: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    items(message, field).iter().filter_map(Value::as_str)
}

/// Returns whether `is_good` accepts all texts in a field of an encoded
/// message. Returns `false` if the bytes are not a message, or a text is not
/// UTF-8.
pub(super) fn all_encoded_texts<'a>(
    body: &'a [u8],
    number: u32,
    mut is_good: impl FnMut(&'a str) -> bool,
) -> bool {
    encoded_values(body, number).all(|value| {
        let text = value.and_then(|value| std::str::from_utf8(value).ok());
        text.is_some_and(&mut is_good)
    })
}

/// Returns the length-delimited values of a field of an encoded message; `None`
/// where the bytes are no message.
pub(super) fn encoded_values(body: &[u8], number: u32) -> impl Iterator<Item = Option<&[u8]>> {
    vhosts::fields(body).filter_map(move |field| match field {
        Ok(field) if field.number == number => Some(Some(field.value)),
        Ok(_) => None,
        Err(_) => Some(None),
    })
}

/// Returns the number in an encoded wrapper such as a `UInt32Value`.
pub(super) fn encoded_number(mut wrapper: &[u8]) -> Option<u64> {
    if wrapper.is_empty() {
        return Some(0);
    }
    wire::decode_key(&mut wrapper).ok()?;
    wire::decode_varint(&mut wrapper).ok()
}
