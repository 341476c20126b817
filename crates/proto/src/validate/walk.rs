//! The walk over a message, which applies the rules.
//!
//! A field of a oneof is checked only when it is the one that is set; a
//! message that is not set breaks no rule but `required`; a scalar that is not
//! set is checked with its default. Messages inside are walked whether or not
//! their field has rules.

use prost_reflect::{DynamicMessage, FieldDescriptor, OneofDescriptor, ReflectMessage, Value};

use super::{
    MAX_VIOLATIONS, Violation,
    broken::Broken,
    rules::{Check, NANOS_OF_SECOND, Rules},
    table,
};
use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
    path::{Path, Step, key_text},
    text::{MAX_SECONDS, print_duration},
};

/// Walks a whole message.
pub(super) fn run(message: &DynamicMessage) -> Vec<Violation> {
    let mut walk = Walk::default();
    walk.message(message, 0);
    walk.violations
}

#[derive(Default)]
pub(super) struct Walk {
    path: Path,
    violations: Vec<Violation>,
}

impl Walk {
    pub(super) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Reports a broken rule of the part where the walk is.
    pub(super) fn broken(&mut self, broken: Broken) {
        if self.violations.len() < MAX_VIOLATIONS {
            let path = self.path.clone();
            self.violations.push(Violation { path, broken });
        }
    }

    /// Walks a part that is one step further in.
    pub(super) fn at(&mut self, step: Step, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    /// Checks the fields and oneofs of a message, and then the messages inside;
    /// `depth` counts the messages around it, through every `Any`.
    fn message(&mut self, message: &DynamicMessage, depth: usize) {
        if depth > MAX_DEPTH {
            return self.broken(Broken::TooDeep(MAX_DEPTH));
        }
        let of = message.descriptor();
        match of.full_name() {
            "google.protobuf.Any" => return self.any(message, depth),
            "google.protobuf.Duration" => self.duration(message),
            _ => {}
        }
        let rules = table::rules(&of);
        if let Some(rules) = rules {
            for (field, rules) in &rules.fields {
                self.field(message, field, rules);
            }
            for oneof in &rules.oneofs {
                self.required_oneof(message, oneof);
            }
        }
        for (field, value) in message.fields() {
            let own = rules.and_then(|r| r.fields.iter().find(|(f, _)| *f == field));
            if !own.is_some_and(|(_, rules)| rules.skip) {
                self.at(Step::Field(field), |w| w.inside(value, depth));
            }
        }
    }

    /// Checks that one field of a oneof is set.
    fn required_oneof(&mut self, message: &DynamicMessage, oneof: &OneofDescriptor) {
        if !oneof.fields().any(|field| message.has_field(&field)) {
            let fields: Vec<_> = oneof.fields().map(|f| f.name().to_owned()).collect();
            self.broken(Broken::Oneof {
                oneof: oneof.name().to_owned(),
                fields: fields.join(", "),
            });
        }
    }

    /// Walks the messages inside a value, those of a map in the order of its
    /// keys.
    fn inside(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Message(message) => self.message(message, depth + 1),
            Value::List(list) if matches!(list.first(), Some(Value::Message(_))) => {
                for (index, item) in list.iter().enumerate() {
                    self.at(Step::Index(index), |w| w.inside(item, depth));
                }
            }
            Value::Map(map) if matches!(map.values().next(), Some(Value::Message(_))) => {
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.sort_by_key(|(key, _)| *key);
                for (key, value) in pairs {
                    self.at(Step::Key(key_text(key)), |w| w.inside(value, depth));
                }
            }
            _ => {}
        }
    }

    /// Walks the body of an `Any`, which stands in place of it, as in the text.
    /// A body of an unknown type is not checked.
    fn any(&mut self, any: &DynamicMessage, depth: usize) {
        let Some((type_url, body)) = any_parts(any) else {
            return;
        };
        let Some(of) = descriptor::message(&type_url) else {
            return;
        };
        match DynamicMessage::decode(of, body) {
            Ok(message) => self.message(&message, depth + 1),
            Err(error) => {
                let reason = error.to_string();
                self.broken(Broken::Body { type_url, reason });
            }
        }
    }

    /// Checks the rules of one field, set or not. The module's documentation
    /// says which of them count for a field that is not set.
    pub(super) fn field(
        &mut self,
        message: &DynamicMessage,
        field: &FieldDescriptor,
        rules: &Rules,
    ) {
        let is_set = message.has_field(field);
        let in_oneof = field.containing_oneof().is_some_and(|o| !o.is_synthetic());
        if !is_set && (in_oneof || field.supports_presence()) {
            if rules.required && !in_oneof {
                self.at(Step::Field(field.clone()), |w| w.broken(Broken::Required));
            }
            return;
        }
        if !is_set && rules.ignore_empty {
            return;
        }
        let value = message.get_field(field);
        self.at(Step::Field(field.clone()), |w| {
            w.value(&value, field, rules)
        });
    }

    /// Checks the rules of a field's value: a list and its items, a map and its
    /// entries, or a single value.
    fn value(&mut self, value: &Value, field: &FieldDescriptor, rules: &Rules) {
        match (&rules.check, value) {
            (Some(Check::List(lists)), Value::List(list)) => {
                self.count(list.len(), "items", &lists.items);
                if lists.unique {
                    self.unique(list);
                }
                let Some(each) = &lists.each else { return };
                for (index, item) in list.iter().enumerate() {
                    self.at(Step::Index(index), |w| w.scalar(item, &field.kind(), each));
                }
            }
            (Some(Check::Map(maps)), Value::Map(map)) => {
                self.count(map.len(), "entries", &maps.pairs);
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.sort_by_key(|(key, _)| *key);
                for (key, value) in pairs {
                    self.at(Step::Key(key_text(key)), |w| {
                        w.pair(key, value, field, maps);
                    });
                }
            }
            _ => self.scalar(value, &field.kind(), rules),
        }
    }

    /// Reports the first item that equals one before it.
    fn unique(&mut self, list: &[Value]) {
        // Items that can be unique are scalars; a printed scalar is its value.
        let mut seen = std::collections::HashSet::new();
        let twice = list.iter().position(|item| match item {
            Value::Message(_) => false,
            scalar => !seen.insert(format!("{scalar:?}")),
        });
        if let Some(index) = twice {
            self.broken(Broken::Duplicate(index));
        }
    }

    /// Checks that a duration is within the bounds of protobuf and that its
    /// seconds and nanos have one sign. A negative one is also refused in a message
    /// of Envoy, unless another rule of the field reported it already.
    fn duration(&mut self, message: &DynamicMessage) {
        let seconds = message.get_field_by_name("seconds");
        let nanos = message.get_field_by_name("nanos");
        let seconds = seconds.and_then(|v| v.as_i64()).unwrap_or_default();
        let nanos = nanos.and_then(|v| v.as_i32()).unwrap_or_default();
        let one_sign = i64::from(nanos.signum()) * seconds.signum() >= 0;
        let in_range = seconds.unsigned_abs() <= MAX_SECONDS.unsigned_abs()
            && i128::from(nanos).abs() < NANOS_OF_SECOND;
        if !in_range || !one_sign {
            self.broken(Broken::InvalidDuration);
        } else if (seconds < 0 || nanos < 0) && self.in_envoys_message() {
            let found = print_duration(seconds, nanos);
            self.broken_once(Broken::NegativeDuration(found));
        }
    }

    /// Returns whether the last field of the path belongs to a message of
    /// Envoy, which refuses negative durations also where no rule says so.
    fn in_envoys_message(&self) -> bool {
        let mut steps = self.path.steps().iter().rev();
        let last = steps.find_map(|step| match step {
            Step::Field(field) => Some(field.parent_message()),
            _ => None,
        });
        last.is_some_and(|message| message.full_name().starts_with("envoy."))
    }

    /// Reports a broken rule, unless a rule of the field was reported already.
    fn broken_once(&mut self, broken: Broken) {
        if !self.violations.iter().any(|v| v.path == self.path) {
            self.broken(broken);
        }
    }
}
