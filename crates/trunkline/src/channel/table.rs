//! What one snapshot says: routes, filters, and the clusters that routes lead to.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use prost::Message as _;
use tonic::Status;
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_filter::ConfigType,
};

use super::cluster::{Clusters, Leaf};
use super::fault::Fault;
use super::route::{Decision, Head, Routes};
use super::session::Cookie;
use super::subchannel::Pool;
use crate::client::Client;
use crate::client::tree::{ClusterSnapshot, ListenerSnapshot, VirtualHostSnapshot};

/// See the module's documentation.
pub(super) struct Table {
    host: Option<VirtualHostSnapshot>,
    routes: Result<Arc<Routes>, Status>,
    clusters: HashMap<String, Entry>,
    manager: Arc<Manager>,
}

/// A cluster that a route names.
struct Entry {
    snapshot: ClusterSnapshot,
    clusters: Result<Arc<Clusters>, Status>,
}

/// What a listener says of all calls.
#[derive(Debug, Default)]
pub(super) struct Manager {
    listener: Option<Arc<Listener>>,
    /// The fault filters by their names, in order; one that its routes alone
    /// configure has nothing.
    pub(super) faults: Vec<(String, Option<Fault>)>,
    /// The filter of sessions by its name, if there is one, and its cookie.
    pub(super) sessions: Option<(String, Option<Cookie>)>,
    /// The longest that a call may take, if its route does not say it.
    pub(super) limit: Option<Duration>,
}

/// What a table is made with, whatever the snapshot says.
pub(super) struct Maker {
    pub(super) client: Client,
    /// The name by which calls choose a virtual host.
    pub(super) authority: String,
    pub(super) pool: Arc<Pool>,
}

impl Maker {
    /// Makes the table of a snapshot. Parts that are the same as in the
    /// previous table are taken from there.
    pub(super) fn make_table(
        &self,
        snapshot: &ListenerSnapshot,
        previous: Option<&Table>,
    ) -> Table {
        let routes = snapshot.routes();
        let mut hosts = routes
            .iter()
            .filter_map(|route| route.virtual_host(&self.authority));
        let host = hosts.next().filter(|_| snapshot.error().is_none());
        let mut clusters = HashMap::new();
        for cluster in routes.iter().flat_map(|route| route.clusters()) {
            let entry = self.make_entry(&cluster, previous);
            clusters.insert(cluster.name().to_owned(), entry);
        }
        Table {
            routes: self.make_routes(snapshot, host.as_ref(), previous),
            host,
            clusters,
            manager: read_manager(snapshot, previous),
        }
    }

    /// Compiles the routes of the virtual host, or takes them from the previous
    /// table if that has the same virtual host. An error is the status of all
    /// calls.
    fn make_routes(
        &self,
        snapshot: &ListenerSnapshot,
        host: Option<&VirtualHostSnapshot>,
        previous: Option<&Table>,
    ) -> Result<Arc<Routes>, Status> {
        if let Some(error) = snapshot.error() {
            return Err(self.client.call_status(&error));
        }
        let Some(host) = host else {
            let authority = &self.authority;
            let message = format!("no virtual host has the domain {authority}");
            return Err(Status::unavailable(message));
        };
        let is_same = |table: &&Table| {
            let old_host = table.host.as_ref();
            old_host.is_some_and(|old_host| old_host.is_same(host))
        };
        match previous.filter(is_same) {
            Some(table) => table.routes.clone(),
            None => Routes::compile(host).map(Arc::new),
        }
    }

    /// Makes the entry of a cluster that a route names, or takes it from the
    /// previous table if the cluster has not changed.
    fn make_entry(&self, snapshot: &ClusterSnapshot, previous: Option<&Table>) -> Entry {
        let old_entry = previous.and_then(|table| table.clusters.get(snapshot.name()));
        let clusters = match old_entry.filter(|entry| entry.snapshot.is_same(snapshot)) {
            Some(entry) => entry.clusters.clone(),
            None => self.make_clusters(snapshot, previous),
        };
        Entry {
            snapshot: snapshot.clone(),
            clusters,
        }
    }

    /// Makes the clusters that calls of a name go to. Only if none of them can
    /// be used, the error of the first is that of the calls.
    fn make_clusters(
        &self,
        cluster: &ClusterSnapshot,
        previous: Option<&Table>,
    ) -> Result<Arc<Clusters>, Status> {
        if let Some(error) = cluster.error().filter(|_| cluster.is_failed()) {
            return Err(self.client.call_status(error));
        }
        let (mut usable, mut first_error) = (Vec::new(), None);
        for leaf in &cluster.leaves() {
            match self.make_leaf(leaf, cluster, previous) {
                Ok(leaf) => usable.push(leaf),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        // A leaf that cannot be used gives way to the next (A37).
        match first_error.filter(|_| usable.is_empty()) {
            Some(error) => Err(error),
            None => Ok(Arc::new(Clusters(usable))),
        }
    }

    /// Makes one cluster with endpoints, or takes it from the previous table if
    /// nothing in it changed. What was counted of it is found there below
    /// `parent`, the cluster that the route names.
    fn make_leaf(
        &self,
        leaf: &ClusterSnapshot,
        parent: &ClusterSnapshot,
        previous: Option<&Table>,
    ) -> Result<Arc<Leaf>, Status> {
        let old_entry = previous.and_then(|table| table.clusters.get(parent.name()));
        let old_clusters = old_entry.and_then(|entry| entry.clusters.as_ref().ok());
        let old_leaf = old_clusters.and_then(|clusters| {
            let mut leaves = clusters.0.iter();
            leaves.find(|old_leaf| old_leaf.snapshot.name() == leaf.name())
        });
        if let Some(old_leaf) = old_leaf.filter(|old_leaf| old_leaf.snapshot.is_same(leaf)) {
            return Ok(Arc::clone(old_leaf));
        }
        Leaf::new(leaf, old_leaf.map(AsRef::as_ref), self).map(Arc::new)
    }
}

impl Table {
    /// Decides where a call goes.
    pub(super) fn route<'t>(&'t self, head: &'t Head) -> Result<Decision<'t>, Status> {
        let routes = self.routes.as_ref().map_err(Clone::clone)?;
        routes.route(head)
    }

    /// Returns the clusters of a name; the error is the status of their calls.
    pub(super) fn clusters(&self, name: &str) -> Result<&Arc<Clusters>, Status> {
        let entry = self.clusters.get(name);
        let unknown = || Status::unavailable(format!("the cluster {name} is not known"));
        let entry = entry.ok_or_else(unknown)?;
        entry.clusters.as_ref().map_err(Clone::clone)
    }

    /// Returns what the listener says of all calls.
    pub(super) fn manager(&self) -> &Manager {
        &self.manager
    }
}

/// Reads what a listener says of all calls, or takes it from the previous table
/// if that is of the same listener.
fn read_manager(snapshot: &ListenerSnapshot, previous: Option<&Table>) -> Arc<Manager> {
    let Some(listener) = snapshot.listener().value() else {
        return Arc::default();
    };
    let listener = listener.value();
    let is_same = |table: &&Table| {
        let old_listener = table.manager.listener.as_ref();
        old_listener.is_some_and(|old_listener| Arc::ptr_eq(old_listener, listener))
    };
    match previous.filter(is_same) {
        Some(table) => Arc::clone(&table.manager),
        None => Arc::new(Manager::read(listener)),
    }
}

impl Manager {
    /// Reads what a listener says of all calls. One that cannot be decoded says
    /// nothing.
    fn read(listener: &Arc<Listener>) -> Self {
        let api = listener.api_listener.as_ref();
        let any = api.and_then(|api| api.api_listener.as_ref());
        let manager = any.and_then(|any| HttpConnectionManager::decode(&*any.value).ok());
        let Some(manager) = manager else {
            return Self {
                listener: Some(Arc::clone(listener)),
                ..Self::default()
            };
        };

        let filters = manager.http_filters.iter().filter_map(|filter| {
            let Some(ConfigType::TypedConfig(any)) = &filter.config_type else {
                return None;
            };
            Some((filter.name.clone(), any))
        });
        let (mut faults, mut sessions) = (Vec::new(), None);
        for (name, any) in filters {
            match Cookie::read_filter(any) {
                Some(cookie) => sessions = Some((name, cookie)),
                None => faults.push((name, Fault::read(any))),
            }
        }

        let common = manager.common_http_protocol_options.as_ref();
        let limit = common.and_then(|common| common.max_stream_duration.as_ref());
        Self {
            listener: Some(Arc::clone(listener)),
            faults,
            sessions,
            limit: limit.map(super::fault::duration),
        }
    }
}
