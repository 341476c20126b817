//! What a node of a tree holds.

use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_core::client::Origin;
use trunkline_core::name::Name;
use trunkline_core::resource::Resource;
use trunkline_core::tree;
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;

use super::place::Place;
use crate::client::state::ErasedValue;

/// What a node of a tree holds.
#[derive(Clone)]
pub(in crate::client) enum Held {
    /// A resource.
    Resource(Arc<HeldResource>),
    /// A collection: its members are its children.
    Collection,
    /// The addresses of a host, by DNS.
    Addresses(Arc<[SocketAddr]>),
}

/// A resource, decoded.
pub(in crate::client) struct HeldResource {
    pub(in crate::client) resource: Arc<Resource>,
    pub(in crate::client) value: ErasedValue,
    pub(in crate::client) origin: Origin,
    /// The route configurations inside of a listener.
    pub(super) routes: Vec<Arc<RouteConfiguration>>,
    /// The layers of the runtime below a listener, in order.
    pub(super) layers: Vec<Name>,
}

/// A part of a client's snapshots.
pub(super) type RawPart = tree::Part<Place, Held>;

/// A snapshot of a client.
pub(super) type RawSnapshot = tree::Snapshot<Place, Held>;

/// Names only: a resource may be a secret.
impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resource(held) => f
                .debug_tuple("Resource")
                .field(&held.resource.name)
                .finish(),
            Self::Collection => f.write_str("Collection"),
            Self::Addresses(addresses) => f.debug_tuple("Addresses").field(addresses).finish(),
        }
    }
}
