//! The references of a resource: what else a tree needs, and from where.
//!
//! | resource | refers to |
//! |---|---|
//! | listener | route configurations, scoped routes, clusters (TCP, inline routes), secrets, filters by ECDS, the bootstrap's layers of the runtime |
//! | route configuration, virtual host | clusters, virtual hosts (VHDS) |
//! | scoped routes | a route configuration |
//! | cluster | endpoints, clusters (aggregate), secrets, hosts to resolve |
//! | endpoints | collections of endpoints (LEDS) |

mod cluster;
mod listener;
mod route;
mod tls;

use std::sync::Arc;

use prost::Message;
use trunkline_core::client::Origin;
use trunkline_core::name::Name;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteConfiguration, ScopedRouteConfiguration, VirtualHost,
};
use trunkline_proto::envoy::google::protobuf::Any;

pub(super) use self::cluster::{DNS, aggregate_members};
pub(super) use self::route::virtual_host;
use super::place::{NodeKey, Referrer};
use crate::client::handle::Running;
use crate::client::state::ErasedValue;

/// The references of a resource.
#[derive(Default)]
pub(super) struct References {
    pub(super) keys: Vec<NodeKey>,
    /// The route configurations inside of a listener.
    pub(super) routes: Vec<Arc<RouteConfiguration>>,
    /// The layers of the runtime below a listener, in order.
    pub(super) layers: Vec<Name>,
}

/// Finds the references of a resource that is from an origin. Of routes, only
/// those count that the key's host has (C52).
pub(super) fn find(
    client: &Running,
    key: &NodeKey,
    value: &ErasedValue,
    origin: Origin,
) -> References {
    let referrer = Referrer { client, origin };
    let mut finder = Finder {
        referrer,
        key,
        references: References::default(),
    };
    if let Some(listener) = value.downcast_ref::<Listener>() {
        finder.find_in_listener(listener);
    } else if let Some(route) = value.downcast_ref::<RouteConfiguration>() {
        finder.find_in_routes(route);
    } else if let Some(host) = value.downcast_ref::<VirtualHost>() {
        finder.find_in_virtual_host(host);
    } else if let Some(scope) = value.downcast_ref::<ScopedRouteConfiguration>() {
        finder.find_in_scope(scope);
    } else if let Some(cluster) = value.downcast_ref::<Cluster>() {
        finder.find_in_cluster(cluster);
    } else if let Some(endpoints) = value.downcast_ref::<ClusterLoadAssignment>() {
        finder.find_in_endpoints(endpoints);
    }
    finder.references
}

/// Finds references.
struct Finder<'a> {
    referrer: Referrer<'a>,
    /// The resource that is looked at.
    key: &'a NodeKey,
    references: References,
}

impl Finder<'_> {
    /// Adds a key; what is below routes is for the same host.
    fn add(&mut self, mut key: NodeKey) {
        if matches!(
            key.type_url.as_str(),
            crate::kind::RDS | crate::kind::SRDS | crate::kind::VHDS
        ) {
            key.host.clone_from(&self.key.host);
        }
        self.references.keys.push(key);
    }

    /// Adds a cluster, which the client's source for clusters has.
    fn add_cluster(&mut self, name: &str) {
        if !name.is_empty() {
            let key = self.referrer.by_name(crate::kind::CDS, name);
            self.add(key);
        }
    }
}

/// Returns the message in an `Any`; `None` if it is of another type, or cannot be
/// read.
fn unpack<M: Message + Default + prost::Name>(any: &Any) -> Option<M> {
    let (_, name) = any.type_url.rsplit_once('/')?;
    (name == M::full_name()).then(|| M::decode(&*any.value).ok())?
}
