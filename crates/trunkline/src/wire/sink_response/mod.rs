//! A sink's responses: from received bytes to the engine.
//!
//! Bodies are slices of the received bytes. An unreadable resource costs
//! nothing but itself: it is left out and becomes a reason to NACK the response
//! (C26, C27). A server writes responses in [`super::response`].

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::message::{DeltaResponse, Form, Mode, SotwResponse, WireResource};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{self, TypeUrl, Version};
use trunkline_core::sink::{Rejection, Response};
use trunkline_proto::discovery::{
    Any, DecodeError, DeltaDiscoveryResponse, DiscoveryResponse, Inbound, Limits, Resource,
    ResourceName, name_of,
};

use super::constraints::read_variant_constraints;
use super::resource_errors::read_errors;
use super::ttl::read_ttl;

/// A response, and its resources that could not be read.
#[derive(Debug)]
pub struct ReceivedResponse {
    /// The readable part.
    pub response: Response,
    /// Why the rest cannot be read. Belongs in the verdict: a response with any
    /// of these is NACKed, and its good resources are used.
    pub unreadable: Vec<Rejection>,
}

/// Parses one response.
///
/// # Errors
/// If the bytes are no response: the stream cannot be trusted any more.
pub fn read_response(
    mode: Mode,
    raw: Bytes,
    limits: &Limits,
) -> Result<ReceivedResponse, DecodeError> {
    match mode {
        Mode::Sotw => read_sotw(raw, limits),
        Mode::Delta => read_delta(raw, limits),
    }
}

/// Parses a state-of-the-world response.
fn read_sotw(raw: Bytes, limits: &Limits) -> Result<ReceivedResponse, DecodeError> {
    let message = DiscoveryResponse::decode_checked(raw, limits)?.message;
    let mut reader = Reader::new(&message.type_url, limits);

    let bodies = message.resources.into_iter();
    let resources = bodies.filter_map(|any| reader.read_any(any));
    let resources: Vec<WireResource> = resources.collect();
    let response = SotwResponse {
        version: Version::new(&message.version_info),
        nonce: message.nonce.as_str().into(),
        resources: resources.into(),
        errors: read_errors(message.resource_errors),
        removed: Vec::new(),
        type_url: reader.type_url,
    };
    Ok(ReceivedResponse {
        response: response.into(),
        unreadable: reader.unreadable,
    })
}

/// Parses a delta response. Names beyond a limit are a reason to NACK the
/// response, too.
fn read_delta(raw: Bytes, limits: &Limits) -> Result<ReceivedResponse, DecodeError> {
    let decoded = DeltaDiscoveryResponse::decode_checked(raw, limits)?;
    let message = decoded.message;
    let mut reader = Reader::new(&message.type_url, limits);
    for refusal in &decoded.refused {
        reader.reject_nameless(refusal.to_string());
    }

    let wrappers = message.resources.into_iter();
    let resources = wrappers.filter_map(|wrapper| reader.read_wrapped(wrapper));
    let resources: Vec<WireResource> = resources.collect();

    let removed = message.removed_resources.iter();
    let mut removed: Vec<Name> = removed.map(|name| Name::new(name)).collect();
    let names = &message.removed_resource_names;
    let removed_variants = reader.read_removed_variants(names, &resources, &mut removed);
    let response = DeltaResponse {
        nonce: message.nonce.as_str().into(),
        resources: resources.into(),
        removed,
        removed_variants,
        errors: read_errors(message.resource_errors),
        type_url: reader.type_url,
    };
    Ok(ReceivedResponse {
        response: response.into(),
        unreadable: reader.unreadable,
    })
}

/// Reads the resources of one response, and collects their errors.
struct Reader<'a> {
    type_url: TypeUrl,
    limits: &'a Limits,
    unreadable: Vec<Rejection>,
}

impl<'a> Reader<'a> {
    /// Makes the reader of a response of this type.
    fn new(type_url: &str, limits: &'a Limits) -> Self {
        Self {
            type_url: type_url.into(),
            limits,
            unreadable: Vec::new(),
        }
    }

    /// Parses a resource of a state-of-the-world response: a body, or a wrapper
    /// around one (S58). Rejects a malformed wrapper, and returns `None` for a
    /// rejected resource.
    fn read_any(&mut self, any: Any) -> Option<WireResource> {
        if any.type_url != Resource::TYPE_URL {
            return self.read_bare(any);
        }
        match Resource::decode_checked(any.value, self.limits) {
            Err(error) => {
                self.reject_nameless(error.to_string());
                None
            }
            Ok(wrapper) => self.read_wrapped(wrapper.message),
        }
    }

    /// Parses a resource without a wrapper, whose name is in its body. A
    /// resource without a name is rejected, and gives `None`.
    fn read_bare(&mut self, any: Any) -> Option<WireResource> {
        let Some(name) = name_of(&any.value).map(Name::new) else {
            self.reject_nameless("a resource without a name".to_owned());
            return None;
        };
        let body = self.check_body(&name, any)?;
        let resource = resource::Resource::new(name, body);
        Some(WireResource::full(Arc::new(resource)))
    }

    /// Parses a resource in its wrapper. A wrapper with a TTL and no body is a
    /// heartbeat (S59); one with neither means that the resource does not exist
    /// (S35). Returns `None` if the resource is rejected.
    fn read_wrapped(&mut self, wrapper: Resource) -> Option<WireResource> {
        let Some(name) = find_name(&wrapper) else {
            self.reject_nameless("a resource without a name".to_owned());
            return None;
        };
        let constraints = match read_variant_constraints(wrapper.resource_name.as_ref()) {
            Ok(constraints) => constraints,
            Err(error) => {
                self.reject(&name, error.to_string());
                return None;
            }
        };

        let ttl = wrapper.ttl.and_then(read_ttl);
        let form = match (&wrapper.resource, ttl) {
            (None, Some(_)) => Form::Heartbeat,
            _ => Form::Full,
        };
        let body = match wrapper.resource {
            Some(any) => Some(self.check_body(&name, any)?),
            None => None,
        };

        let aliases = wrapper.aliases.iter();
        let resource = resource::Resource {
            aliases: aliases.map(|alias| Name::new(alias)).collect(),
            constraints,
            version: version_of(&wrapper.version, body.as_ref()),
            ttl,
            body,
            facts: None,
            name,
        };
        Some(WireResource {
            resource: Arc::new(resource),
            form,
        })
    }

    /// Returns the body of a resource. A body that is not of the type of the
    /// response is rejected, and gives `None`.
    fn check_body(&mut self, name: &Name, any: Any) -> Option<Bytes> {
        if any.type_url == self.type_url.as_str() {
            return Some(any.value);
        }
        let reason = format!("a {:?} in a response of {}", any.type_url, self.type_url);
        self.reject(name, reason);
        None
    }

    /// Parses the variants that a response removes (TP2). A name without
    /// constraints is removed as a whole and added to `removed`. The exception
    /// is a name of which the response also has resources: its variants with
    /// constraints replace the one without.
    fn read_removed_variants(
        &mut self,
        names: &[ResourceName],
        resources: &[WireResource],
        removed: &mut Vec<Name>,
    ) -> Vec<(Name, Option<Constraints>)> {
        let is_sent = |name: &Name| resources.iter().any(|wire| wire.resource.name == *name);
        let mut variants = Vec::new();
        for message in names {
            let name = Name::new(&message.name);
            match read_variant_constraints(Some(message)) {
                Ok(Some(constraints)) => variants.push((name, Some(constraints))),
                Ok(None) if is_sent(&name) => variants.push((name, None)),
                Ok(None) if !removed.contains(&name) => removed.push(name),
                Ok(None) => {}
                Err(error) => self.reject(&name, error.to_string()),
            }
        }
        variants
    }

    /// Adds a reason to NACK that is about one name.
    fn reject(&mut self, name: &Name, reason: String) {
        self.unreadable.push(Rejection::of(name, reason));
    }

    /// Adds a reason to NACK that is about no name that could be read.
    fn reject_nameless(&mut self, reason: String) {
        self.unreadable.push(Rejection::of_response(reason));
    }
}

/// Returns the name of a resource: that in the wrapper, plain or with
/// constraints, or else that in the body. `None` means that all are empty or
/// missing.
fn find_name(wrapper: &Resource) -> Option<Name> {
    let plain_name = Some(wrapper.name.as_str());
    let variant_name = wrapper.resource_name.as_ref().map(|name| &*name.name);
    let body = wrapper.resource.as_ref();
    let body_name = body.and_then(|any| name_of(&any.value));

    let names = [plain_name, variant_name, body_name].into_iter().flatten();
    let mut names = names.filter(|name| !name.is_empty());
    names.next().map(Name::new)
}

/// Returns the version in a wrapper; without one, a version made from the body.
fn version_of(text: &str, body: Option<&Bytes>) -> Version {
    match (text, body) {
        ("", Some(body)) => Version::of_body(body),
        _ => Version::new(text),
    }
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests;
