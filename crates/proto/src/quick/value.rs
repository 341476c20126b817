//! Values on the wire, in the one form of the canonical encoding.

use prost_reflect::Kind;

use super::plan::Of;

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
    /// Returns whether the canonical form leaves the value out of a field that
    /// cannot tell it from an absent one.
    pub(super) fn is_default(&self) -> bool {
        match self {
            Self::Bool(v) => !v,
            Self::Int(v) => *v == 0,
            Self::Float(v) => *v == 0.0,
            Self::Enum(v) => *v == 0,
            Self::Text(v) => v.is_empty(),
            Self::Bytes(v) | Self::Message(v) => v.is_empty(),
        }
    }
}

/// The wire types.
pub(super) const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
pub(super) const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Returns the wire type of a kind of value.
pub(super) fn wire_type(of: &Of) -> u64 {
    match of {
        Of::Message(_) | Of::Scalar(Kind::String | Kind::Bytes) => DELIMITED,
        Of::Scalar(Kind::Double | Kind::Fixed64 | Kind::Sfixed64) => FIXED_64,
        Of::Scalar(Kind::Float | Kind::Fixed32 | Kind::Sfixed32) => FIXED_32,
        Of::Enum(_) | Of::Scalar(_) => VARINT,
    }
}

/// The key of a field on the wire.
pub(super) const fn key(number: u32, wire_type: u64) -> u64 {
    (number as u64) << 3 | wire_type
}

/// Takes a value of the kind `of` off `left`. `None` if there is none, or if it
/// is not in canonical form.
pub(super) fn take_value<'a>(of: &Of, left: &mut &'a [u8]) -> Option<Value<'a>> {
    let kind = match of {
        Of::Message(_) => return take_delimited(left).map(Value::Message),
        Of::Enum(_) => return i32_of(take_varint(left)?).map(Value::Enum),
        Of::Scalar(kind) => kind,
    };

    Some(match kind {
        Kind::String => Value::Text(std::str::from_utf8(take_delimited(left)?).ok()?),
        Kind::Bytes => Value::Bytes(take_delimited(left)?),
        Kind::Bool => match take_varint(left)? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            _ => return None,
        },
        Kind::Int32 => Value::Int(i32_of(take_varint(left)?)?.into()),
        Kind::Int64 => Value::Int((take_varint(left)? as i64).into()),
        Kind::Uint32 => Value::Int(u32::try_from(take_varint(left)?).ok()?.into()),
        Kind::Uint64 => Value::Int(take_varint(left)?.into()),
        Kind::Sint32 => Value::Int(zigzag(u32::try_from(take_varint(left)?).ok()?.into()).into()),
        Kind::Sint64 => Value::Int(zigzag(take_varint(left)?).into()),
        Kind::Fixed32 => Value::Int(u32::from_le_bytes(take_fixed(left)?).into()),
        Kind::Fixed64 => Value::Int(u64::from_le_bytes(take_fixed(left)?).into()),
        Kind::Sfixed32 => Value::Int(i32::from_le_bytes(take_fixed(left)?).into()),
        Kind::Sfixed64 => Value::Int(i64::from_le_bytes(take_fixed(left)?).into()),
        Kind::Float => Value::Float(f32::from_le_bytes(take_fixed(left)?).into()),
        Kind::Double => Value::Float(f64::from_le_bytes(take_fixed(left)?)),
        Kind::Message(_) | Kind::Enum(_) => return None,
    })
}

/// Takes a varint off `left`. `None` if it does not end, does not fit 64 bits,
/// or is not in as few bytes as possible.
pub(super) fn take_varint(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, remainder) = left.split_first()?;
        *left = remainder;

        let part = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        let is_last = *byte < 0x80;
        if is_last {
            // A last byte of zero adds nothing, unless it is the only one.
            let is_shortest = *byte > 0 || shift == 0;
            return is_shortest.then_some(value);
        }
    }
    None
}

/// Takes a length-delimited value off `left`. `None` if its length is no
/// canonical varint, or if the bytes end before it does.
pub(super) fn take_delimited<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(left)?).ok()?;
    let (value, remainder) = left.split_at_checked(len)?;
    *left = remainder;
    Some(value)
}

fn take_fixed<const N: usize>(left: &mut &[u8]) -> Option<[u8; N]> {
    let (value, remainder) = left.split_first_chunk()?;
    *left = remainder;
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
