//! The latest report of every client, cluster and locality.
//!
//! Clients choose the names, so the reports are bounded in bytes, for each
//! client and for all. A report that does not fit is refused and counted; kept
//! reports stay. A report that is not renewed in a while is dropped: clients
//! name every cluster in each report, so silence means that the cluster or the
//! client is gone.

use std::collections::{BTreeMap, btree_map};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterStats;

use super::read;
use super::report::{ClusterFigures, ClusterLoad, LocalityLoad, Place, Weight};

/// Bounds on the memory of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Approximate bytes for all clients.
    pub bytes: usize,
    /// Approximate bytes for one client.
    pub node_bytes: usize,
    /// How long a report is kept without a newer one.
    pub keep: Duration,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            node_bytes: 16 << 20,
            keep: Duration::from_secs(300),
        }
    }
}

/// The latest load reports. Clones share them.
#[derive(Clone, Debug)]
pub struct LoadReports {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: LoadLimits,
    nodes: Mutex<Nodes>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Nodes {
    by_id: BTreeMap<String, Node>,
    bytes: usize,
}

/// The reports of one client.
#[derive(Debug, Default)]
struct Node {
    /// The cluster of the node itself.
    cluster: String,
    clusters: BTreeMap<ClusterKey, Cluster>,
    bytes: usize,
}

/// The names by which a client tells its clusters apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterKey {
    name: String,
    /// The EDS service name.
    service: String,
}

/// The latest report on one cluster.
#[derive(Debug)]
struct Cluster {
    /// When the figures were received.
    at: Instant,
    figures: ClusterFigures,
    localities: BTreeMap<Place, (Instant, LocalityLoad)>,
}

impl LoadReports {
    /// A store without reports.
    #[must_use]
    pub fn new(limits: LoadLimits) -> Self {
        Self {
            inner: Arc::new(Inner {
                limits,
                nodes: Mutex::default(),
                refused: AtomicU64::new(0),
            }),
        }
    }

    /// All reports, by node, cluster and locality. Old ones are dropped first.
    #[must_use]
    pub fn snapshot(&self) -> Vec<ClusterLoad> {
        let mut nodes = self.lock();
        nodes.drop_old(self.inner.limits.keep);
        let nodes = nodes.by_id.iter();
        nodes
            .flat_map(|(id, node)| node.cluster_loads(id))
            .collect()
    }

    /// How many reports on a cluster or a locality did not fit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        let nodes = self.inner.nodes.lock();
        nodes.unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops old reports. Reading does so too, but nobody may be reading.
    pub(super) fn drop_old(&self) {
        self.lock().drop_old(self.inner.limits.keep);
    }

    /// Stores a client's report, as far as it fits; the rest of it is refused
    /// and counted. `node_id` and `node_cluster` are those of the client's
    /// node.
    pub(super) fn store(&self, node_id: &str, node_cluster: &str, stats: Vec<ClusterStats>) {
        let (now, received) = (Instant::now(), SystemTime::now());
        let mut nodes = self.lock();
        for mut stats in stats {
            let key = ClusterKey {
                name: std::mem::take(&mut stats.cluster_name),
                service: std::mem::take(&mut stats.cluster_service_name),
            };
            let (figures, localities) = read::read_cluster(stats, received);
            let mut slot = ReportSlot {
                nodes: &mut nodes,
                limits: &self.inner.limits,
                node_id,
                node_cluster,
                key,
            };

            let mut refused = u64::from(!slot.store_figures(now, figures));
            for locality in localities {
                refused += u64::from(!slot.store_locality(now, locality));
            }
            self.inner.refused.fetch_add(refused, Ordering::Relaxed);
        }
    }
}

/// The place of one client's report on one cluster.
struct ReportSlot<'a> {
    nodes: &'a mut Nodes,
    limits: &'a LoadLimits,
    node_id: &'a str,
    /// The cluster of the client's node itself.
    node_cluster: &'a str,
    key: ClusterKey,
}

impl ReportSlot<'_> {
    /// Whether a report of `new` bytes in place of one of `old` is within the
    /// limits, of the client and of all. One that does not grow always is.
    fn fits(&self, new: usize, old: usize) -> bool {
        if new <= old {
            return true;
        }
        let is_within =
            |held: usize, limit: usize| held.saturating_sub(old).saturating_add(new) <= limit;
        let node = self.nodes.by_id.get(self.node_id);
        let node_bytes = node.map_or(0, |node| node.bytes);
        is_within(node_bytes, self.limits.node_bytes)
            && is_within(self.nodes.bytes, self.limits.bytes)
    }

    /// Counts a report of `new` bytes in place of one of `old`, and returns the
    /// client, which it adds if it is a new one.
    fn charge(&mut self, new: usize, old: usize) -> &mut Node {
        self.nodes.bytes = (self.nodes.bytes + new).saturating_sub(old);
        let nodes = &mut self.nodes.by_id;
        let node = nodes.entry(self.node_id.to_owned()).or_default();
        node.bytes = (node.bytes + new).saturating_sub(old);
        if node.cluster != self.node_cluster {
            self.node_cluster.clone_into(&mut node.cluster);
        }
        node
    }

    /// The report on the cluster that is held; `None` if it is the first.
    fn held_report(&self) -> Option<&Cluster> {
        let node = self.nodes.by_id.get(self.node_id)?;
        node.clusters.get(&self.key)
    }

    /// Stores the figures of the cluster as a whole. Returns false if they do
    /// not fit.
    fn store_figures(&mut self, now: Instant, figures: ClusterFigures) -> bool {
        let names = self.key.names_weight(self.node_id, self.node_cluster);
        let held = self.held_report();
        let old_bytes = held.map_or(0, |held| names + held.figures.weight());
        let new_bytes = names + figures.weight();
        if !self.fits(new_bytes, old_bytes) {
            return false;
        }

        let key = self.key.clone();
        match self.charge(new_bytes, old_bytes).clusters.entry(key) {
            btree_map::Entry::Occupied(mut held) => {
                let held = held.get_mut();
                held.at = now;
                held.figures = figures;
            }
            btree_map::Entry::Vacant(free) => {
                free.insert(Cluster {
                    at: now,
                    figures,
                    localities: BTreeMap::new(),
                });
            }
        }
        true
    }

    /// Stores the report on a locality. Returns false if it does not fit, or no
    /// figures of the cluster are held.
    fn store_locality(&mut self, now: Instant, locality: LocalityLoad) -> bool {
        let Some(cluster) = self.held_report() else {
            return false;
        };
        let held = cluster.localities.get(&locality.place);
        let old_bytes = held.map_or(0, |(_, held)| held.weight());
        let new_bytes = locality.weight();
        if !self.fits(new_bytes, old_bytes) {
            return false;
        }

        let key = self.key.clone();
        let node = self.charge(new_bytes, old_bytes);
        if let Some(cluster) = node.clusters.get_mut(&key) {
            let place = locality.place.clone();
            cluster.localities.insert(place, (now, locality));
        }
        true
    }
}

impl Nodes {
    /// Drops the reports that were not renewed for so long, and clients without
    /// any. A cluster takes its localities with it.
    fn drop_old(&mut self, keep: Duration) {
        let is_fresh = |at: Instant| at.elapsed() <= keep;
        for node in self.by_id.values_mut() {
            node.clusters.retain(|_, cluster| {
                cluster.localities.retain(|_, (at, _)| is_fresh(*at));
                is_fresh(cluster.at)
            });
        }
        self.by_id.retain(|_, node| !node.clusters.is_empty());
        self.recount_bytes();
    }

    /// Counts the bytes anew, which is simpler than accounting for each
    /// removal.
    fn recount_bytes(&mut self) {
        for (id, node) in &mut self.by_id {
            node.bytes = node.weight(id);
        }
        self.bytes = self.by_id.values().map(|node| node.bytes).sum();
    }
}

impl ClusterKey {
    /// The bytes of the names in one report. Those of the node, which a client
    /// chooses as well, count for each of its clusters.
    fn names_weight(&self, node_id: &str, node_cluster: &str) -> usize {
        node_id.len() + node_cluster.len() + self.name.len() + self.service.len()
    }
}

impl Node {
    /// The approximate size of all reports of the client, whose node has this
    /// id.
    fn weight(&self, id: &str) -> usize {
        let report_weight = |(key, cluster): (&ClusterKey, &Cluster)| {
            let names = key.names_weight(id, &self.cluster);
            let localities = cluster.localities.values();
            let localities: usize = localities.map(|(_, load)| load.weight()).sum();
            names + cluster.figures.weight() + localities
        };
        self.clusters.iter().map(report_weight).sum()
    }

    /// The reports of the client, whose node has this id, as plain values.
    fn cluster_loads(&self, id: &str) -> impl Iterator<Item = ClusterLoad> {
        let clusters = self.clusters.iter();
        clusters.map(move |(key, cluster)| {
            let localities = cluster.localities.values();
            ClusterLoad {
                node: id.to_owned(),
                node_cluster: self.cluster.clone(),
                cluster: key.name.clone(),
                service: key.service.clone(),
                latest: cluster.figures.clone(),
                localities: localities.map(|(_, load)| load.clone()).collect(),
            }
        })
    }
}
