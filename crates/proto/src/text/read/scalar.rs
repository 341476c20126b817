//! Booleans, numbers, text, bytes and enums, in the spellings that Envoy takes.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use prost_reflect::{EnumDescriptor, Kind, Value};

use super::{
    super::{
        error::Problem,
        near::nearest,
        tree::{Node, Value as Tree},
    },
    Walk,
    number::{parse_float, parse_integer},
};

/// The characters of a number that an error quotes.
const QUOTED: usize = 40;

/// The most values that an enum may have for an error to list them.
const LISTED: usize = 12;

impl Walk<'_> {
    /// Reads a value of a kind that is not a message. Returns `None` if the
    /// value is of another kind or out of range, which is reported.
    pub(super) fn read_scalar(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Bool => self.read_bool(node),
            Kind::String => self.read_string(node),
            Kind::Bytes => self.read_bytes(node),
            Kind::Enum(descriptor) => self.read_enum(descriptor, node),
            Kind::Float => self
                .read_float(node, "float")
                .and_then(|number| self.narrow_to_f32(node, number)),
            Kind::Double => self.read_float(node, "double").map(Value::F64),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                self.read_integer(node, "int32").map(Value::I32)
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                self.read_integer(node, "int64").map(Value::I64)
            }
            Kind::Uint32 | Kind::Fixed32 => self.read_integer(node, "uint32").map(Value::U32),
            Kind::Uint64 | Kind::Fixed64 => self.read_integer(node, "uint64").map(Value::U64),
            Kind::Message(_) => self.report_wrong_kind(node, "a scalar"),
        }
    }

    /// Reads a boolean. In quotes, `yes` and `1` are booleans too, but not
    /// `on`.
    fn read_bool(&mut self, node: &Node) -> Option<Value> {
        let value = match &node.value {
            Tree::Bool(value) => Some(*value),
            Tree::String(text) => parse_bool(text),
            _ => None,
        };
        match value {
            Some(value) => Some(Value::Bool(value)),
            None => self.report_wrong_kind(node, "true or false"),
        }
    }

    /// Reads a text. A number or a boolean is not accepted, since its spelling
    /// is lost: `010` and `yes` could not be restored.
    fn read_string(&mut self, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::String(text) => Some(Value::String(text.clone())),
            Tree::Number(_) => self.report_wrong_kind(node, "a string (put the value in quotes)"),
            Tree::Bool(_) => {
                let booleans = "y, n, yes, no, on and off are booleans";
                let expected = format!("a string (put the value in quotes: {booleans})");
                self.report_wrong_kind(node, expected)
            }
            _ => self.report_wrong_kind(node, "a string"),
        }
    }

    /// Returns the text of a number, which may be in quotes (64 bits do not fit
    /// the numbers of JavaScript). Any text in quotes passes here. `kind` is
    /// the name of the number's type in an error.
    fn number_text<'n>(&mut self, node: &'n Node, kind: &'static str) -> Option<&'n str> {
        match &node.value {
            Tree::Number(text) | Tree::String(text) => Some(text),
            _ => self.report_wrong_kind(node, format!("a number ({kind})")),
        }
    }

    /// Reads a whole number, and reports one that does not fit `N`; `kind` is
    /// the name of that type in an error.
    fn read_integer<N: TryFrom<i128>>(&mut self, node: &Node, kind: &'static str) -> Option<N> {
        let text = self.number_text(node, kind)?;
        match parse_integer(text) {
            Some(number) => Some(number),
            None => self.report_out_of_range(node, text, kind),
        }
    }

    /// Reads a floating-point number of 64 bits, also for a field of 32: only
    /// then [`Self::narrow_to_f32`] can tell one that is too large from an
    /// infinite one.
    ///
    /// A number, as JSON has it, must be finite. A text may be infinite or NaN,
    /// too. Texts are the values in quotes, and in Envoy's YAML also plain ones
    /// that are no whole number: there `1.5` is a text, and `inf` and `1e400`
    /// are texts and infinite. Returns `None` for other values, which are
    /// reported. `kind` is the name of the type in the report.
    fn read_float(&mut self, node: &Node, kind: &'static str) -> Option<f64> {
        let text = self.number_text(node, kind)?;
        let is_number = matches!(node.value, Tree::Number(_));
        match parse_float(text).filter(|value| value.is_finite() || !is_number) {
            Some(value) => Some(value),
            None => self.report_out_of_range(node, text, kind),
        }
    }

    /// Rounds a number to 32 bits. Returns `None` for a finite one that becomes
    /// infinite by that, which is reported.
    fn narrow_to_f32(&mut self, node: &Node, value: f64) -> Option<Value> {
        let narrow = value as f32;
        if narrow.is_infinite() && value.is_finite() {
            return self.report_out_of_range(node, &value.to_string(), "float");
        }
        Some(Value::F32(narrow))
    }

    /// Reports a number that does not fit its type, whose name is `kind`.
    /// Always `None`, for the caller to return.
    fn report_out_of_range<T>(&mut self, node: &Node, text: &str, kind: &'static str) -> Option<T> {
        let value = text.chars().take(QUOTED).collect();
        self.report(node.at, Problem::OutOfRange { value, kind })
    }

    /// Reads bytes in base64. Returns `None` for other values, which are
    /// reported.
    fn read_bytes(&mut self, node: &Node) -> Option<Value> {
        let expected = "bytes in base64";
        let Tree::String(text) = &node.value else {
            return self.report_wrong_kind(node, expected);
        };
        match decode_base64(text) {
            Some(bytes) => Some(Value::Bytes(bytes.into())),
            None => self.report_wrong_kind(node, expected),
        }
    }

    /// Reads a value of an enum, by name in any case or by number, with or
    /// without quotes. An unknown number is accepted, as in protobuf; an
    /// unknown name is reported.
    fn read_enum(&mut self, enum_descriptor: &EnumDescriptor, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Number(_) => self
                .read_integer(node, "enum number")
                .map(Value::EnumNumber),
            Tree::String(name) => match find_enum_number(enum_descriptor, name) {
                Some(number) => Some(Value::EnumNumber(number)),
                None => self.report(node.at, unknown_enum_value(enum_descriptor, name)),
            },
            _ => {
                let example = enum_descriptor.default_value().name().to_owned();
                self.report_wrong_kind(
                    node,
                    format!("a name of {} such as {example}", enum_descriptor.name()),
                )
            }
        }
    }
}

/// Parses a boolean in quotes, in upper or lower case.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Returns the number of an enum's value, by its name in any case or by a
/// decimal number. Returns `None` for other texts.
fn find_enum_number(enum_descriptor: &EnumDescriptor, text: &str) -> Option<i32> {
    let exact_match = enum_descriptor.get_value_by_name(text);
    let find_in_any_case = || {
        let mut values = enum_descriptor.values();
        values.find(|value| value.name().eq_ignore_ascii_case(text))
    };
    match exact_match.or_else(find_in_any_case) {
        Some(value) => Some(value.number()),
        None => text.trim_ascii().parse().ok(),
    }
}

/// Makes the mistake of a name that an enum does not have, with the nearest
/// name. If none is near, the mistake has all names, unless they are many.
fn unknown_enum_value(enum_descriptor: &EnumDescriptor, name: &str) -> Problem {
    let nearest_name = nearest(
        name,
        enum_descriptor
            .values()
            .map(|value| value.name().to_owned()),
    );
    let is_listed = nearest_name.is_none() && enum_descriptor.values().len() <= LISTED;
    let listed_values = enum_descriptor.values().filter(|_| is_listed);
    Problem::UnknownEnumValue {
        name: name.to_owned(),
        of: enum_descriptor.name().to_owned(),
        near: nearest_name,
        all: listed_values.map(|value| value.name().to_owned()).collect(),
    }
}

/// Decodes base64 in either of its alphabets, with full padding or none, as
/// protobuf's JSON allows. Returns `None` for other texts.
pub(in super::super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);

    let is_padded = text.len().is_multiple_of(4) && text.ends_with('=');
    let letters = match is_padded {
        true => text.strip_suffix("==").or_else(|| text.strip_suffix('='))?,
        false => text,
    };
    let letters = letters.replace('-', "+").replace('_', "/");
    STANDARD.decode(letters).ok()
}
