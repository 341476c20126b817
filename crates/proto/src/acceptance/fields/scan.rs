//! The search of a body, as bytes, for fields that are not in the table.

use super::SupportedFields;
use super::table::{Field, Inner, Message, Shape};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::canonical::MAX_DEPTH;
use crate::descriptor::{self, full_name};
use crate::vhosts;

/// `Any.type_url`, and the key of an entry of a map.
const FIRST: u32 = 1;
/// `Any.value`, and the value of an entry of a map.
const SECOND: u32 = 2;

impl SupportedFields {
    /// Reports the fields of a body that are set and not supported. Bytes that
    /// are no message end the scan: decoding, which comes before, reports them.
    pub(in crate::acceptance) fn scan(
        &self,
        type_url: &str,
        body: &[u8],
        findings: &mut Findings<'_>,
    ) {
        if let Some(message) = self.table.find(full_name(type_url)) {
            self.scan_message(message, body, &Place::ROOT, 0, findings);
        }
    }

    /// Scans the fields of a message, and reports those that are not in the
    /// table. `depth` is the number of enclosing messages.
    fn scan_message(
        &self,
        message: &Message,
        body: &[u8],
        place: &Place<'_>,
        depth: usize,
        findings: &mut Findings<'_>,
    ) {
        // Prost refuses messages of this depth, but each `Any` starts anew.
        if depth > MAX_DEPTH {
            return;
        }
        let mut counts = Counts::default();
        let mut last_unsupported = None;
        for wire_field in vhosts::fields(body) {
            let Ok(wire_field) = wire_field else { return };
            let Some((row, field)) = message.field(wire_field.number) else {
                // The items of a list follow each other, and are reported only once.
                if message.is_listed && last_unsupported != Some(wire_field.number) {
                    last_unsupported = Some(wire_field.number);
                    report_unsupported(message, wire_field.number, place, findings);
                }
                continue;
            };
            if field.inner == Inner::All {
                continue;
            }

            let (key, value) = match field.shape {
                Shape::Map => entry_parts(wire_field.value),
                _ => ("", wire_field.value),
            };

            let inner_place = match field.shape {
                Shape::One => place.field(&field.name),
                Shape::List => {
                    let index = counts.next_index(row, message.fields.len());
                    place.item(&field.name, index)
                }
                Shape::Map => place.entry(&field.name, key),
            };
            self.scan_value(field, value, &inner_place, depth + 1, findings);
        }
    }

    /// Scans the message in a field. Does nothing if the table has no row for
    /// the message.
    fn scan_value(
        &self,
        field: &Field,
        value: &[u8],
        place: &Place<'_>,
        depth: usize,
        findings: &mut Findings<'_>,
    ) {
        let (message, body) = match field.inner {
            Inner::All => return,
            Inner::Message(index) => (self.table.get(index), value),
            Inner::Any => {
                let (type_url, body) = any_parts(value);
                (self.table.find(full_name(type_url)), body)
            }
        };

        if let Some(message) = message {
            self.scan_message(message, body, place, depth, findings);
        }
    }
}

/// The number of items so far of each list of a message. It allocates with the
/// first list.
#[derive(Default)]
struct Counts {
    by_row: Vec<usize>,
}

impl Counts {
    /// Returns the index of the next item of the list in a row of the table;
    /// `row_count` is the number of rows.
    fn next_index(&mut self, row: usize, row_count: usize) -> usize {
        if self.by_row.is_empty() {
            self.by_row.resize(row_count, 0);
        }
        match self.by_row.get_mut(row) {
            Some(count) => {
                *count += 1;
                *count - 1
            }
            None => 0,
        }
    }
}

/// Reports a field by its name, or by its number if the descriptors do not know
/// the field.
fn report_unsupported(
    message: &Message,
    number: u32,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let descriptor = descriptor::message(&message.name);
    let field = descriptor.and_then(|descriptor| descriptor.get_field(number));
    match field {
        Some(field) => findings.unsupported(&place.field(field.name())),
        None => findings.unsupported(&place.field(&format!("[{number}]"))),
    }
}

/// Returns the key, if it is a text, and the value of an entry of a map.
fn entry_parts(entry: &[u8]) -> (&str, &[u8]) {
    let (key, value) = read_two_fields(entry);
    (std::str::from_utf8(key).unwrap_or_default(), value)
}

/// Returns the type and the body of an `Any`.
fn any_parts(any: &[u8]) -> (&str, &[u8]) {
    let (type_url, body) = read_two_fields(any);
    (std::str::from_utf8(type_url).unwrap_or_default(), body)
}

/// Returns the values of the first two fields of a message. If a field occurs
/// several times, its last value counts.
fn read_two_fields(message: &[u8]) -> (&[u8], &[u8]) {
    let (mut first, mut second): (&[u8], &[u8]) = (&[], &[]);
    for field in vhosts::fields(message) {
        match field {
            Ok(field) if field.number == FIRST => first = field.value,
            Ok(field) if field.number == SECOND => second = field.value,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    (first, second)
}
