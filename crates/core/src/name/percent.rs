//! Percent-encoding, in the one spelling that Envoy writes: control characters
//! and everything from `~` up are encoded in upper case, and so are the
//! characters that would end the part of the name. Anything else is plain.
//!
//! RFC 3986 would leave `~` plain and encode a space. Envoy compares some names
//! byte for byte and other clients compare them decoded, so its spelling is the
//! one that all of them recognise.

use std::borrow::Cow;

use super::NameError;

/// Characters that end an authority.
pub(super) const AUTHORITY: &[u8] = b"%/?#";
/// Characters that end an id, or that Envoy encodes in one.
pub(super) const ID: &[u8] = b"%:?#[]";
/// Characters that end a context parameter's key or value.
pub(super) const CONTEXT: &[u8] = b"%#[]&=";

/// Appends `text` to `output`. Bytes that are `reserved`, `~`, or no printable
/// ASCII are percent-encoded.
pub(super) fn encode_into(output: &mut String, text: &str, reserved: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        let is_printable = (b' '..b'~').contains(&byte);
        if is_printable && !reserved.contains(&byte) {
            output.push(char::from(byte));
        } else {
            output.push('%');
            output.push(char::from(HEX[usize::from(byte >> 4)]));
            output.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Decodes percent-encoded bytes. A text without any is not copied. A `%`
/// without two digits is an error, and so is a result that is not UTF-8.
/// `offset` is that of `text` in the whole name, for the error.
pub(super) fn decode(text: &str, offset: usize) -> Result<Cow<'_, str>, NameError> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }

    let mut bytes = Vec::with_capacity(text.len());
    let mut unread = text.as_bytes();
    while let Some((&byte, tail)) = unread.split_first() {
        unread = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }

        let digits = match *tail {
            [high, low, ..] => hex_digit(high).zip(hex_digit(low)),
            _ => None,
        };
        let Some((high, low)) = digits else {
            let offset = offset + text.len() - tail.len() - 1;
            return Err(NameError::BadEscape { at: offset });
        };
        bytes.push(high * 16 + low);
        unread = &tail[2..];
    }

    match String::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(_) => Err(NameError::NotUtf8 { at: offset }),
    }
}

/// Returns the value of a hexadecimal digit, in either case; `None` for another
/// byte.
fn hex_digit(hex: u8) -> Option<u8> {
    // Below sixteen, so the cast loses nothing.
    char::from(hex).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, reserved: &[u8]) -> String {
        let mut out = String::new();
        encode_into(&mut out, text, reserved);
        out
    }

    #[test]
    fn encodes_as_envoy_does() {
        assert_eq!(encoded("a b-._*}", ID), "a b-._*}");
        assert_eq!(encoded("~\u{7f}\u{1f}\n", ID), "%7E%7F%1F%0A");
        assert_eq!(encoded("é", ID), "%C3%A9");
        assert_eq!(encoded("%:?#[]/&=", ID), "%25%3A%3F%23%5B%5D/&=");
        assert_eq!(encoded("%:?#[]/&=", AUTHORITY), "%25:%3F%23[]%2F&=");
        assert_eq!(encoded("%:?#[]/&=", CONTEXT), "%25:?%23%5B%5D/%26%3D");
    }

    #[test]
    fn decodes_either_case() {
        assert_eq!(decode("plain", 0), Ok("plain".into()));
        assert_eq!(decode("%C3%a9%2f~%5A", 0), Ok("é/~Z".into()));
    }

    #[test]
    fn says_which_escape_is_bad() {
        for (text, at) in [("a%", 11), ("%4", 10), ("ab%4g", 12), ("%41%g4", 13)] {
            assert_eq!(decode(text, 10), Err(NameError::BadEscape { at }), "{text}");
        }
        assert_eq!(decode("a%FF", 7), Err(NameError::NotUtf8 { at: 7 }));
    }
}
