//! Resources of texts as a binary file.

use prost::Message as _;
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource};
use trunkline_proto::text::{self, Document};

/// Encodes the resources of documents as one binary file: a `DiscoveryResponse`
/// with each in its wrapper, if it has one.
pub(super) fn encode<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<u8> {
    let resources = documents.into_iter().flat_map(|read| &read.resources);
    let response = DiscoveryResponse {
        resources: resources.map(to_any).collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

fn to_any(read: &text::Resource) -> Any {
    let any = Any {
        type_url: read.type_url.clone(),
        value: read.body.clone(),
    };
    match read.wrapper == Resource::default() {
        true => any,
        false => wrap(any, &read.wrapper),
    }
}

/// Puts a resource into a copy of a wrapper that has no resource yet.
pub(super) fn wrap(any: Any, wrapper: &Resource) -> Any {
    let wrapper = Resource {
        resource: Some(any),
        ..wrapper.clone()
    };
    Any {
        type_url: types::RESOURCE.to_owned(),
        value: wrapper.encode_to_vec().into(),
    }
}
