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
    of: ClusterSnapshot,
    clusters: Result<Arc<Clusters>, Status>,
}

/// What a listener says of all calls.
#[derive(Debug, Default)]
pub(super) struct Manager {
    of: Option<Arc<Listener>>,
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
    /// Makes the table of a snapshot. What is as it was is taken over from the
    /// table before.
    pub(super) fn make_table(&self, snapshot: &ListenerSnapshot, before: Option<&Table>) -> Table {
        let routes = snapshot.routes();
        let mut hosts = routes
            .iter()
            .filter_map(|of| of.virtual_host(&self.authority));
        let host = hosts.next().filter(|_| snapshot.error().is_none());
        let mut clusters = HashMap::new();
        for of in routes.iter().flat_map(|of| of.clusters()) {
            let entry = self.make_entry(&of, before);
            clusters.insert(of.name().to_owned(), entry);
        }
        Table {
            routes: self.make_routes(snapshot, host.as_ref(), before),
            host,
            clusters,
            manager: read_manager(snapshot, before),
        }
    }

    /// Compiles the routes of the virtual host, unless they are those of the
    /// table before. An error is the status of all calls.
    fn make_routes(
        &self,
        snapshot: &ListenerSnapshot,
        host: Option<&VirtualHostSnapshot>,
        before: Option<&Table>,
    ) -> Result<Arc<Routes>, Status> {
        if let Some(error) = snapshot.error() {
            return Err(self.client.call_status(&error));
        }
        let Some(host) = host else {
            let authority = &self.authority;
            let message = format!("no virtual host has the domain {authority}");
            return Err(Status::unavailable(message));
        };
        let is_same = |table: &&Table| table.host.as_ref().is_some_and(|old| old.is_same(host));
        match before.filter(is_same) {
            Some(table) => table.routes.clone(),
            None => Routes::compile(host).map(Arc::new),
        }
    }

    /// Makes the entry of a cluster that a route names, unless it is as before.
    fn make_entry(&self, of: &ClusterSnapshot, before: Option<&Table>) -> Entry {
        let known = before.and_then(|table| table.clusters.get(of.name()));
        let clusters = match known.filter(|entry| entry.of.is_same(of)) {
            Some(entry) => entry.clusters.clone(),
            None => self.make_clusters(of, before),
        };
        Entry {
            of: of.clone(),
            clusters,
        }
    }

    /// Makes the clusters that calls of a name go to. Only if none of them can
    /// be used, the error of the first is that of the calls.
    fn make_clusters(
        &self,
        of: &ClusterSnapshot,
        before: Option<&Table>,
    ) -> Result<Arc<Clusters>, Status> {
        if let Some(error) = of.error().filter(|_| of.is_failed()) {
            return Err(self.client.call_status(error));
        }
        let leaves = of.leaves();
        let made = leaves.iter().map(|leaf| self.make_leaf(leaf, of, before));
        let (mut usable, mut first_error) = (Vec::new(), None);
        for leaf in made {
            match leaf {
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

    /// Makes one cluster with endpoints, unless nothing in it changed. What was
    /// counted of it is found below the same name of a route, `below`.
    fn make_leaf(
        &self,
        leaf: &ClusterSnapshot,
        below: &ClusterSnapshot,
        before: Option<&Table>,
    ) -> Result<Arc<Leaf>, Status> {
        let known = before.and_then(|table| table.clusters.get(below.name()));
        let known = known.and_then(|entry| entry.clusters.as_ref().ok());
        let known = known.and_then(|all| all.0.iter().find(|of| of.of.name() == leaf.name()));
        if let Some(same) = known.filter(|known| known.of.is_same(leaf)) {
            return Ok(Arc::clone(same));
        }
        let known = known.map(AsRef::as_ref);
        Leaf::new(leaf, known, self).map(Arc::new)
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

/// Reads what a listener says of all calls, unless it is the listener of the
/// table before.
fn read_manager(snapshot: &ListenerSnapshot, before: Option<&Table>) -> Arc<Manager> {
    let Some(listener) = snapshot.listener().value() else {
        return Arc::default();
    };
    let listener = listener.value();
    let is_same = |table: &&Table| {
        let of = table.manager.of.as_ref();
        of.is_some_and(|of| Arc::ptr_eq(of, listener))
    };
    match before.filter(is_same) {
        Some(table) => Arc::clone(&table.manager),
        None => Arc::new(Manager::read(listener)),
    }
}

impl Manager {
    /// Reads what a listener says of all calls. One that cannot be decoded says
    /// nothing.
    fn read(listener: &Arc<Listener>) -> Self {
        let of = Some(Arc::clone(listener));
        let api = listener.api_listener.as_ref();
        let any = api.and_then(|api| api.api_listener.as_ref());
        let manager = any.and_then(|any| HttpConnectionManager::decode(&*any.value).ok());
        let Some(manager) = manager else {
            return Self {
                of,
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
            match Cookie::of_filter(any) {
                Some(cookie) => sessions = Some((name, cookie)),
                None => faults.push((name, Fault::read(any))),
            }
        }
        let common = manager.common_http_protocol_options.as_ref();
        let limit = common.and_then(|common| common.max_stream_duration.as_ref());
        Self {
            of,
            faults,
            sessions,
            limit: limit.map(super::fault::duration),
        }
    }
}
