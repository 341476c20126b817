//! Load reports (LRS), read one cluster at a time.
//!
//! An empty report on a cluster has two bytes, and takes hundreds when it is
//! decoded, so a message is never decoded as a whole: each cluster is counted
//! first, and decoded and handed on if it is within the limits. Fields that
//! nobody keeps, such as the metadata of endpoints, are passed over.
//!
//! ```
//! use trunkline_proto::load_stats::{ReportLimits, read};
//!
//! // Two reports on clusters, the first of which is `c`.
//! let message = b"\x12\x03\x0a\x01c\x12\x00";
//! let mut names = Vec::new();
//! let read = read(message, &ReportLimits::default(), |stats| names.push(stats.cluster_name))?;
//! assert_eq!((names, read.refused), (vec!["c".to_owned(), String::new()], 0));
//! # Ok::<(), trunkline_proto::discovery::DecodeError>(())
//! ```

use prost::Message as _;

use crate::discovery::scan::{self, Shape, message, name};
use crate::discovery::{DecodeError, Limits};

/// Bounds on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportLimits {
    /// Clusters of a message; further ones are refused.
    pub clusters: usize,
    /// Texts and nested messages of one cluster. A cluster with more is refused.
    pub entries: usize,
}

impl Default for ReportLimits {
    /// Makes the usual bounds: a client with ten thousand clusters of three
    /// localities passes, and one with a cluster of ten thousand endpoints.
    fn default() -> Self {
        Self {
            clusters: 1 << 16,
            entries: 1 << 15,
        }
    }
}

/// The parts of a message beside its clusters.
#[derive(Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// The encoded node, if the message has one.
    pub node: Option<&'a [u8]>,
    /// The clusters that were refused.
    pub refused: usize,
}

/// Reads a message of load reports. Calls `handle_cluster` with the report on
/// each cluster that is within the limits.
///
/// # Errors
/// The bytes are not such a message. Clusters before the mistake were passed to
/// `handle_cluster`.
pub fn read<'a>(
    mut bytes: &'a [u8],
    limits: &ReportLimits,
    mut handle_cluster: impl FnMut(ClusterStats),
) -> Result<Read<'a>, DecodeError> {
    let mut result = Read {
        node: None,
        refused: 0,
    };

    let mut clusters = 0;
    while !bytes.is_empty() {
        let field = scan::take_field(&mut bytes);
        let (number, value) = field.ok_or(DecodeError::Truncated { message: REPORT })?;
        match (number, value) {
            (NODE, Some(node)) => result.node = Some(node),
            (CLUSTER_STATS, Some(_)) if clusters >= limits.clusters => result.refused += 1,
            (CLUSTER_STATS, Some(cluster)) => {
                clusters += 1;
                match read_cluster(cluster, limits)? {
                    Some(stats) => handle_cluster(stats),
                    None => result.refused += 1,
                }
            }
            _ => {}
        }
    }
    Ok(result)
}

/// Reads the report on a cluster. Returns `None` if the report has too many
/// entries.
fn read_cluster(bytes: &[u8], limits: &ReportLimits) -> Result<Option<ClusterStats>, DecodeError> {
    let scan_limits = Limits {
        entries: limits.entries,
        ..Limits::DEFAULT
    };
    match scan::check_message(&CLUSTER, bytes, bytes.len(), &scan_limits) {
        Ok(()) => {}
        Err(DecodeError::TooMany { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    let stats = ClusterStats::decode(bytes);
    stats.map(Some).map_err(|source| DecodeError::Malformed {
        message: REPORT,
        source,
    })
}

/// The name of the message, for errors.
const REPORT: &str = "LoadStatsRequest";
/// Its field with the node.
const NODE: u32 = 1;
/// Its field with the clusters.
const CLUSTER_STATS: u32 = 2;

static CLUSTER: Shape = Shape {
    name: "ClusterStats",
    fields: &[
        name(1, "cluster_name"),
        message(2, "upstream_locality_stats", &LOCALITY),
        message(5, "dropped_requests", &DROPS),
        name(6, "cluster_service_name"),
    ],
};

static LOCALITY: Shape = Shape {
    name: "UpstreamLocalityStats",
    fields: &[
        message(1, "locality", &PLACE),
        message(5, "load_metric_stats", &METRIC),
        message(7, "upstream_endpoint_stats", &ENDPOINT),
    ],
};

static PLACE: Shape = Shape {
    name: "Locality",
    fields: &[name(1, "region"), name(2, "zone"), name(3, "sub_zone")],
};

static ENDPOINT: Shape = Shape {
    name: "UpstreamEndpointStats",
    fields: &[name(1, "address"), message(5, "load_metric_stats", &METRIC)],
};

static METRIC: Shape = Shape {
    name: "EndpointLoadMetricStats",
    fields: &[name(1, "metric_name")],
};

static DROPS: Shape = Shape {
    name: "DroppedRequests",
    fields: &[name(1, "category")],
};

/// The report on one cluster.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClusterStats {
    /// The cluster.
    #[prost(string, tag = "1")]
    pub cluster_name: String,
    /// Its EDS service name.
    #[prost(string, tag = "6")]
    pub cluster_service_name: String,
    /// The figures of its localities.
    #[prost(message, repeated, tag = "2")]
    pub upstream_locality_stats: Vec<UpstreamLocalityStats>,
    /// Requests that were dropped before a locality was picked.
    #[prost(uint64, tag = "3")]
    pub total_dropped_requests: u64,
    /// The same by category.
    #[prost(message, repeated, tag = "5")]
    pub dropped_requests: Vec<DroppedRequests>,
    /// The time over which the client counted.
    #[prost(message, optional, tag = "4")]
    pub load_report_interval: Option<Interval>,
}

/// A duration.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Interval {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// The rest, in nanoseconds.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// Requests dropped for one category.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DroppedRequests {
    /// The category.
    #[prost(string, tag = "1")]
    pub category: String,
    /// The number of requests.
    #[prost(uint64, tag = "2")]
    pub dropped_count: u64,
}

/// The report on one locality of a cluster.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpstreamLocalityStats {
    /// The locality.
    #[prost(message, optional, tag = "1")]
    pub locality: Option<Locality>,
    /// Requests that succeeded.
    #[prost(uint64, tag = "2")]
    pub total_successful_requests: u64,
    /// Requests that had not ended when the interval did.
    #[prost(uint64, tag = "3")]
    pub total_requests_in_progress: u64,
    /// Requests that failed.
    #[prost(uint64, tag = "4")]
    pub total_error_requests: u64,
    /// Requests that began.
    #[prost(uint64, tag = "8")]
    pub total_issued_requests: u64,
    /// CPU utilization.
    #[prost(message, optional, tag = "12")]
    pub cpu_utilization: Option<UnnamedMetric>,
    /// Memory utilization.
    #[prost(message, optional, tag = "13")]
    pub mem_utilization: Option<UnnamedMetric>,
    /// Application utilization.
    #[prost(message, optional, tag = "14")]
    pub application_utilization: Option<UnnamedMetric>,
    /// Metrics that endpoints reported themselves.
    #[prost(message, repeated, tag = "5")]
    pub load_metric_stats: Vec<NamedMetric>,
    /// The figures of its endpoints.
    #[prost(message, repeated, tag = "7")]
    pub upstream_endpoint_stats: Vec<UpstreamEndpointStats>,
    /// The priority.
    #[prost(uint32, tag = "6")]
    pub priority: u32,
}

/// A locality.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Locality {
    /// The region.
    #[prost(string, tag = "1")]
    pub region: String,
    /// The zone in it.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// The part of the zone.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// The report on one endpoint.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpstreamEndpointStats {
    /// Its address, an encoded `envoy.config.core.v3.Address`.
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// Requests that succeeded.
    #[prost(uint64, tag = "2")]
    pub total_successful_requests: u64,
    /// Requests that had not ended when the interval did.
    #[prost(uint64, tag = "3")]
    pub total_requests_in_progress: u64,
    /// Requests that failed.
    #[prost(uint64, tag = "4")]
    pub total_error_requests: u64,
    /// Requests that began.
    #[prost(uint64, tag = "7")]
    pub total_issued_requests: u64,
    /// Metrics that the endpoint reported itself.
    #[prost(message, repeated, tag = "5")]
    pub load_metric_stats: Vec<NamedMetric>,
}

/// A metric with a name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedMetric {
    /// The name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The number of responses that had it.
    #[prost(uint64, tag = "2")]
    pub num_requests_finished_with_metric: u64,
    /// The sum of its values.
    #[prost(double, tag = "3")]
    pub total_metric_value: f64,
}

/// A metric that has a field of its own.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct UnnamedMetric {
    /// The number of responses that had it.
    #[prost(uint64, tag = "1")]
    pub num_requests_finished_with_metric: u64,
    /// The sum of its values.
    #[prost(double, tag = "2")]
    pub total_metric_value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::envoy::config::endpoint::v3 as envoy;
    use crate::envoy::envoy::service::load_stats::v3::LoadStatsRequest;

    /// A message of Envoy's own type, with a value in every field that is read.
    fn full() -> LoadStatsRequest {
        let metric = envoy::EndpointLoadMetricStats {
            metric_name: "m".into(),
            num_requests_finished_with_metric: 1,
            total_metric_value: 0.5,
        };
        let unnamed = envoy::UnnamedEndpointLoadMetricStats {
            num_requests_finished_with_metric: 2,
            total_metric_value: 1.5,
        };
        let locality = envoy::UpstreamLocalityStats {
            total_successful_requests: 1,
            total_requests_in_progress: 2,
            total_error_requests: 3,
            total_issued_requests: 4,
            cpu_utilization: Some(unnamed),
            mem_utilization: Some(unnamed),
            application_utilization: Some(unnamed),
            load_metric_stats: vec![metric.clone()],
            upstream_endpoint_stats: vec![envoy::UpstreamEndpointStats {
                total_successful_requests: 5,
                total_requests_in_progress: 6,
                total_error_requests: 7,
                total_issued_requests: 8,
                load_metric_stats: vec![metric],
                ..Default::default()
            }],
            priority: 9,
            ..Default::default()
        };
        let stats = envoy::ClusterStats {
            cluster_name: "c".into(),
            cluster_service_name: "s".into(),
            upstream_locality_stats: vec![locality],
            total_dropped_requests: 10,
            dropped_requests: vec![envoy::cluster_stats::DroppedRequests {
                category: "d".into(),
                dropped_count: 11,
            }],
            ..Default::default()
        };
        LoadStatsRequest {
            node: Some(Default::default()),
            cluster_stats: vec![stats],
        }
    }

    #[test]
    fn what_envoy_writes_is_read() {
        let message = full();
        let mut found = Vec::new();
        let bytes = message.encode_to_vec();
        let read = read(&bytes, &ReportLimits::default(), |stats| found.push(stats)).unwrap();
        assert_eq!((read.node, read.refused), (Some(&[][..]), 0));
        // Equal bytes: no field has another number.
        assert_eq!(
            found[0].encode_to_vec(),
            message.cluster_stats[0].encode_to_vec()
        );
    }

    #[test]
    fn what_is_beyond_a_limit_is_refused_and_the_rest_is_read() {
        let limits = ReportLimits {
            clusters: 3,
            entries: 10,
        };
        let report = |clusters: Vec<usize>| {
            let stats = clusters.into_iter().map(|localities| envoy::ClusterStats {
                upstream_locality_stats: vec![Default::default(); localities],
                ..Default::default()
            });
            let message = LoadStatsRequest {
                node: None,
                cluster_stats: stats.collect(),
            };
            let mut sizes = Vec::new();
            let bytes = message.encode_to_vec();
            let each = |stats: ClusterStats| sizes.push(stats.upstream_locality_stats.len());
            let refused = read(&bytes, &limits, each).unwrap().refused;
            (sizes, refused)
        };
        assert_eq!(report(vec![1, 10, 2]), (vec![1, 10, 2], 0));
        assert_eq!(report(vec![1, 11, 2]), (vec![1, 2], 1));
        assert_eq!(report(vec![0; 1000]), (vec![0; 3], 997));
    }

    #[test]
    fn bytes_that_are_no_report_are_refused() {
        let error = |bytes: &[u8]| read(bytes, &ReportLimits::default(), drop).unwrap_err();
        let truncated = error(b"\x12\x05");
        assert!(matches!(truncated, DecodeError::Truncated { .. }));
        let malformed = error(b"\x12\x03\x0a\x01\xff");
        assert!(matches!(malformed, DecodeError::Malformed { .. }));
    }
}
