//! The messages themselves: plain fields, numbered as in `mcp.proto`.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::discovery::{Any, Status};

/// Who a sink is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SinkNode {
    /// The name of the sink.
    #[prost(string, tag = "1")]
    pub id: String,
    /// What else is known of it. A source may choose canaries by them (M14).
    #[prost(btree_map = "string, string", tag = "2")]
    pub annotations: BTreeMap<String, String>,
}

/// What a sink says: the first request for a collection, an ACK or a NACK.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RequestResources {
    /// Who asks.
    #[prost(message, optional, tag = "1")]
    pub sink_node: Option<SinkNode>,
    /// The collection that it asks for.
    #[prost(string, tag = "2")]
    pub collection: String,
    /// The versions that the sink holds, by name. They count in the first
    /// request for a collection only (M7).
    #[prost(btree_map = "string, string", tag = "3")]
    pub initial_resource_versions: BTreeMap<String, String>,
    /// The response that this acknowledges; empty in a first request.
    #[prost(string, tag = "4")]
    pub response_nonce: String,
    /// Present in a NACK (M3).
    #[prost(message, optional, tag = "5")]
    pub error_detail: Option<Status>,
    /// Whether the next response may be incremental (M6).
    #[prost(bool, tag = "6")]
    pub incremental: bool,
}

/// What a source sends: the state of a collection, or changes of it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Resources {
    /// The version of the source's contents, for people only.
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// The collection of all its resources.
    #[prost(string, tag = "2")]
    pub collection: String,
    /// Each an encoded [`Resource`], shared with the buffer it came from: on
    /// the wire, a message is its bytes.
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub resources: Vec<Bytes>,
    /// Names that are gone. They count in an incremental response only (M6).
    #[prost(string, repeated, tag = "4")]
    pub removed_resources: Vec<String>,
    /// Names this response.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Whether these are changes; otherwise a name that is not listed is gone
    /// (M8).
    #[prost(bool, tag = "6")]
    pub incremental: bool,
}

/// One resource of a collection.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Resource {
    /// Name, version and labels.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<Metadata>,
    /// The contents.
    #[prost(message, optional, tag = "2")]
    pub body: Option<Any>,
}

impl Resource {
    /// The type of the message, where an `Any` holds one.
    pub const TYPE_URL: &'static str = "type.googleapis.com/istio.mcp.v1alpha1.Resource";
}

/// What every resource has, whatever its body.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Metadata {
    /// `<directory>/<basename>`; on Kubernetes the namespace and the name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// When the resource was made.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// Equal versions of a name mean equal contents.
    #[prost(string, tag = "3")]
    pub version: String,
    /// Keys that people select by.
    #[prost(btree_map = "string, string", tag = "4")]
    pub labels: BTreeMap<String, String>,
    /// Keys that nobody selects by.
    #[prost(btree_map = "string, string", tag = "5")]
    pub annotations: BTreeMap<String, String>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    /// Seconds since 1970.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds after that.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}
