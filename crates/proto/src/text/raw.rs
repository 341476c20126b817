//! A resource of a binary file, before and after it is decoded.
//!
//! Binary resources are decoded and encoded again, so that the same contents
//! have the same bytes however they were written (S71).

use bytes::Bytes;
use prost::Message;
use prost_reflect::DynamicMessage;

use super::{
    Resource,
    document::BODY,
    error::{Problem, TextError},
    resource::opaque,
    tree::{Node, Position, Value},
};
use crate::{
    canonical, descriptor, discovery,
    path::{Path, Step},
    pieces::Route,
};

/// The place of a resource in a binary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The index of the resource.
    pub index: usize,
    /// Whether it has a wrapper.
    pub wrapped: bool,
    /// The index of a virtual host in it, if the place is that one.
    pub host: Option<usize>,
}

impl Spot {
    /// Returns the path of the place, such as `resources[2].resource`.
    #[must_use]
    pub fn path(&self) -> Path {
        let mut path = Path::default();
        path.push(Step::Name("resources"));
        path.push(Step::Index(self.index));
        if self.wrapped {
            path.push(Step::Name(BODY));
        }
        if let Some(host) = self.host {
            path.push(Step::Name("virtual_hosts"));
            path.push(Step::Index(host));
        }
        path
    }

    /// Makes a mistake at this place, with a path but without a line.
    #[must_use]
    pub fn error(&self, file: &str, problem: Problem) -> Box<TextError> {
        Box::new(TextError {
            file: file.to_owned(),
            at: Position::default(),
            path: self.path().to_string(),
            problem,
        })
    }
}

/// A resource of a binary file, not yet decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw {
    /// Its place.
    pub spot: Spot,
    /// Its type.
    pub type_url: String,
    /// Its contents.
    pub body: Bytes,
    /// Its wrapper, without the body.
    pub wrapper: Option<Box<discovery::Resource>>,
}

impl Raw {
    /// Makes a resource of an entry of a binary file, without its wrapper.
    /// `index` is the position in the file. The body is not decoded.
    ///
    /// # Errors
    /// The entry has no type, or its wrapper is malformed.
    pub fn new(file: &str, index: usize, any: discovery::Any) -> Result<Self, Box<TextError>> {
        let mut spot = Spot {
            index,
            wrapped: false,
            host: None,
        };
        let (any, wrapper) = unwrap_resource(any).map_err(|problem| spot.error(file, problem))?;
        spot.wrapped = wrapper.is_some();
        if any.type_url.is_empty() {
            return Err(spot.error(file, Problem::MissingType(None)));
        }

        Ok(Self {
            spot,
            type_url: any.type_url,
            body: any.value,
            wrapper: wrapper.map(Box::new),
        })
    }

    /// Makes a resource of a route configuration whose virtual hosts are read
    /// one by one. `index` is its position in the file. The metadata of its
    /// wrapper is encoded canonically.
    ///
    /// # Errors
    /// The metadata of the wrapper is malformed.
    pub fn of_route(file: &str, index: usize, route: Route) -> Result<Self, Box<TextError>> {
        let mut wrapper = route.wrapper;
        let spot = Spot {
            index,
            wrapped: wrapper.is_some(),
            host: None,
        };
        if let Some(wrapper) = &mut wrapper {
            canonicalize_metadata(wrapper).map_err(|problem| spot.error(file, problem))?;
        }

        Ok(Self {
            spot,
            type_url: route.type_url,
            body: route.rest,
            wrapper: wrapper.map(Box::new),
        })
    }

    /// Decodes the resource, and encodes it canonically. A body of an unknown
    /// type stays unchanged.
    ///
    /// # Errors
    /// The body is not of its type, or its messages nest too deep.
    pub fn decode(self, file: &str) -> Result<Resource, Box<TextError>> {
        let decoded_body = decode_body(&self.type_url, self.body);
        let (message, body) = decoded_body.map_err(|problem| self.spot.error(file, problem))?;

        Ok(Resource {
            type_url: self.type_url,
            message,
            body,
            wrapper: self.wrapper.map(|wrapper| *wrapper).unwrap_or_default(),
            path: self.spot.path(),
            file: file.to_owned(),
            node: Node::new(Value::Null),
        })
    }
}

/// Decodes a body, and returns the message with its canonical bytes. A body of
/// an unknown type is returned unchanged, with an empty message.
fn decode_body(type_url: &str, body: Bytes) -> Result<(DynamicMessage, Bytes), Problem> {
    let Some(descriptor) = descriptor::message(type_url) else {
        return Ok((opaque(), body));
    };
    let message = DynamicMessage::decode(descriptor, body)
        .map_err(|error| not_binary("resource of its type", &error))?;
    let body = canonical::encode(&message).map_err(|error| encoding_problem(&error))?;
    Ok((message, body.into()))
}

/// Makes the mistake of a message that has no canonical form.
fn encoding_problem(error: &canonical::CanonicalError) -> Problem {
    Problem::Encoding(error.to_string())
}

/// Returns the resource inside a wrapper, and the wrapper. Returns a resource
/// without a wrapper alone.
///
/// # Errors
/// The wrapper is malformed, or contains no resource.
fn unwrap_resource(
    any: discovery::Any,
) -> Result<(discovery::Any, Option<discovery::Resource>), Problem> {
    let wrapper_name = descriptor::full_name(descriptor::types::RESOURCE);
    if descriptor::full_name(&any.type_url) != wrapper_name {
        return Ok((any, None));
    }

    let mut wrapper = discovery::Resource::decode(any.value)
        .map_err(|error| not_binary("envoy.service.discovery.v3.Resource", &error))?;
    let body = wrapper.resource.take().ok_or(Problem::MissingBody)?;
    canonicalize_metadata(&mut wrapper)?;
    Ok((body, Some(wrapper)))
}

/// Encodes the metadata of a wrapper canonically.
fn canonicalize_metadata(wrapper: &mut discovery::Resource) -> Result<(), Problem> {
    if let Some(metadata) = &mut wrapper.metadata {
        *metadata = canonical::canonicalize("envoy.config.core.v3.Metadata", metadata)
            .map_err(|error| encoding_problem(&error))?;
    }
    Ok(())
}

/// Makes the mistake of bytes that are no such message.
pub(super) fn not_binary(message: &'static str, error: &dyn std::fmt::Display) -> Problem {
    let reason = error.to_string();
    Problem::NotBinary { message, reason }
}
