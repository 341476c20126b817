//! The same exchange over xDS by delta: a collection is a type URL, all of which
//! is subscribed to.
//!
//! | here | over delta |
//! |---|---|
//! | the collection | the type URL, as in [`xds`](super::xds) |
//! | `RequestResources` | `DeltaDiscoveryRequest`, with `*` in the first |
//! | the versions that are held | `initial_resource_versions` |
//! | `Resources`, incremental | `DeltaDiscoveryResponse`, each resource an `istio.mcp.v1alpha1.Resource` of its name |
//!
//! Names in a request are not heeded: a collection is asked for as a whole. There
//! are no full states: see [`SinkCodec`](super::sink_codec::SinkCodec).

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::mcp::{Rejected, RequestResources, Resources, ResourcesUpdate};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_proto::discovery::{
    self, Any, DecodeError, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Field, Frames, Head,
    HeldVersion, Inbound as _, Limits, encode_delta,
};
use trunkline_proto::mcp::{Collection, Resource as McpResource};

use super::wire::{Unreadable, read_entry, read_error, read_nonce, write_error};
use super::xds::{read_node, write_node};
use crate::bounds::MCP_REQUEST;

/// The method of both roles: the sink dials.
pub(super) const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// Reads a request, and the type URL by which it asks for its collection.
pub(super) fn read_request(
    raw: Bytes,
    limits: &Limits,
) -> Result<(RequestResources, String), DecodeError> {
    let message = DeltaDiscoveryRequest::decode_checked(raw, limits)?.message;
    let versions = message.initial_resource_versions.iter();
    let request = RequestResources {
        node: read_node(message.node, limits)?,
        collection: TypeUrl::new(Collection::of_type_url(&message.type_url)),
        initial_versions: versions
            .map(|entry| (Name::new(&entry.name), Version::new(&entry.version)))
            .collect(),
        nonce: read_nonce(message.response_nonce),
        error: message.error_detail.map(read_error),
        incremental: true,
    };
    Ok((request, message.type_url))
}

/// Writes a response to a request that asked by this type URL. A full state
/// looks like any other response, because it goes to a sink that holds nothing.
pub(super) fn write_resources(response: &Resources, type_url: &str) -> Frames {
    let resources = response.update.resources().iter();
    let fields = resources.map(|resource| {
        Field::delta(&discovery::Resource {
            name: resource.name.as_str().to_owned(),
            version: resource.version.to_string(),
            resource: Some(Any {
                type_url: McpResource::TYPE_URL.to_owned(),
                value: resource.body.clone().unwrap_or_default(),
            }),
            ..discovery::Resource::default()
        })
    });
    let fields: Vec<Field> = fields.collect();
    let removed = match &response.update {
        ResourcesUpdate::FullState(_) => &[][..],
        ResourcesUpdate::Incremental { removed, .. } => removed,
    };

    let removals = DeltaDiscoveryResponse {
        removed_resources: removed.iter().map(|n| n.as_str().to_owned()).collect(),
        ..DeltaDiscoveryResponse::default()
    };
    let (version, nonce) = (response.version.to_string(), response.nonce.to_string());
    let head = Head {
        type_url,
        nonce: &nonce,
        version: &version,
        identifier: "",
    };
    encode_delta(head, Some(&removals), fields.iter().flat_map(Field::pieces))
}

/// Writes a request, and returns whether it says that nothing is held. The name
/// of the collection becomes the type URL. A request that would be too long
/// says nothing of what is held.
pub(super) fn write_request(request: RequestResources) -> (Frames, bool) {
    let is_first = request.nonce.is_none();
    let versions = request.initial_versions.iter();
    let mut message = DeltaDiscoveryRequest {
        node: request.node.map(write_node),
        type_url: request.collection.to_string(),
        resource_names_subscribe: is_first.then(|| "*".to_owned()).into_iter().collect(),
        initial_resource_versions: versions
            .map(|(name, version)| HeldVersion::from((name.as_str(), version.as_str())))
            .collect(),
        response_nonce: request.nonce.map_or(String::new(), |n| n.to_string()),
        error_detail: request.error.map(write_error),
        ..DeltaDiscoveryRequest::default()
    };
    if message.encoded_len() > MCP_REQUEST {
        // A source would not take it.
        message.initial_resource_versions.clear();
    }
    let holds_nothing = message.initial_resource_versions.is_empty();
    (Frames::of(&message), holds_nothing)
}

/// Reads a response, which is an incremental update.
pub(super) fn read_resources(raw: Bytes) -> Result<Resources, Unreadable> {
    let read = DeltaDiscoveryResponse::decode_checked(raw, &Limits::DEFAULT);
    let read = read.map_err(Unreadable::Undecodable)?;
    let message = read.message;
    let (collection, nonce) = (TypeUrl::new(&message.type_url), Nonce::new(&message.nonce));
    let malformed = |fault| Unreadable::Malformed(collection.clone(), nonce.clone(), fault);
    if let Some(refusal) = read.refused.first() {
        return Err(malformed(fault(refusal.to_string())));
    }

    let resources = message.resources.into_iter().enumerate();
    let resources = resources.map(|(index, resource)| read_one(index, resource).map(Arc::new));
    let resources = resources
        .collect::<Result<Vec<_>, _>>()
        .map_err(malformed)?;
    let removed = message.removed_resources.iter();
    let removed = removed.map(|name| Name::new(name)).collect();
    Ok(Resources {
        collection,
        version: Version::new(&message.system_version_info),
        nonce,
        update: ResourcesUpdate::Incremental { resources, removed },
    })
}

/// Reads an entry of `resources`. A version outside of the resource comes
/// before the one inside: the source compares it when the sink resumes.
fn read_one(index: usize, resource: discovery::Resource) -> Result<Resource, Rejected> {
    let place = format!("resources[{index}]");
    let any = resource.resource;
    let any = any.ok_or_else(|| fault(format!("{place}.resource: needed")))?;
    if any.type_url != McpResource::TYPE_URL {
        let expected = McpResource::TYPE_URL;
        let found = any.type_url;
        return Err(fault(format!(
            "{place}: expected {expected}, found {found}"
        )));
    }

    let entry = read_entry(index, any.value)?;
    if !resource.name.is_empty() && resource.name != entry.name.as_str() {
        let (outer, inner) = (resource.name, &entry.name);
        return Err(fault(format!(
            "{place}.name: {outer}, and {inner} in its metadata"
        )));
    }
    Ok(match resource.version.is_empty() {
        true => entry,
        false => Resource {
            version: Version::new(&resource.version),
            ..entry
        },
    })
}

/// Returns a rejection that names no resource.
fn fault(reason: String) -> Rejected {
    Rejected { name: None, reason }
}

#[cfg(test)]
mod tests {
    use trunkline_core::mcp::SinkNode;
    use trunkline_core::message::ErrorDetail;

    use super::*;
    use crate::mcp::{resource, wire::to_core};

    const ASKED: &str = "networking.istio.io/v1/Gateway";

    #[test]
    fn a_response_is_read_as_it_was_written() {
        let written = Resources {
            collection: "istio/networking/v1/gateways".into(),
            version: "s".into(),
            nonce: "1".into(),
            update: ResourcesUpdate::Incremental {
                resources: vec![Arc::new(to_core(resource("ns/a", "t/T", "x")))],
                removed: vec!["ns/b".into()],
            },
        };
        let read = read_resources(write_resources(&written, ASKED).to_bytes()).unwrap();
        assert_eq!(read.collection.as_str(), ASKED);
        assert_eq!((read.update, read.nonce), (written.update, written.nonce));
    }

    #[test]
    fn m7_a_request_says_what_is_held() {
        let node = SinkNode {
            id: "me".to_owned(),
            annotations: [("env".to_owned(), "canary".to_owned())].into(),
        };
        let request = RequestResources {
            node: Some(node.clone()),
            collection: ASKED.into(),
            initial_versions: [("ns/a".into(), "1".into())].into_iter().collect(),
            nonce: None,
            error: None,
            incremental: false,
        };
        let (message, holds_nothing) = write_request(request.clone());
        assert!(!holds_nothing);
        let (read, asked) = read_request(message.to_bytes(), &Limits::DEFAULT).unwrap();
        assert_eq!(asked, ASKED);
        assert_eq!(read.collection.as_str(), "istio/networking/v1/gateways");
        assert_eq!(read.initial_versions.len(), 1);
        assert_eq!((read.node, read.nonce), (Some(node), None));
        assert!(read.incremental);

        let error = ErrorDetail {
            code: 3,
            message: "no".to_owned(),
        };
        let nack = RequestResources {
            nonce: Some("7".into()),
            error: Some(error.clone()),
            initial_versions: Default::default(),
            ..request
        };
        let (message, _) = write_request(nack);
        let (read, _) = read_request(message.to_bytes(), &Limits::DEFAULT).unwrap();
        assert_eq!((read.nonce, read.error), (Some("7".into()), Some(error)));
    }

    #[test]
    fn m11_a_resource_of_another_name_is_a_fault_of_its_response() {
        let one = to_core(resource("ns/a", "t/T", "x"));
        let message = DeltaDiscoveryResponse {
            type_url: "A".to_owned(),
            resources: vec![discovery::Resource {
                name: "ns/b".to_owned(),
                resource: Some(Any {
                    type_url: McpResource::TYPE_URL.to_owned(),
                    value: one.body.unwrap(),
                }),
                ..discovery::Resource::default()
            }],
            ..DeltaDiscoveryResponse::default()
        };
        let read = read_resources(message.encode_to_vec().into()).unwrap_err();
        let Unreadable::Malformed(_, _, fault) = read else {
            panic!("{read:?}");
        };
        assert_eq!(
            fault.reason,
            "resources[0].name: ns/b, and ns/a in its metadata"
        );
    }
}
