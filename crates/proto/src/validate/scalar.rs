//! The rules of one value.

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, Value};

use super::{
    broken::Broken,
    format,
    rules::{Anys, Check, Count, Enums, Maps, Number, Numbers, Octets, Rules, Text, read_number},
    walk::Walk,
};
use crate::canonical::any_parts;

impl Walk {
    /// Checks a value that is neither a list nor a map. A wrapper such as
    /// `UInt32Value` is checked by the rules of its value. `kind` is the kind
    /// of the field, for the names of an enum. A value of another kind than
    /// that of the rules is not checked.
    pub(super) fn check_scalar(&mut self, value: &Value, kind: &Kind, rules: &Rules) {
        let Some(check) = &rules.check else { return };
        match (check, value) {
            (Check::Any(rules), Value::Message(any)) => self.check_any(any, rules),
            (Check::Number(rules), value) => {
                if let Some(found) = read_number(value) {
                    self.check_number(found, rules);
                }
            }
            (_, Value::Message(wrapper)) => {
                if let Some(inner) = wrapper.get_field_by_name("value") {
                    self.check_plain(&inner, kind, rules.ignore_empty, check);
                }
            }
            _ => self.check_plain(value, kind, rules.ignore_empty, check),
        }
    }

    /// Checks a boolean, a text, bytes or an enum. With `ignore_empty`, an
    /// empty text or empty bytes break no rule.
    fn check_plain(&mut self, value: &Value, kind: &Kind, ignore_empty: bool, check: &Check) {
        match (check, value) {
            (Check::Bool(required), Value::Bool(found)) if found != required => {
                self.report(range_broken(found, required));
            }
            (Check::Text(_), Value::String(text)) if text.is_empty() && ignore_empty => {}
            (Check::Text(rules), Value::String(text)) => self.check_text(text, rules),
            (Check::Bytes(_), Value::Bytes(bytes)) if bytes.is_empty() && ignore_empty => {}
            (Check::Bytes(rules), Value::Bytes(bytes)) => self.check_bytes(bytes, rules),
            (Check::Enum(rules), Value::EnumNumber(number)) => {
                if let Kind::Enum(descriptor) = kind {
                    self.check_enum(*number, descriptor, rules);
                }
            }
            _ => {}
        }
    }

    /// Checks the key and the value of an entry of a map. Mistakes of both have
    /// the path of the entry. Only keys that are texts are checked.
    pub(super) fn check_entry(
        &mut self,
        key: &MapKey,
        value: &Value,
        field: &FieldDescriptor,
        rules: &Maps,
    ) {
        let Kind::Message(entry) = field.kind() else {
            return;
        };
        if let (Some(key_rules), MapKey::String(text)) = (&rules.keys, key) {
            let key = Value::String(text.clone());
            self.check_scalar(&key, &entry.map_entry_key_field().kind(), key_rules);
        }
        if let Some(value_rules) = &rules.values {
            self.check_scalar(value, &entry.map_entry_value_field().kind(), value_rules);
        }
    }

    /// Checks a number, a duration or a timestamp, and reports every rule that
    /// it breaks.
    pub(super) fn check_number(&mut self, number: Number, rules: &Numbers) {
        if !rules.bounds_contain(number) {
            self.report(range_broken(number, rules.describe_bounds()));
        }
        if let Some(required) = rules.equal.filter(|required| *required != number) {
            self.report(range_broken(number, required));
        }
        self.check_membership(rules.within.iter(), &number, false);
        self.check_membership(rules.excluded.iter(), &number, true);
    }

    /// Checks that a value is in a list or, if `negated`, that it is not. An
    /// empty list is no rule.
    fn check_membership<'a, T: PartialEq + std::fmt::Display + ?Sized + 'a>(
        &mut self,
        list: impl Iterator<Item = &'a T> + Clone,
        value: &T,
        negated: bool,
    ) {
        let is_rule = list.clone().next().is_some();
        let is_listed = list.clone().any(|item| item == value);
        if is_rule && is_listed == negated {
            let list: Vec<_> = list.map(T::to_string).collect();
            self.report(Broken::In {
                found: value.to_string(),
                list: list.join(", "),
                negated,
            });
        }
    }

    /// Checks the number of characters, bytes, items or entries, and reports
    /// the first bound that is broken. `unit` names what is counted.
    pub(super) fn check_count(&mut self, count: usize, unit: &'static str, rules: &Count) {
        let count = count as u64;
        let bound = match (rules.equal, rules.min, rules.max) {
            (Some(equal), _, _) if count != equal => format!("exactly {equal}"),
            (_, Some(min), _) if count < min => format!("at least {min}"),
            (_, _, Some(max)) if count > max => format!("at most {max}"),
            _ => return,
        };
        self.report(Broken::Length {
            found: count,
            unit,
            bound,
        });
    }

    /// Checks a text, and reports every rule that it breaks.
    pub(super) fn check_text(&mut self, text: &str, rules: &Text) {
        self.check_count(text.chars().count(), "characters", &rules.chars);
        self.check_count(text.len(), "bytes", &rules.bytes);

        if let Some(rule) = rules.equal.as_deref().filter(|rule| *rule != text) {
            self.report_text(text, format!("be {rule:?}"));
        }
        if let Some(rule) = rules.pattern.as_ref().filter(|rule| !rule.is_match(text)) {
            self.report_text(text, format!("match {rule}"));
        }
        self.check_parts(text, rules);

        self.check_membership(rules.within.iter().map(String::as_str), text, false);
        self.check_membership(rules.excluded.iter().map(String::as_str), text, true);
        let format = rules.format;
        let broken_format = format.filter(|format| !format::matches(*format, text));
        if let Some(format) = broken_format {
            self.report_text(text, format::describe(format).to_owned());
        }
    }

    /// Checks the beginning, the end and the parts of a text, and reports every
    /// rule that it breaks.
    fn check_parts(&mut self, text: &str, rules: &Text) {
        let mut check = |rule: &Option<String>, word: &str, is_kept: fn(&str, &str) -> bool| {
            if let Some(rule) = rule.as_deref().filter(|rule| !is_kept(text, rule)) {
                self.report_text(text, format!("{word} {rule:?}"));
            }
        };

        check(&rules.prefix, "begin with", |text, rule| {
            text.starts_with(rule)
        });
        check(&rules.suffix, "end with", |text, rule| text.ends_with(rule));
        check(&rules.contains, "contain", |text, rule| text.contains(rule));
        check(&rules.not_contains, "not contain", |text, rule| {
            !text.contains(rule)
        });
    }

    /// Reports a text that breaks a rule, and quotes the beginning of it.
    /// `rule` is in words for an error after "must".
    fn report_text(&mut self, text: &str, rule: String) {
        const QUOTED: usize = 60;
        let found = text.chars().take(QUOTED).collect();
        self.report(Broken::Text { found, rule });
    }

    /// Checks bytes, and reports every rule that they break. Reports quote
    /// neither the bytes nor the constants of the rules.
    fn check_bytes(&mut self, bytes: &[u8], rules: &Octets) {
        self.check_count(bytes.len(), "bytes", &rules.len);

        let description = format!("{} bytes", bytes.len());
        for rule in rules.broken_rules(bytes) {
            self.report_text(&description, rule.to_owned());
        }
    }

    /// Checks the number of an enum, and reports every rule that it breaks. A
    /// report has the name of a number, if the enum defines it.
    pub(super) fn check_enum(
        &mut self,
        number: i32,
        enum_descriptor: &EnumDescriptor,
        rules: &Enums,
    ) {
        let name = |number: i32| match enum_descriptor.get_value(number) {
            Some(value) => value.name().to_owned(),
            None => number.to_string(),
        };

        if rules.defined_only && enum_descriptor.get_value(number).is_none() {
            self.report_undefined(number, enum_descriptor);
        }

        if let Some(required) = rules.equal.filter(|required| *required != number) {
            self.report(range_broken(name(number), name(required)));
        }

        for (list, negated) in [(&rules.within, false), (&rules.excluded, true)] {
            // The comparison by number saves the names if there is no report.
            if !list.is_empty() && list.contains(&number) == negated {
                let names: Vec<_> = list.iter().map(|number| name(*number)).collect();
                self.check_membership(names.iter(), &name(number), negated);
            }
        }
    }

    /// Reports a number that an enum does not define, with the names that it
    /// defines.
    fn report_undefined(&mut self, number: i32, enum_descriptor: &EnumDescriptor) {
        let values = enum_descriptor.values();
        let known_names: Vec<_> = values.map(|value| value.name().to_owned()).collect();
        self.report(Broken::UndefinedEnum {
            number,
            of: enum_descriptor.name().to_owned(),
            known: known_names.join(", "),
        });
    }

    /// Checks the type of an `Any`.
    fn check_any(&mut self, any: &DynamicMessage, rules: &Anys) {
        if let Some((url, _)) = any_parts(any) {
            self.check_any_type(&url, rules);
        }
    }

    /// Checks the type URL of an `Any`.
    pub(super) fn check_any_type(&mut self, url: &str, rules: &Anys) {
        self.check_membership(rules.within.iter().map(String::as_str), url, false);
        self.check_membership(rules.excluded.iter().map(String::as_str), url, true);
    }
}

impl Octets {
    /// Returns the rules that bytes break, in words for an error after "must".
    fn broken_rules(&self, bytes: &[u8]) -> impl Iterator<Item = &'static str> {
        let contains =
            |part: &[u8]| part.is_empty() || bytes.windows(part.len()).any(|window| window == part);
        let is_one_of = |list: &[bytes::Bytes]| list.iter().any(|item| item == bytes);
        let rules = [
            (
                self.equal.as_ref().is_some_and(|rule| rule != bytes),
                "be the constant of its rule",
            ),
            (
                self.prefix
                    .as_ref()
                    .is_some_and(|rule| !bytes.starts_with(rule)),
                "begin as its rule says",
            ),
            (
                self.suffix
                    .as_ref()
                    .is_some_and(|rule| !bytes.ends_with(rule)),
                "end as its rule says",
            ),
            (
                self.contains.as_ref().is_some_and(|rule| !contains(rule)),
                "contain what its rule says",
            ),
            (
                !self.within.is_empty() && !is_one_of(&self.within),
                "be one of the values of its rule",
            ),
            (
                is_one_of(&self.excluded),
                "not be one of the values of its rule",
            ),
            (
                !self.ip.is_empty() && !self.ip.contains(&bytes.len()),
                "be an IP address in bytes",
            ),
        ];

        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, rule)| rule)
    }
}

impl Numbers {
    /// Returns whether the lower bound is above the upper one, which means that
    /// a number has to be outside of the two.
    fn is_outside(&self) -> bool {
        let lower = self.gt.or(self.gte);
        let upper = self.lt.or(self.lte);
        matches!((lower, upper), (Some(lower), Some(upper)) if lower > upper)
    }

    /// Returns whether a number is within the bounds. A bound that is not set
    /// allows every number. If the bounds exclude a range, a number on either
    /// side is within.
    fn bounds_contain(&self, number: Number) -> bool {
        let is_above = self.gt.is_none_or(|bound| number > bound)
            && self.gte.is_none_or(|bound| number >= bound);
        let is_below = self.lt.is_none_or(|bound| number < bound)
            && self.lte.is_none_or(|bound| number <= bound);
        match self.is_outside() {
            true => is_above || is_below,
            false => is_above && is_below,
        }
    }

    /// Describes the bounds in words, for an error after "must be".
    fn describe_bounds(&self) -> String {
        let bounds = [
            ("greater than", self.gt),
            ("at least", self.gte),
            ("less than", self.lt),
            ("at most", self.lte),
        ];
        let descriptions = bounds
            .iter()
            .filter_map(|(words, bound)| Some(format!("{words} {}", (*bound)?)));
        let descriptions: Vec<_> = descriptions.collect();
        descriptions.join(if self.is_outside() { " or " } else { " and " })
    }
}

/// Makes the report of a value that is not within its bound, which is in words
/// for an error after "must be".
fn range_broken(found: impl ToString, bound: impl ToString) -> Broken {
    Broken::Range {
        found: found.to_string(),
        bound: bound.to_string(),
    }
}
