//! Rewrites the name and the domains in the body of a virtual host.
//!
//! Two fields of one message are all that is known about bodies here: `name` is
//! 1 and `domains` is 2. Everything else is copied as it is.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const NAME: u64 = 1;
const DOMAINS: u64 = 2;

/// Wire types of protobuf: the low bits of a tag.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Returns the body of a virtual host with this name and these domains in place
/// of its own.
pub(crate) fn rewrite_body<'a>(
    body: &[u8],
    name: &str,
    domains: impl Iterator<Item = &'a str>,
) -> Bytes {
    let mut new_body = BytesMut::with_capacity(body.len() + name.len() + 16);
    put_text(&mut new_body, NAME, name);
    for domain in domains {
        put_text(&mut new_body, DOMAINS, domain);
    }
    put_other_fields(&mut new_body, body);
    new_body.freeze()
}

/// Appends a field of text.
fn put_text(buffer: &mut BytesMut, field: u64, text: &str) {
    put_varint(buffer, field << 3 | LENGTH_DELIMITED);
    put_varint(buffer, text.len() as u64);
    buffer.put_slice(text.as_bytes());
}

/// Appends a number in protobuf's variable length: seven bits to a byte, the
/// lowest first.
pub(crate) fn put_varint(buffer: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        buffer.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.put_u8(value as u8);
}

/// Copies all fields but the name and the domains. Stops at a malformed field,
/// which the caller has excluded: the body was decoded before, or its domains
/// would not be known.
fn put_other_fields(buffer: &mut BytesMut, body: &[u8]) {
    let mut unread = body;
    while let Some((field, end)) = next_field(unread) {
        if field != NAME && field != DOMAINS {
            buffer.put_slice(&unread[..end]);
        }
        unread = &unread[end..];
    }
}

/// Parses the first field of a message. Returns its number and the offset of
/// its end. Returns `None` at the end of the message, or if the field is
/// malformed.
fn next_field(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut unread = bytes;
    let tag = read_varint(&mut unread)?;
    // A varint is read here to its end, so that no bytes of it remain.
    let length = match tag & 7 {
        VARINT => {
            read_varint(&mut unread)?;
            0
        }
        FIXED_64 => 8,
        LENGTH_DELIMITED => usize::try_from(read_varint(&mut unread)?).ok()?,
        FIXED_32 => 4,
        _ => return None,
    };

    unread.get(..length)?;
    let end = bytes.len() - unread.len() + length;
    Some((tag >> 3, end))
}

/// Parses a number in protobuf's variable length, and removes it from `bytes`.
/// Returns `None` if the bytes end before the number, or if it has more than 64
/// bits.
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.has_remaining().then(|| bytes.get_u8())?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_domains_are_replaced_and_the_rest_stays() {
        // name: "v", domains: ["*.a", "b"], field 3: "xy", 6: varint 300,
        // 7: 32 bits, 8: 64 bits.
        let body = [
            &b"\x0a\x01v\x12\x03*.a\x12\x01b"[..],
            b"\x1a\x02xy\x30\xac\x02\x3d\x01\x02\x03\x04",
            b"\x41\x01\x02\x03\x04\x05\x06\x07\x08",
        ]
        .concat();
        let new = rewrite_body(&body, "r/c.a", ["c.a"].into_iter());
        let expected = [
            &b"\x0a\x05r/c.a\x12\x03c.a"[..],
            b"\x1a\x02xy\x30\xac\x02\x3d\x01\x02\x03\x04",
            b"\x41\x01\x02\x03\x04\x05\x06\x07\x08",
        ]
        .concat();
        assert_eq!(new, expected);
        assert_eq!(rewrite_body(&new, "r/c.a", ["c.a"].into_iter()), new);
    }

    #[test]
    fn long_names_have_long_lengths() {
        let long = "x".repeat(300);
        let new = rewrite_body(b"", &long, std::iter::empty());
        assert_eq!(new[..3], [0x0a, 0xac, 0x02]);
        assert_eq!(new.len(), 303);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let broken = [&b"\x1a\x09x"[..], b"\x80", b"\x0f\x01", &[0xff; 12], b""];
        for body in broken {
            assert_eq!(
                rewrite_body(body, "v", std::iter::empty()),
                &b"\x0a\x01v"[..]
            );
        }
    }
}
