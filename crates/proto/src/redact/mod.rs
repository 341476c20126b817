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
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
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

/// The message in a body, without its secrets.
///
/// # Errors
/// The type is not known, or the bytes are not of it.
pub fn redact(type_url: &str, body: Bytes) -> Result<DynamicMessage, RedactError> {
    let type_url = || type_url.to_owned();
    let Some(of) = descriptor::message(&type_url()) else {
        let type_url = type_url();
        return Err(RedactError::Unknown { type_url });
    };
    let decoded = DynamicMessage::decode(of, body);
    let mut message = decoded.map_err(|source| RedactError::Malformed {
        type_url: type_url(),
        source,
    })?;
    redact_message(&mut message);
    Ok(message)
}

/// Takes the secrets out of a message.
pub fn redact_message(message: &mut DynamicMessage) {
    clean(message, 0);
}

/// A client's text without the secrets that it may quote: the error of Envoy's
/// NACK can end with a dump of the resource. The text is cut where a dump comes
/// to a secret.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    match table::quoted_at(text) {
        Some(at) => Cow::Owned(format!("{}{REDACTED}", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Hides the secrets in a message.
fn clean(message: &mut DynamicMessage, depth: usize) {
    if depth >= MAX_DEPTH {
        return hide_all(message, depth);
    }
    message.take_unknown_fields().for_each(drop);
    match message.descriptor().full_name() {
        ANY => return inside(message, |inner| clean(inner, depth + 1)),
        "xds.type.v3.TypedStruct" | "udpa.type.v1.TypedStruct" => {
            return structs::typed(message, depth);
        }
        _ => {}
    }
    for (field, value) in message.fields_mut() {
        match table::is_secret(&field) {
            true => hide(value, depth),
            false => messages(value, &mut |inner| clean(inner, depth + 1)),
        }
    }
}

/// The messages in a value, one by one.
fn messages(value: &mut Value, each: &mut impl FnMut(&mut DynamicMessage)) {
    match value {
        Value::Message(message) => each(message),
        Value::List(list) => list.iter_mut().for_each(|value| messages(value, each)),
        Value::Map(map) => map.values_mut().for_each(|value| messages(value, each)),
        _ => {}
    }
}

/// Changes the body of an `Any`; an unreadable one is hidden.
fn inside(any: &mut DynamicMessage, change: impl FnOnce(&mut DynamicMessage)) {
    let body = any_parts(any).and_then(|(url, body)| {
        let of = descriptor::message(&url)?;
        let mut inner = DynamicMessage::decode(of, body).ok()?;
        change(&mut inner);
        Some(inner.encode_to_vec())
    });
    let empty = any_parts(any).is_none_or(|(_, body)| body.is_empty());
    match body {
        Some(body) => any.set_field_by_number(2, Value::Bytes(body.into())),
        None if empty => {}
        None => any.set_field_by_number(2, Value::Bytes(REDACTED.into())),
    }
}

/// Hides a value that is secret as a whole.
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

fn hide_all(message: &mut DynamicMessage, depth: usize) {
    message.take_unknown_fields().for_each(drop);
    if depth >= MAX_DEPTH {
        message.take_fields().for_each(drop);
        return;
    }
    match message.descriptor().full_name() {
        ANY => inside(message, |inner| hide_all(inner, depth + 1)),
        DATA_SOURCE => data_source(message),
        _ => message
            .fields_mut()
            .for_each(|(_, value)| hide(value, depth)),
    }
}

/// A secret in the configuration is hidden, the place of one elsewhere is not.
fn data_source(source: &mut DynamicMessage) {
    let inline = ["inline_bytes", "inline_string"];
    if inline.iter().any(|field| source.has_field_by_name(field)) {
        source.set_field_by_name("inline_string", Value::String(REDACTED.to_owned()));
    }
}
