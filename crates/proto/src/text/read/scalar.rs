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
    /// Reads a value that is not a message.
    pub(super) fn scalar(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Bool => self.boolean(node),
            Kind::String => self.string(node),
            Kind::Bytes => self.bytes(node),
            Kind::Enum(of) => self.enumeration(of, node),
            Kind::Float => self.float(node, "float").and_then(|v| self.narrow(node, v)),
            Kind::Double => self.float(node, "double").map(Value::F64),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                self.number(node, "int32").map(Value::I32)
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                self.number(node, "int64").map(Value::I64)
            }
            Kind::Uint32 | Kind::Fixed32 => self.number(node, "uint32").map(Value::U32),
            Kind::Uint64 | Kind::Fixed64 => self.number(node, "uint64").map(Value::U64),
            Kind::Message(_) => self.wrong_kind(node, "a scalar"),
        }
    }

    /// Reads a boolean; `yes` and `on` are texts.
    fn boolean(&mut self, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Bool(value) => Some(Value::Bool(*value)),
            _ => self.wrong_kind(node, "true or false"),
        }
    }

    /// Reads a text. A number or a boolean is none: YAML takes `1.10` for a
    /// number, and the text could not be restored.
    fn string(&mut self, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::String(text) => Some(Value::String(text.clone())),
            Tree::Number(_) | Tree::Bool(_) => {
                self.wrong_kind(node, "a string (put the value in quotes)")
            }
            _ => self.wrong_kind(node, "a string"),
        }
    }

    /// Returns the text of a number, which may be in quotes (64 bits do not fit
    /// the numbers of JavaScript).
    fn digits<'n>(&mut self, node: &'n Node, kind: &'static str) -> Option<&'n str> {
        match &node.value {
            Tree::Number(text) | Tree::String(text) => Some(text),
            _ => self.wrong_kind(node, format!("a number ({kind})")),
        }
    }

    /// Reads a whole number that fits `N`; `kind` is its name in an error.
    fn number<N: TryFrom<i128>>(&mut self, node: &Node, kind: &'static str) -> Option<N> {
        let text = self.digits(node, kind)?;
        match integer(text).and_then(|number| N::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.out_of_range(node, text, kind),
        }
    }

    /// Reads a number of 64 bits, or one of the names that JSON has for those
    /// without digits.
    fn float(&mut self, node: &Node, kind: &'static str) -> Option<f64> {
        let text = self.digits(node, kind)?;
        let named = match text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        };
        // Rust also reads "inf" and "nan".
        let is_decimal = |text: &str| text.bytes().all(|b| b"+-.eE0123456789".contains(&b));
        let parsed = || {
            let value = text.parse::<f64>().ok();
            value.filter(|value| is_decimal(text) && value.is_finite())
        };
        match named.or_else(parsed) {
            Some(value) => Some(value),
            None => self.out_of_range(node, text, kind),
        }
    }

    /// Rounds a number to 32 bits; one that becomes infinite is a mistake.
    fn narrow(&mut self, node: &Node, value: f64) -> Option<Value> {
        let narrow = value as f32;
        if narrow.is_infinite() && value.is_finite() {
            return self.out_of_range(node, &value.to_string(), "float");
        }
        Some(Value::F32(narrow))
    }

    fn out_of_range<T>(&mut self, node: &Node, text: &str, kind: &'static str) -> Option<T> {
        let value = text.chars().take(QUOTED).collect();
        self.wrong(node.at, Problem::OutOfRange { value, kind })
    }

    /// Reads bytes, which are written in base64.
    fn bytes(&mut self, node: &Node) -> Option<Value> {
        let expected = "bytes in base64";
        let Tree::String(text) = &node.value else {
            return self.wrong_kind(node, expected);
        };
        match decode_base64(text) {
            Some(bytes) => Some(Value::Bytes(bytes.into())),
            None => self.wrong_kind(node, expected),
        }
    }

    /// Reads a value of an enum, by name or by number. An unknown number
    /// passes, as in protobuf; an unknown name is a mistake.
    fn enumeration(&mut self, of: &EnumDescriptor, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Null if of.full_name() == "google.protobuf.NullValue" => {
                Some(Value::EnumNumber(0))
            }
            Tree::Number(_) => self.number(node, "enum number").map(Value::EnumNumber),
            Tree::String(name) => match of.get_value_by_name(name) {
                Some(value) => Some(Value::EnumNumber(value.number())),
                None => self.wrong(node.at, unknown_enum_value(of, name)),
            },
            _ => {
                let example = of.default_value().name().to_owned();
                self.wrong_kind(node, format!("a name of {} such as {example}", of.name()))
            }
        }
    }
}

/// Reports a name that an enum does not have, with the nearest one.
fn unknown_enum_value(of: &EnumDescriptor, name: &str) -> Problem {
    Problem::UnknownEnumValue {
        name: name.to_owned(),
        of: of.name().to_owned(),
        near: nearest(name, of.values().map(|v| v.name().to_owned())),
    }
}

/// Parses a whole number, also when it is written as `1e3` or `5.0`.
fn integer(text: &str) -> Option<i128> {
    /// 2^53: from there on not every whole number is a float, so that such a
    /// spelling is not exact.
    const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let float: f64 = text.parse().ok()?;
    (float.fract() == 0.0 && float.abs() < FIRST_INEXACT).then_some(float as i128)
}

/// Decodes base64 in either of its alphabets, padded or not.
pub(in super::super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    STANDARD
        .decode(text)
        .or_else(|_| URL_SAFE.decode(text))
        .ok()
}
