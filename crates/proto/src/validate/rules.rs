//! The rules of one field, read from its options.

use std::{collections::BTreeSet, fmt};

use bytes::Bytes;
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};
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
    pub(super) excluded: Vec<Number>,
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

/// Nanoseconds of one second.
pub(crate) const NANOS_OF_SECOND: i128 = 1_000_000_000;

impl Number {
    /// Makes a duration from the fields of its message.
    pub(crate) fn duration(seconds: i64, nanos: i32) -> Self {
        Self::Duration(total_nanos(seconds, nanos))
    }
}

/// Returns a time in nanoseconds.
fn total_nanos(seconds: i64, nanos: i32) -> i128 {
    i128::from(seconds) * NANOS_OF_SECOND + i128::from(nanos)
}

impl fmt::Display for Number {
    /// Writes the number in the form of a file: a duration such as `1.5s`, a
    /// timestamp by RFC 3339.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS: i128 = NANOS_OF_SECOND;
        match *self {
            Number::Int(v) => write!(f, "{v}"),
            Number::Float(v) => write!(f, "{v}"),
            Number::Duration(v) => {
                // Seconds and nanoseconds both have the sign of the duration.
                let (seconds, nanos) = (v / NANOS, v % NANOS);
                f.write_str(&print_duration(seconds as i64, nanos as i32))
            }
            Number::Timestamp(v) => {
                // Nanoseconds are never negative, also before 1970.
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
    pub(super) excluded: BTreeSet<String>,
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
    pub(super) excluded: Vec<Bytes>,
    /// Lengths of an address in bytes: 4, 16, or both.
    pub(super) ip: Vec<usize>,
}

/// Enums.
#[derive(Default)]
pub(crate) struct Enums {
    pub(super) equal: Option<i32>,
    pub(super) defined_only: bool,
    pub(super) within: Vec<i32>,
    pub(super) excluded: Vec<i32>,
}

/// Lists.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) count: Count,
    pub(crate) unique: bool,
    /// The rules of each item.
    pub(crate) items: Option<Box<Rules>>,
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
    pub(super) excluded: BTreeSet<String>,
}

impl Rules {
    /// Reads a `validate.FieldRules`, which has one field with the rules for
    /// its kind of value. For messages, there is one more with `required` and
    /// `skip`.
    pub(super) fn read(message: &DynamicMessage) -> Self {
        let mut rules = Self::default();
        for (field, value) in message.fields() {
            let Some(inner) = value.as_message() else {
                continue;
            };
            let reader = RulesReader(inner);
            rules.required |= reader.is_set("required");
            rules.skip |= reader.is_set("skip");
            rules.ignore_empty |= reader.is_set("ignore_empty");
            rules.check = rules.check.or(reader.read_check(field.name()));
        }
        rules
    }
}

/// Reads one message of rules, such as `validate.StringRules`; an unset field
/// is no rule.
struct RulesReader<'a>(&'a DynamicMessage);

impl RulesReader<'_> {
    /// Reads the rules of one kind of value, which is the name of a field of
    /// `validate.FieldRules`. Kinds that are not listed are numbers, durations
    /// or timestamps. Returns `None` if there is no check: for messages, and
    /// for a boolean of any value.
    fn read_check(&self, kind: &str) -> Option<Check> {
        Some(match kind {
            "message" => return None,
            "bool" => Check::Bool(self.get("const")?.as_bool()?),
            "string" => Check::Text(self.read_text()),
            "bytes" => Check::Bytes(self.read_bytes()),
            "enum" => Check::Enum(self.read_enums()),
            "repeated" => Check::List(Lists {
                count: self.read_count(None, "min_items", "max_items"),
                unique: self.is_set("unique"),
                items: self.read_nested("items"),
            }),
            "map" => Check::Map(Maps {
                pairs: self.read_count(None, "min_pairs", "max_pairs"),
                keys: self.read_nested("keys"),
                values: self.read_nested("values"),
            }),
            "any" => Check::Any(Anys {
                within: self.read_texts("in"),
                excluded: self.read_texts("not_in"),
            }),
            _ => Check::Number(self.read_numbers()),
        })
    }

    /// Reads the rules of numbers, durations and timestamps.
    fn read_numbers(&self) -> Numbers {
        let bound = |name| read_number(&self.get(name)?);
        Numbers {
            equal: bound("const"),
            lt: bound("lt"),
            lte: bound("lte"),
            gt: bound("gt"),
            gte: bound("gte"),
            within: self.read_list("in", read_number),
            excluded: self.read_list("not_in", read_number),
        }
    }

    /// Reads the rules of an enum.
    fn read_enums(&self) -> Enums {
        Enums {
            equal: self.get("const").and_then(|value| value.as_i32()),
            defined_only: self.is_set("defined_only"),
            within: self.read_list("in", Value::as_i32),
            excluded: self.read_list("not_in", Value::as_i32),
        }
    }

    /// Reads the rules of a text.
    fn read_text(&self) -> Text {
        let string = |name| Some(self.get(name)?.as_str()?.to_owned());
        Text {
            equal: string("const"),
            chars: self.read_count(Some("len"), "min_len", "max_len"),
            bytes: self.read_count(Some("len_bytes"), "min_bytes", "max_bytes"),
            // A test checks that all patterns compile.
            pattern: string("pattern").and_then(|pattern| Regex::new(&pattern).ok()),
            prefix: string("prefix"),
            suffix: string("suffix"),
            contains: string("contains"),
            not_contains: string("not_contains"),
            within: self.read_texts("in"),
            excluded: self.read_texts("not_in"),
            format: self.read_format(),
        }
    }

    /// Reads the form that a text must have. Returns `None` if the rules do not
    /// restrict it. A header is checked strictly unless `strict` is false.
    fn read_format(&self) -> Option<Format> {
        /// The values of `validate.KnownRegex`.
        const HTTP_HEADER_NAME: i32 = 1;
        const HTTP_HEADER_VALUE: i32 = 2;

        let strict = self.get("strict");
        let strict = strict.is_none_or(|value| value.as_bool() != Some(false));
        let header_kind = self.get("well_known_regex");
        match header_kind.and_then(|value| value.as_enum_number()) {
            Some(HTTP_HEADER_NAME) => return Some(Format::HeaderName { strict }),
            Some(HTTP_HEADER_VALUE) => return Some(Format::HeaderValue { strict }),
            _ => {}
        }

        let flags = [
            ("email", Format::Email),
            ("hostname", Format::Hostname),
            ("ip", Format::Ip),
            ("ipv4", Format::Ipv4),
            ("ipv6", Format::Ipv6),
            ("uri", Format::Uri),
            ("uri_ref", Format::UriRef),
            ("address", Format::Address),
            ("uuid", Format::Uuid),
        ];
        let mut formats = flags.into_iter();
        formats.find_map(|(flag, format)| self.is_set(flag).then_some(format))
    }

    /// Reads the rules of bytes. A rule on addresses becomes the lengths that
    /// it allows, 4 and 16 bytes.
    fn read_bytes(&self) -> Octets {
        let bytes = |name| Some(self.get(name)?.as_bytes()?.clone());
        let list = |name| self.read_list(name, |value| value.as_bytes().cloned());
        let address_len = |flag, len| (self.is_set("ip") || self.is_set(flag)).then_some(len);
        let address_lens = [address_len("ipv4", 4), address_len("ipv6", 16)];

        Octets {
            equal: bytes("const"),
            len: self.read_count(Some("len"), "min_len", "max_len"),
            prefix: bytes("prefix"),
            suffix: bytes("suffix"),
            contains: bytes("contains"),
            within: list("in"),
            excluded: list("not_in"),
            ip: address_lens.into_iter().flatten().collect(),
        }
    }

    /// Returns the value of a rule; `None` if it is not set.
    fn get(&self, name: &str) -> Option<Value> {
        if !self.0.has_field_by_name(name) {
            return None;
        }
        let value = self.0.get_field_by_name(name)?;
        Some(value.into_owned())
    }

    /// Returns whether a rule that is a boolean is set to true.
    fn is_set(&self, name: &str) -> bool {
        self.get(name).and_then(|v| v.as_bool()).unwrap_or(false)
    }

    /// Reads the bounds on a number of items, by the names of their rules.
    /// `equal` is `None` for a kind without a rule for an exact number.
    fn read_count(&self, equal: Option<&str>, min: &str, max: &str) -> Count {
        let read_bound = |name: &str| self.get(name)?.as_u64();
        Count {
            equal: equal.and_then(read_bound),
            min: read_bound(min),
            max: read_bound(max),
        }
    }

    /// Reads a rule that is a list with `read`, which returns `None` for an
    /// item to leave out.
    fn read_list<T>(&self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let list = self.get(name);
        let list = list.as_ref().and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(read).collect()
    }

    /// Reads a rule that is a list of texts.
    fn read_texts(&self, name: &str) -> BTreeSet<String> {
        let list = self.read_list(name, |v| v.as_str().map(str::to_owned));
        list.into_iter().collect()
    }

    /// Reads the rules of the items of a list, or of the keys or values of a
    /// map.
    fn read_nested(&self, name: &str) -> Option<Box<Rules>> {
        let rules = self.get(name)?;
        Some(Box::new(Rules::read(rules.as_message()?)))
    }
}

/// Reads a value as a number: a number itself, one in a wrapper, a duration or
/// a timestamp. Returns `None` for other values.
pub(super) fn read_number(value: &Value) -> Option<Number> {
    Some(match value {
        Value::I32(number) => Number::Int(i128::from(*number)),
        Value::I64(number) => Number::Int(i128::from(*number)),
        Value::U32(number) => Number::Int(i128::from(*number)),
        Value::U64(number) => Number::Int(i128::from(*number)),
        Value::F32(number) => Number::Float(f64::from(*number)),
        Value::F64(number) => Number::Float(*number),
        Value::Message(message) => return read_message_number(message),
        _ => return None,
    })
}

/// Reads the number that a message means: a duration, a timestamp or a wrapper.
/// Returns `None` for other messages.
fn read_message_number(message: &DynamicMessage) -> Option<Number> {
    let nanos = || {
        let seconds = message.get_field_by_name("seconds")?.as_i64()?;
        let nanos = message.get_field_by_name("nanos")?.as_i32()?;
        Some(total_nanos(seconds, nanos))
    };
    match message.descriptor().full_name() {
        "google.protobuf.Duration" => nanos().map(Number::Duration),
        "google.protobuf.Timestamp" => nanos().map(Number::Timestamp),
        _ => read_number(&*message.get_field_by_name("value")?),
    }
}
