//! Visits every message inside a message, through every `Any` of a known type.

use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use crate::canonical::{self, ANY_VALUE, CanonicalError, MAX_DEPTH, any_parts};
use crate::descriptor;

const ANY: &str = "google.protobuf.Any";

/// Calls `visit` with a message and with each message inside it, an outer one
/// before those in it. `visit` returns whether it changed the message; a body
/// in an `Any` that changed is encoded again, and any other stays as it is.
/// Returns whether something changed.
///
/// # Errors
/// The message in an `Any` that changed nests too deep.
pub fn visit(
    message: &mut DynamicMessage,
    visit: &mut dyn FnMut(&mut DynamicMessage) -> bool,
) -> Result<bool, CanonicalError> {
    visit_message(message, visit, 0)
}

type Visit<'a> = &'a mut dyn FnMut(&mut DynamicMessage) -> bool;

/// Visits a message and the messages inside it. Returns whether one changed.
/// `depth` is the number of enclosing messages, through every `Any`.
fn visit_message(
    message: &mut DynamicMessage,
    visit: Visit<'_>,
    depth: usize,
) -> Result<bool, CanonicalError> {
    if depth > MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    if message.descriptor().full_name() == ANY {
        return visit_any(message, visit, depth);
    }
    let mut changed = visit(message);
    for (_, value) in message.fields_mut() {
        changed |= visit_value(value, visit, depth)?;
    }
    Ok(changed)
}

/// Visits the messages in a value. `depth` is the number of messages around it.
fn visit_value(value: &mut Value, visit: Visit<'_>, depth: usize) -> Result<bool, CanonicalError> {
    let mut changed = false;
    match value {
        Value::Message(message) => changed = visit_message(message, visit, depth + 1)?,
        Value::List(list) => {
            for item in list {
                changed |= visit_value(item, visit, depth)?;
            }
        }
        Value::Map(map) => {
            for value in map.values_mut() {
                changed |= visit_value(value, visit, depth)?;
            }
        }
        _ => {}
    }
    Ok(changed)
}

/// Visits the message in an `Any`, and encodes it again if it changed. A body
/// of an unknown type, or one that cannot be decoded, is not visited.
fn visit_any(
    any: &mut DynamicMessage,
    visit: Visit<'_>,
    depth: usize,
) -> Result<bool, CanonicalError> {
    let Some((type_url, body)) = any_parts(any) else {
        return Ok(false);
    };

    let descriptor = descriptor::message(&type_url);
    let Some(mut inner) =
        descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, body).ok())
    else {
        return Ok(false);
    };

    let changed = visit_message(&mut inner, visit, depth + 1)?;
    if changed {
        let body = canonical::encode(&inner)?.into();
        any.set_field_by_number(ANY_VALUE, Value::Bytes(body));
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Options, read};

    #[test]
    fn a_message_in_an_any_is_visited_and_encoded_again() {
        let text = r#"resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: l
  filter_chains:
  - filters:
    - name: manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: s
        rds: {route_config_name: r, config_source: {path: /tmp}}
"#;
        let document = read("f.yaml", text, &Options::default());
        let mut message = document.resources[0].message.clone();
        let mut names = Vec::new();
        let mut rename = |message: &mut DynamicMessage| {
            let name = message.descriptor().full_name().to_owned();
            let is_rds = name.ends_with(".Rds");
            names.push(name);
            if is_rds {
                let other = Value::String("other".to_owned());
                message.set_field_by_name("route_config_name", other);
            }
            is_rds
        };
        assert!(visit(&mut message, &mut rename).unwrap());
        assert_eq!(names[0], "envoy.config.listener.v3.Listener");
        assert!(names.iter().any(|name| name.ends_with(".ConfigSource")));

        let mut again = Vec::new();
        let mut look = |message: &mut DynamicMessage| {
            if let Some(name) = message.get_field_by_name("route_config_name") {
                again.push(name.as_str().unwrap().to_owned());
            }
            false
        };
        assert!(!visit(&mut message, &mut look).unwrap());
        assert_eq!(again, ["other"]);
    }
}
