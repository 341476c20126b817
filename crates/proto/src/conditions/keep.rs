//! A resource without the parts whose condition does not hold, and without
//! conditions.

use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage as _, Value};

use super::{FILTER_METADATA, METADATA, WHEN, annotations, has_metadata, mentions, text};
use crate::canonical::{self, CanonicalError, MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::facts::NAMESPACE;

/// Returns the resource without the parts whose condition does not hold, and
/// without conditions. A condition on the resource as a whole counts as true.
///
/// # Errors
/// A body inside it is not of its type, or nests too deep.
pub fn keep(
    message: &DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
) -> Result<DynamicMessage, CanonicalError> {
    let mut kept = message.clone();
    keep_in_message(&mut kept, holds, 0)?;
    Ok(kept)
}

/// Removes the parts of a message whose condition does not hold, and the
/// conditions on it and in it; `depth` counts the messages around it, through
/// every `Any`.
fn keep_in_message(
    message: &mut DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    if depth > MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    if message.descriptor().full_name() == "google.protobuf.Any" {
        return keep_in_any(message, holds, depth);
    }
    remove_condition(message);
    let fields: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).collect();
    for field in fields {
        match message.get_field_mut(&field) {
            Value::Message(inner) if !stays(inner, holds) => message.clear_field(&field),
            Value::Message(inner) => keep_in_message(inner, holds, depth + 1)?,
            Value::List(list) => {
                list.retain(|item| item.as_message().is_none_or(|item| stays(item, holds)));
                keep_in_each(list.iter_mut(), holds, depth)?;
            }
            Value::Map(map) => keep_in_each(map.values_mut(), holds, depth)?,
            _ => {}
        }
    }
    Ok(())
}

/// Does that in each message of a list or a map, all of which stay.
fn keep_in_each<'a>(
    values: impl Iterator<Item = &'a mut Value>,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    for message in values.filter_map(Value::as_message_mut) {
        keep_in_message(message, holds, depth + 1)?;
    }
    Ok(())
}

/// Returns whether a part has no condition, or one that holds.
fn stays(part: &DynamicMessage, holds: &dyn Fn(&str) -> bool) -> bool {
    let annotations = annotations(part).unwrap_or_default();
    let when = annotations.iter().find(|(key, _)| key == WHEN);
    let when = when.and_then(|(_, value)| text(value));
    when.is_none_or(|when| holds(&when))
}

/// Does that in the body of an `Any`, if it may have a condition in it.
fn keep_in_any(
    any: &mut DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    let Some((type_url, body)) = any_parts(any) else {
        return Ok(());
    };
    let Some(of) = descriptor::message(&type_url).filter(|_| mentions(&body)) else {
        return Ok(());
    };
    let mut message = DynamicMessage::decode(of, body)
        .map_err(|source| CanonicalError::Malformed { type_url, source })?;
    keep_in_message(&mut message, holds, depth + 1)?;
    let body = canonical::encode(&message)?;
    any.set_field_by_name("value", Value::Bytes(body.into()));
    Ok(())
}

/// Removes the condition on a message, and metadata that is empty without it.
fn remove_condition(message: &mut DynamicMessage) {
    if !has_metadata(message) {
        return;
    }
    let metadata = message.get_field_by_name_mut(METADATA);
    let Some(metadata) = metadata.and_then(Value::as_message_mut) else {
        return;
    };
    if remove_annotation(metadata) == Some(true) && is_empty(metadata) {
        message.clear_field_by_name(METADATA);
    }
}

/// Removes the condition from metadata, and this server's namespace if that is
/// empty without it. Returns whether the namespace was removed; `None` if there
/// is no such namespace.
fn remove_annotation(metadata: &mut DynamicMessage) -> Option<bool> {
    let ours = MapKey::String(NAMESPACE.to_owned());
    let namespaces = metadata.get_field_by_name_mut(FILTER_METADATA)?;
    let namespaces = namespaces.as_map_mut()?;
    let annotations = namespaces.get_mut(&ours)?.as_message_mut()?;
    let annotations = annotations.get_field_by_name_mut("fields")?.as_map_mut()?;
    let removed = annotations.remove(&MapKey::String(WHEN.to_owned()));
    if removed.is_none() || !annotations.is_empty() {
        return Some(false);
    }
    namespaces.remove(&ours);
    Some(true)
}

/// Whether nothing is set in a message, not even an unknown field.
fn is_empty(message: &DynamicMessage) -> bool {
    message.fields().next().is_none() && message.unknown_fields().next().is_none()
}
