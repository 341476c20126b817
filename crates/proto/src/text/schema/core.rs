//! The core schema of YAML 1.2: `on` and `yes` are text, `010` is ten.

use saphyr_parser::{ScalarStyle, Tag};

use super::{
    super::{error::Problem, tree::Value},
    is_bare, is_null,
};

/// Reads a scalar. A scalar in quotes, or with the tag `!!str`, is a text.
/// Other tags of the core schema have no effect.
///
/// # Errors
/// The tag is of another schema.
pub(super) fn read_scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Value, Problem> {
    let mut is_text = style != ScalarStyle::Plain;
    if let Some(tag) = tag {
        let is_core = tag.is_yaml_core_schema();
        if !is_core && !is_bare(tag) {
            return Err(Problem::UnknownTag(tag.to_string()));
        }
        is_text |= is_core && tag.suffix == "str";
    }

    match is_text {
        true => Ok(Value::String(text.to_owned())),
        false => Ok(read_plain(text)),
    }
}

/// Reads a scalar without quotes by the core schema of YAML 1.2: null, a
/// boolean, a number, or otherwise a text.
fn read_plain(text: &str) -> Value {
    match text {
        _ if is_null(text) => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match read_plain_number(text) {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
    }
}

/// Reads a number of the core schema in the form of [`Value::Number`]: in
/// decimal, without a plus, or by its name in JSON. Returns `None` if the text
/// is not a number.
fn read_plain_number(text: &str) -> Option<String> {
    let number = match text {
        ".nan" | ".NaN" | ".NAN" => "NaN",
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => "Infinity",
        "-.inf" | "-.Inf" | "-.INF" => "-Infinity",
        _ if is_decimal(text) => text.strip_prefix('+').unwrap_or(text),
        _ => return read_prefixed_number(text).map(|number| number.to_string()),
    };
    Some(number.to_owned())
}

/// Reads a whole number with the prefix `0x` or `0o`. Returns `None` if the
/// text is not such a number, or the number does not fit 64 bits.
fn read_prefixed_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.split_at_checked(2)? {
        ("0x", digits) => (digits, 16),
        ("0o", digits) => (digits, 8),
        _ => return None,
    };
    u64::from_str_radix(digits, radix).ok()
}

/// Returns whether a text is a decimal number, which matches
/// `[-+]? ( [0-9]+ ( \. [0-9]* )? | \. [0-9]+ ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        !unsigned.is_empty() && is_digits(unsigned)
    };

    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mantissa = match unsigned.split_once(['e', 'E']) {
        Some((_, exponent)) if !is_exponent(exponent) => return false,
        Some((mantissa, _)) => mantissa,
        None => unsigned,
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digit = !whole.is_empty() || !fraction.is_empty();
    has_digit && is_digits(whole) && is_digits(fraction)
}
