//! Length-delimited fields, written one by one.

use bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

/// Writes the key and the length of a length-delimited field. The caller writes
/// its value, of `len` bytes.
pub(crate) fn put_delimiter(buf: &mut impl BufMut, number: u32, len: usize) {
    encode_key(number, WireType::LengthDelimited, buf);
    encode_varint(len as u64, buf);
}

/// Returns the number of bytes of a length-delimited field whose value has
/// `len` bytes, key and length included.
pub(super) fn delimited_len(number: u32, len: usize) -> usize {
    key_len(number) + encoded_len_varint(len as u64) + len
}

/// Writes a text as a field; an empty text is no field.
pub(super) fn put_text_field(buf: &mut impl BufMut, number: u32, text: &str) {
    if !text.is_empty() {
        put_delimiter(buf, number, text.len());
        buf.put_slice(text.as_bytes());
    }
}

/// Returns the number of bytes that [`put_text_field`] writes.
pub(super) fn text_field_len(number: u32, text: &str) -> usize {
    match text.len() {
        0 => 0,
        len => delimited_len(number, len),
    }
}
