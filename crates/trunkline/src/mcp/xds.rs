//! The same exchange over xDS, as Istio has it: a stream of state of the world
//! on ADS, whose type URLs are collections and whose resources are those of the
//! protocol.
//!
//! | here | over xDS |
//! |---|---|
//! | the collection | the type URL: `networking.istio.io/v1/Gateway`, a message's, or the collection itself |
//! | `RequestResources` | `DiscoveryRequest`; ACK and NACK are told apart by the error, here as there |
//! | `Resources`, full state | `DiscoveryResponse`, each `Any` an `istio.mcp.v1alpha1.Resource` |
//! | the node's annotations | texts in the metadata of the node |
//!
//! There are no incremental updates and no versions to resume with. Names in a
//! request are not heeded: a collection is asked for as a whole.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::mcp::{Rejected, RequestResources, Resources, ResourcesUpdate, SinkNode};
use trunkline_core::message::InitialVersions;
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_proto::discovery::{
    Any, DecodeError, DiscoveryRequest, DiscoveryResponse, Field, Frames, Head, Inbound as _,
    Limits, Node, encode_sotw,
};
use trunkline_proto::envoy::google::protobuf::value::Kind;
use trunkline_proto::envoy::google::protobuf::{Struct, Value};
use trunkline_proto::mcp::{Collection, Resource};

use super::wire::{Unreadable, read_entry, read_error, read_nonce, write_error};

/// The method of both roles: the sink dials.
pub(super) const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// Reads a request, and the type URL by which it asks for its collection.
pub(super) fn read_request(
    raw: Bytes,
    limits: &Limits,
) -> Result<(RequestResources, String), DecodeError> {
    let message = DiscoveryRequest::decode_checked(raw, limits)?.message;
    let request = RequestResources {
        node: read_node(message.node, limits)?,
        collection: TypeUrl::new(Collection::of_type_url(&message.type_url)),
        initial_versions: InitialVersions::default(),
        nonce: read_nonce(message.response_nonce),
        error: message.error_detail.map(read_error),
        incremental: false,
    };
    Ok((request, message.type_url))
}

/// Reads the node of a sink, whose annotations are the texts in its metadata.
pub(super) fn read_node(
    raw: Option<Bytes>,
    limits: &Limits,
) -> Result<Option<SinkNode>, DecodeError> {
    let node = raw.map(|raw| Node::parse(&raw, limits)).transpose()?;
    Ok(node.map(|node| SinkNode {
        annotations: texts(node.metadata.as_ref()),
        id: node.id,
    }))
}

/// Writes the node of a sink.
pub(super) fn write_node(node: SinkNode) -> Bytes {
    let fields = node.annotations.into_iter().map(|(key, text)| {
        let kind = Some(Kind::StringValue(text));
        (key, Value { kind })
    });
    let metadata = Struct {
        fields: fields.collect(),
    };
    let node = Node {
        id: node.id,
        metadata: Some(metadata.encode_to_vec().into()),
        ..Node::default()
    };
    node.encode_to_vec().into()
}

/// Returns the texts in the metadata of a node. A value that is no text is left
/// out.
fn texts(metadata: Option<&Bytes>) -> std::collections::BTreeMap<String, String> {
    let read = metadata.and_then(|raw| Struct::decode(raw.clone()).ok());
    let fields = read.unwrap_or_default().fields.into_iter();
    let texts = fields.filter_map(|(key, value)| match value.kind? {
        Kind::StringValue(text) => Some((key, text)),
        _ => None,
    });
    texts.collect()
}

/// Writes a response to a request that asked by this type URL.
pub(super) fn write_resources(response: &Resources, type_url: &str) -> Frames {
    let fields = response.update.resources().iter().map(|resource| {
        Field::sotw(&Any {
            type_url: Resource::TYPE_URL.to_owned(),
            value: resource.body.clone().unwrap_or_default(),
        })
    });
    let fields: Vec<Field> = fields.collect();
    let (version, nonce) = (response.version.to_string(), response.nonce.to_string());
    let head = Head {
        type_url,
        nonce: &nonce,
        version: &version,
        identifier: "",
    };
    encode_sotw(head, None, fields.iter().flat_map(Field::pieces))
}

/// Writes a request. The name of the collection becomes the type URL.
pub(super) fn write_request(request: RequestResources) -> Frames {
    Frames::of(&DiscoveryRequest {
        node: request.node.map(write_node),
        type_url: request.collection.to_string(),
        response_nonce: request.nonce.map_or(String::new(), |n| n.to_string()),
        error_detail: request.error.map(write_error),
        ..DiscoveryRequest::default()
    })
}

/// Reads a response, which is a full state.
pub(super) fn read_resources(raw: Bytes) -> Result<Resources, Unreadable> {
    let read = DiscoveryResponse::decode_checked(raw, &Limits::DEFAULT);
    let message = read.map_err(Unreadable::Undecodable)?.message;
    let (collection, nonce) = (TypeUrl::new(&message.type_url), Nonce::new(&message.nonce));
    let malformed = |fault| Unreadable::Malformed(collection.clone(), nonce.clone(), fault);

    let mut resources = Vec::with_capacity(message.resources.len());
    for (index, any) in message.resources.into_iter().enumerate() {
        if any.type_url != Resource::TYPE_URL {
            return Err(malformed(Rejected {
                name: None,
                reason: format!(
                    "resources[{index}]: expected {}, found {}",
                    Resource::TYPE_URL,
                    any.type_url
                ),
            }));
        }
        let entry = read_entry(index, any.value).map_err(malformed)?;
        resources.push(Arc::new(entry));
    }
    Ok(Resources {
        collection,
        version: Version::new(&message.version_info),
        nonce,
        update: ResourcesUpdate::FullState(resources),
    })
}

#[cfg(test)]
mod tests {
    use trunkline_core::message::ErrorDetail;

    use super::*;
    use crate::mcp::{resource, wire::to_core};

    #[test]
    fn a_response_is_a_full_state_by_the_type_url_that_was_asked_for() {
        let one = Arc::new(to_core(resource("ns/a", "t/T", "x")));
        let response = Resources {
            collection: "istio/networking/v1/gateways".into(),
            version: "s".into(),
            nonce: "1".into(),
            update: ResourcesUpdate::FullState(vec![one]),
        };
        let raw = write_resources(&response, "networking.istio.io/v1/Gateway");
        let read = read_resources(raw.to_bytes()).unwrap();
        assert_eq!(read.collection.as_str(), "networking.istio.io/v1/Gateway");
        assert_eq!((read.update, read.nonce), (response.update, response.nonce));
    }

    #[test]
    fn a_request_is_one_for_the_collection_of_its_type_url() {
        let node = SinkNode {
            id: "me".to_owned(),
            annotations: [("env".to_owned(), "canary".to_owned())].into(),
        };
        let request = RequestResources {
            node: Some(node.clone()),
            collection: "networking.istio.io/v1/Gateway".into(),
            initial_versions: InitialVersions::default(),
            nonce: Some("7".into()),
            error: Some(ErrorDetail {
                code: 3,
                message: "no".to_owned(),
            }),
            incremental: true,
        };
        let raw = write_request(request.clone()).to_bytes();
        let (read, asked) = read_request(raw, &Limits::DEFAULT).unwrap();
        assert_eq!(asked, "networking.istio.io/v1/Gateway");
        assert_eq!(read.collection.as_str(), "istio/networking/v1/gateways");
        assert_eq!(
            (read.node, read.nonce, read.error),
            (Some(node), request.nonce, request.error)
        );
        assert!(!read.incremental);
    }

    #[test]
    fn a_resource_of_another_type_is_a_fault_of_its_response() {
        let message = DiscoveryResponse {
            type_url: "A".to_owned(),
            resources: vec![Any {
                type_url: "t/T".to_owned(),
                value: Bytes::new(),
            }],
            ..DiscoveryResponse::default()
        };
        let read = read_resources(message.encode_to_vec().into()).unwrap_err();
        let Unreadable::Malformed(_, _, fault) = read else {
            panic!("{read:?}");
        };
        assert!(
            fault.reason.starts_with("resources[0]: expected "),
            "{}",
            fault.reason
        );
    }
}
