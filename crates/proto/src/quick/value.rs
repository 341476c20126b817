//! Values on the wire, in the one form of the canonical encoding.

use prost_reflect::Kind;

use super::plan::FieldKind;

/// A decoded value.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Bool(bool),
    Int(i128),
    Float(f64),
    Enum(i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Message(&'a [u8]),
}

impl Value<'_> {
    /// Returns whether the value is a default, which the canonical form leaves
    /// out of a field without presence.
    pub(super) fn is_default(&self) -> bool {
        match self {
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Float(value) => *value == 0.0,
            Self::Enum(value) => *value == 0,
            Self::Text(value) => value.is_empty(),
            Self::Bytes(bytes) | Self::Message(bytes) => bytes.is_empty(),
        }
    }
}

/// The wire types.
pub(super) const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
pub(super) const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Returns the wire type of a kind of value.
pub(super) fn wire_type(value_kind: &FieldKind) -> u64 {
    match value_kind {
        FieldKind::Message(_) | FieldKind::Scalar(Kind::String | Kind::Bytes) => DELIMITED,
        FieldKind::Scalar(Kind::Double | Kind::Fixed64 | Kind::Sfixed64) => FIXED_64,
        FieldKind::Scalar(Kind::Float | Kind::Fixed32 | Kind::Sfixed32) => FIXED_32,
        FieldKind::Enum(_) | FieldKind::Scalar(_) => VARINT,
    }
}

/// Returns the key of a field on the wire.
pub(super) const fn key(number: u32, wire_type: u64) -> u64 {
    (number as u64) << 3 | wire_type
}

/// Removes a value of the kind `value_kind` from the front of `unread`. Returns
/// `None` if `unread` has no such value, or not in canonical form.
pub(super) fn take_value<'a>(value_kind: &FieldKind, unread: &mut &'a [u8]) -> Option<Value<'a>> {
    let kind = match value_kind {
        FieldKind::Message(_) => return take_delimited(unread).map(Value::Message),
        FieldKind::Enum(_) => return i32_of(take_varint(unread)?).map(Value::Enum),
        FieldKind::Scalar(kind) => kind,
    };

    Some(match kind {
        Kind::String => Value::Text(std::str::from_utf8(take_delimited(unread)?).ok()?),
        Kind::Bytes => Value::Bytes(take_delimited(unread)?),
        Kind::Bool => match take_varint(unread)? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            _ => return None,
        },
        Kind::Int32 => Value::Int(i32_of(take_varint(unread)?)?.into()),
        Kind::Int64 => Value::Int((take_varint(unread)? as i64).into()),
        Kind::Uint32 => Value::Int(u32::try_from(take_varint(unread)?).ok()?.into()),
        Kind::Uint64 => Value::Int(take_varint(unread)?.into()),
        Kind::Sint32 => Value::Int(zigzag(u32::try_from(take_varint(unread)?).ok()?.into()).into()),
        Kind::Sint64 => Value::Int(zigzag(take_varint(unread)?).into()),
        Kind::Fixed32 => Value::Int(u32::from_le_bytes(take_fixed(unread)?).into()),
        Kind::Fixed64 => Value::Int(u64::from_le_bytes(take_fixed(unread)?).into()),
        Kind::Sfixed32 => Value::Int(i32::from_le_bytes(take_fixed(unread)?).into()),
        Kind::Sfixed64 => Value::Int(i64::from_le_bytes(take_fixed(unread)?).into()),
        Kind::Float => Value::Float(f32::from_le_bytes(take_fixed(unread)?).into()),
        Kind::Double => Value::Float(f64::from_le_bytes(take_fixed(unread)?)),
        Kind::Message(_) | Kind::Enum(_) => return None,
    })
}

/// Removes a varint from the front of `unread`. Returns `None` if it does not
/// end, does not fit 64 bits, or is not in as few bytes as possible.
pub(super) fn take_varint(unread: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, remainder) = unread.split_first()?;
        *unread = remainder;

        let group = u64::from(byte & 0x7f);
        // The tenth byte has only one of the 64 bits.
        if shift == 63 && group > 1 {
            return None;
        }
        value |= group << shift;
        let is_last = *byte < 0x80;
        if is_last {
            // A last byte of zero is superfluous, unless it is the only one.
            let is_shortest = *byte > 0 || shift == 0;
            return is_shortest.then_some(value);
        }
    }
    None
}

/// Takes a length-delimited value off `unread`. `None` if its length is no
/// canonical varint, or if the bytes end before it does.
pub(super) fn take_delimited<'a>(unread: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(unread)?).ok()?;
    let (value, remainder) = unread.split_at_checked(len)?;
    *unread = remainder;
    Some(value)
}

/// Removes the first `N` bytes from `unread`. Returns `None` if there are
/// fewer.
fn take_fixed<const N: usize>(unread: &mut &[u8]) -> Option<[u8; N]> {
    let (value, remainder) = unread.split_first_chunk()?;
    *unread = remainder;
    Some(*value)
}

/// Returns the number of 32 bits in a varint, in which a negative one travels
/// as one of 64. `None` if it does not fit.
fn i32_of(number: u64) -> Option<i32> {
    i32::try_from(number as i64).ok()
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
