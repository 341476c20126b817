//! Settings of load reports.

use std::time::Duration;

use trunkline_proto::envoy::envoy::service::load_stats::v3::LoadStatsResponse;
use trunkline_proto::envoy::google::protobuf;

/// The client feature of understanding `send_all_clusters`.
pub(super) const SENDS_ALL: &str = "envoy.lrs.supports_send_all_clusters";

/// The shortest interval: a report for every few requests helps nobody.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of load reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    /// The clusters to report on.
    pub clusters: LoadClusters,
    /// The interval of reports; a tenth of a second at least.
    pub interval: Duration,
    /// Whether to report on each endpoint, too.
    pub endpoint_granularity: bool,
}

/// The clusters that clients report on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadClusters {
    /// All that a client knows. A client that does not understand this is sent
    /// the server's clusters by name.
    All,
    /// These clusters.
    Named(Vec<String>),
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            clusters: LoadClusters::All,
            interval: Duration::from_secs(10),
            endpoint_granularity: false,
        }
    }
}

impl LoadSettings {
    /// Returns whether a client has to be sent the names of the server's
    /// clusters: it is to report on all, and does not understand
    /// `send_all_clusters`.
    pub(super) fn needs_names(&self, understands_all: bool) -> bool {
        self.clusters == LoadClusters::All && !understands_all
    }

    /// Returns the settings for a client. `list_clusters` returns the names of
    /// the server's clusters, and is called only for a client that
    /// [needs](Self::needs_names) them.
    pub(super) fn write_response(
        &self,
        understands_all: bool,
        list_clusters: impl FnOnce() -> Vec<String>,
    ) -> LoadStatsResponse {
        let (send_all_clusters, clusters) = match &self.clusters {
            LoadClusters::Named(names) => (false, names.clone()),
            LoadClusters::All if understands_all => (true, Vec::new()),
            LoadClusters::All => (false, list_clusters()),
        };

        let interval = self.interval.max(MIN_INTERVAL);
        LoadStatsResponse {
            clusters,
            send_all_clusters,
            load_reporting_interval: Some(protobuf::Duration {
                seconds: i64::try_from(interval.as_secs()).unwrap_or(i64::MAX),
                nanos: i32::try_from(interval.subsec_nanos()).unwrap_or_default(),
            }),
            report_endpoint_granularity: self.endpoint_granularity,
        }
    }
}
