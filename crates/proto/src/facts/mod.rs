//! Facts: the little that make before break and on-demand rules need to know of
//! a body.
//!
//! Bodies are opaque to the engine. When a resource is accepted, its facts are
//! computed once and kept beside the bytes: its name, its references (S73), the
//! domains and base sets of a virtual host (S36), and whether a route
//! configuration, or one inside it, uses VHDS (S76).
//!
//! ```
//! use trunkline_proto::{facts, text};
//!
//! let read = text::read("c.yaml", r#"
//! "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
//! name: c
//! type: EDS
//! eds_cluster_config: {service_name: s, eds_config: {ads: {}}}
//! "#, &text::Options::default());
//! let facts = facts::of_message(&read.resources[0].message).unwrap();
//! assert_eq!(facts.name.as_deref(), Some("c"));
//! assert_eq!(facts.references[0].1, "s");
//! ```

mod base;
mod place;
pub(crate) mod references;
#[cfg(test)]
mod tests;

pub use place::find_reference;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use crate::{
    canonical::{self, CanonicalError, MAX_DEPTH},
    descriptor::{self, full_name, types},
};

/// The namespace of this server in a resource's own metadata.
pub const NAMESPACE: &str = "trunkline";

/// The key of the base sets in it.
pub const BASE_SETS: &str = "base_sets";

/// The maximum of references of one resource.
pub const MAX_REFERENCES: usize = 1 << 20;

/// The facts of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its name in its own body; `None` for a type that has none or is not
    /// known.
    pub name: Option<String>,
    /// Its references: type URL and name, sorted, each once.
    pub references: Vec<(&'static str, String)>,
    /// The domains, if it is a virtual host.
    pub domains: Vec<String>,
    /// The base sets of a virtual host, sorted, each once.
    pub base_sets: Vec<String>,
    /// The `vhds` of a route configuration, encoded canonically, so that a
    /// change shows; `None` if it does not use VHDS.
    pub vhds: Option<Vec<u8>>,
    /// The names of route configurations inside it that use VHDS, sorted, each
    /// once.
    pub leaves: Vec<String>,
    /// Whether a route configuration matches hosts without regard to their
    /// port.
    pub ignores_port: bool,
    /// Whether it holds something that is never shown: see
    /// [`redact`](crate::redact).
    pub holds_secrets: bool,
    /// Whether it has a private key inline, or anything else that a `Secret`
    /// may hold.
    pub holds_keys: bool,
}

/// Why there are no facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// The bytes, or a body inside them, are not of their type.
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
    /// The base sets of a virtual host are not a list of names.
    #[error(
        "metadata.filter_metadata.{NAMESPACE}.{BASE_SETS} must be a list of names, each a text \
         that is not empty"
    )]
    BaseSets,
    /// Too many references.
    #[error("refers to more than {MAX_REFERENCES} resources")]
    TooMany,
}

impl From<CanonicalError> for FactsError {
    /// Makes the error of facts that need a canonical body.
    fn from(error: CanonicalError) -> Self {
        match error {
            CanonicalError::Malformed { type_url, source } => Self::Malformed { type_url, source },
            CanonicalError::TooDeep => Self::TooDeep,
        }
    }
}

/// Reads the facts of an encoded resource. A resource of an unknown type has
/// none.
///
/// # Errors
/// The bytes, or a body inside them, are not of their type, a limit is
/// exceeded, or the base sets of a virtual host are no list of names.
pub fn of(type_url: &str, body: &Bytes) -> Result<Facts, FactsError> {
    match descriptor::message(type_url) {
        None => Ok(Facts::default()),
        Some(descriptor) => of_message(&references::decode_message(
            descriptor,
            type_url,
            body.clone(),
        )?),
    }
}

/// Reads the facts of a decoded resource, from its own fields and from all
/// messages inside it.
///
/// # Errors
/// A body inside the resource is not of its type, a limit is exceeded, or the
/// base sets of a virtual host are not a list of names.
pub fn of_message(message: &DynamicMessage) -> Result<Facts, FactsError> {
    let descriptor = message.descriptor();
    let references::WalkResult {
        references,
        leaves,
        holds_secrets,
        holds_keys,
    } = references::find(message)?;

    let mut facts = Facts {
        name: name_field(descriptor.full_name()).and_then(|field| text(message, field)),
        references,
        leaves,
        holds_secrets,
        holds_keys,
        ..Facts::default()
    };

    if descriptor.full_name() == full_name(types::VIRTUAL_HOST) {
        facts.domains = texts(message, "domains");
        facts.base_sets = base::read_base_sets(message)?;
    }
    if descriptor.full_name() == full_name(types::ROUTE_CONFIGURATION) {
        facts.vhds = encode_vhds(message)?;
        facts.ignores_port = ignores_port(message);
    }
    Ok(facts)
}

/// Returns whether a route configuration matches hosts without their port.
fn ignores_port(route: &DynamicMessage) -> bool {
    let field = route.get_field_by_name("ignore_port_in_host_matching");
    field.and_then(|value| value.as_bool()).unwrap_or_default()
}

/// Encodes the `vhds` of a route configuration canonically. Returns `None` if
/// the field is not set.
fn encode_vhds(route: &DynamicMessage) -> Result<Option<Vec<u8>>, FactsError> {
    if !route.has_field_by_name("vhds") {
        return Ok(None);
    }
    let field = route.get_field_by_name("vhds");
    let message = field.as_deref().and_then(|value| value.as_message());
    Ok(message.map(canonical::encode).transpose()?)
}

/// Returns whether a resource of this type has in its body the name that
/// clients subscribe to. False for a type that is not known.
///
/// A virtual host does not: its body has a name, but clients subscribe to it by
/// the route configuration and a domain (S36).
#[must_use]
pub fn names_itself(type_url: &str) -> bool {
    let message = full_name(type_url);
    message != full_name(types::VIRTUAL_HOST) && name_field(message).is_some()
}

/// Returns the field with the name of a resource, by the full name of its
/// message. Returns `None` for a type without a name, and for one that xDS does
/// not carry.
pub(crate) fn name_field(message: &str) -> Option<&'static str> {
    let has_full_name = |url: &&&str| full_name(url) == message;
    let field = match *types::ALL.iter().find(has_full_name)? {
        types::CLUSTER_LOAD_ASSIGNMENT => "cluster_name",
        // The collection has the name of an endpoint, not the endpoint itself.
        types::LB_ENDPOINT => return None,
        _ => "name",
    };
    Some(field)
}

/// Returns the text of a field; `None` if it is not set, empty, or no text.
fn text(message: &DynamicMessage, field: &str) -> Option<String> {
    let value = message.get_field_by_name(field)?;
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// Returns the texts of a field that is a list; none if it is not set, or if it
/// is no list of texts.
fn texts(message: &DynamicMessage, field: &str) -> Vec<String> {
    let value = message.get_field_by_name(field);
    let list = value.as_ref().and_then(|v| v.as_list()).unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
