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

impl Walk<'_> {
    /// Anything that is not a message.
    pub(super) fn scalar(&mut self, kind: &Kind, node: &Node) -> Option<Value> {
        match kind {
            Kind::Bool => match &node.value {
                Tree::Bool(value) => Some(Value::Bool(*value)),
                _ => self.wrong_kind(node, "true or false"),
            },
            Kind::String => match &node.value {
                Tree::String(text) => Some(Value::String(text.clone())),
                Tree::Number(_) | Tree::Bool(_) => {
                    self.wrong_kind(node, "a string (put the value in quotes)")
                }
                _ => self.wrong_kind(node, "a string"),
            },
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

    /// The text of a number, which may be in quotes (64 bits do not fit the
    /// numbers of JavaScript).
    fn digits<'n>(&mut self, node: &'n Node, kind: &'static str) -> Option<&'n str> {
        match &node.value {
            Tree::Number(text) | Tree::String(text) => Some(text),
            _ => self.wrong_kind(node, format!("a number ({kind})")),
        }
    }

    fn number<N: TryFrom<i128>>(&mut self, node: &Node, kind: &'static str) -> Option<N> {
        let text = self.digits(node, kind)?;
        match integer(text).and_then(|number| N::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.out_of_range(node, text, kind),
        }
    }

    fn float(&mut self, node: &Node, kind: &'static str) -> Option<f64> {
        let text = self.digits(node, kind)?;
        let named = match text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        };
        let looks = |text: &str| text.bytes().all(|b| b"+-.eE0123456789".contains(&b));
        let parsed = || {
            text.parse::<f64>()
                .ok()
                .filter(|v| looks(text) && v.is_finite())
        };
        match named.or_else(parsed) {
            Some(value) => Some(value),
            None => self.out_of_range(node, text, kind),
        }
    }

    fn narrow(&mut self, node: &Node, value: f64) -> Option<Value> {
        let narrow = value as f32;
        if narrow.is_infinite() && value.is_finite() {
            return self.out_of_range(node, &value.to_string(), "float");
        }
        Some(Value::F32(narrow))
    }

    fn out_of_range<T>(&mut self, node: &Node, text: &str, kind: &'static str) -> Option<T> {
        let value = text.chars().take(40).collect();
        self.wrong(node.at, Problem::OutOfRange { value, kind })
    }

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

    fn enumeration(&mut self, of: &EnumDescriptor, node: &Node) -> Option<Value> {
        match &node.value {
            Tree::Null if of.full_name() == "google.protobuf.NullValue" => {
                Some(Value::EnumNumber(0))
            }
            Tree::Number(_) => self.number(node, "enum number").map(Value::EnumNumber),
            Tree::String(name) => match of.get_value_by_name(name) {
                Some(value) => Some(Value::EnumNumber(value.number())),
                None => {
                    let problem = Problem::UnknownEnumValue {
                        name: name.clone(),
                        of: of.name().to_owned(),
                        near: nearest(name, of.values().map(|v| v.name().to_owned())),
                    };
                    self.wrong(node.at, problem)
                }
            },
            _ => {
                let example = of.default_value().name().to_owned();
                self.wrong_kind(node, format!("a name of {} such as {example}", of.name()))
            }
        }
    }
}

/// A whole number, also when it is written as `1e3` or `5.0`.
fn integer(text: &str) -> Option<i128> {
    if let Ok(number) = text.parse() {
        // More than 64 bits cannot be intended.
        return Some(number);
    }
    let float: f64 = text.parse().ok()?;
    // Beyond 2^53 such a spelling is not exact.
    (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i128)
}

/// Both alphabets, padded or not.
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
