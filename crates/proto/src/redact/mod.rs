//! Messages without their secrets, to be shown.
//!
//! Secret are the fields that Envoy's files mark as sensitive, and a few that
//! they should (see `table`), wherever they are, through every `Any` and
//! `TypedStruct`. A text becomes [`REDACTED`], any other part of a secret
//! becomes empty; where a secret comes from a file or a variable of the
//! environment, the place is kept.
//!
//! An unknown field cannot be known to be harmless, so bodies of unknown types
//! and unknown fields are not shown either.

mod structs;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use crate::{
    canonical::{ANY_VALUE, MAX_DEPTH, any_parts},
    descriptor, text,
};

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

const ANY: &str = "google.protobuf.Any";
const DATA_SOURCE: &str = "envoy.config.core.v3.DataSource";

/// Why a body cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedactError {
    /// Its type is not known, so it cannot be read.
    #[error("{type_url} is not known here, so it cannot be shown without its secrets")]
    Unknown {
        /// The type.
        type_url: String,
    },
    /// The bytes are not of the type.
    #[error("not a valid {type_url}: {source}")]
    Malformed {
        /// The type.
        type_url: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
}

/// Decodes a body, and takes the secrets out of the message.
///
/// # Errors
/// The type is not known, or the bytes are not of it.
pub fn redact(type_url: &str, body: Bytes) -> Result<DynamicMessage, RedactError> {
    let Some(of) = descriptor::message(type_url) else {
        let type_url = type_url.to_owned();
        return Err(RedactError::Unknown { type_url });
    };
    let mut message = DynamicMessage::decode(of, body).map_err(|source| {
        let type_url = type_url.to_owned();
        RedactError::Malformed { type_url, source }
    })?;

    redact_message(&mut message);
    Ok(message)
}

/// Takes the secrets out of a message, and everything that is not known to be
/// harmless: unknown fields, and bodies of unknown types.
pub fn redact_message(message: &mut DynamicMessage) {
    hide_secrets(message, 0);
}

/// Cuts a client's text where it begins to quote a secret, and marks the cut
/// with [`REDACTED`]. The error of Envoy's NACK can end with a dump of the
/// resource. A text without a secret stays as it is.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    match table::quoted_at(text) {
        Some(at) => Cow::Owned(format!("{}{REDACTED}", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Returns whether some message has a secret field of this name, in the spelling
/// of YAML or of JSON: a text that is not decoded yet may have a secret behind
/// it.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    table::names().contains(name)
}

/// Returns whether a name is that of a secret field, or so near to one that it
/// may be a slip for it: a secret may stand behind it all the same.
#[must_use]
pub fn resembles_secret_name(name: &str) -> bool {
    // Short names are near to many others.
    const SHORTEST: usize = 6;
    let long = table::names().iter().filter(|name| name.len() >= SHORTEST);
    is_secret_name(name) || (name.len() >= SHORTEST && text::nearest(name, long.cloned()).is_some())
}

/// Hides the secrets in a message and in the messages inside it, and removes
/// unknown fields. `depth` counts the messages around it, through every `Any`;
/// a message that is too deep is hidden as a whole.
fn hide_secrets(message: &mut DynamicMessage, depth: usize) {
    if depth >= MAX_DEPTH {
        return hide_all(message, depth);
    }

    message.take_unknown_fields().for_each(drop);
    match message.descriptor().full_name() {
        ANY => return change_body(message, |inner| hide_secrets(inner, depth + 1)),
        name if structs::is_typed_struct(name) => return structs::hide_secrets(message, depth),
        _ => {}
    }

    for (field, value) in message.fields_mut() {
        match table::is_secret(&field) {
            true => hide(value, depth),
            false => each_message(value, &mut |inner| hide_secrets(inner, depth + 1)),
        }
    }
}

/// Calls `each` with the messages in a value, one by one: itself, the items of
/// a list or the values of a map. It is not called for the messages inside
/// those.
fn each_message(value: &mut Value, each: &mut impl FnMut(&mut DynamicMessage)) {
    match value {
        Value::Message(message) => each(message),
        Value::List(list) => list.iter_mut().for_each(|value| each_message(value, each)),
        Value::Map(map) => map.values_mut().for_each(|value| each_message(value, each)),
        _ => {}
    }
}

/// Changes the body of an `Any` with `change`, and encodes it again. A body of
/// an unknown type, or one that is not of its type, is hidden as a whole,
/// unless it is empty.
fn change_body(any: &mut DynamicMessage, change: impl FnOnce(&mut DynamicMessage)) {
    let Some((type_url, body)) = any_parts(any) else {
        return;
    };
    let of = descriptor::message(&type_url);
    let decoded = of.and_then(|of| DynamicMessage::decode(of, body.clone()).ok());
    let changed: Bytes = match decoded {
        Some(mut message) => {
            change(&mut message);
            message.encode_to_vec().into()
        }
        None if body.is_empty() => return,
        None => REDACTED.into(),
    };
    any.set_field_by_number(ANY_VALUE, Value::Bytes(changed));
}

/// Hides a value that is secret as a whole: texts and bytes become
/// [`REDACTED`], numbers zero, and messages are hidden value by value. `depth`
/// counts the messages around the value.
fn hide(value: &mut Value, depth: usize) {
    match value {
        Value::String(text) => REDACTED.clone_into(text),
        Value::Bytes(bytes) => *bytes = REDACTED.into(),
        Value::Message(message) => hide_all(message, depth + 1),
        Value::List(list) => list.iter_mut().for_each(|value| hide(value, depth)),
        Value::Map(map) => map.values_mut().for_each(|value| hide(value, depth)),
        Value::Bool(value) => *value = false,
        Value::I32(value) | Value::EnumNumber(value) => *value = 0,
        Value::I64(value) => *value = 0,
        Value::U32(value) => *value = 0,
        Value::U64(value) => *value = 0,
        Value::F32(value) => *value = 0.0,
        Value::F64(value) => *value = 0.0,
    }
}

/// Hides every value of a message that is secret as a whole, and removes its
/// unknown fields. A message that is too deep becomes empty.
fn hide_all(message: &mut DynamicMessage, depth: usize) {
    message.take_unknown_fields().for_each(drop);
    if depth >= MAX_DEPTH {
        message.take_fields().for_each(drop);
        return;
    }
    match message.descriptor().full_name() {
        ANY => change_body(message, |inner| hide_all(inner, depth + 1)),
        DATA_SOURCE => hide_inline(message),
        _ => message
            .fields_mut()
            .for_each(|(_, value)| hide(value, depth)),
    }
}

/// Hides the secret of a `DataSource` that has it inline. The name of a file or
/// a variable that holds the secret is kept.
fn hide_inline(source: &mut DynamicMessage) {
    let inline = ["inline_bytes", "inline_string"];
    if inline.iter().any(|field| source.has_field_by_name(field)) {
        source.set_field_by_name("inline_string", Value::String(REDACTED.to_owned()));
    }
}
