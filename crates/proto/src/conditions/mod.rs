//! Conditions that an author puts on parts of a resource, in the parts' own
//! metadata: `metadata: {filter_metadata: {trunkline: {when: "env=prod"}}}`.
//!
//! Such a part is a message that has `metadata`, in a field or in a list: a
//! route, a virtual host, endpoints of a locality, a filter chain; or it is the
//! resource itself. A condition is only a text here: the caller decides whether
//! it holds.
//!
//! ```
//! use trunkline_proto::{conditions, text};
//!
//! let read = text::read("r.yaml", r#"
//! "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
//! name: r
//! virtual_hosts:
//! - name: a
//!   domains: [a]
//!   metadata: {filter_metadata: {trunkline: {when: env=prod}}}
//! "#, &text::Options::default());
//! let message = &read.resources[0].message;
//! assert_eq!(conditions::find(message).unwrap()[0].text, "env=prod");
//! let without = conditions::keep(message, &|_| false).unwrap();
//! assert!(!without.has_field_by_name("virtual_hosts"));
//! ```

mod find;
mod keep;
#[cfg(test)]
mod tests;

use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

pub use self::find::find;
pub use self::keep::keep;
use crate::Path;
use crate::canonical::MAX_DEPTH;
use crate::facts::{BASE_SETS, NAMESPACE};

/// The key of a condition in this server's metadata.
pub const WHEN: &str = "when";

/// Every key that this server's metadata may have.
const KEYS: [&str; 2] = [WHEN, BASE_SETS];

/// A condition on a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its place, from within the resource.
    pub path: Path,
    /// Its text.
    pub text: String,
    /// Whether it is on the resource as a whole.
    pub whole: bool,
}

/// A mistake in the metadata of a part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ConditionError {
    /// Its place, from within the resource.
    pub path: Path,
    /// The mistake.
    pub problem: ConditionProblem,
}

/// The mistakes in the metadata of a part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionProblem {
    /// A condition that is not a text.
    #[error("a condition must be a text such as \"env=prod\"")]
    NotText,
    /// An unknown key.
    #[error(
        "unknown key {key:?}{}; known are: {}",
        .near.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default(),
        KEYS.join(", ")
    )]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The nearest one.
        near: Option<String>,
    },
    /// A condition on a part that cannot be left out.
    #[error(
        "a condition can only be on the resource itself, or on a part that stands in a field or \
         a list, such as a route"
    )]
    Misplaced,
    /// A body inside it is not of its type.
    #[error("not a valid {type_url}: {source}")]
    Malformed {
        /// The type.
        type_url: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
    /// Bodies nest too deep.
    #[error("messages nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Returns whether a body may have a condition in it. The check is cheap: true
/// does not mean that there is one, false means that there is none.
#[must_use]
pub fn mentions(body: &[u8]) -> bool {
    // The namespace as the key of a map entry: field 1, and its length. A body
    // without these bytes has no metadata for this server.
    const KEY: &[u8] = b"\x0a\x09trunkline";
    debug_assert_eq!(&KEY[2..], NAMESPACE.as_bytes());
    body.windows(KEY.len()).any(|part| part == KEY)
}

/// The field of a message for its author's annotations.
const METADATA: &str = "metadata";
/// The field of the metadata that has the annotations, by namespace.
const FILTER_METADATA: &str = "filter_metadata";

/// Returns whether a message has metadata of Envoy's type. Some messages have a
/// field of the same name and another type.
fn has_metadata(message: &DynamicMessage) -> bool {
    let Some(field) = message.descriptor().get_field_by_name(METADATA) else {
        return false;
    };
    let kind = field.kind();
    let descriptor = kind.as_message().map(|descriptor| descriptor.full_name());
    let is_metadata = descriptor == Some("envoy.config.core.v3.Metadata") && !field.is_list();
    is_metadata && message.has_field(&field)
}

/// Returns whether a part has a condition, good or bad.
pub(crate) fn has_condition(part: &DynamicMessage) -> bool {
    let annotations = annotations(part).unwrap_or_default();
    annotations.iter().any(|(key, _)| key == WHEN)
}

/// Returns the annotations of a message for this server, each a key and its
/// value, in the order of their keys. Returns `None` if the message has no
/// metadata for this server.
fn annotations(message: &DynamicMessage) -> Option<Vec<(String, Value)>> {
    if !has_metadata(message) {
        return None;
    }

    let metadata = message.get_field_by_name(METADATA)?;
    let namespaces = metadata.as_message()?.get_field_by_name(FILTER_METADATA)?;
    let namespace_key = MapKey::String(NAMESPACE.to_owned());
    let namespace = namespaces.as_map()?.get(&namespace_key)?;
    let fields = namespace.as_message()?.get_field_by_name("fields")?;

    let pairs = fields.as_map()?.iter();
    let pairs = pairs.filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value.clone())));
    let mut annotations: Vec<_> = pairs.collect();
    annotations.sort_by(|(left, _), (right, _)| left.cmp(right));
    Some(annotations)
}

/// Returns the text of a `google.protobuf.Value`. Returns `None` if the value
/// is not a text.
fn string_value(value: &Value) -> Option<String> {
    let message = value.as_message()?;
    let field = message.descriptor().get_field_by_name("string_value")?;
    if !message.has_field(&field) || field.kind() != Kind::String {
        return None;
    }
    message.get_field(&field).as_str().map(str::to_owned)
}
