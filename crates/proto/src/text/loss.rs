//! The parts of a message that text cannot express.
//!
//! Writing leaves out the parts that it has no words for, which is right for
//! people. A program that reads the text would take the rest for the whole.

use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
};

/// A part of a message that its text would not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// A body of an unknown type.
    #[error("a body of the type {0:?}, which is not known here")]
    Type(String),
    /// A body that is not of its type.
    #[error("a body that is not a valid {0}")]
    Malformed(String),
    /// An unknown field.
    #[error("field {number} of {message}, which is not known here")]
    Field {
        /// The message.
        message: String,
        /// The number of the field.
        number: u32,
    },
    /// Messages nest deeper than text is written.
    #[error("messages nest deeper than {MAX_DEPTH} levels")]
    Depth,
}

/// Finds the first part of a message that its text would not have; `None` if
/// the text has all of it.
#[must_use]
pub fn loss(message: &DynamicMessage) -> Option<Loss> {
    find_in_message(message, 0)
}

/// Finds the first loss in a message: an unknown field, or a loss in the
/// messages inside it. `depth` is the number of enclosing messages, through
/// every `Any`.
fn find_in_message(message: &DynamicMessage, depth: usize) -> Option<Loss> {
    if depth >= MAX_DEPTH {
        return Some(Loss::Depth);
    }

    let descriptor = message.descriptor();
    if let Some(unknown) = message.unknown_fields().next() {
        return Some(Loss::Field {
            message: descriptor.full_name().to_owned(),
            number: unknown.number(),
        });
    }
    if descriptor.full_name() == "google.protobuf.Any" {
        return find_in_any(message, depth);
    }

    let mut fields = message.fields();
    fields.find_map(|(_, value)| find_in_value(value, depth))
}

/// Finds the first loss in the messages of a value. `depth` is the number of
/// messages around the value.
fn find_in_value(value: &Value, depth: usize) -> Option<Loss> {
    match value {
        Value::Message(message) => find_in_message(message, depth + 1),
        Value::List(list) => list.iter().find_map(|value| find_in_value(value, depth)),
        Value::Map(map) => map.values().find_map(|value| find_in_value(value, depth)),
        _ => None,
    }
}

/// Finds the first loss in the body of an `Any`. The whole body is lost if its
/// type is unknown, or it cannot be decoded.
fn find_in_any(any: &DynamicMessage, depth: usize) -> Option<Loss> {
    let (url, body) = any_parts(any)?;
    // An empty `Any` has a form in JSON: an empty mapping.
    if url.is_empty() && body.is_empty() {
        return None;
    }
    let Some(descriptor) = descriptor::message(&url) else {
        return Some(Loss::Type(url));
    };
    match DynamicMessage::decode(descriptor, body) {
        Ok(inner) => find_in_message(&inner, depth + 1),
        Err(_) => Some(Loss::Malformed(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    fn config(url: &str, body: &[u8]) -> DynamicMessage {
        let of = descriptor::message("envoy.config.core.v3.TypedExtensionConfig").unwrap();
        let mut message = DynamicMessage::new(of);
        let any = message.get_field_by_name_mut("typed_config").unwrap();
        let any = any.as_message_mut().unwrap();
        any.set_field_by_number(1, Value::String(url.into()));
        any.set_field_by_number(2, Value::Bytes(body.to_vec().into()));
        message
    }

    #[test]
    fn what_is_known_is_not_lost() {
        const CONFIG: &str = "t/envoy.config.core.v3.TypedExtensionConfig";
        let inner = config("t/envoy.config.cluster.v3.Cluster", b"");
        assert_eq!(loss(&config(CONFIG, &inner.encode_to_vec())), None);
        assert_eq!(loss(&config("", b"")), None);

        let inner = config("t/no.such.Type", b"");
        let lost = loss(&config(CONFIG, &inner.encode_to_vec()));
        assert_eq!(lost, Some(Loss::Type("t/no.such.Type".into())));
        let lost = loss(&config(CONFIG, b"\xff"));
        assert_eq!(lost, Some(Loss::Malformed(CONFIG.into())));
        // Field 1000, which is unknown.
        let lost = loss(&config(CONFIG, b"\xc2\x3e\x01x"));
        assert!(
            matches!(lost, Some(Loss::Field { number: 1000, .. })),
            "{lost:?}"
        );
    }

    #[test]
    fn depth_is_a_loss_and_no_fault() {
        const CONFIG: &str = "t/envoy.config.core.v3.TypedExtensionConfig";
        let mut message = config("", b"");
        for _ in 0..MAX_DEPTH {
            message = config(CONFIG, &message.encode_to_vec());
        }
        assert_eq!(loss(&message), Some(Loss::Depth));
    }
}
