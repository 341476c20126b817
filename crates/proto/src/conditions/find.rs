//! Finds conditions, and the mistakes in them.

use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use super::{
    Condition, ConditionError, ConditionProblem, FILTER_METADATA, KEYS, METADATA, WHEN,
    annotations, text,
};
use crate::canonical::{MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::facts::NAMESPACE;
use crate::path::{Path, Step};
use crate::text::nearest;

/// Finds every condition in a resource, from the outside in.
///
/// # Errors
/// The first mistake in a part's metadata.
pub fn find(message: &DynamicMessage) -> Result<Vec<Condition>, ConditionError> {
    let mut walk = Walk {
        path: Path::default(),
        found: Vec::new(),
    };
    walk.message(message, Place::Root, 0)?;
    Ok(walk.found)
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
    found: Vec<Condition>,
}

type Walked = Result<(), ConditionError>;

impl Walk {
    /// Walks a part that is one step further in.
    fn at(&mut self, step: Step, walk: impl FnOnce(&mut Self) -> Walked) -> Walked {
        self.path.push(step);
        let walked = walk(self);
        self.path.pop();
        walked
    }

    fn wrong(&self, problem: ConditionProblem) -> Walked {
        let path = self.path.clone();
        Err(ConditionError { path, problem })
    }

    /// Finds the conditions on a message and in it; `depth` counts the messages
    /// around it, through every `Any`.
    fn message(&mut self, message: &DynamicMessage, place: Place, depth: usize) -> Walked {
        if depth > MAX_DEPTH {
            return self.wrong(ConditionProblem::TooDeep);
        }
        let of = message.descriptor();
        if of.full_name() == "google.protobuf.Any" {
            return self.any(message, depth);
        }
        if let Some(annotations) = annotations(message) {
            self.annotated(message, annotations, place)?;
        }
        for (field, value) in message.fields() {
            if !matches!(value, Value::Message(_) | Value::List(_) | Value::Map(_)) {
                continue;
            }
            self.at(Step::Field(field), |walk| walk.inside(value, depth))?;
        }
        Ok(())
    }

    /// Walks the messages in a value, those of a map in the order of its keys.
    fn inside(&mut self, value: &Value, depth: usize) -> Walked {
        match value {
            Value::Message(message) => self.message(message, Place::Part, depth + 1),
            Value::List(list) => {
                let messages = list.iter().enumerate();
                for (index, item) in messages {
                    let Value::Message(item) = item else { break };
                    self.at(Step::Index(index), |walk| {
                        walk.message(item, Place::Part, depth + 1)
                    })?;
                }
                Ok(())
            }
            Value::Map(map) => {
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.sort_by_key(|(key, _)| *key);
                for (key, value) in pairs {
                    let (Value::Message(value), Some(key)) = (value, key.as_str()) else {
                        break;
                    };
                    self.at(Step::Key(key.to_owned()), |walk| {
                        walk.message(value, Place::Other, depth + 1)
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Walks the body of an `Any`, which stands in place of it, as in the text.
    fn any(&mut self, any: &DynamicMessage, depth: usize) -> Walked {
        let Some((type_url, body)) = any_parts(any) else {
            return Ok(());
        };
        let Some(of) = descriptor::message(&type_url).filter(|_| super::mentions(&body)) else {
            return Ok(());
        };
        match DynamicMessage::decode(of, body) {
            Ok(message) => self.message(&message, Place::Other, depth + 1),
            Err(source) => self.wrong(ConditionProblem::Malformed { type_url, source }),
        }
    }

    /// Checks the annotations of a message, at their own path.
    fn annotated(
        &mut self,
        message: &DynamicMessage,
        annotations: Vec<(String, Value)>,
        place: Place,
    ) -> Walked {
        let mut of = Some(message.descriptor());
        let before = self.path.clone();
        for name in [METADATA, FILTER_METADATA] {
            let Some(field) = of.as_ref().and_then(|of| of.get_field_by_name(name)) else {
                break;
            };
            of = field.kind().as_message().cloned();
            self.path.push(Step::Field(field));
        }
        self.path.push(Step::Key(NAMESPACE.to_owned()));
        for (key, value) in annotations {
            self.at(Step::Key(key.clone()), |walk| {
                walk.annotation(&key, &value, place)
            })?;
        }
        self.path = before;
        Ok(())
    }

    /// Checks one annotation, and adds it if it is a condition.
    fn annotation(&mut self, key: &str, value: &Value, place: Place) -> Walked {
        if !KEYS.contains(&key) {
            return self.wrong(ConditionProblem::UnknownKey {
                key: key.to_owned(),
                near: nearest(key, KEYS.map(str::to_owned)),
            });
        }
        if key != WHEN {
            return Ok(());
        }
        if place == Place::Other {
            return self.wrong(ConditionProblem::Misplaced);
        }
        let Some(text) = text(value) else {
            return self.wrong(ConditionProblem::NotText);
        };
        self.found.push(Condition {
            path: self.path.clone(),
            text,
            whole: place == Place::Root,
        });
        Ok(())
    }
}
