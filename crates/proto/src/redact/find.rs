//! Whether a message holds secrets, and which.

use bytes::Bytes;
use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage as _, Value};

use super::{ANY, DATA_SOURCE, Hider, INLINE, Pair, REDACTED, structs, table, words};
use crate::canonical::any_parts;
use crate::path::{Path, Step};
use crate::{descriptor, vhosts};

/// The secrets in the own fields of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnSecrets {
    /// There is something that is never shown.
    pub(crate) any: bool,
    /// There is a key inline that a `Secret` may hold.
    pub(crate) keys: bool,
}

/// Returns the secrets in an encoded body: the texts and bytes that
/// [`redact`](super::redact) hides, without their places. Those in a body of an
/// unknown type are not known. `None` if the body itself cannot be read.
#[must_use]
pub fn values(type_url: &str, body: Bytes) -> Option<Vec<Bytes>> {
    let descriptor = descriptor::message(type_url)?;
    let mut message = DynamicMessage::decode(descriptor, body).ok()?;
    let mut hider = collecting();
    hider.hide_secrets(&mut message, 0);
    hider.values
}

/// Makes a hider that collects what it hides.
fn collecting() -> Hider {
    Hider {
        values: Some(Vec::new()),
        has_key: false,
    }
}

/// Returns whether a message is written as a `Struct`, so that only a walk by
/// its type can tell its secrets.
pub(crate) fn is_typed_struct(message: &str) -> bool {
    structs::is_typed_struct(message)
}

/// Finds the secrets in the message's own fields. Does not search the messages
/// inside it, except in a `TypedStruct`.
pub(crate) fn find_own_secrets(message: &DynamicMessage) -> OwnSecrets {
    let descriptor = message.descriptor();
    if structs::is_typed_struct(descriptor.full_name()) {
        return find_in_typed_struct(message);
    }
    let Some(rules) = table::rules(descriptor.full_name()) else {
        return OwnSecrets::default();
    };

    let mut secrets = OwnSecrets::default();
    for (field, value) in message.fields() {
        if rules.is_secret(&field) && reveals(value) {
            secrets.any = true;
            secrets.keys |= rules.is_key(&field);
        }
        secrets.any |= rules.is_map(&field) && has_secret_entry(value);
    }
    if let Some(pair) = rules.pair {
        secrets.any |= has_secret_pair(pair, message);
    }
    secrets
}

/// Finds the secrets in a `TypedStruct` and in the messages inside it. Hides
/// them in a copy, since the hider collects what it hides.
fn find_in_typed_struct(message: &DynamicMessage) -> OwnSecrets {
    let mut hider = collecting();
    hider.hide_secrets(&mut message.clone(), 0);
    OwnSecrets {
        any: hider.values.is_some_and(|values| !values.is_empty()),
        keys: hider.has_key,
    }
}

/// Returns whether one of the values of a pair is secret.
fn has_secret_pair(pair: &Pair, message: &DynamicMessage) -> bool {
    let is_named = has_secret_name(pair, message);
    let fields = pair.values.iter();
    let mut values = fields.filter_map(|field| message.get_field_by_name(field));
    values.any(|value| is_secret_value(&value, is_named))
}

/// Returns whether the name of a pair of name and value sounds secret, so that
/// its value is redacted. A name that is missing, or is no text, does not.
pub(super) fn has_secret_name(pair: &Pair, message: &DynamicMessage) -> bool {
    let value = message.get_field_by_name(pair.name);
    value.is_some_and(|value| value.as_str().is_some_and(words::sounds_secret))
}

/// Returns whether the value of a pair is secret, by its name or by its own
/// form. `is_named` says whether the name sounds secret.
pub(super) fn is_secret_value(value: &Value, is_named: bool) -> bool {
    let text = match value {
        Value::String(text) => Some(text.as_str()),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => return is_named,
    };
    match text {
        Some(text) if text.is_empty() || words::is_operator(text) => false,
        Some(text) => is_named || words::is_credential(text),
        None => is_named,
    }
}

/// Returns whether a text, or bytes that are a text, have the form of a secret.
pub(super) fn is_secret_form(value: &Value) -> bool {
    match value {
        Value::String(text) => words::is_secret_text(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).is_ok_and(words::is_secret_text),
        _ => false,
    }
}

/// Returns whether a map has a key that sounds secret, or a credential as a
/// value.
fn has_secret_entry(value: &Value) -> bool {
    let Value::Map(map) = value else {
        return false;
    };
    map.iter().any(|(key, value)| {
        let text = match value {
            Value::Message(value) => value.get_field_by_name("string_value"),
            _ => None,
        };
        let text = text.as_ref().and_then(|text| text.as_str());
        key.as_str().is_some_and(words::sounds_secret) || text.is_some_and(words::is_credential)
    })
}

/// Returns whether the value of a secret field shows a secret. A file name or a
/// variable where the secret can be found does not.
pub(super) fn reveals(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && text != REDACTED,
        Value::Bytes(bytes) => !bytes.is_empty(),
        Value::List(list) => list.iter().any(reveals),
        Value::Map(map) => map.values().any(reveals),
        Value::Message(message) => message_reveals(message),
        _ => false,
    }
}

/// Returns whether a message in a secret field shows a secret: any bytes or
/// text, or those of an inline data source.
fn message_reveals(message: &DynamicMessage) -> bool {
    match message.descriptor().full_name() {
        DATA_SOURCE => {
            let inline = INLINE.iter();
            let mut inline = inline.filter_map(|field| message.get_field_by_name(field));
            inline.any(|value| reveals(&value))
        }
        ANY => any_parts(message).is_some_and(|(type_url, body)| {
            let descriptor = descriptor::message(&type_url);
            let inner = descriptor
                .and_then(|descriptor| DynamicMessage::decode(descriptor, body.clone()).ok());
            match inner {
                Some(inner) => message_reveals(&inner),
                None => !body.is_empty(),
            }
        }),
        _ => message.fields().any(|(_, value)| reveals(value)),
    }
}

/// Returns a check of the encoded bytes of a message, which says whether
/// [`find_own_secrets`] might find a secret by its name or form. Returns `None`
/// if the message cannot have such a secret.
pub(crate) fn quick_check(message: &str) -> Option<fn(&[u8]) -> bool> {
    let rules = table::rules(message)?;
    match (rules.pair, rules.has_maps()) {
        (Some(_), _) => Some(pair_may_be_secret),
        (None, true) => Some(map_may_be_secret),
        (None, false) => None,
    }
}

/// Returns whether errors must not quote the value at a path. The value is in a
/// secret, or may be one, such as the value of a header or of metadata.
pub(crate) fn is_secret_path(path: &Path) -> bool {
    path.steps().iter().any(|step| {
        let Step::Field(field) = step else {
            return false;
        };
        let message = field.parent_message();
        table::rules(message.full_name()).is_some_and(|rules| {
            let pair = rules.pair;
            rules.is_secret(field)
                || rules.is_map(field)
                || pair.is_some_and(|pair| pair.values.contains(&field.name()))
        })
    })
}

/// Returns whether the whole value of a field is secret.
pub(crate) fn is_secret_field(field: &FieldDescriptor) -> bool {
    table::is_secret(field)
}

/// Checks the encoded bytes of a pair: a name and then its value.
fn pair_may_be_secret(pair: &[u8]) -> bool {
    const NAME: u32 = 1;
    vhosts::fields(pair).any(|field| {
        // Malformed bytes may hide a secret.
        let Ok(field) = field else { return true };
        let text = std::str::from_utf8(field.value).unwrap_or_default();
        match field.number {
            NAME => words::sounds_secret(text),
            _ => words::is_credential(text),
        }
    })
}

/// Checks the encoded bytes of a message that is a map. An entry has a key and
/// then a value, in which only one field is a text.
fn map_may_be_secret(map: &[u8]) -> bool {
    const KEY: u32 = 1;
    // `google.protobuf.Value.string_value`.
    const TEXT: u32 = 3;
    let is_secret_value = |value: &[u8]| {
        let mut fields = vhosts::fields(value).filter_map(Result::ok);
        fields.any(|field| {
            let text = std::str::from_utf8(field.value).unwrap_or_default();
            field.number == TEXT && words::is_credential(text)
        })
    };

    let is_secret_entry = |entry: &[u8]| {
        let mut fields = vhosts::fields(entry).filter_map(Result::ok);
        fields.any(|field| match field.number {
            KEY => words::sounds_secret(std::str::from_utf8(field.value).unwrap_or_default()),
            _ => is_secret_value(field.value),
        })
    };

    let mut entries = vhosts::fields(map).filter_map(Result::ok);
    entries.any(|entry| is_secret_entry(entry.value))
}
