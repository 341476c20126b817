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
use trunkline_core::resource::{self, ErrorCode, TypeUrl, Version};
use trunkline_core::sink::{Rejection, Response};
use trunkline_proto::discovery::{
    Any, DecodeError, DeltaDiscoveryResponse, DiscoveryResponse, Duration, Inbound, Limits,
    Resource, ResourceError, ResourceName, Status, name_of,
};

use super::constraints::{ConstraintReadError, read_constraints};

/// A response, and its resources that could not be read.
#[derive(Debug)]
pub struct ReceivedResponse {
    /// The readable part.
    pub response: Response,
    /// Why the rest cannot be read. Belongs in the verdict: a response with any
    /// of these is NACKed, and its good resources are used.
    pub unreadable: Vec<Rejection>,
}

/// Reads one response.
///
/// # Errors
/// If the bytes are no response at all: then nothing that follows on the stream
/// can be trusted either.
pub fn read_response(
    mode: Mode,
    raw: Bytes,
    limits: &Limits,
) -> Result<ReceivedResponse, DecodeError> {
    match mode {
        Mode::Sotw => sotw(raw, limits),
        Mode::Delta => delta(raw, limits),
    }
}

fn sotw(raw: Bytes, limits: &Limits) -> Result<ReceivedResponse, DecodeError> {
    let message = DiscoveryResponse::decode_checked(raw, limits)?.message;
    let mut reader = Reader::new(&message.type_url, limits);
    let resources: Vec<WireResource> = message
        .resources
        .into_iter()
        .filter_map(|any| reader.any(any))
        .collect();
    let response = SotwResponse {
        version: Version::new(&message.version_info),
        nonce: message.nonce.as_str().into(),
        resources: resources.into(),
        errors: errors(message.resource_errors),
        type_url: reader.type_url,
    };
    Ok(ReceivedResponse {
        response: response.into(),
        unreadable: reader.unreadable,
    })
}

fn delta(raw: Bytes, limits: &Limits) -> Result<ReceivedResponse, DecodeError> {
    let checked = DeltaDiscoveryResponse::decode_checked(raw, limits)?;
    let message = checked.message;
    let mut reader = Reader::new(&message.type_url, limits);
    let refused = checked.refused.iter();
    reader
        .unreadable
        .extend(refused.map(|refusal| Rejection::of_response(refusal.to_string())));
    let resources = message.resources.into_iter();
    let resources = resources.filter_map(|resource| reader.wrapped(resource));
    let resources: Vec<WireResource> = resources.collect();
    let removed = message.removed_resources.iter();
    let mut removed: Vec<Name> = removed.map(|name| Name::new(name)).collect();
    let gone = &message.removed_resource_names;
    let removed_variants = reader.variants(gone, &resources, &mut removed);
    let response = DeltaResponse {
        nonce: message.nonce.as_str().into(),
        resources: resources.into(),
        removed,
        removed_variants,
        errors: errors(message.resource_errors),
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
    fn new(type_url: &str, limits: &'a Limits) -> Self {
        Self {
            type_url: type_url.into(),
            limits,
            unreadable: Vec::new(),
        }
    }

    /// A resource of a SotW response: its body, or a wrapper around it (S58).
    fn any(&mut self, any: Any) -> Option<WireResource> {
        if any.type_url != Resource::TYPE_URL {
            return self.bare(any);
        }
        match Resource::decode_checked(any.value, self.limits) {
            Err(error) => {
                self.nameless(error.to_string());
                None
            }
            Ok(wrapper) => self.wrapped(wrapper.message),
        }
    }

    fn bare(&mut self, any: Any) -> Option<WireResource> {
        let Some(name) = name_of(&any.value).map(Name::new) else {
            self.nameless("a resource without a name".to_owned());
            return None;
        };
        let body = self.body(&name, any)?;
        let resource = resource::Resource::new(name, body);
        Some(WireResource::full(Arc::new(resource)))
    }

    /// A resource in its wrapper.
    fn wrapped(&mut self, said: Resource) -> Option<WireResource> {
        let Some(name) = name(&said) else {
            self.nameless("a resource without a name".to_owned());
            return None;
        };
        let constraints = match constraints(said.resource_name.as_ref()) {
            Ok(constraints) => constraints,
            Err(error) => {
                self.bad(&name, error.to_string());
                return None;
            }
        };
        let ttl = said.ttl.and_then(duration);
        // Without a body and with a TTL it is a heartbeat (S59); without
        // either, the resource does not exist (S35).
        let form = match (&said.resource, ttl) {
            (None, Some(_)) => Form::Heartbeat,
            _ => Form::Full,
        };
        let body = match said.resource {
            Some(any) => Some(self.body(&name, any)?),
            None => None,
        };
        let version = match (said.version.as_str(), &body) {
            ("", Some(body)) => Version::of_body(body),
            (said, _) => Version::new(said),
        };
        let resource = resource::Resource {
            aliases: said.aliases.iter().map(|alias| Name::new(alias)).collect(),
            constraints,
            version,
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

    /// The body, if it is of the type of the response.
    fn body(&mut self, name: &Name, any: Any) -> Option<Bytes> {
        if any.type_url == self.type_url.as_str() {
            return Some(any.value);
        }
        let of = self.type_url.clone();
        let reason = format!("a {:?} in a response of {of}", any.type_url);
        self.bad(name, reason);
        None
    }

    fn variants(
        &mut self,
        said: &[ResourceName],
        brought: &[WireResource],
        removed: &mut Vec<Name>,
    ) -> Vec<(Name, Option<Constraints>)> {
        let comes = |name: &Name| brought.iter().any(|d| d.resource.name == *name);
        let mut variants = Vec::new();
        for one in said {
            let name = Name::new(&one.name);
            match constraints(Some(one)) {
                Ok(Some(constraints)) => variants.push((name, Some(constraints))),
                // Variants with constraints replace the one without.
                Ok(None) if comes(&name) => variants.push((name, None)),
                Ok(None) if !removed.contains(&name) => removed.push(name),
                Ok(None) => {}
                Err(error) => self.bad(&name, error.to_string()),
            }
        }
        variants
    }

    fn bad(&mut self, name: &Name, reason: String) {
        self.unreadable.push(Rejection::of(name, reason));
    }

    fn nameless(&mut self, reason: String) {
        self.unreadable.push(Rejection::of_response(reason));
    }
}

/// The name in the wrapper, or else the one in the body.
fn name(said: &Resource) -> Option<Name> {
    let long = said.resource_name.as_ref().map(|long| long.name.as_str());
    let inside = said.resource.as_ref().and_then(|any| name_of(&any.value));
    let names = [Some(said.name.as_str()), long, inside];
    let mut names = names.into_iter().flatten().filter(|name| !name.is_empty());
    names.next().map(Name::new)
}

/// Constraints that match all clients are none.
fn constraints(said: Option<&ResourceName>) -> Result<Option<Constraints>, ConstraintReadError> {
    let said = said.and_then(|name| name.dynamic_parameter_constraints.as_ref());
    let Some(said) = said else { return Ok(None) };
    let read = Constraints::new(&read_constraints(said)?)?;
    Ok(Some(read).filter(|read| !read.is_always()))
}

/// An invalid duration is none.
fn duration(said: Duration) -> Option<std::time::Duration> {
    let seconds = u64::try_from(said.seconds).ok()?;
    let nanos = u32::try_from(said.nanos).ok()?;
    let ttl = std::time::Duration::new(seconds, nanos.min(999_999_999));
    (!ttl.is_zero()).then_some(ttl)
}

fn errors(said: Vec<ResourceError>) -> Vec<(Name, Arc<resource::ResourceError>)> {
    let one = |error: ResourceError| {
        let name = Name::new(&error.resource_name?.name);
        let Status { code, message, .. } = error.error_detail.unwrap_or_default();
        let error = resource::ResourceError {
            code: code_of(code),
            message: message.into(),
        };
        Some((name, Arc::new(error)))
    };
    said.into_iter().filter_map(one).collect()
}

fn code_of(number: i32) -> ErrorCode {
    match tonic::Code::from_i32(number) {
        tonic::Code::NotFound => ErrorCode::NotFound,
        tonic::Code::PermissionDenied => ErrorCode::PermissionDenied,
        tonic::Code::Unavailable => ErrorCode::Unavailable,
        _ => ErrorCode::Other(number),
    }
}

#[cfg(test)]
mod tests;
