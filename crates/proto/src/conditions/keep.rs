//! A resource without the parts whose condition does not hold, and without
//! conditions.

use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage as _, Value};

use super::{FILTER_METADATA, METADATA, WHEN, annotations, has_metadata, mentions, string_value};
use crate::canonical::{self, CanonicalError, MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::facts::NAMESPACE;

/// Returns the resource without the parts whose condition does not hold, and
/// without conditions. `holds` decides by the text of a condition. A condition
/// on the whole resource is not evaluated, but removed.
///
/// # Errors
/// A body inside the resource is not of its type, or messages nest too deep.
pub fn keep(
    message: &DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
) -> Result<DynamicMessage, CanonicalError> {
    let mut pruned = message.clone();
    prune_message(&mut pruned, holds, 0)?;
    Ok(pruned)
}

/// Removes the parts of a message whose condition does not hold, and all
/// conditions. `depth` is the number of enclosing messages, through every
/// `Any`.
fn prune_message(
    message: &mut DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    if depth > MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    if message.descriptor().full_name() == "google.protobuf.Any" {
        return prune_any(message, holds, depth);
    }

    remove_condition(message);
    let fields: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).collect();
    for field in fields {
        match message.get_field_mut(&field) {
            Value::Message(inner) if !is_kept(inner, holds) => message.clear_field(&field),
            Value::Message(inner) => prune_message(inner, holds, depth + 1)?,
            Value::List(list) => {
                // A scalar has no condition, so it is kept.
                list.retain(|item| item.as_message().is_none_or(|item| is_kept(item, holds)));
                prune_each(list.iter_mut(), holds, depth)?;
            }
            Value::Map(map) => prune_each(map.values_mut(), holds, depth)?,
            _ => {}
        }
    }
    Ok(())
}

/// Prunes each message of a list or a map, but removes none of them: the caller
/// has removed those whose own condition does not hold.
fn prune_each<'a>(
    values: impl Iterator<Item = &'a mut Value>,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    for message in values.filter_map(Value::as_message_mut) {
        prune_message(message, holds, depth + 1)?;
    }
    Ok(())
}

/// Returns whether a part has no condition, or one that holds. The condition
/// must still be on it.
fn is_kept(part: &DynamicMessage, holds: &dyn Fn(&str) -> bool) -> bool {
    let annotations = annotations(part).unwrap_or_default();
    let annotation = annotations.iter().find(|(key, _)| key == WHEN);
    let condition = annotation.and_then(|(_, value)| string_value(value));
    condition.is_none_or(|condition| holds(&condition))
}

/// Prunes the body of an `Any` and encodes it again. A body of an unknown type,
/// or without a condition in its bytes, stays unchanged.
fn prune_any(
    any: &mut DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    let Some((type_url, body)) = any_parts(any) else {
        return Ok(());
    };
    let Some(descriptor) = descriptor::message(&type_url).filter(|_| mentions(&body)) else {
        return Ok(());
    };
    let mut message = DynamicMessage::decode(descriptor, body)
        .map_err(|source| CanonicalError::Malformed { type_url, source })?;

    prune_message(&mut message, holds, depth + 1)?;
    let pruned_body = canonical::encode(&message)?;
    any.set_field_by_name("value", Value::Bytes(pruned_body.into()));
    Ok(())
}

/// Removes the condition on a message. Removes the message's metadata too if it
/// is then empty.
fn remove_condition(message: &mut DynamicMessage) {
    if !has_metadata(message) {
        return;
    }
    let field = message.get_field_by_name_mut(METADATA);
    let Some(metadata) = field.and_then(Value::as_message_mut) else {
        return;
    };
    let removed_namespace = remove_from_metadata(metadata) == Some(true);
    if removed_namespace && is_empty(metadata) {
        message.clear_field_by_name(METADATA);
    }
}

/// Removes the condition from metadata. Removes this server's namespace too if
/// it is then empty, and returns whether it was. Returns `None` if the metadata
/// does not have the namespace.
fn remove_from_metadata(metadata: &mut DynamicMessage) -> Option<bool> {
    let namespace = MapKey::String(NAMESPACE.to_owned());
    let namespaces = metadata.get_field_by_name_mut(FILTER_METADATA)?;
    let namespaces = namespaces.as_map_mut()?;
    let annotations = namespaces.get_mut(&namespace)?.as_message_mut()?;
    let annotations = annotations.get_field_by_name_mut("fields")?.as_map_mut()?;

    let condition = annotations.remove(&MapKey::String(WHEN.to_owned()));
    if condition.is_none() || !annotations.is_empty() {
        return Some(false);
    }
    namespaces.remove(&namespace);
    Some(true)
}

/// Returns whether nothing is set in a message, not even an unknown field.
fn is_empty(message: &DynamicMessage) -> bool {
    message.fields().next().is_none() && message.unknown_fields().next().is_none()
}
