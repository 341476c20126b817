//! Resources of texts as a binary file.

use prost::Message as _;
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource};
use trunkline_proto::text::{self, Document};

/// Encodes the resources of documents as one binary file: a `DiscoveryResponse`
/// in which each resource has its wrapper, if there is one.
pub(super) fn encode_documents<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<u8> {
    let resources = documents
        .into_iter()
        .flat_map(|document| &document.resources);
    let response = DiscoveryResponse {
        resources: resources.map(to_any).collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

/// Encodes a resource, in its wrapper if it has one.
fn to_any(resource: &text::Resource) -> Any {
    let any = Any {
        type_url: resource.type_url.clone(),
        value: resource.body.clone(),
    };
    match resource.wrapper == Resource::default() {
        true => any,
        false => wrap(any, &resource.wrapper),
    }
}

/// Encodes a resource in a copy of `wrapper`, which has no resource yet.
pub(super) fn wrap(any: Any, wrapper: &Resource) -> Any {
    let filled_wrapper = Resource {
        resource: Some(any),
        ..wrapper.clone()
    };
    Any {
        type_url: types::RESOURCE.to_owned(),
        value: filled_wrapper.encode_to_vec().into(),
    }
}
