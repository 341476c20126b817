//! A walk over the wire form that counts before anything is allocated.
//!
//! An empty string costs two bytes to send and twenty-four to hold, a map entry
//! more than twice that, so a size limit alone lets a sender take many times
//! the memory of what it sends. The scan follows a [`Shape`] (which fields are
//! text, names or nested messages), counts them in one budget, and stops at the
//! first limit that is passed. The node of a request is one field to it, so a
//! request with 60 KB of node takes less than a microsecond.

use super::{inbound::DecodeError, limits::Limits};

/// The fields of one message that matter to the scan.
pub(crate) struct Shape {
    /// The name of the message, for errors.
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Entry],
}

/// One field.
pub(crate) struct Entry {
    number: u32,
    name: &'static str,
    kind: Kind,
}

enum Kind {
    /// Counted; longer than this is an error.
    Text(fn(&Limits) -> usize),
    /// Counted only; too long is refused later, one by one (S72).
    Name,
    /// Counted and walked.
    Message(&'static Shape),
    /// Counted, walked, and one level deeper in constraints.
    Constraints(&'static Shape),
}

/// Makes the entry of a text; one longer than `max` is an error.
pub(crate) const fn text(number: u32, name: &'static str, max: fn(&Limits) -> usize) -> Entry {
    let kind = Kind::Text(max);
    Entry { number, name, kind }
}

/// Makes the entry of a resource's name, which is counted and may have any
/// length.
pub(crate) const fn name(number: u32, name: &'static str) -> Entry {
    let kind = Kind::Name;
    Entry { number, name, kind }
}

/// Makes the entry of a nested message, whose fields are scanned as well.
pub(crate) const fn message(number: u32, name: &'static str, shape: &'static Shape) -> Entry {
    let kind = Kind::Message(shape);
    Entry { number, name, kind }
}

/// Makes the entry of a nested message that is one level of constraints, of
/// which only so many may be inside each other.
pub(crate) const fn constraints(number: u32, name: &'static str, shape: &'static Shape) -> Entry {
    let kind = Kind::Constraints(shape);
    Entry { number, name, kind }
}

/// An entry of a `map<string, string>` of parameters.
pub(crate) static ENTRY: Shape = Shape {
    name: "map entry",
    fields: &[
        text(1, "key", |l| l.text_bytes),
        text(2, "value", |l| l.text_bytes),
    ],
};

/// Checks the limits of a message before it is decoded: its length, at most
/// `max` bytes, and the fields in it.
///
/// # Errors
/// The message passes a limit, or has a malformed field. The error is the first
/// of these.
pub(crate) fn check_message(
    shape: &'static Shape,
    bytes: &[u8],
    max: usize,
    limits: &Limits,
) -> Result<(), DecodeError> {
    let byte_count = bytes.len();
    if byte_count > max {
        return Err(DecodeError::MessageTooLong {
            message: shape.name,
            len: byte_count,
            max,
        });
    }

    let mut scan = Scan {
        limits,
        entries: 0,
        root: shape.name,
    };
    scan.scan_message(shape, bytes, 0)
}

struct Scan<'a> {
    limits: &'a Limits,
    /// The fields counted so far, of all messages.
    entries: usize,
    /// The name of the outermost message, for errors.
    root: &'static str,
}

impl Scan<'_> {
    /// Scans the fields of one message. Skips fields that are not in the shape.
    /// Only constraints contain themselves, and `depth` counts those, so the
    /// recursion is bounded.
    fn scan_message(
        &mut self,
        shape: &'static Shape,
        mut bytes: &[u8],
        depth: usize,
    ) -> Result<(), DecodeError> {
        while !bytes.is_empty() {
            let (number, value) = take_field(&mut bytes).ok_or(DecodeError::Truncated {
                message: shape.name,
            })?;

            // The decoder refuses a field of the wrong wire type.
            let Some(value) = value else { continue };
            let Some(entry) = shape.fields.iter().find(|entry| entry.number == number) else {
                continue;
            };
            self.scan_entry(shape, entry, value, depth)?;
        }
        Ok(())
    }

    /// Counts one field of the shape. Checks the length of a text, and scans
    /// the fields of a nested message.
    ///
    /// # Errors
    /// A limit is passed, or a nested field is malformed.
    fn scan_entry(
        &mut self,
        shape: &'static Shape,
        entry: &Entry,
        value: &[u8],
        depth: usize,
    ) -> Result<(), DecodeError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(DecodeError::TooMany {
                message: self.root,
                max: self.limits.entries,
            });
        }

        match entry.kind {
            Kind::Name => Ok(()),
            Kind::Text(max) => check_len(shape, entry, value.len(), max(self.limits)),
            Kind::Message(inner) => self.scan_message(inner, value, depth),
            Kind::Constraints(_) if depth >= self.limits.constraint_depth => {
                Err(DecodeError::TooDeep {
                    message: self.root,
                    max: self.limits.constraint_depth,
                })
            }
            Kind::Constraints(inner) => self.scan_message(inner, value, depth + 1),
        }
    }
}

/// Checks that a text has at most `max` bytes.
fn check_len(shape: &Shape, entry: &Entry, len: usize, max: usize) -> Result<(), DecodeError> {
    if len <= max {
        return Ok(());
    }
    Err(DecodeError::TextTooLong {
        message: shape.name,
        field: entry.name,
        len,
        max,
    })
}

/// The bits of a key that are the wire type, and its values.
const WIRE_TYPE: u64 = 7;
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Removes the first field from the bytes, which must not be empty. Returns its
/// number, and its value if it is length-delimited. Returns `None` if the bytes
/// end inside the field, or its key is invalid.
pub(crate) fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, Option<&'a [u8]>)> {
    let key = take_varint(bytes)?;
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;

    match key & WIRE_TYPE {
        VARINT => take_varint(bytes).map(|_| (number, None)),
        FIXED_64 => take_bytes(bytes, 8).map(|_| (number, None)),
        DELIMITED => {
            let len = usize::try_from(take_varint(bytes)?).ok()?;
            take_bytes(bytes, len).map(|value| (number, Some(value)))
        }
        FIXED_32 => take_bytes(bytes, 4).map(|_| (number, None)),
        // Groups are refused: no message here has one, and no known client sends
        // one.
        _ => None,
    }
}

/// Takes the first `len` bytes off; `None` if there are fewer.
fn take_bytes<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(len)?;
    *bytes = tail;
    Some(head)
}

/// Removes a varint from the bytes. Returns `None` if the varint has more than
/// ten bytes. Ignores bits beyond the 64th, since the decoder refuses them.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *take_bytes(bytes, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
