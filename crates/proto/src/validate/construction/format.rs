//! Formats with commands such as `%PROTOCOL%`: of headers that routes add, and
//! of access logs. A command that is not known is taken: newer versions and
//! extensions have others.

use prost_reflect::DynamicMessage;

use super::read::{Part, all_encoded_texts, inner, messages, report_at, text};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

/// `HeaderValue.value`.
pub(super) const VALUE: u32 = 2;

/// Reports invalid formats in the headers that a part of a route adds.
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

/// Reports an invalid format that is a text.
pub(super) fn check_format_string(walk: &mut Walk, string: &DynamicMessage) {
    let source = inner(string, "text_format_source");
    let inline = source.map_or("", |source| text(source, "inline_string"));
    let source_path = [
        Part::Field("text_format_source"),
        Part::Field("inline_string"),
    ];
    let text_format_path = [Part::Field("text_format")];
    for (format, place) in [
        (inline, &source_path[..]),
        (text(string, "text_format"), &text_format_path),
    ] {
        if let Some(position) = find_fault(format) {
            report_at(walk, string, place, Rejected::Format { position });
        }
    }
}

/// Returns the position of the first percent sign that begins neither a command
/// nor `%%`. Returns `None` if there is no such sign.
pub(super) fn find_fault(format: &str) -> Option<usize> {
    let mut position = 0;
    while let Some(next_percent) = format[position..].find('%') {
        position += next_percent;
        let tail = &format[position + 1..];
        let Some(len) = command_len(tail) else {
            return Some(position);
        };
        position += 1 + len;
    }
    None
}

/// Returns the length of a command after its first percent sign, with the last
/// one: a name, optional parameters in parentheses, and an optional length.
/// Returns `None` if the text does not begin with a command.
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

    // The parameters may contain parentheses, so they end at the first one that
    // the end of a command follows.
    let mut parentheses = after_name.match_indices(')');
    parentheses.find_map(|(position, _)| {
        Some(name_len + position + 1 + end_len(&after_name[position + 1..])?)
    })
}

/// Returns the length of the end of a command, such as `:10%`. Returns `None`
/// if the text does not begin with one.
fn end_len(text: &str) -> Option<usize> {
    let Some(limit) = text.strip_prefix(':') else {
        return text.starts_with('%').then_some(1);
    };
    let digits = limit.find(|c: char| !c.is_ascii_digit())?;
    let is_end = digits > 0 && limit[digits..].starts_with('%');
    is_end.then_some(digits + 2)
}
