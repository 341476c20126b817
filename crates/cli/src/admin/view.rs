//! A resource as it is shown: in the form of a file, without its secrets.

use bytes::Bytes;
use prost::Message as _;
use serde::Serialize;
use serde_json::{Value, json};
use trunkline::wire::write_constraints;
use trunkline::{Name, Resource, TypeUrl};
use trunkline_proto::descriptor::{self, types};
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::{discovery, redact, text};

/// One resource, or one variant of it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// For whom it is, if not for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) constraints: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_seconds: Option<f64>,
    /// As it would stand in a file; left out of summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<Value>,
}

impl Shown {
    /// Without its contents.
    pub(crate) fn summary(type_url: &TypeUrl, resource: &Resource) -> Self {
        Self {
            type_url: type_url.to_string(),
            name: resource.name.to_string(),
            version: resource.version.to_string(),
            constraints: resource.constraints.as_ref().map(ToString::to_string),
            aliases: resource.aliases.iter().map(Name::to_string).collect(),
            ttl_seconds: resource.ttl.map(|ttl| ttl.as_secs_f64()),
            resource: None,
        }
    }

    /// With its contents.
    pub(crate) fn whole(type_url: &TypeUrl, resource: &Resource) -> Self {
        Self {
            resource: Some(in_a_file(type_url, resource)),
            ..Self::summary(type_url, resource)
        }
    }
}

/// The body alone, as JSON with its type.
pub(crate) fn body(type_url: &TypeUrl, resource: &Resource) -> Value {
    match visible(type_url, resource) {
        Some(message) => node(&message, type_url.as_str()),
        None => json!({"@type": type_url.as_str()}),
    }
}

/// The message without its secrets; none if it cannot be read, for then it
/// cannot be told what in it is secret.
fn visible(type_url: &TypeUrl, resource: &Resource) -> Option<DynamicMessage> {
    let body = resource.body.clone()?;
    redact::redact(type_url.as_str(), body).ok()
}

/// The body, in a wrapper if something belongs to it.
fn in_a_file(type_url: &TypeUrl, resource: &Resource) -> Value {
    let bare =
        resource.aliases.is_empty() && resource.ttl.is_none() && resource.constraints.is_none();
    let wrapped = (!bare).then(|| wrapper(type_url, resource)).flatten();
    wrapped.unwrap_or_else(|| body(type_url, resource))
}

fn wrapper(type_url: &TypeUrl, resource: &Resource) -> Option<Value> {
    let name = resource.name.to_string();
    let constraints = resource.constraints.as_ref();
    let wrapper = discovery::Resource {
        aliases: resource.aliases.iter().map(Name::to_string).collect(),
        ttl: resource.ttl.map(|ttl| discovery::Duration {
            seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
        }),
        resource_name: constraints.map(|constraints| discovery::ResourceName {
            name: name.clone(),
            dynamic_parameter_constraints: Some(write_constraints(constraints.expr())),
        }),
        name,
        resource: visible(type_url, resource).map(|message| discovery::Any {
            type_url: type_url.to_string(),
            value: Bytes::from(message.encode_to_vec()),
        }),
        ..discovery::Resource::default()
    };
    let of = descriptor::message(types::RESOURCE)?;
    let message = DynamicMessage::decode(of, Bytes::from(wrapper.encode_to_vec())).ok()?;
    Some(node(&message, types::RESOURCE))
}

fn node(message: &DynamicMessage, type_url: &str) -> Value {
    let text = text::to_node(message, Some(type_url)).to_json();
    // What is printed is JSON, so it reads back.
    serde_json::from_str(&text).unwrap_or_default()
}
