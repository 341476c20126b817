//! Load reports as plain values.

use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use trunkline_proto::text::print_timestamp;

/// One client's latest report on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterLoad {
    /// The id of the client's node.
    pub node: String,
    /// The cluster of the node itself.
    pub node_cluster: String,
    /// The cluster.
    pub cluster: String,
    /// The cluster's EDS service name, if the client reports one.
    pub service: String,
    /// The figures of the cluster as a whole.
    #[serde(flatten)]
    pub latest: ClusterFigures,
    /// The figures by locality and priority, in their order.
    pub localities: Vec<LocalityLoad>,
}

/// The figures of a cluster as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterFigures {
    /// The time at which the report was received.
    #[serde(serialize_with = "serialize_time")]
    pub received: SystemTime,
    /// The time over which the client counted; all counts are of this time
    /// only.
    #[serde(rename = "interval_seconds", serialize_with = "serialize_seconds")]
    pub interval: Duration,
    /// Requests that were dropped before a locality was picked.
    pub dropped: u64,
    /// The same by category, as far as the client reports categories.
    pub drops: Vec<Drops>,
}

/// Requests dropped for one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The category, as the cluster's drop overloads name it.
    pub category: String,
    /// The number of requests.
    pub count: u64,
}

/// A locality and priority of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The region.
    pub region: String,
    /// The zone in it.
    pub zone: String,
    /// The part of the zone.
    pub sub_zone: String,
    /// The priority.
    pub priority: u32,
}

/// One client's latest report on one locality of a cluster. It may be older
/// than that of the cluster: clients leave out a locality without requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocalityLoad {
    /// The locality.
    #[serde(flatten)]
    pub place: Place,
    /// The time at which the report was received.
    #[serde(serialize_with = "serialize_time")]
    pub received: SystemTime,
    /// The time over which the client counted.
    #[serde(rename = "interval_seconds", serialize_with = "serialize_seconds")]
    pub interval: Duration,
    /// The counts.
    #[serde(flatten)]
    pub requests: Requests,
    /// Metrics that the endpoints reported themselves.
    pub metrics: Vec<Metric>,
    /// The figures by endpoint, if the settings ask for them.
    pub endpoints: Vec<EndpointLoad>,
}

/// The load of one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndpointLoad {
    /// `address:port`, a path, or the name of a listener inside the client.
    pub address: String,
    /// The counts.
    #[serde(flatten)]
    pub requests: Requests,
    /// Metrics that the endpoint reported itself.
    pub metrics: Vec<Metric>,
}

/// Counts of requests in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Requests that succeeded.
    pub successful: u64,
    /// Requests that had not ended when the interval did.
    pub in_progress: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that began.
    pub issued: u64,
}

/// A metric that endpoints report with their responses (ORCA).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The name of the metric.
    pub name: String,
    /// The number of responses that had it.
    pub answers: u64,
    /// The sum of its values.
    pub total: f64,
}

/// Serializes a time as RFC 3339. A time before 1970 becomes 1970.
fn serialize_time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since_1970 = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or_default();
    let nanos = i32::try_from(since_1970.subsec_nanos()).unwrap_or_default();
    serializer.serialize_str(&print_timestamp(seconds, nanos))
}

/// Serializes a duration as a number of seconds.
fn serialize_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// A value that owns memory beside itself.
pub(super) trait HeapBytes {
    /// Returns the bytes of memory that the value owns beside itself.
    fn heap_bytes(&self) -> usize;
}

/// Returns the bytes that the allocator takes for a piece of memory, with those
/// for itself.
fn allocated_bytes(bytes: usize) -> usize {
    const OVERHEAD: usize = 16;
    match bytes {
        0 => 0,
        bytes => bytes.next_multiple_of(OVERHEAD) + OVERHEAD,
    }
}

impl HeapBytes for String {
    fn heap_bytes(&self) -> usize {
        allocated_bytes(self.capacity())
    }
}

impl<T: HeapBytes> HeapBytes for Vec<T> {
    fn heap_bytes(&self) -> usize {
        let inner: usize = self.iter().map(T::heap_bytes).sum();
        allocated_bytes(self.capacity() * size_of::<T>()) + inner
    }
}

impl HeapBytes for Drops {
    fn heap_bytes(&self) -> usize {
        self.category.heap_bytes()
    }
}

impl HeapBytes for Metric {
    fn heap_bytes(&self) -> usize {
        self.name.heap_bytes()
    }
}

impl HeapBytes for EndpointLoad {
    fn heap_bytes(&self) -> usize {
        self.address.heap_bytes() + self.metrics.heap_bytes()
    }
}

impl HeapBytes for ClusterFigures {
    fn heap_bytes(&self) -> usize {
        self.drops.heap_bytes()
    }
}

impl HeapBytes for LocalityLoad {
    fn heap_bytes(&self) -> usize {
        let place = &self.place;
        let names =
            place.region.heap_bytes() + place.zone.heap_bytes() + place.sub_zone.heap_bytes();
        names + self.metrics.heap_bytes() + self.endpoints.heap_bytes()
    }
}
