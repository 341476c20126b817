//! What is counted of the calls to one locality of a cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    EndpointLoadMetricStats, UpstreamLocalityStats,
};

/// The most names of metrics that one locality has: they come from backends.
const MOST_METRICS: usize = 256;

/// The counters of one locality. A call touches atomic numbers only.
#[derive(Debug, Default)]
pub(super) struct Counters {
    issued: AtomicU64,
    successes: AtomicU64,
    errors: AtomicU64,
    in_progress: AtomicU64,
    metrics: Mutex<BTreeMap<String, Metric>>,
}

/// The sum of a named metric since the last report (C64).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Metric {
    calls: u64,
    total: f64,
}

impl Counters {
    /// Counts a call that begins.
    pub(super) fn begin(&self) {
        self.issued.fetch_add(1, Ordering::Relaxed);
        self.in_progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a call as a success or an error, and the call as no
    /// longer in progress.
    pub(super) fn end(&self, is_success: bool) {
        let outcome = if is_success {
            &self.successes
        } else {
            &self.errors
        };
        outcome.fetch_add(1, Ordering::Relaxed);
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds a value to a named metric. A new name beyond the limit of names is
    /// not counted.
    pub(super) fn add_metric(&self, name: &str, value: f64) {
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metric) = metrics.get_mut(name) {
            metric.calls += 1;
            metric.total += value;
        } else if metrics.len() < MOST_METRICS {
            let metric = Metric {
                calls: 1,
                total: value,
            };
            metrics.insert(name.to_owned(), metric);
        }
    }

    /// Takes the counts since the last report (C63). Calls in progress are a
    /// level and stay. Returns `None` if all counts are zero.
    pub(super) fn take(&self) -> Option<UpstreamLocalityStats> {
        let take_count = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let metrics = self.metrics.lock();
        let metrics = std::mem::take(&mut *metrics.unwrap_or_else(PoisonError::into_inner));
        let stats = UpstreamLocalityStats {
            total_successful_requests: take_count(&self.successes),
            total_error_requests: take_count(&self.errors),
            total_issued_requests: take_count(&self.issued),
            total_requests_in_progress: self.in_progress.load(Ordering::Relaxed),
            load_metric_stats: metrics.into_iter().map(metric_stats).collect(),
            ..UpstreamLocalityStats::default()
        };
        (stats != UpstreamLocalityStats::default()).then_some(stats)
    }
}

/// Converts the sum of a metric into its message.
fn metric_stats((metric_name, metric): (String, Metric)) -> EndpointLoadMetricStats {
    EndpointLoadMetricStats {
        metric_name,
        num_requests_finished_with_metric: metric.calls,
        total_metric_value: metric.total,
    }
}
