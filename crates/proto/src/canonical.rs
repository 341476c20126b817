//! Canonical bytes: the same contents give the same bytes in every process,
//! replica and restart (S71, S48).
//!
//! Protobuf leaves the order of map entries open, and both `prost` and
//! `prost-reflect` keep maps in hash maps, so the same message encodes
//! differently each time. The canonical form is:
//!
//! - fields in the order of their numbers, defaults left out;
//! - map entries in the order of their keys, key and value always written;
//! - the body of an `Any` whose type is known, in canonical form itself;
//! - unknown fields kept, in their place by number, and among equal numbers in
//!   the order in which they came (S70).
//!
//! Bodies of unknown types stay as they came. Messages of proto2 (options, the
//! metrics of Prometheus) are encoded as `prost-reflect` does; no resource is
//! one and none of them has a map.

use std::collections::HashMap;

use bytes::{BufMut, Bytes};
use prost::{
    Message,
    encoding::{self as wire, WireType},
};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Syntax, UnknownField, Value,
};

use crate::descriptor;

/// Messages inside each other, counted through every `Any`. `prost` refuses
/// more than 100 in one body.
pub const MAX_DEPTH: usize = 200;

/// `Any.type_url`.
const ANY_TYPE_URL: u32 = 1;
/// `Any.value`.
pub(crate) const ANY_VALUE: u32 = 2;
/// The key of an entry of a map.
const ENTRY_KEY: u32 = 1;
/// The value of an entry of a map.
const ENTRY_VALUE: u32 = 2;

/// Why there is no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// The bytes are not of the type.
    #[error("not a valid {type_url}: {source}")]
    Malformed {
        /// The type.
        type_url: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
    /// Messages nest too deep.
    #[error("messages nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Encodes a body canonically. A body of an unknown type is returned unchanged.
///
/// # Errors
/// The bytes are not of the type, or its messages nest deeper than
/// [`MAX_DEPTH`].
pub fn canonicalize(type_url: &str, body: &Bytes) -> Result<Bytes, CanonicalError> {
    let Some(descriptor) = descriptor::message(type_url) else {
        return Ok(body.clone());
    };
    let message = DynamicMessage::decode(descriptor, body.clone()).map_err(|source| {
        let type_url = type_url.to_owned();
        CanonicalError::Malformed { type_url, source }
    })?;
    encode(&message).map(Bytes::from)
}

/// Encodes a message canonically.
///
/// # Errors
/// Messages nest deeper than [`MAX_DEPTH`].
pub fn encode(message: &DynamicMessage) -> Result<Vec<u8>, CanonicalError> {
    let mut bytes = Vec::new();
    write_message(message, 0, &mut bytes)?;
    // Bodies live long, and a vector that grew has up to twice the room.
    bytes.shrink_to_fit();
    Ok(bytes)
}

type WriteResult = Result<(), CanonicalError>;

/// Appends the canonical bytes of a message; of a proto2 message, the bytes by
/// `prost-reflect`. `depth` is the number of enclosing messages, through every
/// `Any`.
fn write_message(message: &DynamicMessage, depth: usize, output: &mut Vec<u8>) -> WriteResult {
    if depth >= MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }

    let descriptor = message.descriptor();
    if descriptor.parent_file().syntax() != Syntax::Proto3 {
        output.extend(message.encode_to_vec());
        return Ok(());
    }
    let any_body = match descriptor.full_name() {
        "google.protobuf.Any" => encode_any_body(message, depth)?,
        _ => None,
    };

    // Known and unknown fields are both sorted by number, so this merges two
    // sorted lists.
    let mut unknown = message.unknown_fields().peekable();
    for (field, value) in message.fields() {
        let precedes = |unknown: &&UnknownField| unknown.number() < field.number();
        while let Some(unknown) = unknown.next_if(precedes) {
            unknown.encode(output);
        }
        match &any_body {
            Some(body) if field.number() == ANY_VALUE => {
                wire::bytes::encode(ANY_VALUE, body, output);
            }
            _ => write_field(&field, value, depth, output)?,
        }
    }
    unknown.for_each(|unknown| unknown.encode(output));
    Ok(())
}

/// Encodes the body of an `Any` canonically. Returns `None` if the body stays
/// unchanged, because its type is unknown or it cannot be decoded.
fn encode_any_body(any: &DynamicMessage, depth: usize) -> Result<Option<Vec<u8>>, CanonicalError> {
    let Some((url, body)) = any_parts(any) else {
        return Ok(None);
    };
    let Some(descriptor) = descriptor::message(&url) else {
        return Ok(None);
    };
    // Validation refuses a body that cannot be decoded.
    let Ok(message) = DynamicMessage::decode(descriptor, body) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    write_message(&message, depth + 1, &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the type URL and the body of an `Any`, each empty if it is not set.
/// `None` if the message is no `Any`.
pub(crate) fn any_parts(any: &DynamicMessage) -> Option<(String, Bytes)> {
    let url = any.get_field_by_number(ANY_TYPE_URL)?.as_str()?.to_owned();
    let body = any.get_field_by_number(ANY_VALUE)?.as_bytes()?.clone();
    Some((url, body))
}

/// Appends a field that is set: a map, a packed or plain list, or a single
/// value.
fn write_field(
    field: &FieldDescriptor,
    value: &Value,
    depth: usize,
    output: &mut Vec<u8>,
) -> WriteResult {
    let number = field.number();
    let kind = field.kind();
    match value {
        Value::Map(map) => write_map(field, map, depth, output),
        Value::List(list) if field.is_packed() => {
            let mut packed = Vec::new();
            for item in list {
                write_number(&kind, item, &mut packed);
            }
            wire::bytes::encode(number, &packed, output);
            Ok(())
        }
        Value::List(list) => list
            .iter()
            .try_for_each(|item| write_value(number, &kind, item, depth, output)),
        value => write_value(number, &kind, value, depth, output),
    }
}

/// Appends a map in the order of its keys. The key and the value of an entry
/// are written even if they are defaults.
fn write_map(
    field: &FieldDescriptor,
    map: &HashMap<MapKey, Value>,
    depth: usize,
    output: &mut Vec<u8>,
) -> WriteResult {
    let Kind::Message(descriptor) = field.kind() else {
        return Ok(());
    };
    let key_kind = descriptor.map_entry_key_field().kind();
    let value_kind = descriptor.map_entry_value_field().kind();

    let mut pairs: Vec<_> = map.iter().collect();
    pairs.sort_by_key(|(key, _)| *key);
    for (key, value) in pairs {
        let mut entry = Vec::new();
        write_value(ENTRY_KEY, &key_kind, &key_to_value(key), depth, &mut entry)?;
        write_value(ENTRY_VALUE, &value_kind, value, depth, &mut entry)?;
        wire::bytes::encode(field.number(), &entry, output);
    }
    Ok(())
}

/// Returns the key of a map as a value.
fn key_to_value(key: &MapKey) -> Value {
    match key {
        MapKey::Bool(v) => Value::Bool(*v),
        MapKey::I32(v) => Value::I32(*v),
        MapKey::I64(v) => Value::I64(*v),
        MapKey::U32(v) => Value::U32(*v),
        MapKey::U64(v) => Value::U64(*v),
        MapKey::String(v) => Value::String(v.clone()),
    }
}

/// Appends the key of a field, and a value that is neither a list nor a map.
/// `kind` is the kind of the field, which says how a number is encoded.
fn write_value(
    number: u32,
    kind: &Kind,
    value: &Value,
    depth: usize,
    output: &mut Vec<u8>,
) -> WriteResult {
    match value {
        Value::Message(message) => {
            let mut bytes = Vec::new();
            write_message(message, depth + 1, &mut bytes)?;
            wire::bytes::encode(number, &bytes, output);
        }
        Value::String(text) => wire::string::encode(number, text, output),
        Value::Bytes(bytes) => wire::bytes::encode(number, bytes, output),

        scalar => {
            let wire_type = match kind {
                Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => WireType::ThirtyTwoBit,
                Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => WireType::SixtyFourBit,
                _ => WireType::Varint,
            };
            wire::encode_key(number, wire_type, output);
            write_number(kind, scalar, output);
        }
    }
    Ok(())
}

/// Appends a number, a boolean or an enum without a key, as in a packed list.
fn write_number(kind: &Kind, value: &Value, output: &mut Vec<u8>) {
    match (kind, value) {
        (_, Value::Bool(v)) => output.put_u8(u8::from(*v)),
        (Kind::Sint32, Value::I32(v)) => wire::encode_varint(zigzag(i64::from(*v)), output),
        (Kind::Sint64, Value::I64(v)) => wire::encode_varint(zigzag(*v), output),
        (Kind::Sfixed32, Value::I32(v)) => output.put_i32_le(*v),
        (Kind::Sfixed64, Value::I64(v)) => output.put_i64_le(*v),
        (Kind::Fixed32, Value::U32(v)) => output.put_u32_le(*v),
        (Kind::Fixed64, Value::U64(v)) => output.put_u64_le(*v),

        // Protobuf extends a negative number of 32 bits to 64 bits.
        (_, Value::I32(v) | Value::EnumNumber(v)) => {
            wire::encode_varint(i64::from(*v) as u64, output)
        }
        (_, Value::I64(v)) => wire::encode_varint(*v as u64, output),
        (_, Value::U32(v)) => wire::encode_varint(u64::from(*v), output),
        (_, Value::U64(v)) => wire::encode_varint(*v, output),
        (_, Value::F32(v)) => output.put_f32_le(*v),
        (_, Value::F64(v)) => output.put_f64_le(*v),
        // The callers pass no other values: only numbers can be packed.
        (
            _,
            Value::String(_) | Value::Bytes(_) | Value::Message(_) | Value::List(_) | Value::Map(_),
        ) => {}
    }
}

/// Encodes a number of a `sint` field: small numbers of either sign are short.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
