//! A resource without the parts whose condition does not hold, and without
//! conditions.

use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage as _, Value};

use super::{METADATA, WHEN, has_metadata, mentions, said, text};
use crate::canonical::{self, CanonicalError, MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::facts::NAMESPACE;

/// The resource as it is when these conditions hold. A condition on the
/// resource as a whole counts as true.
///
/// # Errors
/// A body inside it is not of its type, or nests too deep.
pub fn keep(
    message: &DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
) -> Result<DynamicMessage, CanonicalError> {
    let mut kept = message.clone();
    inside(&mut kept, holds, 0)?;
    Ok(kept)
}

fn inside(
    message: &mut DynamicMessage,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    if depth > MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    if message.descriptor().full_name() == "google.protobuf.Any" {
        return any(message, holds, depth);
    }
    strip(message);
    let fields: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).collect();
    for field in fields {
        match message.get_field_mut(&field) {
            Value::Message(inner) if !stays(inner, holds) => message.clear_field(&field),
            Value::Message(inner) => inside(inner, holds, depth + 1)?,
            Value::List(list) => {
                list.retain(|item| item.as_message().is_none_or(|item| stays(item, holds)));
                each(list.iter_mut(), holds, depth)?;
            }
            Value::Map(map) => each(map.values_mut(), holds, depth)?,
            _ => {}
        }
    }
    Ok(())
}

fn each<'a>(
    values: impl Iterator<Item = &'a mut Value>,
    holds: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<(), CanonicalError> {
    for message in values.filter_map(Value::as_message_mut) {
        inside(message, holds, depth + 1)?;
    }
    Ok(())
}

fn stays(item: &DynamicMessage, holds: &dyn Fn(&str) -> bool) -> bool {
    let said = said(item).unwrap_or_default();
    let when = said.iter().find(|(key, _)| key == WHEN);
    let when = when.and_then(|(_, value)| text(value));
    when.is_none_or(|when| holds(&when))
}

fn any(
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
    inside(&mut message, holds, depth + 1)?;
    let body = canonical::encode(&message)?;
    any.set_field_by_name("value", Value::Bytes(body.into()));
    Ok(())
}

/// Removes the condition, and metadata that is empty without it.
fn strip(message: &mut DynamicMessage) {
    if !has_metadata(message) {
        return;
    }
    let Some(metadata) = message.get_field_by_name_mut(METADATA) else {
        return;
    };
    let Some(metadata) = metadata.as_message_mut() else {
        return;
    };
    let ours = MapKey::String(NAMESPACE.to_owned());
    let all = metadata.get_field_by_name_mut("filter_metadata");
    let Some(all) = all.and_then(Value::as_map_mut) else {
        return;
    };
    let fields = all.get_mut(&ours).and_then(Value::as_message_mut);
    let fields = fields.and_then(|ours| ours.get_field_by_name_mut("fields"));
    let Some(fields) = fields.and_then(Value::as_map_mut) else {
        return;
    };
    if fields.remove(&MapKey::String(WHEN.to_owned())).is_none() || !fields.is_empty() {
        return;
    }
    all.remove(&ours);
    let empty = metadata.fields().next().is_none() && metadata.unknown_fields().next().is_none();
    if empty {
        message.clear_field_by_name(METADATA);
    }
}
