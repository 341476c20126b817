//! Finds conditions, and the mistakes in them.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, MapKey, ReflectMessage as _, Value};

use super::{
    Condition, ConditionError, ConditionProblem, FILTER_METADATA, KEYS, METADATA, WHEN,
    annotations, string_value,
};
use crate::canonical::{MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::facts::NAMESPACE;
use crate::path::{Path, Step};
use crate::text::nearest;

/// Returns every condition in a resource, the outer ones first.
///
/// # Errors
/// The first mistake in this server's metadata of a part, a body that is not of
/// its type, or messages that nest too deep.
pub fn find(message: &DynamicMessage) -> Result<Vec<Condition>, ConditionError> {
    let mut walk = Walk {
        path: Path::default(),
        conditions: Vec::new(),
    };
    walk.walk_message(message, Place::Root, 0)?;
    Ok(walk.conditions)
}

/// The place of a message in the one around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// In a field or in a list, so that it can be left out.
    Part,
    /// In a map or in an `Any`.
    Other,
}

struct Walk {
    path: Path,
    conditions: Vec<Condition>,
}

type WalkResult = Result<(), ConditionError>;

impl Walk {
    /// Walks a part that is one step further in, with the path of that part.
    fn walk_at(&mut self, step: Step, walk: impl FnOnce(&mut Self) -> WalkResult) -> WalkResult {
        self.path.push(step);
        let walked = walk(self);
        self.path.pop();
        walked
    }

    /// Returns a mistake of the part where the walk is.
    fn fail(&self, problem: ConditionProblem) -> WalkResult {
        let path = self.path.clone();
        Err(ConditionError { path, problem })
    }

    /// Adds the conditions on a message, and then those on the messages in it.
    /// `depth` is the number of enclosing messages, through every `Any`.
    fn walk_message(&mut self, message: &DynamicMessage, place: Place, depth: usize) -> WalkResult {
        if depth > MAX_DEPTH {
            return self.fail(ConditionProblem::TooDeep);
        }
        if message.descriptor().full_name() == "google.protobuf.Any" {
            return self.walk_any(message, depth);
        }

        if let Some(annotations) = annotations(message) {
            self.check_annotations(message, annotations, place)?;
        }

        for (field, value) in message.fields() {
            let may_hold_messages =
                matches!(value, Value::Message(_) | Value::List(_) | Value::Map(_));
            if may_hold_messages {
                self.walk_at(Step::Field(field), |walk| walk.walk_value(value, depth))?;
            }
        }
        Ok(())
    }

    /// Walks the messages in a value. `depth` is the number of messages around
    /// the value.
    fn walk_value(&mut self, value: &Value, depth: usize) -> WalkResult {
        match value {
            Value::Message(message) => self.walk_message(message, Place::Part, depth + 1),
            Value::List(list) => self.walk_list(list, depth),
            Value::Map(map) => self.walk_map(map, depth),
            _ => Ok(()),
        }
    }

    /// Walks the messages in a list. Skips a list of scalars.
    fn walk_list(&mut self, list: &[Value], depth: usize) -> WalkResult {
        for (index, item) in list.iter().enumerate() {
            // All items of a list are of one kind, so this list has no messages.
            let Value::Message(item) = item else { break };
            self.walk_at(Step::Index(index), |walk| {
                walk.walk_message(item, Place::Part, depth + 1)
            })?;
        }
        Ok(())
    }

    /// Walks the messages in a map in the order of its keys, so that the first
    /// mistake is always the same one. Skips a map of scalars, or with keys
    /// that are not texts.
    fn walk_map(&mut self, map: &HashMap<MapKey, Value>, depth: usize) -> WalkResult {
        let mut pairs: Vec<_> = map.iter().collect();
        pairs.sort_by_key(|(key, _)| *key);
        for (key, value) in pairs {
            // All entries of a map are of one kind, so this map has no messages.
            let (Some(key), Value::Message(value)) = (key.as_str(), value) else {
                break;
            };
            self.walk_at(Step::Key(key.to_owned()), |walk| {
                walk.walk_message(value, Place::Other, depth + 1)
            })?;
        }
        Ok(())
    }

    /// Walks the body of an `Any`. In a path, the body stands for the `Any`, as
    /// in YAML. A body of an unknown type, or without a condition in its bytes,
    /// is not decoded.
    fn walk_any(&mut self, any: &DynamicMessage, depth: usize) -> WalkResult {
        let Some((type_url, body)) = any_parts(any) else {
            return Ok(());
        };
        let Some(descriptor) = descriptor::message(&type_url).filter(|_| super::mentions(&body))
        else {
            return Ok(());
        };
        match DynamicMessage::decode(descriptor, body) {
            Ok(message) => self.walk_message(&message, Place::Other, depth + 1),
            Err(source) => self.fail(ConditionProblem::Malformed { type_url, source }),
        }
    }

    /// Checks the annotations of a message, each at its own path, and adds the
    /// conditions among them.
    fn check_annotations(
        &mut self,
        message: &DynamicMessage,
        annotations: Vec<(String, Value)>,
        place: Place,
    ) -> WalkResult {
        let outer_path = self.path.clone();
        let mut descriptor = Some(message.descriptor());
        for name in [METADATA, FILTER_METADATA] {
            let Some(field) = descriptor
                .as_ref()
                .and_then(|descriptor| descriptor.get_field_by_name(name))
            else {
                break;
            };
            descriptor = field.kind().as_message().cloned();
            self.path.push(Step::Field(field));
        }
        self.path.push(Step::Key(NAMESPACE.to_owned()));

        for (key, value) in annotations {
            self.walk_at(Step::Key(key.clone()), |walk| {
                walk.check_annotation(&key, &value, place)
            })?;
        }
        self.path = outer_path;
        Ok(())
    }

    /// Checks one annotation, and adds it if it is a condition. An unknown key
    /// is a mistake, and so is a condition on a part that cannot be left out.
    fn check_annotation(&mut self, key: &str, value: &Value, place: Place) -> WalkResult {
        if !KEYS.contains(&key) {
            return self.fail(ConditionProblem::UnknownKey {
                key: key.to_owned(),
                near: nearest(key, KEYS.map(str::to_owned)),
            });
        }
        if key != WHEN {
            return Ok(());
        }

        if place == Place::Other {
            return self.fail(ConditionProblem::Misplaced);
        }
        let Some(text) = string_value(value) else {
            return self.fail(ConditionProblem::NotText);
        };
        self.conditions.push(Condition {
            path: self.path.clone(),
            text,
            whole: place == Place::Root,
        });
        Ok(())
    }
}
