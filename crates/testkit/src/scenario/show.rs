//! Responses and events in the scenarios' own words, so that the expected and
//! the received can be compared, and read, as text.

use std::sync::Arc;

use trunkline_core::message::{DeltaResponse, Form, SotwResponse, WireResource};
use trunkline_core::name::Name;
use trunkline_core::resource::{ErrorCode, Nonce, Resource, ResourceError, TypeUrl, Version};

use super::contents::{Item, empty, invalid_cluster, short, text_of, unreadable};
use super::script::{Expected, Part};

/// A response of either protocol.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) type_url: TypeUrl,
    pub(super) nonce: Nonce,
    /// State of the world only.
    pub(super) version: Option<Version>,
    /// Sorted.
    pub(super) parts: Vec<String>,
}

impl From<DeltaResponse> for Message {
    fn from(response: DeltaResponse) -> Self {
        let mut parts: Vec<_> = response.resources.iter().map(in_delta).collect();
        let removed = response.removed.iter();
        parts.extend(removed.map(|name| removed_name(name.as_str())));
        let variants = response.removed_variants.iter();
        parts.extend(variants.map(|(name, only)| match only {
            Some(only) => format!("-{name}(for {only})"),
            None => format!("-{name}(for all)"),
        }));
        parts.extend(errors(&response.errors));
        parts.sort();
        Self {
            type_url: response.type_url,
            nonce: response.nonce,
            version: None,
            parts,
        }
    }
}

impl From<SotwResponse> for Message {
    fn from(response: SotwResponse) -> Self {
        let mut parts: Vec<_> = response.resources.iter().map(in_sotw).collect();
        parts.extend(errors(&response.errors));
        parts.sort();
        Self {
            type_url: response.type_url,
            nonce: response.nonce,
            version: Some(response.version),
            parts,
        }
    }
}

/// Names that cannot be given, as parts of a response.
fn errors(all: &[(Name, Arc<ResourceError>)]) -> impl Iterator<Item = String> {
    all.iter()
        .map(|(name, error)| format!("!{name}={}", code(error.code)))
}

impl Message {
    /// The response as a scenario would expect it.
    pub(super) fn line(&self) -> String {
        line(&self.type_url, &self.parts)
    }
}

impl Expected {
    /// Its parts as text, sorted.
    pub(super) fn shown(&self) -> Vec<String> {
        let mut parts: Vec<_> = self.parts.iter().map(part).collect();
        parts.sort();
        parts
    }
}

/// A response as a line.
pub(super) fn line(type_url: &TypeUrl, parts: &[String]) -> String {
    let said = match parts {
        [] => "empty".to_owned(),
        parts => parts.join(" "),
    };
    format!("< {} {said}", short(type_url))
}

/// The parts that are missing and those that are too many, for people.
pub(super) fn difference(expected: &[String], got: &[String]) -> String {
    let list = |from: &[String], other: &[String]| {
        let only = from.iter().filter(|part| !other.contains(part));
        only.cloned().collect::<Vec<_>>().join(" ")
    };
    let (missing, extra) = (list(expected, got), list(got, expected));
    let mut lines = String::new();
    if !missing.is_empty() {
        lines += &format!("\nmissing   {missing}");
    }
    if !extra.is_empty() {
        lines += &format!("\ntoo much  {extra}");
    }
    lines
}

fn part(part: &Part) -> String {
    match part {
        Part::Resource(item) => format!("+{}", written(item)),
        Part::Heartbeat(item) => format!("~{}", written(item)),
        Part::Removed(name) => removed_name(name),
        Part::RemovedVariant(item) if item.constraints.is_none() => {
            format!("-{}(for all)", item.name)
        }
        Part::RemovedVariant(item) => format!("-{}{}", item.name, item_extras(item)),
        Part::Error { name, code } => format!("!{name}={code}"),
    }
}

fn removed_name(name: &str) -> String {
    format!("-{name}")
}

fn written(item: &Item) -> String {
    let body = body(&item.name, item.bytes().as_deref(), &item.domains);
    format!("{}@{body}{}", item.name, item_extras(item))
}

fn item_extras(item: &Item) -> String {
    let aliases = item.aliases.clone();
    let constraints = item.constraints.as_ref().map(ToString::to_string);
    extras(aliases, constraints, item.ttl, &item.domains, item.wrapped)
}

fn in_delta(delivered: &WireResource) -> String {
    let sign = match delivered.form {
        Form::Heartbeat => '~',
        Form::Full | Form::Wrapped => '+',
    };
    let extras = resource_extras(&delivered.resource, false);
    format!("{sign}{}{extras}", named(&delivered.resource))
}

/// Without a wrapper only the body is on the wire.
fn in_sotw(delivered: &WireResource) -> String {
    let named = named(&delivered.resource);
    match delivered.form {
        Form::Full => format!("+{named}"),
        Form::Wrapped => format!("+{named}{}", resource_extras(&delivered.resource, true)),
        Form::Heartbeat => format!("~{named}{}", resource_extras(&delivered.resource, true)),
    }
}

fn named(resource: &Resource) -> String {
    let name = resource.name.as_str();
    let usual = match &resource.body {
        Some(bytes) => resource.version == Version::of_body(bytes),
        // A number that is told once, whichever it is.
        None => resource.version.as_str().starts_with('-'),
    };
    let odd = match usual {
        true => String::new(),
        false => format!("[version {}]", resource.version),
    };
    format!("{name}@{}{odd}", text(resource))
}

/// A body as it is written.
pub(super) fn text(resource: &Resource) -> String {
    let name = resource.name.as_str();
    body(name, resource.body.as_deref(), &domains(resource))
}

fn domains(resource: &Resource) -> Vec<String> {
    let domains = resource.facts().domains.iter();
    domains.map(|domain| domain.to_string()).collect()
}

fn body(name: &str, bytes: Option<&[u8]>, domains: &[String]) -> String {
    if let Some(text) = bytes.and_then(|bytes| text_of(bytes, name, domains)) {
        return text;
    }
    match bytes {
        None => "none".to_owned(),
        Some(bytes) if bytes == empty(name) => "empty".to_owned(),
        Some(bytes) if bytes == unreadable(name) => "unreadable".to_owned(),
        Some(bytes) if bytes == invalid_cluster(name) => "standin".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn resource_extras(resource: &Resource, wrapped: bool) -> String {
    let aliases = resource.aliases.iter().map(ToString::to_string).collect();
    let constraints = resource.constraints.as_ref().map(ToString::to_string);
    extras(
        aliases,
        constraints,
        resource.ttl,
        &domains(resource),
        wrapped,
    )
}

fn extras(
    mut aliases: Vec<String>,
    constraints: Option<String>,
    ttl: Option<std::time::Duration>,
    domains: &[String],
    wrapped: bool,
) -> String {
    let mut extras = Vec::new();
    aliases.sort();
    if !aliases.is_empty() {
        extras.push(format!("aka {}", aliases.join(" ")));
    }
    extras.extend(constraints.map(|only| format!("for {only}")));
    extras.extend(ttl.map(|ttl| format!("ttl {ttl:?}")));
    if !domains.is_empty() {
        extras.push(format!("domains {}", domains.join(" ")));
    }
    extras.extend(wrapped.then(|| "wrapped".to_owned()));
    match extras.is_empty() {
        true => String::new(),
        false => format!("({})", extras.join(", ")),
    }
}

fn code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "NotFound",
        ErrorCode::PermissionDenied => "PermissionDenied",
        ErrorCode::Unavailable => "Unavailable",
        ErrorCode::Other(_) => "Internal",
    }
}
