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
    /// By name and service name.
    clusters: BTreeMap<(String, String), Cluster>,
    bytes: usize,
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

    /// All reports, by node, cluster and locality.
    #[must_use]
    pub fn snapshot(&self) -> Vec<ClusterLoad> {
        let mut nodes = self.nodes();
        nodes.drop_old(self.inner.limits.keep);
        let all = nodes.by_id.iter().flat_map(|(id, node)| node.load(id));
        all.collect()
    }

    /// How many reports on a cluster or a locality did not fit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        let nodes = self.inner.nodes.lock();
        nodes.unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops old reports. Reading does so too, but nobody may be reading.
    pub(super) fn tidy(&self) {
        self.nodes().drop_old(self.inner.limits.keep);
    }

    /// Stores a client's report, as far as it fits; the rest of it is refused and
    /// counted. `id` and `cluster` are those of the client's node.
    pub(super) fn store(&self, id: &str, cluster: &str, stats: Vec<ClusterStats>) {
        let (now, received) = (Instant::now(), SystemTime::now());
        let mut nodes = self.nodes();
        for mut stats in stats {
            let name = std::mem::take(&mut stats.cluster_name);
            let service = std::mem::take(&mut stats.cluster_service_name);
            let (figures, localities) = read::cluster(stats, received);
            let mut slot = ReportSlot {
                nodes: &mut nodes,
                limits: &self.inner.limits,
                node: (id, cluster),
                key: (name, service),
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
    /// The id and the cluster of the client's node.
    node: (&'a str, &'a str),
    /// The name and the service name of the cluster.
    key: (String, String),
}

impl ReportSlot<'_> {
    /// Whether `more` bytes in place of `less` are within the limits. What does
    /// not grow always is.
    fn fits(&self, more: usize, less: usize) -> bool {
        let held = self.nodes.by_id.get(self.node.0).map_or(0, |n| n.bytes);
        let within = |held: usize, limit: usize| {
            more <= less || held.saturating_sub(less).saturating_add(more) <= limit
        };
        within(held, self.limits.node_bytes) && within(self.nodes.bytes, self.limits.bytes)
    }

    /// Counts `more` bytes in place of `less`, and returns the client.
    fn charge(&mut self, more: usize, less: usize) -> &mut Node {
        self.nodes.bytes = (self.nodes.bytes + more).saturating_sub(less);
        let (id, cluster) = self.node;
        let node = self.nodes.by_id.entry(id.to_owned()).or_default();
        node.bytes = (node.bytes + more).saturating_sub(less);
        if node.cluster != cluster {
            cluster.clone_into(&mut node.cluster);
        }
        node
    }

    fn cluster(&self) -> Option<&Cluster> {
        self.nodes.by_id.get(self.node.0)?.clusters.get(&self.key)
    }

    /// Stores the figures of the cluster as a whole. Returns false if they do not
    /// fit.
    fn store_figures(&mut self, now: Instant, figures: ClusterFigures) -> bool {
        let names = names_weight(self.node, &self.key);
        let less = self.cluster().map_or(0, |c| names + c.figures.weight());
        let more = names + figures.weight();
        if !self.fits(more, less) {
            return false;
        }
        let key = self.key.clone();
        match self.charge(more, less).clusters.entry(key) {
            btree_map::Entry::Occupied(mut held) => {
                let held = held.get_mut();
                (held.at, held.figures) = (now, figures);
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

    /// Stores the report on a locality. Returns false if it does not fit, or the
    /// figures of the cluster did not.
    fn store_locality(&mut self, now: Instant, locality: LocalityLoad) -> bool {
        let Some(cluster) = self.cluster() else {
            return false;
        };
        let held = cluster.localities.get(&locality.place);
        let less = held.map_or(0, |(_, held)| held.weight());
        let more = locality.weight();
        if !self.fits(more, less) {
            return false;
        }
        let key = self.key.clone();
        if let Some(cluster) = self.charge(more, less).clusters.get_mut(&key) {
            let place = locality.place.clone();
            cluster.localities.insert(place, (now, locality));
        }
        true
    }
}

impl Nodes {
    /// Drops the reports that were not renewed for so long.
    fn drop_old(&mut self, keep: Duration) {
        let fresh = |at: Instant| at.elapsed() <= keep;
        for node in self.by_id.values_mut() {
            node.clusters.retain(|_, cluster| {
                cluster.localities.retain(|_, (at, _)| fresh(*at));
                fresh(cluster.at)
            });
        }
        self.by_id.retain(|_, node| !node.clusters.is_empty());
        self.count();
    }

    /// Counts anew, which is simpler than accounting for each removal.
    fn count(&mut self) {
        for (id, node) in &mut self.by_id {
            node.bytes = node.weight(id);
        }
        self.bytes = self.by_id.values().map(|node| node.bytes).sum();
    }
}

/// The bytes of the names in one entry: those of the node, which a client chooses
/// as well, count for each of its clusters.
fn names_weight((id, node_cluster): (&str, &str), (name, service): &(String, String)) -> usize {
    id.len() + node_cluster.len() + name.len() + service.len()
}

impl Node {
    /// The approximate size of all reports of the client.
    fn weight(&self, id: &str) -> usize {
        let one = |(key, cluster): (&(String, String), &Cluster)| {
            let names = names_weight((id, &self.cluster), key);
            let localities = cluster.localities.values().map(|(_, l)| l.weight());
            names + cluster.figures.weight() + localities.sum::<usize>()
        };
        self.clusters.iter().map(one).sum()
    }

    /// The reports of the client, whose node has this id, as plain values.
    fn load(&self, id: &str) -> impl Iterator<Item = ClusterLoad> {
        let clusters = self.clusters.iter();
        clusters.map(move |((name, service), cluster)| {
            let localities = cluster.localities.values();
            ClusterLoad {
                node: id.to_owned(),
                node_cluster: self.cluster.clone(),
                cluster: name.clone(),
                service: service.clone(),
                latest: cluster.figures.clone(),
                localities: localities.map(|(_, load)| load.clone()).collect(),
            }
        })
    }
}
