//! What one snapshot says: routes, and the clusters that they lead to.

use std::sync::Arc;

use hashbrown::HashMap;
use http::request::Parts;
use tonic::Status;
use trunkline_core::sink::WatchError;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;

use super::balancer::Balancer;
use super::route::Router;
use super::subchannel::Pool;
use crate::client::Client;
use crate::client::tree::{ClusterSnapshot, ListenerSnapshot, VirtualHostSnapshot};

/// See the module's documentation.
pub(super) struct Table {
    host: Result<VirtualHostSnapshot, Status>,
    clusters: HashMap<String, Entry>,
}

/// A cluster, and how its calls are shared out.
struct Entry {
    of: ClusterSnapshot,
    balancer: Result<Arc<Balancer>, Status>,
}

/// What a table is made with, whatever the snapshot says.
pub(super) struct Maker {
    pub(super) client: Client,
    /// The name by which calls choose a virtual host.
    pub(super) authority: String,
    pub(super) pool: Pool,
}

impl Maker {
    /// The table of a snapshot. Clusters that are as they were keep their
    /// balancers.
    pub(super) fn table(&self, snapshot: &ListenerSnapshot, before: Option<&Table>) -> Table {
        let routes = snapshot.routes();
        let host = match snapshot.error() {
            Some(error) => Err(self.status(&error)),
            None => {
                let mut hosts = routes
                    .iter()
                    .filter_map(|of| of.virtual_host(&self.authority));
                hosts.next().ok_or_else(|| {
                    let authority = &self.authority;
                    Status::unavailable(format!("no virtual host has the domain {authority}"))
                })
            }
        };
        let clusters = routes.iter().flat_map(|of| of.clusters());
        let clusters = clusters.map(|of| (of.name().to_owned(), self.entry(of, before)));
        Table {
            host,
            clusters: clusters.collect(),
        }
    }

    fn entry(&self, of: ClusterSnapshot, before: Option<&Table>) -> Entry {
        let same = before.and_then(|table| table.clusters.get(of.name()));
        let balancer = match same.filter(|entry| entry.of.is_same(&of)) {
            Some(entry) => entry.balancer.clone(),
            None => self.balancer(&of),
        };
        Entry { of, balancer }
    }

    fn balancer(&self, of: &ClusterSnapshot) -> Result<Arc<Balancer>, Status> {
        if let Some(error) = of.error().filter(|_| of.is_failed()) {
            return Err(self.status(error));
        }
        let leaves = of.leaves();
        let clusters = leaves.iter().filter_map(|leaf| leaf.value());
        for cluster in clusters {
            refuse_unsupported(&cluster)?;
        }
        let assignments: Vec<_> = leaves
            .iter()
            .filter_map(|of| of.load_assignment())
            .collect();
        Ok(Arc::new(Balancer::new(
            assignments.iter().map(AsRef::as_ref),
            &self.pool,
        )))
    }

    fn status(&self, error: &WatchError) -> Status {
        self.client.call_status(error)
    }
}

/// Refuses a cluster that asks for a security which connections here do not
/// have.
fn refuse_unsupported(cluster: &Cluster) -> Result<(), Status> {
    match cluster.transport_socket.is_some() || !cluster.transport_socket_matches.is_empty() {
        false => Ok(()),
        true => Err(Status::unavailable(format!(
            "the cluster {} has a transport socket, which this channel does not support",
            cluster.name
        ))),
    }
}

impl Table {
    /// The endpoints that a call may go to.
    pub(super) fn route(
        &self,
        router: &dyn Router,
        call: &Parts,
        random: u64,
    ) -> Result<Arc<Balancer>, Status> {
        let host = self.host.as_ref().map_err(Clone::clone)?;
        let cluster = router.route(host, call, random).ok_or_else(|| {
            Status::unavailable(format!("no route for the path {}", call.uri.path()))
        })?;
        let entry = self.clusters.get(cluster);
        let entry = entry
            .ok_or_else(|| Status::unavailable(format!("the cluster {cluster} is not known")))?;
        entry.balancer.clone()
    }
}
