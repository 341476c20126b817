//! The rules of one field, read from its options.

use std::{collections::BTreeSet, fmt};

use bytes::Bytes;
use prost_reflect::{DynamicMessage, Value};
use regex::Regex;

use crate::text::{print_duration, print_timestamp};

/// All rules of one field.
#[derive(Default)]
pub(crate) struct Rules {
    pub(super) required: bool,
    /// Whether the message in the field is not validated.
    pub(crate) skip: bool,
    /// Whether the empty value is always valid.
    pub(crate) ignore_empty: bool,
    pub(crate) check: Option<Check>,
}

/// The rules that depend on the kind of field.
pub(crate) enum Check {
    Number(Numbers),
    Bool(bool),
    Text(Text),
    Bytes(Octets),
    Enum(Enums),
    List(Lists),
    Map(Maps),
    Any(Anys),
}

/// Numbers, durations and timestamps.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(super) equal: Option<Number>,
    pub(super) lt: Option<Number>,
    pub(super) lte: Option<Number>,
    pub(super) gt: Option<Number>,
    pub(super) gte: Option<Number>,
    pub(super) within: Vec<Number>,
    pub(super) without: Vec<Number>,
}

/// A number of any type; two of one field are of one variant.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
    /// Nanoseconds.
    Duration(i128),
    /// Nanoseconds since 1970.
    Timestamp(i128),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS: i128 = 1_000_000_000;
        let parts = |nanos: i128| ((nanos / NANOS) as i64, (nanos % NANOS) as i32);
        match *self {
            Number::Int(v) => write!(f, "{v}"),
            Number::Float(v) => write!(f, "{v}"),
            Number::Duration(v) => {
                let (seconds, nanos) = parts(v);
                f.write_str(&print_duration(seconds, nanos))
            }
            Number::Timestamp(v) => {
                let (seconds, nanos) = (v.div_euclid(NANOS), v.rem_euclid(NANOS));
                f.write_str(&print_timestamp(seconds as i64, nanos as i32))
            }
        }
    }
}

/// Bounds on a number of items.
#[derive(Default)]
pub(crate) struct Count {
    pub(super) equal: Option<u64>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// Strings.
#[derive(Default)]
pub(crate) struct Text {
    pub(super) equal: Option<String>,
    pub(super) chars: Count,
    pub(super) bytes: Count,
    pub(super) pattern: Option<Regex>,
    pub(super) prefix: Option<String>,
    pub(super) suffix: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) not_contains: Option<String>,
    pub(super) within: BTreeSet<String>,
    pub(super) without: BTreeSet<String>,
    pub(super) format: Option<Format>,
}

/// A form that text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Email,
    Hostname,
    Ip,
    Ipv4,
    Ipv6,
    Uri,
    UriRef,
    Address,
    Uuid,
    HeaderName { strict: bool },
    HeaderValue { strict: bool },
}

/// Bytes.
#[derive(Default)]
pub(crate) struct Octets {
    pub(super) equal: Option<Bytes>,
    pub(super) len: Count,
    pub(super) prefix: Option<Bytes>,
    pub(super) suffix: Option<Bytes>,
    pub(super) contains: Option<Bytes>,
    pub(super) within: Vec<Bytes>,
    pub(super) without: Vec<Bytes>,
    /// Lengths of an address in bytes: 4, 16, or both.
    pub(super) ip: Vec<usize>,
}

/// Enums.
#[derive(Default)]
pub(crate) struct Enums {
    pub(super) equal: Option<i32>,
    pub(super) defined_only: bool,
    pub(super) within: Vec<i32>,
    pub(super) without: Vec<i32>,
}

/// Lists.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) items: Count,
    pub(crate) unique: bool,
    pub(crate) each: Option<Box<Rules>>,
}

/// Maps.
#[derive(Default)]
pub(crate) struct Maps {
    pub(crate) pairs: Count,
    pub(crate) keys: Option<Box<Rules>>,
    pub(crate) values: Option<Box<Rules>>,
}

/// `Any`.
#[derive(Default)]
pub(crate) struct Anys {
    pub(super) within: BTreeSet<String>,
    pub(super) without: BTreeSet<String>,
}

impl Rules {
    /// From a `validate.FieldRules`.
    pub(super) fn read(message: &DynamicMessage) -> Self {
        let mut rules = Self::default();
        for (field, value) in message.fields() {
            let Some(inner) = value.as_message() else {
                continue;
            };
            let from = From(inner);
            rules.required |= from.flag("required");
            rules.skip |= from.flag("skip");
            rules.ignore_empty |= from.flag("ignore_empty");
            rules.check = rules.check.or(from.check(field.name()));
        }
        rules
    }
}

/// Reads one message of rules; an unset field is no rule.
struct From<'a>(&'a DynamicMessage);

impl From<'_> {
    fn check(&self, kind: &str) -> Option<Check> {
        Some(match kind {
            "message" => return None,
            "bool" => Check::Bool(self.get("const")?.as_bool()?),
            "string" => Check::Text(self.text()),
            "bytes" => Check::Bytes(self.octets()),
            "enum" => Check::Enum(Enums {
                equal: self.get("const").and_then(|v| v.as_i32()),
                defined_only: self.flag("defined_only"),
                within: self.list("in", Value::as_i32),
                without: self.list("not_in", Value::as_i32),
            }),
            "repeated" => Check::List(Lists {
                items: self.count("", "min_items", "max_items"),
                unique: self.flag("unique"),
                each: self.nested("items"),
            }),
            "map" => Check::Map(Maps {
                pairs: self.count("", "min_pairs", "max_pairs"),
                keys: self.nested("keys"),
                values: self.nested("values"),
            }),
            "any" => Check::Any(Anys {
                within: self.texts("in"),
                without: self.texts("not_in"),
            }),
            _ => Check::Number(Numbers {
                equal: self.number("const"),
                lt: self.number("lt"),
                lte: self.number("lte"),
                gt: self.number("gt"),
                gte: self.number("gte"),
                within: self.list("in", number),
                without: self.list("not_in", number),
            }),
        })
    }

    fn text(&self) -> Text {
        let string = |name| Some(self.get(name)?.as_str()?.to_owned());
        Text {
            equal: string("const"),
            chars: self.count("len", "min_len", "max_len"),
            bytes: self.count("len_bytes", "min_bytes", "max_bytes"),
            // A pattern that does not compile is no rule; a test proves that all do.
            pattern: string("pattern").and_then(|p| Regex::new(&p).ok()),
            prefix: string("prefix"),
            suffix: string("suffix"),
            contains: string("contains"),
            not_contains: string("not_contains"),
            within: self.texts("in"),
            without: self.texts("not_in"),
            format: self.format(),
        }
    }

    fn format(&self) -> Option<Format> {
        let strict = self
            .get("strict")
            .is_none_or(|v| v.as_bool() != Some(false));
        let known = self.get("well_known_regex");
        match known.and_then(|v| v.as_enum_number()) {
            Some(1) => return Some(Format::HeaderName { strict }),
            Some(2) => return Some(Format::HeaderValue { strict }),
            _ => {}
        }
        [
            ("email", Format::Email),
            ("hostname", Format::Hostname),
            ("ip", Format::Ip),
            ("ipv4", Format::Ipv4),
            ("ipv6", Format::Ipv6),
            ("uri", Format::Uri),
            ("uri_ref", Format::UriRef),
            ("address", Format::Address),
            ("uuid", Format::Uuid),
        ]
        .into_iter()
        .find_map(|(name, format)| self.flag(name).then_some(format))
    }

    fn octets(&self) -> Octets {
        let bytes = |name| Some(self.get(name)?.as_bytes()?.clone());
        let list = |name| self.list(name, |v| v.as_bytes().cloned());
        let mut ip = Vec::new();
        if self.flag("ip") || self.flag("ipv4") {
            ip.push(4);
        }
        if self.flag("ip") || self.flag("ipv6") {
            ip.push(16);
        }
        Octets {
            equal: bytes("const"),
            len: self.count("len", "min_len", "max_len"),
            prefix: bytes("prefix"),
            suffix: bytes("suffix"),
            contains: bytes("contains"),
            within: list("in"),
            without: list("not_in"),
            ip,
        }
    }

    fn get(&self, name: &str) -> Option<Value> {
        let set = self.0.has_field_by_name(name);
        set.then(|| self.0.get_field_by_name(name))?
            .map(|value| value.into_owned())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(|v| v.as_bool()).unwrap_or(false)
    }

    fn number(&self, name: &str) -> Option<Number> {
        number(&self.get(name)?)
    }

    fn count(&self, equal: &str, min: &str, max: &str) -> Count {
        let get = |name| self.get(name)?.as_u64();
        Count {
            equal: get(equal),
            min: get(min),
            max: get(max),
        }
    }

    fn list<T>(&self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let list = self.get(name);
        let list = list.as_ref().and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(read).collect()
    }

    fn texts(&self, name: &str) -> BTreeSet<String> {
        let list = self.list(name, |v| v.as_str().map(str::to_owned));
        list.into_iter().collect()
    }

    fn nested(&self, name: &str) -> Option<Box<Rules>> {
        let rules = self.get(name)?;
        Some(Box::new(Rules::read(rules.as_message()?)))
    }
}

/// A value as a number, also when it is in a wrapper.
pub(super) fn number(value: &Value) -> Option<Number> {
    Some(match value {
        Value::I32(v) => Number::Int(i128::from(*v)),
        Value::I64(v) => Number::Int(i128::from(*v)),
        Value::U32(v) => Number::Int(i128::from(*v)),
        Value::U64(v) => Number::Int(i128::from(*v)),
        Value::F32(v) => Number::Float(f64::from(*v)),
        Value::F64(v) => Number::Float(*v),
        Value::Message(message) => return message_number(message),
        _ => return None,
    })
}

fn message_number(message: &DynamicMessage) -> Option<Number> {
    use prost_reflect::ReflectMessage;

    let of = message.descriptor();
    let nanos = || {
        let seconds = message.get_field_by_name("seconds")?.as_i64()?;
        let nanos = message.get_field_by_name("nanos")?.as_i32()?;
        Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
    };
    match of.full_name() {
        "google.protobuf.Duration" => nanos().map(Number::Duration),
        "google.protobuf.Timestamp" => nanos().map(Number::Timestamp),
        _ => number(&*message.get_field_by_name("value")?),
    }
}
