//! The clusters whose load one server is told of.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use trunkline_proto::envoy::envoy::config::core::v3::Locality;
use trunkline_proto::envoy::envoy::config::endpoint::v3::cluster_stats::DroppedRequests;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{ClusterStats, UpstreamLocalityStats};
use trunkline_proto::envoy::google::protobuf;

use super::counters::Counters;

/// A cluster, and the name of its endpoints at the control plane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClusterKey {
    pub(super) cluster: String,
    pub(super) service: String,
}

/// Region, zone and sub-zone, and the priority of a locality.
type LocalityKey = (String, String, String, u32);

/// What was counted of one cluster.
#[derive(Debug)]
pub(super) struct ClusterCounters {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    localities: BTreeMap<LocalityKey, Arc<Counters>>,
    drops: BTreeMap<String, u64>,
    /// When the last report was made, or counting began.
    last_report: Instant,
}

impl ClusterCounters {
    /// Makes the counters of a cluster; counting begins now.
    fn new(now: Instant) -> Self {
        Self {
            inner: Mutex::new(Inner {
                localities: BTreeMap::new(),
                drops: BTreeMap::new(),
                last_report: now,
            }),
        }
    }

    /// Returns the counters of a locality, which all calls to that locality
    /// share.
    pub(super) fn locality(&self, locality: &Locality, priority: u32) -> Arc<Counters> {
        let key = (
            locality.region.clone(),
            locality.zone.clone(),
            locality.sub_zone.clone(),
            priority,
        );
        Arc::clone(lock(&self.inner).localities.entry(key).or_default())
    }

    /// Counts a call that was dropped before it was sent, by its category; one
    /// without a category counts in the total only.
    pub(super) fn drop_call(&self, category: &str) {
        let mut inner = lock(&self.inner);
        match inner.drops.get_mut(category) {
            Some(count) => *count += 1,
            None => _ = inner.drops.insert(category.to_owned(), 1),
        }
    }

    /// Takes the counts of the cluster since the last report, which ended at the
    /// time of the last call. Localities that nobody counts for any more are
    /// dropped.
    fn take(&self, key: &ClusterKey, now: Instant) -> ClusterStats {
        let mut inner = lock(&self.inner);
        let elapsed = now.saturating_duration_since(std::mem::replace(&mut inner.last_report, now));
        let drops = std::mem::take(&mut inner.drops);
        let mut localities = Vec::new();
        inner.localities.retain(|key, counters| {
            localities.extend(counters.take().map(|stats| with_locality(key, stats)));
            // With the map's own reference alone, nobody can count here any
            // more.
            Arc::strong_count(counters) > 1
        });

        ClusterStats {
            cluster_name: key.cluster.clone(),
            cluster_service_name: key.service.clone(),
            upstream_locality_stats: localities,
            total_dropped_requests: drops.values().sum(),
            dropped_requests: drops.into_iter().filter_map(dropped_stats).collect(),
            load_report_interval: Some(to_protobuf(elapsed)),
        }
    }
}

/// Which clusters a server asks for (C62).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Named(Vec<String>),
}

impl Wanted {
    /// Returns whether the server asks for a cluster.
    fn includes(&self, cluster: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == cluster),
        }
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Store {
    clusters: Mutex<BTreeMap<ClusterKey, Arc<ClusterCounters>>>,
}

impl Store {
    /// Returns the counters of a cluster, which all its reporters share.
    pub(super) fn cluster(&self, key: &ClusterKey, now: Instant) -> Arc<ClusterCounters> {
        let mut clusters = lock(&self.clusters);
        let new = || Arc::new(ClusterCounters::new(now));
        Arc::clone(clusters.entry(key.clone()).or_insert_with(new))
    }

    /// Takes the report of all clusters that the server asks for. A cluster
    /// without counts is in the report as long as it has a reporter; a cluster
    /// without a reporter is dropped afterwards.
    pub(super) fn take(&self, wanted: &Wanted, now: Instant) -> Vec<ClusterStats> {
        let mut clusters = lock(&self.clusters);
        let mut report = Vec::new();
        clusters.retain(|key, counters| {
            let has_reporter = Arc::strong_count(counters) > 1;
            if wanted.includes(&key.cluster) {
                let stats = counters.take(key, now);
                let is_empty =
                    stats.upstream_locality_stats.is_empty() && stats.total_dropped_requests == 0;
                report.extend(Some(stats).filter(|_| has_reporter || !is_empty));
            }
            has_reporter
        });
        report
    }
}

/// Returns the counts of a locality with the locality and its priority.
fn with_locality(key: &LocalityKey, stats: UpstreamLocalityStats) -> UpstreamLocalityStats {
    let (region, zone, sub_zone, priority) = key.clone();
    UpstreamLocalityStats {
        locality: Some(Locality {
            region,
            zone,
            sub_zone,
        }),
        priority,
        ..stats
    }
}

/// Returns the entry of a category; `None` for calls without one, which are in
/// the total only.
fn dropped_stats((category, dropped_count): (String, u64)) -> Option<DroppedRequests> {
    (!category.is_empty()).then_some(DroppedRequests {
        category,
        dropped_count,
    })
}

/// Converts a duration into protobuf's.
fn to_protobuf(elapsed: Duration) -> protobuf::Duration {
    protobuf::Duration {
        seconds: i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX),
        // Less than a second has fewer nanoseconds than an `i32` holds.
        nanos: elapsed.subsec_nanos().cast_signed(),
    }
}

/// Locks counters. Ignores poison: a call that panicked ends alone.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
