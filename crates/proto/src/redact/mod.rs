//! Messages without their secrets, to be shown.
//!
//! Secret are the fields that Envoy's files mark as sensitive, a few that they
//! should, and headers and metadata whose names say so (see `table`), wherever
//! they are, through every `Any`, `Struct` and `TypedStruct`. A text becomes
//! [`REDACTED`], any other part of a secret becomes empty; where a secret comes
//! from a file or a variable of the environment, the place is kept.
//!
//! The same table tells whether a body holds secrets (its facts), and
//! [`scrub`] takes the secrets of resources out of a client's words.
//!
//! An unknown field cannot be known to be harmless, so bodies of unknown types
//! and unknown fields are not shown either.

mod find;
mod scrub;
mod structs;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use crate::{
    canonical::{ANY_VALUE, MAX_DEPTH, any_parts},
    descriptor, text,
};
pub use find::values;
pub(crate) use find::{
    find_own_secrets, is_secret_field, is_secret_path, is_typed_struct, quick_check,
};
pub use scrub::{MAX_SCRUBBED, scrub};
use table::Pair;
pub use words::sounds_secret;

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

const ANY: &str = "google.protobuf.Any";
const DATA_SOURCE: &str = "envoy.config.core.v3.DataSource";
const VALUE: &str = "google.protobuf.Value";
/// The fields of a `DataSource` that have its contents.
const INLINE: [&str; 2] = ["inline_bytes", "inline_string"];

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

/// Decodes a body, and redacts the secrets in the message.
///
/// # Errors
/// The type is unknown, or the bytes are not of the type.
pub fn redact(type_url: &str, body: Bytes) -> Result<DynamicMessage, RedactError> {
    let Some(descriptor) = descriptor::message(type_url) else {
        let type_url = type_url.to_owned();
        return Err(RedactError::Unknown { type_url });
    };
    let mut message = DynamicMessage::decode(descriptor, body).map_err(|source| {
        let type_url = type_url.to_owned();
        RedactError::Malformed { type_url, source }
    })?;

    redact_message(&mut message);
    Ok(message)
}

/// Decodes a body, and redacts the secrets in the message. Returns `None` if
/// there are none, and the body can be shown unchanged.
///
/// # Errors
/// The type is unknown, or the bytes are not of the type.
pub fn redact_if_secret(
    type_url: &str,
    body: Bytes,
) -> Result<Option<DynamicMessage>, RedactError> {
    let redacted = redact(type_url, body.clone())?;
    let original = DynamicMessage::decode(redacted.descriptor(), body);
    let is_plain = original.is_ok_and(|original| original == redacted);
    Ok((!is_plain).then_some(redacted))
}

/// Takes the secrets out of a message, and everything that is not known to be
/// harmless: unknown fields, and bodies of unknown types.
pub fn redact_message(message: &mut DynamicMessage) {
    Hider::default().hide_secrets(message, 0);
}

/// Cuts a client's text where it begins to quote a secret, and marks the cut
/// with [`REDACTED`]. The error of Envoy's NACK can end with a dump of the
/// resource. A text without a secret stays as it is.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    match table::find_quote(text) {
        Some(start) => Cow::Owned(format!("{}{REDACTED}", &text[..start])),
        None => Cow::Borrowed(text),
    }
}

/// Returns whether some message has a secret field of this name, in the
/// spelling of YAML or of JSON: a text that is not decoded yet may have a
/// secret behind it.
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
    let long_names = table::names().iter().filter(|name| name.len() >= SHORTEST);
    is_secret_name(name)
        || (name.len() >= SHORTEST && text::nearest(name, long_names.cloned()).is_some())
}

/// Hides secrets, and collects them.
#[derive(Debug, Default)]
struct Hider {
    /// The secrets that were hidden, if they are wanted.
    values: Option<Vec<Bytes>>,
    /// Whether one of them is a key that a `Secret` may hold.
    has_key: bool,
}

impl Hider {
    /// Hides the secrets in a message and in the messages inside it, and
    /// removes unknown fields. `depth` is the number of enclosing messages,
    /// through every `Any`. A message that nests too deep is hidden as a whole.
    fn hide_secrets(&mut self, message: &mut DynamicMessage, depth: usize) {
        if depth >= MAX_DEPTH {
            return self.hide_all(message, depth);
        }

        message.take_unknown_fields().for_each(drop);
        let descriptor = message.descriptor();
        match descriptor.full_name() {
            ANY => {
                return self.change_body(message, |hider, inner| {
                    hider.hide_secrets(inner, depth + 1);
                });
            }
            name if structs::is_typed_struct(name) => {
                return structs::hide_secrets(self, message, depth);
            }
            VALUE => structs::hide_credential(self, message),
            DATA_SOURCE => self.hide_secret_source(message),
            _ => {}
        }

        let rules = table::rules(descriptor.full_name());
        if let Some(pair) = rules.and_then(|rules| rules.pair) {
            self.hide_pair(pair, message, depth);
        }
        for (field, value) in message.fields_mut() {
            match rules {
                Some(rules) if rules.is_secret(&field) => {
                    self.has_key |= rules.is_key(&field) && find::reveals(value);
                    self.hide_value(value, depth);
                }
                Some(rules) if rules.is_map(&field) => self.hide_in_map(value, depth),
                _ => self.hide_in_value(value, depth),
            }
        }
    }

    /// Hides the secrets in a value that is not secret itself: a text with the
    /// form of a secret, and the secrets in messages, in the items of a list
    /// and in the values of a map.
    fn hide_in_value(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) if words::is_secret_text(text) => self.hide_value(value, depth),
            Value::Message(message) => self.hide_secrets(message, depth + 1),
            Value::List(list) => {
                let items = list.iter_mut();
                items.for_each(|value| self.hide_in_value(value, depth));
            }
            Value::Map(map) => {
                let values = map.values_mut();
                values.for_each(|value| self.hide_in_value(value, depth));
            }
            _ => {}
        }
    }

    /// Hides the values of a map whose keys sound secret, and the secrets
    /// inside the other values.
    fn hide_in_map(&mut self, value: &mut Value, depth: usize) {
        let Value::Map(map) = value else { return };
        for (key, value) in map {
            match key.as_str().is_some_and(sounds_secret) {
                true => self.hide_value(value, depth),
                false => self.hide_in_value(value, depth),
            }
        }
    }

    /// Hides the value of a pair whose name sounds secret, or whose value is a
    /// credential. A command operator of Envoy is not hidden.
    fn hide_pair(&mut self, pair: &Pair, message: &mut DynamicMessage, depth: usize) {
        let is_secret = find::has_secret_name(pair, message);
        for field in pair.values {
            if message.has_field_by_name(field)
                && let Some(value) = message.get_field_by_name_mut(field)
                && find::is_secret_value(value, is_secret)
            {
                self.hide_value(value, depth);
            }
        }
    }

    /// Changes the body of an `Any` with `change`, and encodes it again. A body
    /// that cannot be decoded, or has an unknown type, is hidden as a whole.
    /// Does nothing for an empty one.
    fn change_body(
        &mut self,
        any: &mut DynamicMessage,
        change: impl FnOnce(&mut Self, &mut DynamicMessage),
    ) {
        let Some((type_url, body)) = any_parts(any) else {
            return;
        };

        let descriptor = descriptor::message(&type_url);
        let inner =
            descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, body.clone()).ok());
        let new_body: Bytes = match inner {
            Some(mut message) => {
                change(self, &mut message);
                message.encode_to_vec().into()
            }
            None if body.is_empty() => return,
            None => REDACTED.into(),
        };
        any.set_field_by_number(ANY_VALUE, Value::Bytes(new_body));
    }

    /// Hides a value that is secret as a whole. Texts and bytes become
    /// [`REDACTED`], numbers become zero, and messages are hidden value by
    /// value. `depth` is the number of messages around the value.
    fn hide_value(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) => {
                self.collect(text.as_bytes());
                REDACTED.clone_into(text);
            }
            Value::Bytes(bytes) => {
                self.collect(bytes);
                *bytes = REDACTED.into();
            }

            Value::Message(message) => self.hide_all(message, depth + 1),
            Value::List(list) => list
                .iter_mut()
                .for_each(|value| self.hide_value(value, depth)),
            Value::Map(map) => map
                .values_mut()
                .for_each(|value| self.hide_value(value, depth)),

            Value::Bool(value) => *value = false,
            Value::I32(value) | Value::EnumNumber(value) => *value = 0,
            Value::I64(value) => *value = 0,
            Value::U32(value) => *value = 0,
            Value::U64(value) => *value = 0,
            Value::F32(value) => *value = 0.0,
            Value::F64(value) => *value = 0.0,
        }
    }

    /// Hides every value of a message that is secret as a whole, and removes
    /// its unknown fields. A message that nests too deep becomes empty.
    fn hide_all(&mut self, message: &mut DynamicMessage, depth: usize) {
        message.take_unknown_fields().for_each(drop);
        if depth >= MAX_DEPTH {
            message.take_fields().for_each(drop);
            return;
        }
        match message.descriptor().full_name() {
            ANY => self.change_body(message, |hider, inner| hider.hide_all(inner, depth + 1)),
            DATA_SOURCE => self.hide_inline(message),
            VALUE => structs::hide(self, message),
            _ => message
                .fields_mut()
                .for_each(|(_, value)| self.hide_value(value, depth)),
        }
    }

    /// Hides the contents of a `DataSource` if they have the form of a secret,
    /// whatever the field that the source is in.
    fn hide_secret_source(&mut self, source: &mut DynamicMessage) {
        let is_secret = |field: &&str| {
            let value = source.get_field_by_name(field);
            value.is_some_and(|value| find::is_secret_form(&value))
        };
        if INLINE.iter().any(is_secret) {
            self.hide_inline(source);
        }
    }

    /// Hides the inline contents of a `DataSource`. The name of a file or a
    /// variable with the secret is not hidden.
    fn hide_inline(&mut self, source: &mut DynamicMessage) {
        for field in INLINE {
            if source.has_field_by_name(field)
                && let Some(value) = source.get_field_by_name_mut(field)
            {
                self.hide_value(value, 0);
                source.set_field_by_name("inline_string", Value::String(REDACTED.to_owned()));
                return;
            }
        }
    }

    /// Collects a secret, if the caller wants them. The placeholder for a
    /// secret is not collected.
    fn collect(&mut self, value: &[u8]) {
        if let Some(values) = &mut self.values
            && !value.is_empty()
            && value != REDACTED.as_bytes()
        {
            values.push(Bytes::copy_from_slice(value));
        }
    }
}
