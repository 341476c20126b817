//! The latest report of every client, cluster and locality.
//!
//! Clients choose the names, so the reports are bounded by the memory that they
//! take, for each client and for all. A report that does not fit is refused and
//! counted; kept reports stay. A report that is not renewed in a while is
//! dropped: clients name every cluster in each report, so silence means that
//! the cluster or the client is gone.
//!
//! One lock holds for one cluster, or for one client: no report, however long,
//! makes another client wait for all of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use trunkline_proto::load_stats::ClusterStats;

use super::kept::{ClusterKey, Nodes};
use super::read;
use super::report::ClusterLoad;

/// Bounds on the memory of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Bytes of memory for all clients.
    pub bytes: usize,
    /// Bytes of memory for one client.
    pub node_bytes: usize,
    /// Localities of one cluster of one client.
    pub localities: usize,
    /// How long a report is kept without a newer one.
    pub keep: Duration,
    /// Streams at once; one more is refused.
    pub streams: usize,
}

impl LoadLimits {
    /// Returns the limits of a server that has so many bytes of memory for
    /// reports, of which one client may have a third.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self {
            bytes,
            node_bytes: bytes / 3,
            ..Self::default()
        }
    }
}

impl Default for LoadLimits {
    /// Returns the limits of a server: 16 MiB for all reports, a third of it
    /// for those of one node.
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            node_bytes: (16 << 20) / 3,
            localities: 1024,
            keep: Duration::from_secs(300),
            streams: 100_000,
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
    refused_count: AtomicU64,
    /// When old reports were last dropped.
    last_sweep: Mutex<Instant>,
    /// Whether a task waits for reports to become old.
    is_waiting: AtomicBool,
}

impl LoadReports {
    /// Returns a store without reports.
    #[must_use]
    pub fn new(limits: LoadLimits) -> Self {
        Self {
            inner: Arc::new(Inner {
                limits,
                nodes: Mutex::default(),
                refused_count: AtomicU64::new(0),
                last_sweep: Mutex::new(Instant::now()),
                is_waiting: AtomicBool::new(false),
            }),
        }
    }

    /// Returns all reports, by node, cluster and locality. Old ones are dropped
    /// first.
    #[must_use]
    pub fn snapshot(&self) -> Vec<ClusterLoad> {
        let ids = self.node_ids().into_iter();
        ids.flat_map(|id| self.of_node(&id)).collect()
    }

    /// Returns the ids of all clients with reports, in their order. Old reports
    /// are dropped first.
    #[must_use]
    pub fn node_ids(&self) -> Vec<Arc<str>> {
        self.drop_old();
        let mut ids = self.lock().ids();
        ids.sort_unstable();
        ids
    }

    /// Returns the reports of one client, by cluster and locality.
    #[must_use]
    pub fn of_node(&self, id: &str) -> Vec<ClusterLoad> {
        let mut loads = self.lock().loads(id);
        loads.sort_by(|a, b| (&a.cluster, &a.service).cmp(&(&b.cluster, &b.service)));
        loads
    }

    /// Returns how many reports on a cluster or a locality did not fit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.inner.refused_count.load(Ordering::Relaxed)
    }

    /// Returns the bytes of memory that the reports take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// Counts reports that were refused before they came here.
    pub(super) fn add_refused(&self, count: usize) {
        self.inner
            .refused_count
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Returns the bounds on the memory of reports.
    pub(super) fn limits(&self) -> &LoadLimits {
        &self.inner.limits
    }

    /// Locks the reports. Ignores poison: a stream that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Nodes> {
        let nodes = self.inner.nodes.lock();
        nodes.unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops old reports, client by client.
    fn drop_old(&self) {
        let ids = self.lock().ids();
        for id in ids {
            self.lock().drop_old(&id, self.inner.limits.keep);
        }
    }

    /// Starts a task that drops old reports until none is left, unless there is
    /// such a task. Clients that have left renew nothing, and without readers
    /// nothing else would drop their reports.
    pub(super) fn drop_old_later(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.inner.is_waiting.swap(true, Ordering::AcqRel) {
            return;
        }

        let reports = self.clone();
        runtime.spawn(async move {
            while reports.bytes() > 0 {
                tokio::time::sleep(reports.inner.limits.keep / 2).await;
                reports.drop_old();
            }
            reports.inner.is_waiting.store(false, Ordering::Release);
            if reports.bytes() > 0 {
                // A report came in between, and its client saw a task.
                reports.drop_old_later();
            }
        });
    }

    /// Drops old reports if that was last done long ago. Readers drop them too,
    /// but there may be no reader.
    pub(super) fn drop_old_if_due(&self) {
        /// The part of the time for which reports are kept.
        const PART: u32 = 8;
        {
            let last_sweep = self.inner.last_sweep.lock();
            let mut last_sweep = last_sweep.unwrap_or_else(PoisonError::into_inner);
            if last_sweep.elapsed() < self.inner.limits.keep / PART {
                return;
            }
            *last_sweep = Instant::now();
        }
        self.drop_old();
    }

    /// Stores a client's report on a cluster. Parts that exceed a limit are
    /// refused and counted. `node_id` and `node_cluster` are those of the
    /// client's node.
    pub(super) fn store(&self, node_id: &Arc<str>, node_cluster: &str, mut stats: ClusterStats) {
        let (now, received) = (Instant::now(), SystemTime::now());
        let key = ClusterKey {
            name: std::mem::take(&mut stats.cluster_name).into(),
            service: std::mem::take(&mut stats.cluster_service_name).into(),
        };
        let (figures, localities) = read::read_cluster(stats, received);

        let mut nodes = self.lock();
        let mut slot = nodes.slot(&self.inner.limits, node_id, node_cluster, key);
        let mut refused_count = usize::from(!slot.store_figures(now, figures));
        for locality in localities {
            refused_count += usize::from(!slot.store_locality(now, locality));
        }

        drop(nodes);
        self.add_refused(refused_count);
    }
}
