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
    /// A value that is no list and no map. A wrapper such as `UInt32Value`
    /// follows the rules of its value.
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

    pub(super) fn number(&mut self, found: Number, rules: &Numbers) {
        let above = rules.gt.is_none_or(|b| found > b) && rules.gte.is_none_or(|b| found >= b);
        let below = rules.lt.is_none_or(|b| found < b) && rules.lte.is_none_or(|b| found <= b);
        // A lower bound above the upper one means: outside of the two.
        let lower = rules.gt.or(rules.gte);
        let upper = rules.lt.or(rules.lte);
        let outside = matches!((lower, upper), (Some(l), Some(u)) if l > u);
        let fits = if outside {
            above || below
        } else {
            above && below
        };
        if !fits {
            let bounds = [
                ("greater than", rules.gt),
                ("at least", rules.gte),
                ("less than", rules.lt),
                ("at most", rules.lte),
            ];
            let bounds = bounds
                .iter()
                .filter_map(|(w, b)| b.map(|b| format!("{w} {b}")));
            let joined = if outside { " or " } else { " and " };
            let bound = bounds.collect::<Vec<_>>().join(joined);
            self.broken(range(found, bound));
        }
        if let Some(wanted) = rules.equal.filter(|wanted| *wanted != found) {
            self.broken(range(found, wanted));
        }
        self.member(rules.within.iter(), &found, false);
        self.member(rules.without.iter(), &found, true);
    }

    /// Inside of a list, or outside of it; an empty list is no rule.
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

    fn wrong(&mut self, text: &str, rule: String) {
        let found = text.chars().take(60).collect();
        self.broken(Broken::Text { found, rule });
    }

    fn octets(&mut self, bytes: &[u8], rules: &Octets) {
        self.count(bytes.len(), "bytes", &rules.len);
        let contains =
            |part: &[u8]| part.is_empty() || bytes.windows(part.len()).any(|w| w == part);
        let one_of = |list: &[bytes::Bytes]| list.iter().any(|item| item == bytes);
        let wrong = [
            (
                rules.equal.as_ref().is_some_and(|r| r != bytes),
                "be the constant of its rule",
            ),
            (
                rules.prefix.as_ref().is_some_and(|r| !bytes.starts_with(r)),
                "begin as its rule says",
            ),
            (
                rules.suffix.as_ref().is_some_and(|r| !bytes.ends_with(r)),
                "end as its rule says",
            ),
            (
                rules.contains.as_ref().is_some_and(|r| !contains(r)),
                "contain what its rule says",
            ),
            (
                !rules.within.is_empty() && !one_of(&rules.within),
                "be one of the values of its rule",
            ),
            (
                one_of(&rules.without),
                "not be one of the values of its rule",
            ),
            (
                !rules.ip.is_empty() && !rules.ip.contains(&bytes.len()),
                "be an IP address in bytes",
            ),
        ];
        for (_, rule) in wrong.into_iter().filter(|(wrong, _)| *wrong) {
            self.wrong(&format!("{} bytes", bytes.len()), rule.to_owned());
        }
    }

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

fn range(found: impl ToString, bound: impl ToString) -> Broken {
    Broken::Range {
        found: found.to_string(),
        bound: bound.to_string(),
    }
}
