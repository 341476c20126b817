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

/// The canonical bytes of a body. Those of an unknown type stay as they are.
///
/// # Errors
/// The bytes are not of the type, or nest deeper than [`MAX_DEPTH`].
pub fn canonicalize(type_url: &str, body: &Bytes) -> Result<Bytes, CanonicalError> {
    let Some(of) = descriptor::message(type_url) else {
        return Ok(body.clone());
    };
    let message = DynamicMessage::decode(of, body.clone()).map_err(|source| {
        let type_url = type_url.to_owned();
        CanonicalError::Malformed { type_url, source }
    })?;
    encode(&message).map(Bytes::from)
}

/// The canonical bytes of a message.
///
/// # Errors
/// Messages nest deeper than [`MAX_DEPTH`].
pub fn encode(message: &DynamicMessage) -> Result<Vec<u8>, CanonicalError> {
    let mut bytes = Vec::new();
    write_message(message, 0, &mut bytes)?;
    Ok(bytes)
}

type Written = Result<(), CanonicalError>;

fn write_message(message: &DynamicMessage, depth: usize, out: &mut Vec<u8>) -> Written {
    if depth >= MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    let of = message.descriptor();
    if of.parent_file().syntax() != Syntax::Proto3 {
        out.extend(message.encode_to_vec());
        return Ok(());
    }
    let any = (of.full_name() == "google.protobuf.Any")
        .then(|| any_body(message, depth))
        .transpose()?
        .flatten();
    // Both come in the order of their numbers.
    let mut unknown = message.unknown_fields().peekable();
    for (field, value) in message.fields() {
        while let Some(before) = unknown.next_if(|u: &&UnknownField| u.number() < field.number()) {
            before.encode(out);
        }
        match &any {
            Some(body) if field.number() == 2 => wire::bytes::encode(2, body, out),
            _ => write_field(&field, value, depth, out)?,
        }
    }
    unknown.for_each(|u| u.encode(out));
    Ok(())
}

/// The canonical body of an `Any`, if its type is known and it can be read.
fn any_body(any: &DynamicMessage, depth: usize) -> Result<Option<Vec<u8>>, CanonicalError> {
    let Some((url, body)) = any_parts(any) else {
        return Ok(None);
    };
    let Some(of) = descriptor::message(&url) else {
        return Ok(None);
    };
    // An unreadable body is for validation to refuse; here it stays as it is.
    let Ok(message) = DynamicMessage::decode(of, body) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    write_message(&message, depth + 1, &mut bytes)?;
    Ok(Some(bytes))
}

/// The type URL and the body of an `Any`.
pub(crate) fn any_parts(any: &DynamicMessage) -> Option<(String, Bytes)> {
    let url = any.get_field_by_number(1)?.as_str()?.to_owned();
    let body = any.get_field_by_number(2)?.as_bytes()?.clone();
    Some((url, body))
}

fn write_field(field: &FieldDescriptor, value: &Value, depth: usize, out: &mut Vec<u8>) -> Written {
    let (number, kind) = (field.number(), field.kind());
    match value {
        Value::Map(map) => {
            let Kind::Message(entry) = kind else {
                return Ok(());
            };
            let key_kind = entry.map_entry_key_field().kind();
            let value_kind = entry.map_entry_value_field().kind();
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                let mut pair = Vec::new();
                write_value(1, &key_kind, &key_value(key), depth, &mut pair)?;
                write_value(2, &value_kind, value, depth, &mut pair)?;
                wire::bytes::encode(number, &pair, out);
            }
            Ok(())
        }
        Value::List(list) if field.is_packed() => {
            let mut packed = Vec::new();
            list.iter()
                .for_each(|v| write_packed(&kind, v, &mut packed));
            wire::bytes::encode(number, &packed, out);
            Ok(())
        }
        Value::List(list) => list
            .iter()
            .try_for_each(|v| write_value(number, &kind, v, depth, out)),
        value => write_value(number, &kind, value, depth, out),
    }
}

fn key_value(key: &MapKey) -> Value {
    match key {
        MapKey::Bool(v) => Value::Bool(*v),
        MapKey::I32(v) => Value::I32(*v),
        MapKey::I64(v) => Value::I64(*v),
        MapKey::U32(v) => Value::U32(*v),
        MapKey::U64(v) => Value::U64(*v),
        MapKey::String(v) => Value::String(v.clone()),
    }
}

fn write_value(
    number: u32,
    kind: &Kind,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    match value {
        Value::Message(message) => {
            let mut bytes = Vec::new();
            write_message(message, depth + 1, &mut bytes)?;
            wire::bytes::encode(number, &bytes, out);
        }
        Value::String(text) => wire::string::encode(number, text, out),
        Value::Bytes(bytes) => wire::bytes::encode(number, bytes, out),
        scalar => {
            let wire_type = match kind {
                Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => WireType::ThirtyTwoBit,
                Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => WireType::SixtyFourBit,
                _ => WireType::Varint,
            };
            wire::encode_key(number, wire_type, out);
            write_packed(kind, scalar, out);
        }
    }
    Ok(())
}

/// A number without its key.
fn write_packed(kind: &Kind, value: &Value, out: &mut Vec<u8>) {
    match (kind, value) {
        (_, Value::Bool(v)) => out.put_u8(u8::from(*v)),
        (Kind::Sint32, Value::I32(v)) => wire::encode_varint(zigzag(i64::from(*v)), out),
        (Kind::Sint64, Value::I64(v)) => wire::encode_varint(zigzag(*v), out),
        (Kind::Sfixed32, Value::I32(v)) => out.put_i32_le(*v),
        (Kind::Sfixed64, Value::I64(v)) => out.put_i64_le(*v),
        (Kind::Fixed32, Value::U32(v)) => out.put_u32_le(*v),
        (Kind::Fixed64, Value::U64(v)) => out.put_u64_le(*v),
        // A negative number of 32 bits travels as one of 64.
        (_, Value::I32(v) | Value::EnumNumber(v)) => wire::encode_varint(i64::from(*v) as u64, out),
        (_, Value::I64(v)) => wire::encode_varint(*v as u64, out),
        (_, Value::U32(v)) => wire::encode_varint(u64::from(*v), out),
        (_, Value::U64(v)) => wire::encode_varint(*v, out),
        (_, Value::F32(v)) => out.put_f32_le(*v),
        (_, Value::F64(v)) => out.put_f64_le(*v),
        // Not numbers, so never packed and never here.
        (
            _,
            Value::String(_) | Value::Bytes(_) | Value::Message(_) | Value::List(_) | Value::Map(_),
        ) => {}
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
