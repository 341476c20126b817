//! Reports in memory, and what they weigh.
//!
//! A weight is the memory that a report takes, with the room that tables leave
//! free; a test compares it with the allocator's count.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use tokio::time::Instant;

use super::report::{ClusterFigures, ClusterLoad, HeapBytes as _, LocalityLoad};
use super::store::LoadLimits;

/// The reports of all clients.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    by_id: HashMap<Arc<str>, Node>,
    bytes: usize,
}

/// The reports of one client.
#[derive(Debug, Default)]
struct Node {
    /// The cluster of the node itself.
    cluster: Box<str>,
    clusters: HashMap<ClusterKey, Cluster>,
    bytes: usize,
}

/// The names by which a client tells its clusters apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClusterKey {
    pub(super) name: Box<str>,
    /// The EDS service name.
    pub(super) service: Box<str>,
}

/// The latest report on one cluster.
#[derive(Debug)]
struct Cluster {
    /// When the figures were received.
    received_at: Instant,
    figures: ClusterFigures,
    /// In the order of their places.
    localities: Vec<(Instant, LocalityLoad)>,
}

/// Returns the bytes of a table for each entry: a table that has just grown is
/// less than half full.
const fn table_room<T>() -> usize {
    size_of::<T>() * 16 / 7
}

/// The weight of a client, beside its reports: its table begins with room for
/// four.
const NODE_WEIGHT: usize =
    table_room::<(Arc<str>, Node)>() + 4 * size_of::<(ClusterKey, Cluster)>() + 64;
/// The weight of a cluster, beside what it holds.
const CLUSTER_WEIGHT: usize = table_room::<(ClusterKey, Cluster)>() + 32;
/// The weight of a locality, beside what it holds. A list grows by a quarter.
const LOCALITY_WEIGHT: usize = size_of::<(Instant, LocalityLoad)>() * 5 / 4 + 16;

impl Nodes {
    /// Returns the weight of all reports.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the ids of all clients with reports, in no order.
    pub(super) fn ids(&self) -> Vec<Arc<str>> {
        self.by_id.keys().map(Arc::clone).collect()
    }

    /// Returns the reports of a client as plain values, in no order.
    pub(super) fn loads(&self, id: &str) -> Vec<ClusterLoad> {
        let node = self.by_id.get(id);
        let clusters = node.map(|node| node.cluster_loads(id));
        clusters.into_iter().flatten().collect()
    }

    /// Drops the reports of a client that are older than `keep`, and the client
    /// with its last report. A cluster takes its localities with it.
    pub(super) fn drop_old(&mut self, id: &str, keep: Duration) {
        let Some(node) = self.by_id.get_mut(id) else {
            return;
        };
        let is_fresh = |received_at: Instant| received_at.elapsed() <= keep;
        node.clusters.retain(|_, cluster| {
            cluster
                .localities
                .retain(|(received_at, _)| is_fresh(*received_at));
            cluster.localities.shrink_to_fit();
            is_fresh(cluster.received_at)
        });
        // The weight of a report leaves out the spare room of tables.
        node.clusters.shrink_to_fit();

        let old_bytes = node.bytes;
        let new_bytes = if node.clusters.is_empty() {
            0
        } else {
            node.weight(id)
        };
        node.bytes = new_bytes;
        self.bytes = (self.bytes + new_bytes).saturating_sub(old_bytes);

        if new_bytes == 0 {
            self.by_id.remove(id);
            if self.by_id.len() < self.by_id.capacity() / 4 {
                self.by_id.shrink_to_fit();
            }
        }
    }

    /// Returns the slot of a client's report on a cluster.
    pub(super) fn slot<'a>(
        &'a mut self,
        limits: &'a LoadLimits,
        node_id: &'a Arc<str>,
        node_cluster: &'a str,
        key: ClusterKey,
    ) -> ReportSlot<'a> {
        ReportSlot {
            nodes: self,
            limits,
            node_id,
            node_cluster,
            key,
        }
    }
}

/// The place of one client's report on one cluster.
pub(super) struct ReportSlot<'a> {
    nodes: &'a mut Nodes,
    limits: &'a LoadLimits,
    node_id: &'a Arc<str>,
    /// The cluster of the client's node itself.
    node_cluster: &'a str,
    key: ClusterKey,
}

impl ReportSlot<'_> {
    /// Returns whether a report of `new_bytes` in place of one of `old_bytes`
    /// is within the limits of the client and of all clients. A report that
    /// does not grow always is.
    fn fits(&self, new_bytes: usize, old_bytes: usize) -> bool {
        if new_bytes <= old_bytes {
            return true;
        }
        let is_within_limit = |total: usize, limit: usize| {
            total.saturating_sub(old_bytes).saturating_add(new_bytes) <= limit
        };
        let node = self.nodes.by_id.get(self.node_id);
        let node_bytes = node.map_or(0, |node| node.bytes);
        is_within_limit(node_bytes, self.limits.node_bytes)
            && is_within_limit(self.nodes.bytes, self.limits.bytes)
    }

    /// Counts a report of `new_bytes` in place of one of `old_bytes`, and
    /// returns the client. A new client is added.
    fn charge(&mut self, new_bytes: usize, old_bytes: usize) -> &mut Node {
        self.nodes.bytes = (self.nodes.bytes + new_bytes).saturating_sub(old_bytes);
        let nodes = &mut self.nodes.by_id;
        let node = nodes.entry(Arc::clone(self.node_id)).or_default();
        node.bytes = (node.bytes + new_bytes).saturating_sub(old_bytes);
        if &*node.cluster != self.node_cluster {
            node.cluster = self.node_cluster.into();
        }
        node
    }

    /// Returns the weight of the client itself, if it has no report yet;
    /// otherwise zero.
    fn new_node_weight(&self) -> usize {
        if self.nodes.by_id.contains_key(self.node_id) {
            0
        } else {
            node_weight(self.node_id)
        }
    }

    /// Returns the report on the cluster that is there; `None` if this is the
    /// first.
    fn held_report(&self) -> Option<&Cluster> {
        let node = self.nodes.by_id.get(self.node_id)?;
        node.clusters.get(&self.key)
    }

    /// Stores the figures of the cluster as a whole. Returns `false` without
    /// storing them if they exceed a limit.
    pub(super) fn store_figures(&mut self, now: Instant, figures: ClusterFigures) -> bool {
        let name_bytes = self.key.weight(self.node_cluster);
        let old_report = self.held_report();
        let old_bytes = old_report.map_or(0, |report| name_bytes + report.figures.heap_bytes());
        let new_bytes = name_bytes + figures.heap_bytes() + self.new_node_weight();
        if !self.fits(new_bytes, old_bytes) {
            return false;
        }

        let key = self.key.clone();
        let node = self.charge(new_bytes, old_bytes);
        match node.clusters.get_mut(&key) {
            Some(cluster) => {
                cluster.received_at = now;
                cluster.figures = figures;
            }
            None => {
                let localities = Vec::new();
                let cluster = Cluster {
                    received_at: now,
                    figures,
                    localities,
                };
                node.clusters.insert(key, cluster);
            }
        }
        true
    }

    /// Stores the report on a locality. Returns `false` without storing it if
    /// it exceeds a limit, or if there are no figures of its cluster.
    pub(super) fn store_locality(&mut self, now: Instant, locality: LocalityLoad) -> bool {
        let Some(cluster) = self.held_report() else {
            return false;
        };
        let position = cluster.find(&locality);
        let old_load = position
            .ok()
            .and_then(|index| cluster.localities.get(index));
        if old_load.is_none() && cluster.localities.len() >= self.limits.localities {
            return false;
        }
        let old_bytes = old_load.map_or(0, |(_, load)| LOCALITY_WEIGHT + load.heap_bytes());
        let new_bytes = LOCALITY_WEIGHT + locality.heap_bytes();
        if !self.fits(new_bytes, old_bytes) {
            return false;
        }

        let key = self.key.clone();
        let node = self.charge(new_bytes, old_bytes);
        if let Some(cluster) = node.clusters.get_mut(&key) {
            cluster.store(position, (now, locality));
        }
        true
    }
}

impl Cluster {
    /// Finds a locality among those of the cluster. The error is the index at
    /// which it belongs.
    fn find(&self, locality: &LocalityLoad) -> Result<usize, usize> {
        let place = &locality.place;
        self.localities
            .binary_search_by(|(_, load)| load.place.cmp(place))
    }

    /// Stores a locality at the position that [`find`](Self::find) returned.
    fn store(&mut self, position: Result<usize, usize>, locality: (Instant, LocalityLoad)) {
        match position {
            Ok(index) => {
                if let Some(old_locality) = self.localities.get_mut(index) {
                    *old_locality = locality;
                }
            }
            Err(index) => {
                let count = self.localities.len();
                if count == self.localities.capacity() {
                    self.localities.reserve_exact(count / 4 + 1);
                }
                self.localities.insert(index, locality);
            }
        }
    }
}

impl ClusterKey {
    /// Returns the weight of a cluster with these names, beside its figures and
    /// localities. The cluster of the node, which the client may change, counts
    /// for each.
    fn weight(&self, node_cluster: &str) -> usize {
        CLUSTER_WEIGHT + self.name.len() + self.service.len() + node_cluster.len()
    }
}

/// Returns the weight of a client with this id, beside its reports.
fn node_weight(id: &str) -> usize {
    NODE_WEIGHT + id.len()
}

impl Node {
    /// Returns the weight of all reports of the client, whose node has this id.
    fn weight(&self, id: &str) -> usize {
        let report_weight = |(key, cluster): (&ClusterKey, &Cluster)| {
            let localities = cluster.localities.iter();
            let localities = localities.map(|(_, load)| LOCALITY_WEIGHT + load.heap_bytes());
            key.weight(&self.cluster) + cluster.figures.heap_bytes() + localities.sum::<usize>()
        };
        let reports: usize = self.clusters.iter().map(report_weight).sum();
        node_weight(id) + reports
    }

    /// Returns the reports of the client, whose node has this id, as plain
    /// values.
    fn cluster_loads(&self, id: &str) -> impl Iterator<Item = ClusterLoad> {
        let clusters = self.clusters.iter();
        clusters.map(move |(key, cluster)| {
            let localities = cluster.localities.iter();
            ClusterLoad {
                node: id.to_owned(),
                node_cluster: self.cluster.to_string(),
                cluster: key.name.to_string(),
                service: key.service.to_string(),
                latest: cluster.figures.clone(),
                localities: localities.map(|(_, load)| load.clone()).collect(),
            }
        })
    }
}
