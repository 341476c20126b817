//! Formats with commands such as `%PROTOCOL%`: of headers that routes add, and
//! of access logs. A command that is not known is taken: newer versions and
//! extensions have others.

use prost_reflect::DynamicMessage;

use super::read::{Part, all_encoded_texts, inner, messages, report_at, text};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

/// `HeaderValue.value`.
pub(super) const VALUE: u32 = 2;

/// Reports bad formats in the headers that a message of a route adds.
pub(super) fn check_headers(walk: &mut Walk, message: &DynamicMessage) {
    for list in ["request_headers_to_add", "response_headers_to_add"] {
        for (index, option) in messages(message, list).into_iter().enumerate() {
            let header = inner(option, "header");
            let value = header.map_or("", |header| text(header, "value"));
            if let Some(position) = find_fault(value) {
                let place = [
                    Part::Field(list),
                    Part::Index(index),
                    Part::Field("header"),
                    Part::Field("value"),
                ];
                report_at(walk, message, &place, Rejected::Format { position });
            }
        }
    }
}

/// Returns whether the value of an encoded header is a good format, or has no
/// command.
pub(super) fn is_plain_header(header: &[u8]) -> bool {
    all_encoded_texts(header, VALUE, |value| find_fault(value).is_none())
}

/// Reports a bad format that is written as a text.
pub(super) fn check_format_string(walk: &mut Walk, string: &DynamicMessage) {
    let source = inner(string, "text_format_source");
    let inline = source.map_or("", |source| text(source, "inline_string"));
    let in_source = [
        Part::Field("text_format_source"),
        Part::Field("inline_string"),
    ];
    let own = [Part::Field("text_format")];
    for (format, place) in [
        (inline, &in_source[..]),
        (text(string, "text_format"), &own),
    ] {
        if let Some(position) = find_fault(format) {
            report_at(walk, string, place, Rejected::Format { position });
        }
    }
}

/// Finds the first percent sign that begins neither a command nor `%%`, and
/// returns its position.
pub(super) fn find_fault(format: &str) -> Option<usize> {
    let mut position = 0;
    while let Some(found) = format[position..].find('%') {
        position += found;
        let after = &format[position + 1..];
        let Some(len) = command_len(after) else {
            return Some(position);
        };
        position += 1 + len;
    }
    None
}

/// Returns the length of a command after its first percent sign, with the last
/// one: a name, perhaps parameters in parentheses, perhaps a length. `None` if
/// there is none.
fn command_len(text: &str) -> Option<usize> {
    if text.starts_with('%') {
        return Some(1);
    }
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let name_len = text.find(|c| !is_name(c))?;
    if name_len == 0 {
        return None;
    }
    let after_name = &text[name_len..];
    if !after_name.starts_with('(') {
        return Some(name_len + end_len(after_name)?);
    }

    // The parameters may have parentheses: the first that fits ends them.
    let mut ends = after_name.match_indices(')');
    ends.find_map(|(position, _)| {
        Some(name_len + position + 1 + end_len(&after_name[position + 1..])?)
    })
}

/// Returns the length of the end of a command, such as `:10%`.
fn end_len(text: &str) -> Option<usize> {
    let Some(limit) = text.strip_prefix(':') else {
        return text.starts_with('%').then_some(1);
    };
    let digits = limit.find(|c: char| !c.is_ascii_digit())?;
    let is_end = digits > 0 && limit[digits..].starts_with('%');
    is_end.then_some(digits + 2)
}
