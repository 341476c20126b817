//! What is kept of load reports, as plain values for whoever asks.

use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use trunkline_proto::text::print_timestamp;

/// What one client last said of one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterLoad {
    /// The id of the client's node.
    pub node: String,
    /// The group that the node counts itself to.
    pub node_cluster: String,
    /// The cluster.
    pub cluster: String,
    /// The name under which EDS knows it, if the client says one.
    pub service: String,
    /// What was last said of it.
    #[serde(flatten)]
    pub latest: ClusterFigures,
    /// By locality and priority, in their order.
    pub localities: Vec<LocalityLoad>,
}

/// The figures of a cluster as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterFigures {
    /// When it was received.
    #[serde(serialize_with = "time")]
    pub received: SystemTime,
    /// How long the client counted; all counts are of this time only.
    #[serde(rename = "interval_seconds", serialize_with = "seconds")]
    pub interval: Duration,
    /// Requests that were dropped before a locality was picked.
    pub dropped: u64,
    /// The same by reason, as far as the client tells reasons.
    pub drops: Vec<Drops>,
}

/// Requests dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The reason, as it was configured.
    pub category: String,
    /// How many.
    pub count: u64,
}

/// Which endpoints of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The region.
    pub region: String,
    /// The zone in it.
    pub zone: String,
    /// The part of the zone.
    pub sub_zone: String,
    /// Their priority.
    pub priority: u32,
}

/// What one client last said of one locality of a cluster. It may be older than
/// what is said of the cluster: a locality without requests is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocalityLoad {
    /// Which.
    #[serde(flatten)]
    pub place: Place,
    /// When it was received.
    #[serde(serialize_with = "time")]
    pub received: SystemTime,
    /// How long the client counted.
    #[serde(rename = "interval_seconds", serialize_with = "seconds")]
    pub interval: Duration,
    /// The counts.
    #[serde(flatten)]
    pub requests: Requests,
    /// Figures that the endpoints reported themselves.
    pub metrics: Vec<Metric>,
    /// By endpoint, if that was asked for.
    pub endpoints: Vec<EndpointLoad>,
}

/// What one endpoint got.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndpointLoad {
    /// `address:port`, a path, or the name of a listener inside the client.
    pub address: String,
    /// The counts.
    #[serde(flatten)]
    pub requests: Requests,
    /// Figures that it reported itself.
    pub metrics: Vec<Metric>,
}

/// Counts of requests in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Ended well.
    pub successful: u64,
    /// Not ended yet, at its end.
    pub in_progress: u64,
    /// Ended badly.
    pub errors: u64,
    /// Begun.
    pub issued: u64,
}

/// A figure that endpoints reported with their answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// What it is called.
    pub name: String,
    /// How many answers had it.
    pub answers: u64,
    /// The sum over them.
    pub total: f64,
}

fn time<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let nanos = i32::try_from(since.subsec_nanos()).unwrap_or_default();
    to.serialize_str(&print_timestamp(seconds, nanos))
}

fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}

/// About how many bytes a value takes here.
pub(super) trait Weight {
    fn weight(&self) -> usize;
}

impl Weight for ClusterFigures {
    fn weight(&self) -> usize {
        let drops = self
            .drops
            .iter()
            .map(|d| size_of::<Drops>() + d.category.len());
        size_of::<Self>() + drops.sum::<usize>()
    }
}

impl Weight for [Metric] {
    fn weight(&self) -> usize {
        let one = |metric: &Metric| size_of::<Metric>() + metric.name.len();
        self.iter().map(one).sum()
    }
}

impl Weight for LocalityLoad {
    fn weight(&self) -> usize {
        let Place {
            region,
            zone,
            sub_zone,
            ..
        } = &self.place;
        let endpoint = |endpoint: &EndpointLoad| {
            size_of::<EndpointLoad>() + endpoint.address.len() + endpoint.metrics.weight()
        };
        let endpoints: usize = self.endpoints.iter().map(endpoint).sum();
        let names = region.len() + zone.len() + sub_zone.len();
        size_of::<Self>() + names + self.metrics.weight() + endpoints
    }
}
