//! The reading of Envoy 1.40.
//!
//! Envoy asks its YAML library in turn whether a scalar is a boolean or a whole
//! number of 64 bits, by the habits of YAML 1.1 and of C. Everything else is
//! text, decimals too: a field of a number reads its number from that text, and
//! metadata has the text itself. One difference is deliberate: the tag
//! `!!float` makes a number, so that one with a fraction can be written in
//! metadata at all.

use saphyr_parser::{ScalarStyle, Tag};

use super::{
    super::{error::Problem, tree::Value},
    is_bare, is_null,
};

/// Reads a scalar as Envoy does. A scalar in quotes is a text, unless it has a
/// tag. A single `!` makes a text and `!!float` a number; other tags have no
/// effect.
pub(super) fn read_scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = match tag {
        None => style != ScalarStyle::Plain,
        Some(tag) => is_bare(tag),
    };
    match tag {
        _ if is_text => Value::String(text.to_owned()),
        None if is_null(text) => Value::Null,
        Some(tag) if is_float(tag) => read_float(text),
        _ => read_plain(text),
    }
}

/// Reads a scalar without quotes that is not null: a boolean, a whole number,
/// or otherwise a text.
fn read_plain(text: &str) -> Value {
    if let Some(value) = read_bool(text) {
        return Value::Bool(value);
    }
    match read_integer(text) {
        Some(number) if i32::try_from(number).is_ok() => Value::Number(number.to_string()),
        // Envoy keeps a larger number as text, since a JSON number would not be
        // exact.
        Some(number) => Value::String(number.to_string()),
        None => Value::String(text.to_owned()),
    }
}

/// Reads a boolean of YAML 1.1, in lower case, in upper case or capitalized.
/// Returns `None` for other texts.
fn read_bool(text: &str) -> Option<bool> {
    let after_first = text.get(1..)?;
    let is_lower = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_capitalized = is_upper(&text[..1]) && (is_lower(after_first) || is_upper(after_first));
    if !is_lower(text) && !is_capitalized {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "on" => Some(true),
        "n" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// Reads a whole number of 64 bits in the form of C: decimal, octal after a
/// `0`, hexadecimal after `0x`. Returns `None` if the text is not such a
/// number, or does not fit.
fn read_integer(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, radix) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&unsigned[2..], 16),
        [b'0', _, ..] => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    let number = if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    };
    i64::try_from(number).ok()
}

fn is_float(tag: &Tag) -> bool {
    tag.is_yaml_core_schema() && tag.suffix == "float"
}

/// Reads a scalar with the tag `!!float`: a finite number in decimal stays one.
fn read_float(text: &str) -> Value {
    let is_decimal = text.bytes().all(|b| b"+-.eE0123456789".contains(&b));
    match text.parse::<f64>() {
        Ok(number) if is_decimal && number.is_finite() => Value::Number(number.to_string()),
        _ => read_plain(text),
    }
}

/// Makes the warning about a number that is octal by its leading zero. Returns
/// `None` for other values, and for a number that is the same in decimal.
pub(in super::super) fn octal_warning(text: &str, value: &Value) -> Option<Problem> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let has_zero = unsigned.len() > 1 && unsigned.starts_with('0');
    let decimal = text.parse::<i128>().ok()?;
    let Value::Number(value) = value else {
        return None;
    };
    (has_zero && *value != decimal.to_string()).then(|| Problem::Octal {
        text: text.to_owned(),
        value: value.clone(),
    })
}
