//! The walk over a message, which applies the rules.
//!
//! A field of a oneof is checked only when it is the one that is set; a
//! message that is not set breaks no rule but `required`; a scalar that is not
//! set is checked with its default. Messages inside are walked whether or not
//! their field has rules.

use std::collections::{HashMap, HashSet};

use prost_reflect::{
    DynamicMessage, FieldDescriptor, MapKey, OneofDescriptor, ReflectMessage, Value,
};

use super::{
    MAX_VIOLATIONS, Violation,
    broken::Broken,
    rules::{Check, Lists, Maps, NANOS_OF_SECOND, Rules},
    table,
};
use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
    path::{Path, Step, key_text},
    redact,
    text::{MAX_SECONDS, print_duration},
};

/// Finds the violations of a message and of everything inside it, at most
/// [`MAX_VIOLATIONS`], in the order of the walk.
pub(super) fn find_violations(message: &DynamicMessage) -> Vec<Violation> {
    let mut walk = Walk::default();
    walk.walk_message(message, 0);
    walk.violations
}

#[derive(Default)]
pub(super) struct Walk {
    path: Path,
    violations: Vec<Violation>,
}

impl Walk {
    /// Returns whether no rule was broken so far.
    pub(super) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Reports a broken rule at the path of the walk, without the value if it
    /// is in a secret. Beyond [`MAX_VIOLATIONS`] reports, drops it.
    pub(super) fn report(&mut self, broken: Broken) {
        if self.violations.len() < MAX_VIOLATIONS {
            let path = self.path.clone();
            let broken = match redact::is_secret_path(&path) {
                true => broken.redact_value(),
                false => broken,
            };
            self.violations.push(Violation { path, broken });
        }
    }

    /// Reports a broken rule of a part that is these steps further in.
    pub(super) fn report_along(&mut self, steps: Vec<Step>, broken: Broken) {
        let count = steps.len();
        steps.into_iter().for_each(|step| self.path.push(step));
        self.report(broken);
        (0..count).for_each(|_| self.path.pop());
    }

    /// Returns whether the walk is at the message that it began with.
    pub(super) fn is_at_root(&self) -> bool {
        self.path.steps().is_empty()
    }

    /// Walks a part that is one step further in, with the path of that part.
    pub(super) fn walk_at(&mut self, step: Step, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    /// Checks the fields and oneofs of a message, and then the messages inside
    /// it, except in fields that a rule skips. `depth` is the number of
    /// enclosing messages, through every `Any`.
    fn walk_message(&mut self, message: &DynamicMessage, depth: usize) {
        if depth > MAX_DEPTH {
            return self.report(Broken::TooDeep(MAX_DEPTH));
        }

        let descriptor = message.descriptor();
        match descriptor.full_name() {
            "google.protobuf.Any" => return self.walk_any(message, depth),
            "google.protobuf.Duration" => self.check_duration(message),
            _ => {}
        }

        let rules = table::rules(&descriptor);
        if let Some(rules) = rules {
            for (field, rules) in &rules.fields {
                self.check_field(message, field, rules);
            }
            for oneof in &rules.oneofs {
                self.check_required_oneof(message, oneof);
            }
            if let Some(construction) = rules.construction {
                (construction.find)(self, message);
            }
        }

        for (field, value) in message.fields() {
            let own_rules =
                rules.and_then(|rules| rules.fields.iter().find(|(ruled, _)| *ruled == field));
            let is_skipped = own_rules.is_some_and(|(_, rules)| rules.skip);
            if !is_skipped {
                self.walk_at(Step::Field(field), |walk| walk.walk_value(value, depth));
            }
        }
    }

    /// Reports a oneof of which no field is set.
    fn check_required_oneof(&mut self, message: &DynamicMessage, oneof: &OneofDescriptor) {
        if !oneof.fields().any(|field| message.has_field(&field)) {
            let fields: Vec<_> = oneof
                .fields()
                .map(|field| field.name().to_owned())
                .collect();
            self.report(Broken::Oneof {
                oneof: oneof.name().to_owned(),
                fields: fields.join(", "),
            });
        }
    }

    /// Walks the messages inside a value; those of a map in the order of its
    /// keys, for reports in a fixed order.
    fn walk_value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Message(message) => self.walk_message(message, depth + 1),
            Value::List(list) if matches!(list.first(), Some(Value::Message(_))) => {
                for (index, item) in list.iter().enumerate() {
                    self.walk_at(Step::Index(index), |walk| walk.walk_value(item, depth));
                }
            }
            Value::Map(map) if matches!(map.values().next(), Some(Value::Message(_))) => {
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.sort_by_key(|(key, _)| *key);
                for (key, value) in pairs {
                    self.walk_at(Step::Key(key_text(key)), |walk| {
                        walk.walk_value(value, depth)
                    });
                }
            }
            _ => {}
        }
    }

    /// Walks the body of an `Any`. In a path, the body stands for the `Any`, as
    /// in YAML. A body of an unknown type is not checked; one that cannot be
    /// decoded is reported.
    fn walk_any(&mut self, any: &DynamicMessage, depth: usize) {
        let Some((type_url, body)) = any_parts(any) else {
            return;
        };
        let Some(descriptor) = descriptor::message(&type_url) else {
            return;
        };
        match DynamicMessage::decode(descriptor, body) {
            Ok(message) => self.walk_message(&message, depth + 1),
            Err(error) => {
                let reason = error.to_string();
                self.report(Broken::Body { type_url, reason });
            }
        }
    }

    /// Checks the rules of one field, set or not. An unset field of a oneof
    /// breaks no rule, and another one with presence only `required`. Other
    /// unset fields are checked with their default value, unless a rule says to
    /// ignore the empty value.
    pub(super) fn check_field(
        &mut self,
        message: &DynamicMessage,
        field: &FieldDescriptor,
        rules: &Rules,
    ) {
        let is_set = message.has_field(field);
        let in_oneof = field
            .containing_oneof()
            .is_some_and(|oneof| !oneof.is_synthetic());
        let is_absent = !is_set && (in_oneof || field.supports_presence());
        if is_absent {
            if rules.required && !in_oneof {
                self.walk_at(Step::Field(field.clone()), |walk| {
                    walk.report(Broken::Required)
                });
            }
            return;
        }
        if !is_set && rules.ignore_empty {
            return;
        }

        let value = message.get_field(field);
        self.walk_at(Step::Field(field.clone()), |walk| {
            walk.check_value(&value, field, rules)
        });
    }

    /// Checks the rules of a field's value, by its kind: a list, a map, or a
    /// single value.
    fn check_value(&mut self, value: &Value, field: &FieldDescriptor, rules: &Rules) {
        match (&rules.check, value) {
            (Some(Check::List(rules)), Value::List(list)) => self.check_list(list, field, rules),
            (Some(Check::Map(rules)), Value::Map(map)) => self.check_map(map, field, rules),
            _ => self.check_scalar(value, &field.kind(), rules),
        }
    }

    /// Checks the number of items of a list, whether they differ if they must,
    /// and the rules of each item.
    fn check_list(&mut self, list: &[Value], field: &FieldDescriptor, rules: &Lists) {
        self.check_count(list.len(), "items", &rules.count);
        if rules.unique {
            self.check_unique(list);
        }
        let Some(item_rules) = &rules.items else {
            return;
        };
        for (index, item) in list.iter().enumerate() {
            self.walk_at(Step::Index(index), |walk| {
                walk.check_scalar(item, &field.kind(), item_rules);
            });
        }
    }

    /// Checks the number of entries of a map, and the rules of each entry in
    /// the order of the keys.
    fn check_map(&mut self, map: &HashMap<MapKey, Value>, field: &FieldDescriptor, rules: &Maps) {
        self.check_count(map.len(), "entries", &rules.pairs);
        let mut pairs: Vec<_> = map.iter().collect();
        pairs.sort_by_key(|(key, _)| *key);
        for (key, value) in pairs {
            self.walk_at(Step::Key(key_text(key)), |walk| {
                walk.check_entry(key, value, field, rules);
            });
        }
    }

    /// Reports the first item of a list that equals an earlier item. Messages
    /// are not compared.
    fn check_unique(&mut self, list: &[Value]) {
        // Equal scalars have equal debug texts, and different ones different texts.
        let mut unique_values = HashSet::new();
        let duplicate = list.iter().position(|item| match item {
            Value::Message(_) => false,
            scalar => !unique_values.insert(format!("{scalar:?}")),
        });
        if let Some(index) = duplicate {
            self.report(Broken::Duplicate(index));
        }
    }

    /// Checks that a duration is within the bounds of protobuf, and that its
    /// seconds and nanoseconds have the same sign. Reports a negative duration
    /// of an Envoy message too, which Envoy refuses, unless the field has
    /// another report.
    fn check_duration(&mut self, message: &DynamicMessage) {
        let seconds = message.get_field_by_name("seconds");
        let seconds = seconds.and_then(|value| value.as_i64()).unwrap_or_default();
        let nanos = message.get_field_by_name("nanos");
        let nanos = nanos.and_then(|value| value.as_i32()).unwrap_or_default();

        let has_one_sign = i64::from(nanos.signum()) * seconds.signum() >= 0;
        let is_in_range = seconds.unsigned_abs() <= MAX_SECONDS.unsigned_abs()
            && i128::from(nanos).abs() < NANOS_OF_SECOND;
        let is_negative = seconds < 0 || nanos < 0;
        if !is_in_range || !has_one_sign {
            self.report(Broken::InvalidDuration);
        } else if is_negative && self.is_in_envoys_message() {
            let found = print_duration(seconds, nanos);
            self.report_once(Broken::NegativeDuration(found));
        }
    }

    /// Returns whether the last field of the walk's path belongs to a message
    /// of Envoy, which refuses negative durations also where no rule says so.
    fn is_in_envoys_message(&self) -> bool {
        self.is_in_message(|name| name.starts_with("envoy."))
    }

    /// Returns whether the last field of the walk's path belongs to a message
    /// whose full name `matches` accepts.
    pub(super) fn is_in_message(&self, matches: impl FnOnce(&str) -> bool) -> bool {
        let mut steps = self.path.steps().iter().rev();
        let parent = steps.find_map(|step| match step {
            Step::Field(field) => Some(field.parent_message()),
            _ => None,
        });
        parent.is_some_and(|message| matches(message.full_name()))
    }

    /// Reports a broken rule, unless a rule of the same part was reported
    /// already.
    fn report_once(&mut self, broken: Broken) {
        if !self.violations.iter().any(|v| v.path == self.path) {
            self.report(broken);
        }
    }
}
