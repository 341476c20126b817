//! A resource as it is shown: in the form of a file, without its secrets.

use bytes::Bytes;
use prost::Message as _;
use serde::Serialize;
use serde_json::{Value, json};
use trunkline::wire::write_constraints;
use trunkline::{Name, Resource, TypeUrl};
use trunkline_proto::descriptor::types;
use trunkline_proto::{discovery, facts, redact, text};

/// One resource, or one variant of it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its constraints, if it is not for all clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) constraints: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_seconds: Option<f64>,
    /// Whose it is, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// Its place in a file, if it comes from one and its origin is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// As it would be written in a file; omitted in summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<Value>,
}

impl Shown {
    /// Shows a resource without its contents.
    pub(crate) fn summary(type_url: &TypeUrl, resource: &Resource) -> Self {
        Self {
            type_url: type_url.to_string(),
            name: resource.name.to_string(),
            version: resource.version.to_string(),
            constraints: resource.constraints.as_ref().map(ToString::to_string),
            aliases: resource.aliases.iter().map(Name::to_string).collect(),
            ttl_seconds: resource.ttl.map(|ttl| ttl.as_secs_f64()),
            origin: None,
            place: None,
            resource: None,
        }
    }

    /// Shows a resource with its contents.
    pub(crate) fn whole(type_url: &TypeUrl, resource: &Resource) -> Self {
        Self {
            resource: Some(show_file_form(type_url, resource)),
            ..Self::summary(type_url, resource)
        }
    }
}

/// Shows the body alone, as JSON with its type and without secrets; only the
/// type, if the body cannot be read.
pub(crate) fn show_body(type_url: &TypeUrl, resource: &Resource) -> Value {
    let body = resource.body.clone().unwrap_or_default();
    show_redacted(type_url.as_str(), body).unwrap_or_else(|| json!({"@type": type_url.as_str()}))
}

/// Shows a message without its secrets; returns `None` if it cannot be read,
/// for then its secrets cannot be found.
pub(crate) fn show_redacted(type_url: &str, body: Bytes) -> Option<Value> {
    let message = redact::redact(type_url, body).ok()?;
    let text = text::to_node(&message, Some(type_url)).to_json();
    serde_json::from_str(&text).ok()
}

/// Shows a resource in the form of a file, without secrets: the body, in a
/// wrapper if [`needs_wrapper`]. If the wrapper cannot be shown without
/// secrets, only the body is shown.
pub(crate) fn show_file_form(type_url: &TypeUrl, resource: &Resource) -> Value {
    let wrapper_json = needs_wrapper(type_url, resource).then(|| {
        let wrapper = make_wrapper(type_url, resource).encode_to_vec();
        show_redacted(types::RESOURCE, wrapper.into())
    });
    let Some(mut wrapper_json) = wrapper_json.flatten() else {
        return show_body(type_url, resource);
    };
    if let Some(constraints) = &resource.constraints {
        // As people write them: a text instead of the message.
        wrapper_json["resource_name"]["dynamic_parameter_constraints"] =
            Value::String(constraints.to_string());
    }
    wrapper_json
}

/// Encodes a resource in the form of a binary file, secrets included: the body,
/// in a wrapper if [`needs_wrapper`].
pub(crate) fn encode_file_form(type_url: &TypeUrl, resource: &Resource) -> discovery::Any {
    match needs_wrapper(type_url, resource) {
        true => discovery::Any {
            type_url: types::RESOURCE.to_owned(),
            value: make_wrapper(type_url, resource).encode_to_vec().into(),
        },
        false => discovery::Any {
            type_url: type_url.to_string(),
            value: resource.body.clone().unwrap_or_default(),
        },
    }
}

/// Returns whether a resource has a property that its body cannot hold: a name
/// of its own, aliases, a TTL, constraints, metadata, or that it must not be
/// cached.
fn needs_wrapper(type_url: &TypeUrl, resource: &Resource) -> bool {
    let names_itself = facts::names_itself(type_url.as_str());
    let rare_facts = resource.facts().rare.as_deref();
    let has_rare_facts =
        rare_facts.is_some_and(|rare| rare.metadata.is_some() || rare.do_not_cache);
    !names_itself
        || !resource.aliases.is_empty()
        || resource.ttl.is_some()
        || resource.constraints.is_some()
        || has_rare_facts
}

/// Puts a resource into a wrapper with all properties that a file can hold. The
/// version is left out: it is computed when the file is read.
fn make_wrapper(type_url: &TypeUrl, resource: &Resource) -> discovery::Resource {
    let name = resource.name.to_string();
    let constraints = resource.constraints.as_ref();
    let rare = resource.facts().rare.as_deref();
    let do_not_cache = rare.is_some_and(|rare| rare.do_not_cache);
    let ttl = resource.ttl.map(|ttl| discovery::Duration {
        seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
    });

    discovery::Resource {
        aliases: resource.aliases.iter().map(Name::to_string).collect(),
        ttl,
        cache_control: do_not_cache.then_some(discovery::CacheControl { do_not_cache }),
        resource_name: constraints.map(|constraints| discovery::ResourceName {
            name: name.clone(),
            dynamic_parameter_constraints: Some(write_constraints(constraints.expr())),
        }),
        metadata: rare.and_then(|rare| rare.metadata.clone()),
        name,
        resource: resource.body.clone().map(|value| discovery::Any {
            type_url: type_url.to_string(),
            value,
        }),
        ..discovery::Resource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::kind;
    use trunkline::wire::accept_text;

    fn accepted(text: &str) -> (TypeUrl, Resource) {
        let read = text::read("f.yaml", text, &trunkline::wire::text_options());
        assert_eq!(read.errors, [], "{text}");
        let one = &read.resources[0];
        let mut accepted = accept_text(one).unwrap();
        (accepted.type_url, accepted.variants.remove(0))
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_resource() {
        let wrapped = |of: &str| {
            format!(
                "\"@type\": {}\nname: {of}\naliases: [a]\nttl: 1.5s\n\
                 cache_control: {{do_not_cache: true}}\n\
                 metadata: {{filter_metadata: {{a: {{k: v}}}}}}\n\
                 resource_name:\n  name: {of}\n  dynamic_parameter_constraints: \
                 {{constraint: {{key: env, value: prod}}}}\nresource:\n",
                types::RESOURCE
            )
        };
        for text in [
            format!("\"@type\": {}\nname: c\nconnect_timeout: 1s", kind::CDS),
            format!("{}  \"@type\": {}\n  name: c", wrapped("c"), kind::CDS),
            format!("{}  \"@type\": {}\n  name: c", wrapped("c"), kind::CDS).replace(
                "{constraint: {key: env, value: prod}}",
                "\"(env=prod AND NOT version=v1) OR zone=\\\"a b\\\"\"",
            ),
            format!(
                "\"@type\": {}\nname: r/d\nresource:\n  \"@type\": {}\n  name: v\n  domains: [d]",
                types::RESOURCE,
                kind::VHDS
            ),
        ] {
            let (type_url, resource) = accepted(&text);
            let shown = Shown::whole(&type_url, &resource).resource.unwrap();
            let (again, same) = accepted(&shown.to_string());
            assert_eq!((again, same), (type_url, resource), "{shown}");
        }
    }

    #[test]
    fn a_body_that_is_not_known_is_not_shown() {
        let type_url = TypeUrl::new("type.example.com/a.B");
        let resource = Resource::new("x".into(), "swordfish".into());
        let shown = Shown::whole(&type_url, &resource);
        let text = serde_json::to_string(&shown).unwrap();
        assert!(
            text.contains("a.B") && !text.contains("swordfish"),
            "{text}"
        );
        assert!(!text.contains("c3dvcmRmaXNo"), "nor in base64: {text}");
    }
}
