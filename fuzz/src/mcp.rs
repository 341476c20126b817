//! Messages of the Mesh Configuration Protocol, of few collections, as the
//! machines have them and as they are on the wire.
//!
//! The library converts messages behind its sockets, where no target comes; the
//! conversions here do what those do.

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::Arbitrary;
use bytes::Bytes;
use prost::Message as _;
use trunkline_core::database::Database;
use trunkline_core::kind::VHDS;
use trunkline_core::mcp::{RequestResources, Resources, ResourcesUpdate, SinkNode};
use trunkline_core::message::ErrorDetail;
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_proto::discovery::{Any, Inbound as _, Limits, Status};
use trunkline_proto::mcp::{self as wire, encode_resources};

use crate::{Named, pick};

/// A type of xDS is one of them, which nothing forbids.
pub const COLLECTIONS: [&str; 4] = ["istio/networking/v1/gateways", "k8s/v1/Secret", "", VHDS];

/// The resources of a collection, by name.
pub type State = BTreeMap<Name, Version>;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Collection(u8);

impl Collection {
    pub fn url(self) -> TypeUrl {
        pick(&COLLECTIONS, self.0).into()
    }
}

/// A resource of a collection by its few properties. Equal versions mean equal
/// contents, unless there is no version.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Entry {
    name: Named,
    /// Decides the body, too.
    version: u8,
    has_no_version: bool,
}

impl Entry {
    pub fn message(self) -> wire::Resource {
        let number = (self.version % 4).to_string();
        wire::Resource {
            body: Some(Any {
                type_url: "t/T".to_owned(),
                value: number.clone().into(),
            }),
            metadata: Some(wire::Metadata {
                name: self.name.text().to_owned(),
                version: match self.has_no_version {
                    true => String::new(),
                    false => number,
                },
                ..wire::Metadata::default()
            }),
        }
    }

    /// The resource as a source has it, which gives each a version.
    pub fn resource(self) -> Arc<Resource> {
        let resource = Resource::new(self.name.name(), self.message().encode_to_vec().into());
        Arc::new(match self.has_no_version {
            true => resource,
            false => Resource {
                version: version(self.version),
                ..resource
            },
        })
    }

    /// Whether a sink takes it.
    pub fn has_name(self) -> bool {
        !self.name.text().is_empty()
    }
}

/// The version of an entry.
pub fn version(number: u8) -> Version {
    Version::new((number % 4).to_string())
}

/// The contents of a collection in a database.
pub fn state(db: &Database, collection: &TypeUrl) -> State {
    let id = db.find_type(collection);
    let resources = id.into_iter().flat_map(|id| db.resources(id));
    resources
        .map(|resource| (resource.name.clone(), resource.version.clone()))
        .collect()
}

/// What a sink that held a state holds after an update.
pub fn updated(mut held: State, update: &ResourcesUpdate) -> State {
    match update {
        ResourcesUpdate::FullState(_) => held.clear(),
        ResourcesUpdate::Incremental { removed, .. } => {
            held.retain(|name, _| !removed.contains(name));
        }
    }
    let resources = update.resources().iter();
    held.extend(resources.map(|resource| (resource.name.clone(), resource.version.clone())));
    held
}

pub fn write_request(request: &RequestResources) -> Bytes {
    let versions = request.initial_versions.iter();
    let message = wire::RequestResources {
        sink_node: request.node.clone().map(|node| wire::SinkNode {
            id: node.id,
            annotations: node.annotations,
        }),
        collection: request.collection.to_string(),
        initial_resource_versions: versions
            .map(|(name, version)| (name.to_string(), version.to_string()))
            .collect(),
        response_nonce: request
            .nonce
            .clone()
            .map_or(String::new(), |n| n.to_string()),
        error_detail: request.error.clone().map(|error| Status {
            code: error.code,
            message: error.message,
            details: Vec::new(),
        }),
        incremental: request.incremental,
    };
    message.encode_to_vec().into()
}

/// `None` if a source ends the stream.
pub fn read_request(raw: Bytes) -> Option<RequestResources> {
    let read = wire::RequestResources::decode_checked(raw, &Limits::DEFAULT);
    let message = read.ok()?.message;
    let versions = message.initial_resource_versions.iter();
    Some(RequestResources {
        node: message.sink_node.map(|node| SinkNode {
            id: node.id,
            annotations: node.annotations,
        }),
        collection: TypeUrl::new(message.collection),
        initial_versions: versions
            .map(|(name, version)| (Name::new(name), Version::new(version)))
            .collect(),
        nonce: Some(message.response_nonce)
            .filter(|nonce| !nonce.is_empty())
            .map(Nonce::new),
        error: message.error_detail.map(|status| ErrorDetail {
            code: status.code,
            message: status.message,
        }),
        incremental: message.incremental,
    })
}

pub fn write_resources(response: &Resources) -> Bytes {
    let resources = response.update.resources().iter();
    let removed = match &response.update {
        ResourcesUpdate::FullState(_) => &[][..],
        ResourcesUpdate::Incremental { removed, .. } => removed,
    };
    let message = wire::Resources {
        system_version_info: response.version.to_string(),
        collection: response.collection.to_string(),
        resources: resources
            .map(|resource| resource.body.clone().unwrap_or_default())
            .collect(),
        removed_resources: removed.iter().map(ToString::to_string).collect(),
        nonce: response.nonce.to_string(),
        incremental: response.update.is_incremental(),
    };
    encode_resources(&message).to_bytes()
}

/// A response as a sink reads it.
pub enum Read {
    Whole(Resources),
    /// Only its collection and its nonce can be used.
    Malformed(TypeUrl, Nonce),
}

/// `None` if a sink ends the stream.
pub fn read_resources(raw: Bytes) -> Option<Read> {
    let read = wire::Resources::decode_checked(raw, &Limits::DEFAULT).ok()?;
    let message = read.message;
    let (collection, nonce) = (TypeUrl::new(message.collection), Nonce::new(message.nonce));
    let resources: Option<Vec<_>> = message.resources.into_iter().map(read_entry).collect();
    let Some(resources) = resources.filter(|_| read.refused.is_empty()) else {
        return Some(Read::Malformed(collection, nonce));
    };
    let removed = message.removed_resources.iter();
    Some(Read::Whole(Resources {
        collection,
        version: Version::new(message.system_version_info),
        nonce,
        update: match message.incremental {
            false => ResourcesUpdate::FullState(resources),
            true => ResourcesUpdate::Incremental {
                resources,
                removed: removed.map(|name| Name::new(name)).collect(),
            },
        },
    }))
}

/// `None` if it has no name, or is no resource.
fn read_entry(raw: Bytes) -> Option<Arc<Resource>> {
    let read = wire::Resource::decode_checked(raw.clone(), &Limits::DEFAULT);
    let metadata = read.ok()?.message.metadata?;
    let resource = Resource::new(Name::new(&metadata.name), raw);
    let version = match metadata.version.is_empty() {
        true => resource.version.clone(),
        false => Version::new(metadata.version),
    };
    (!metadata.name.is_empty()).then(|| {
        Arc::new(Resource {
            version,
            ..resource
        })
    })
}
