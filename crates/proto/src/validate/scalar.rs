//! The rules of one value.

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, Value};

use super::{
    broken::Broken,
    format,
    rules::{Anys, Check, Count, Enums, Maps, Number, Numbers, Octets, Rules, Text, number},
    walk::Walk,
};
use crate::canonical::any_parts;

impl Walk {
    /// Checks a value that is no list and no map. A wrapper such as
    /// `UInt32Value` follows the rules of its value. `kind` is the kind of the
    /// field, which tells the names of an enum.
    pub(super) fn scalar(&mut self, value: &Value, kind: &Kind, rules: &Rules) {
        let Some(check) = &rules.check else { return };
        let inner;
        let value = match (check, value) {
            (Check::Any(rules), Value::Message(any)) => return self.any_rules(any, rules),
            (Check::Number(rules), value) => {
                return number(value).map_or((), |n| self.number(n, rules));
            }
            (_, Value::Message(wrapper)) => match wrapper.get_field_by_name("value") {
                Some(value) => {
                    inner = value.into_owned();
                    &inner
                }
                None => return,
            },
            (_, value) => value,
        };
        match (check, value) {
            (Check::Bool(wanted), Value::Bool(found)) if found != wanted => {
                self.broken(range(found, wanted))
            }
            (Check::Text(_), Value::String(text)) if text.is_empty() && rules.ignore_empty => {}
            (Check::Text(rules), Value::String(text)) => self.text(text, rules),
            (Check::Bytes(_), Value::Bytes(bytes)) if bytes.is_empty() && rules.ignore_empty => {}
            (Check::Bytes(rules), Value::Bytes(bytes)) => self.octets(bytes, rules),
            (Check::Enum(rules), Value::EnumNumber(number)) => {
                if let Kind::Enum(of) = kind {
                    self.enumeration(*number, of, rules);
                }
            }
            _ => {}
        }
    }

    /// Checks the key and the value of an entry of a map. Only keys that are
    /// text are checked.
    pub(super) fn pair(
        &mut self,
        key: &MapKey,
        value: &Value,
        field: &FieldDescriptor,
        maps: &Maps,
    ) {
        let Kind::Message(entry) = field.kind() else {
            return;
        };
        if let (Some(rules), MapKey::String(text)) = (&maps.keys, key) {
            let key = Value::String(text.clone());
            self.scalar(&key, &entry.map_entry_key_field().kind(), rules);
        }
        if let Some(rules) = &maps.values {
            self.scalar(value, &entry.map_entry_value_field().kind(), rules);
        }
    }

    /// Checks a number, a duration or a timestamp.
    pub(super) fn number(&mut self, found: Number, rules: &Numbers) {
        if !rules.contain(found) {
            self.broken(range(found, rules.bounds()));
        }
        if let Some(wanted) = rules.equal.filter(|wanted| *wanted != found) {
            self.broken(range(found, wanted));
        }
        self.member(rules.within.iter(), &found, false);
        self.member(rules.without.iter(), &found, true);
    }

    /// Checks that a value is in a list, or if `negated`, that it is not. An
    /// empty list is no rule.
    fn member<'a, T: PartialEq + std::fmt::Display + ?Sized + 'a>(
        &mut self,
        list: impl Iterator<Item = &'a T> + Clone,
        found: &T,
        negated: bool,
    ) {
        let contained = list.clone().any(|item| item == found);
        if list.clone().next().is_some() && contained == negated {
            let list: Vec<_> = list.map(T::to_string).collect();
            self.broken(Broken::In {
                found: found.to_string(),
                list: list.join(", "),
                negated,
            });
        }
    }

    /// Checks the number of characters, bytes, items or entries.
    pub(super) fn count(&mut self, found: usize, unit: &'static str, rules: &Count) {
        let found = found as u64;
        let bound = match (rules.equal, rules.min, rules.max) {
            (Some(equal), _, _) if found != equal => format!("exactly {equal}"),
            (_, Some(min), _) if found < min => format!("at least {min}"),
            (_, _, Some(max)) if found > max => format!("at most {max}"),
            _ => return,
        };
        self.broken(Broken::Length { found, unit, bound });
    }

    /// Checks a text, and reports every rule that it breaks.
    pub(super) fn text(&mut self, text: &str, rules: &Text) {
        self.count(text.chars().count(), "characters", &rules.chars);
        self.count(text.len(), "bytes", &rules.bytes);
        let quoted = |word: &str, rule: &str| format!("{word} {rule:?}");
        if let Some(rule) = rules.equal.as_deref().filter(|r| *r != text) {
            self.wrong(text, quoted("be", rule));
        }
        if let Some(rule) = rules.pattern.as_ref().filter(|r| !r.is_match(text)) {
            self.wrong(text, format!("match {rule}"));
        }
        if let Some(rule) = rules.prefix.as_deref().filter(|r| !text.starts_with(r)) {
            self.wrong(text, quoted("begin with", rule));
        }
        if let Some(rule) = rules.suffix.as_deref().filter(|r| !text.ends_with(r)) {
            self.wrong(text, quoted("end with", rule));
        }
        if let Some(rule) = rules.contains.as_deref().filter(|r| !text.contains(r)) {
            self.wrong(text, quoted("contain", rule));
        }
        if let Some(rule) = rules.not_contains.as_deref().filter(|r| text.contains(r)) {
            self.wrong(text, quoted("not contain", rule));
        }
        self.member(rules.within.iter().map(String::as_str), text, false);
        self.member(rules.without.iter().map(String::as_str), text, true);
        if let Some(format) = rules.format.filter(|f| !format::matches(*f, text)) {
            self.wrong(text, format::describe(format).to_owned());
        }
    }

    /// Reports a text, of which the beginning is quoted.
    fn wrong(&mut self, text: &str, rule: String) {
        const QUOTED: usize = 60;
        let found = text.chars().take(QUOTED).collect();
        self.broken(Broken::Text { found, rule });
    }

    /// Checks bytes. Errors quote neither them nor the constants of the rules.
    fn octets(&mut self, bytes: &[u8], rules: &Octets) {
        self.count(bytes.len(), "bytes", &rules.len);
        let found = format!("{} bytes", bytes.len());
        for rule in rules.broken_by(bytes) {
            self.wrong(&found, rule.to_owned());
        }
    }

    /// Checks the number of an enum; errors have the names.
    pub(super) fn enumeration(&mut self, number: i32, of: &EnumDescriptor, rules: &Enums) {
        let name = |number: i32| match of.get_value(number) {
            Some(value) => value.name().to_owned(),
            None => number.to_string(),
        };
        let names = |numbers: &[i32]| numbers.iter().map(|n| name(*n)).collect::<Vec<_>>();
        if rules.defined_only && of.get_value(number).is_none() {
            let known: Vec<_> = of.values().map(|v| v.name().to_owned()).collect();
            self.broken(Broken::UndefinedEnum {
                number,
                of: of.name().to_owned(),
                known: known.join(", "),
            });
        }
        if let Some(wanted) = rules.equal.filter(|wanted| *wanted != number) {
            self.broken(range(name(number), name(wanted)));
        }
        for (list, negated) in [(&rules.within, false), (&rules.without, true)] {
            if !list.is_empty() && list.contains(&number) == negated {
                self.member(names(list).iter(), &name(number), negated);
            }
        }
    }

    fn any_rules(&mut self, any: &DynamicMessage, rules: &Anys) {
        if let Some((url, _)) = any_parts(any) {
            self.any_type(&url, rules);
        }
    }

    pub(super) fn any_type(&mut self, url: &str, rules: &Anys) {
        self.member(rules.within.iter().map(String::as_str), url, false);
        self.member(rules.without.iter().map(String::as_str), url, true);
    }
}

impl Octets {
    /// Lists the rules that bytes break, in words for an error after "must".
    fn broken_by(&self, bytes: &[u8]) -> impl Iterator<Item = &'static str> {
        let contains =
            |part: &[u8]| part.is_empty() || bytes.windows(part.len()).any(|w| w == part);
        let one_of = |list: &[bytes::Bytes]| list.iter().any(|item| item == bytes);
        let rules = [
            (
                self.equal.as_ref().is_some_and(|r| r != bytes),
                "be the constant of its rule",
            ),
            (
                self.prefix.as_ref().is_some_and(|r| !bytes.starts_with(r)),
                "begin as its rule says",
            ),
            (
                self.suffix.as_ref().is_some_and(|r| !bytes.ends_with(r)),
                "end as its rule says",
            ),
            (
                self.contains.as_ref().is_some_and(|r| !contains(r)),
                "contain what its rule says",
            ),
            (
                !self.within.is_empty() && !one_of(&self.within),
                "be one of the values of its rule",
            ),
            (
                one_of(&self.without),
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
    /// Whether a lower bound is above the upper one, which means that a number
    /// has to be outside of the two.
    fn is_outside(&self) -> bool {
        let lower = self.gt.or(self.gte);
        let upper = self.lt.or(self.lte);
        matches!((lower, upper), (Some(lower), Some(upper)) if lower > upper)
    }

    /// Whether a number is within the bounds.
    fn contain(&self, found: Number) -> bool {
        let above = self.gt.is_none_or(|b| found > b) && self.gte.is_none_or(|b| found >= b);
        let below = self.lt.is_none_or(|b| found < b) && self.lte.is_none_or(|b| found <= b);
        match self.is_outside() {
            true => above || below,
            false => above && below,
        }
    }

    /// Describes the bounds in words, for an error after "must be".
    fn bounds(&self) -> String {
        let bounds = [
            ("greater than", self.gt),
            ("at least", self.gte),
            ("less than", self.lt),
            ("at most", self.lte),
        ];
        let bounds = bounds.iter();
        let bounds = bounds.filter_map(|(words, bound)| Some(format!("{words} {}", (*bound)?)));
        let bounds: Vec<_> = bounds.collect();
        bounds.join(if self.is_outside() { " or " } else { " and " })
    }
}

/// Puts the report of a value together that is not within its bound.
fn range(found: impl ToString, bound: impl ToString) -> Broken {
    Broken::Range {
        found: found.to_string(),
        bound: bound.to_string(),
    }
}
