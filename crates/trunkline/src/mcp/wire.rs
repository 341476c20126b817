//! Messages of the wire as those of core, and back.
//!
//! A resource of core has the whole encoded resource of the protocol as its
//! body: metadata, and the body with its type.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::mcp::{Rejected, RequestResources, Resources, ResourcesUpdate, SinkNode};
use trunkline_core::message::ErrorDetail;
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_proto::discovery::{DecodeError, Frames, Inbound as _, Limits, Status};
use trunkline_proto::mcp as wire;

use crate::bounds::MCP_REQUEST;

/// A response that cannot be used as a whole.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// Its collection and nonce are known, so it can be rejected.
    Malformed(TypeUrl, Nonce, Rejected),
    /// Nothing of it is known, so the stream has to end.
    Undecodable(DecodeError),
}

/// Converts a message into a resource of core. A resource without a version
/// gets one, a hash of its contents, which becomes a part of the message.
pub(super) fn to_core(mut resource: wire::Resource) -> Resource {
    let metadata = resource.metadata.get_or_insert_default();
    let name = Name::new(&metadata.name);
    if metadata.version.is_empty() {
        let version = Version::of_body(&resource.encode_to_vec());
        let metadata = resource.metadata.get_or_insert_default();
        metadata.version = version.to_string();
    }
    let version = resource.metadata.as_ref();
    let version = version.map_or("", |metadata| &metadata.version);
    Resource {
        version: Version::new(version),
        ..Resource::new(name, resource.encode_to_vec().into())
    }
}

/// Reads the body of a delivered resource, which has its metadata, too.
///
/// # Errors
/// The body is no resource of the protocol.
pub fn read_resource(resource: &Resource) -> Result<wire::Resource, DecodeError> {
    let raw = resource.body.clone().unwrap_or_default();
    let read = wire::Resource::decode_checked(raw, &Limits::DEFAULT)?;
    Ok(read.message)
}

/// Reads a request of the protocol.
pub(super) fn read_request(raw: Bytes, limits: &Limits) -> Result<RequestResources, DecodeError> {
    let read = wire::RequestResources::decode_checked(raw, limits)?.message;
    let versions = read.initial_resource_versions.iter();
    Ok(RequestResources {
        node: read.sink_node.map(|node| SinkNode {
            id: node.id,
            annotations: node.annotations,
        }),
        collection: TypeUrl::new(read.collection),
        initial_versions: versions
            .map(|(name, version)| (Name::new(name), Version::new(version)))
            .collect(),
        nonce: read_nonce(read.response_nonce),
        error: read.error_detail.map(read_error),
        incremental: read.incremental,
    })
}

/// Reads the nonce of an acknowledgement; `None` for a first request, which has
/// none.
pub(super) fn read_nonce(nonce: String) -> Option<Nonce> {
    (!nonce.is_empty()).then(|| Nonce::new(nonce))
}

/// Reads the error that makes a request a NACK (M3).
pub(super) fn read_error(status: Status) -> ErrorDetail {
    ErrorDetail {
        code: status.code,
        message: status.message,
    }
}

/// Writes the error that makes a request a NACK (M3).
pub(super) fn write_error(error: ErrorDetail) -> Status {
    Status {
        code: error.code,
        message: error.message,
        details: Vec::new(),
    }
}

/// Writes a request of the protocol. A request that would be too long asks for
/// a full state, which needs no versions.
pub(super) fn write_request(request: RequestResources) -> Frames {
    let versions = request.initial_versions.iter();
    let mut message = wire::RequestResources {
        sink_node: request.node.map(|node| wire::SinkNode {
            id: node.id,
            annotations: node.annotations,
        }),
        collection: request.collection.to_string(),
        initial_resource_versions: versions
            .map(|(name, version)| (name.as_str().to_owned(), version.to_string()))
            .collect(),
        response_nonce: request.nonce.map_or(String::new(), |n| n.to_string()),
        error_detail: request.error.map(write_error),
        incremental: request.incremental,
    };
    if message.encoded_len() > MCP_REQUEST {
        // A source would not take it.
        message.initial_resource_versions.clear();
        message.incremental = false;
    }
    Frames::of(&message)
}

/// Reads a response of the protocol.
pub(super) fn read_resources(raw: Bytes) -> Result<Resources, Unreadable> {
    let read = wire::Resources::decode_checked(raw, &Limits::DEFAULT);
    let read = read.map_err(Unreadable::Undecodable)?;
    let message = read.message;
    let (collection, nonce) = (
        TypeUrl::new(&message.collection),
        Nonce::new(&message.nonce),
    );
    let malformed = |fault| Unreadable::Malformed(collection.clone(), nonce.clone(), fault);
    if let Some(refusal) = read.refused.first() {
        return Err(malformed(Rejected {
            name: None,
            reason: refusal.to_string(),
        }));
    }

    let resources = message.resources.into_iter().enumerate();
    let resources = resources.map(|(index, raw)| read_entry(index, raw).map(Arc::new));
    let resources = resources
        .collect::<Result<Vec<_>, _>>()
        .map_err(malformed)?;

    let update = match message.incremental {
        // Removed names mean nothing in a full state (M6).
        false => ResourcesUpdate::FullState(resources),
        true => ResourcesUpdate::Incremental {
            resources,
            removed: message
                .removed_resources
                .iter()
                .map(|n| Name::new(n))
                .collect(),
        },
    };
    Ok(Resources {
        collection,
        version: Version::new(&message.system_version_info),
        nonce,
        update,
    })
}

/// Reads an entry of `resources`; its bytes become the body.
pub(super) fn read_entry(index: usize, raw: Bytes) -> Result<Resource, Rejected> {
    let fault = |reason: String| Rejected { name: None, reason };
    let read = wire::Resource::decode_checked(raw.clone(), &Limits::DEFAULT);
    let read = read.map_err(|error| fault(format!("resources[{index}]: {error}")))?;
    let metadata = read.message.metadata.unwrap_or_default();
    if metadata.name.is_empty() {
        return Err(fault(format!("resources[{index}].metadata.name: needed")));
    }
    let resource = Resource::new(Name::new(&metadata.name), raw);
    Ok(match metadata.version.is_empty() {
        true => resource,
        false => Resource {
            version: Version::new(&metadata.version),
            ..resource
        },
    })
}

/// Writes a response of the protocol.
pub(super) fn write_resources(response: &Resources) -> Frames {
    let resources = response.update.resources().iter();
    let bodies = resources.map(|resource| resource.body.clone().unwrap_or_default());
    let removed = match &response.update {
        ResourcesUpdate::FullState(_) => &[][..],
        ResourcesUpdate::Incremental { removed, .. } => removed,
    };
    let message = wire::Resources {
        system_version_info: response.version.to_string(),
        collection: response.collection.to_string(),
        resources: bodies.collect(),
        removed_resources: removed.iter().map(|n| n.as_str().to_owned()).collect(),
        nonce: response.nonce.to_string(),
        incremental: response.update.is_incremental(),
    };
    wire::encode_resources(&message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::resource;

    fn response(update: ResourcesUpdate) -> Resources {
        Resources {
            collection: "A".into(),
            version: "s".into(),
            nonce: "1".into(),
            update,
        }
    }

    #[test]
    fn responses_are_read_as_they_were_written() {
        let one = Arc::new(to_core(resource("ns/a", "t/T", "x")));
        for update in [
            ResourcesUpdate::FullState(vec![Arc::clone(&one)]),
            ResourcesUpdate::Incremental {
                resources: vec![one],
                removed: vec!["ns/b".into()],
            },
        ] {
            let written = response(update);
            let read = read_resources(write_resources(&written).to_bytes()).unwrap();
            assert_eq!(read, written);
        }
    }

    #[test]
    fn a_version_is_made_of_all_that_a_resource_says() {
        let one = to_core(resource("ns/a", "t/T", "x"));
        assert_eq!(one, to_core(resource("ns/a", "t/T", "x")));
        let mut labelled = resource("ns/a", "t/T", "x");
        let metadata = labelled.metadata.get_or_insert_default();
        metadata.labels.insert("app".to_owned(), "a".to_owned());
        assert_ne!(one.version, to_core(labelled).version);
        let read = read_resource(&one).unwrap();
        assert_eq!(read.metadata.unwrap().version, one.version.as_str());
    }

    #[test]
    fn m6_removed_names_of_a_full_state_are_ignored() {
        let message = wire::Resources {
            collection: "A".to_owned(),
            nonce: "1".to_owned(),
            removed_resources: vec!["ns/a".to_owned()],
            ..wire::Resources::default()
        };
        let read = read_resources(message.encode_to_vec().into()).unwrap();
        assert_eq!(read.update, ResourcesUpdate::FullState(Vec::new()));
    }

    #[test]
    fn m11_a_resource_without_a_name_is_a_fault_of_its_response() {
        let message = wire::Resources {
            collection: "A".to_owned(),
            nonce: "7".to_owned(),
            resources: vec![Bytes::new()],
            ..wire::Resources::default()
        };
        let read = read_resources(message.encode_to_vec().into()).unwrap_err();
        let Unreadable::Malformed(collection, nonce, fault) = read else {
            panic!("{read:?}");
        };
        assert_eq!((collection.as_str(), nonce.as_str()), ("A", "7"));
        assert_eq!(fault.reason, "resources[0].metadata.name: needed");
    }
}
