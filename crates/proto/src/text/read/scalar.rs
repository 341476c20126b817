//! Numbers, text, bytes and enums.

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
};

/// The characters of a number that an error quotes.
const QUOTED: usize = 40;

impl Walk<'_> {
    /// Reads a value of a kind that is not a message. One of another kind, or
    /// out of its range, is reported.
    pub(super) fn read_scalar(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Bool => self.read_bool(node),
            Kind::String => self.read_string(node),
            Kind::Bytes => self.read_bytes(node),
            Kind::Enum(of) => self.read_enum(of, node),
            Kind::Float => self
                .read_float(node, "float")
                .and_then(|v| self.narrow_to_f32(node, v)),
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

    /// Reads a boolean; `yes` and `on` are texts.
    fn read_bool(&mut self, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Bool(value) => Some(Value::Bool(*value)),
            _ => self.report_wrong_kind(node, "true or false"),
        }
    }

    /// Reads a text. A number or a boolean is none: YAML takes `1.10` for a
    /// number, and the text could not be restored.
    fn read_string(&mut self, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::String(text) => Some(Value::String(text.clone())),
            Tree::Number(_) | Tree::Bool(_) => {
                self.report_wrong_kind(node, "a string (put the value in quotes)")
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
        match parse_integer(text).and_then(|number| N::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.report_out_of_range(node, text, kind),
        }
    }

    /// Reads a floating-point number of 64 bits, or one of the names that JSON
    /// has for those without digits. Anything else is reported; `kind` is the
    /// name of the type in an error.
    fn read_float(&mut self, node: &Node, kind: &'static str) -> Option<f64> {
        let text = self.number_text(node, kind)?;
        let value = match text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => parse_decimal(text),
        };
        match value {
            Some(value) => Some(value),
            None => self.report_out_of_range(node, text, kind),
        }
    }

    /// Rounds a number to 32 bits. A finite one that becomes infinite by that
    /// is reported.
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

    /// Reads bytes, which are written in base64. Anything else is reported.
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

    /// Reads a value of an enum, by name or by number. An unknown number
    /// passes, as in protobuf; an unknown name is reported. `null` is the value
    /// of `NullValue`.
    fn read_enum(&mut self, of: &EnumDescriptor, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Null if of.full_name() == "google.protobuf.NullValue" => {
                Some(Value::EnumNumber(0))
            }
            Tree::Number(_) => self
                .read_integer(node, "enum number")
                .map(Value::EnumNumber),
            Tree::String(name) => match of.get_value_by_name(name) {
                Some(value) => Some(Value::EnumNumber(value.number())),
                None => self.report(node.at, unknown_enum_value(of, name)),
            },
            _ => {
                let example = of.default_value().name().to_owned();
                self.report_wrong_kind(node, format!("a name of {} such as {example}", of.name()))
            }
        }
    }
}

/// Makes the mistake of a name that an enum does not have, with the nearest
/// one.
fn unknown_enum_value(of: &EnumDescriptor, name: &str) -> Problem {
    Problem::UnknownEnumValue {
        name: name.to_owned(),
        of: of.name().to_owned(),
        near: nearest(name, of.values().map(|v| v.name().to_owned())),
    }
}

/// Parses a finite floating-point number that is written in digits; `None` for
/// any other text.
fn parse_decimal(text: &str) -> Option<f64> {
    // Rust also reads "inf" and "nan".
    let is_decimal = text.bytes().all(|b| b"+-.eE0123456789".contains(&b));
    let value = text.parse::<f64>().ok();
    value.filter(|value| is_decimal && value.is_finite())
}

/// Parses a whole number, also when it is written as `1e3` or `5.0`; `None` for
/// any other text.
fn parse_integer(text: &str) -> Option<i128> {
    /// 2^53: from there on not every whole number is a float, so that such a
    /// spelling is not exact.
    const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let float: f64 = text.parse().ok()?;
    let is_exact = float.fract() == 0.0 && float.abs() < FIRST_INEXACT;
    is_exact.then_some(float as i128)
}

/// Decodes base64 in either of its alphabets, padded or not, as protobuf's JSON
/// allows it; `None` if it is neither.
pub(in super::super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

    let decoded = STANDARD.decode(text);
    decoded.or_else(|_| URL_SAFE.decode(text)).ok()
}
