//! The messages of xDS, as far as attackers and victim use them, and gRPC's
//! frame around a message.
//!
//! They are written here again, and not taken from the project: an attacker says
//! what it likes, and the harness builds in seconds.

use std::collections::HashMap;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message;

pub(crate) const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const ENDPOINTS: &str =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

pub(crate) const DELTA: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
pub(crate) const SOTW: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
pub(crate) const LOADS: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
pub(crate) const STATUS: &str =
    "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";
pub(crate) const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// The two services of the Mesh Configuration Protocol.
pub(crate) const MCP_SOURCE: &str = "/istio.mcp.v1alpha1.ResourceSource/EstablishResourceStream";
pub(crate) const MCP_SINK: &str = "/istio.mcp.v1alpha1.ResourceSink/EstablishResourceStream";
/// The resources of that protocol, where an `Any` holds one.
pub(crate) const MCP_RESOURCE: &str = "type.googleapis.com/istio.mcp.v1alpha1.Resource";

/// `envoy.config.core.v3.Node`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Node {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) cluster: String,
}

impl Node {
    pub(crate) fn new(id: impl Into<String>) -> Option<Self> {
        Some(Self {
            id: id.into(),
            cluster: "attack".into(),
        })
    }
}

/// `envoy.service.discovery.v3.DeltaDiscoveryRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeltaRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) node: Option<Node>,
    #[prost(string, tag = "2")]
    pub(crate) type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) unsubscribe: Vec<String>,
    #[prost(map = "string, string", tag = "5")]
    pub(crate) initial_versions: HashMap<String, String>,
    #[prost(string, tag = "6")]
    pub(crate) nonce: String,
    #[prost(message, repeated, tag = "8")]
    pub(crate) locators: Vec<Locator>,
}

impl DeltaRequest {
    /// The first request of a client for a type.
    pub(crate) fn first(node: &str, type_url: &str, names: Vec<String>) -> Self {
        Self {
            node: Node::new(node),
            type_url: type_url.to_owned(),
            subscribe: names,
            ..Self::default()
        }
    }
}

/// `envoy.service.discovery.v3.DiscoveryRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SotwRequest {
    #[prost(message, optional, tag = "2")]
    pub(crate) node: Option<Node>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) names: Vec<String>,
    #[prost(string, tag = "4")]
    pub(crate) type_url: String,
}

/// `envoy.service.discovery.v3.ResourceLocator`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Locator {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(map = "string, string", tag = "2")]
    pub(crate) params: HashMap<String, String>,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeltaResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) resources: Vec<Resource>,
    #[prost(string, tag = "4")]
    pub(crate) type_url: String,
    #[prost(string, tag = "5")]
    pub(crate) nonce: String,
    #[prost(string, repeated, tag = "6")]
    pub(crate) removed: Vec<String>,
}

/// `envoy.service.discovery.v3.Resource`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) body: Option<Any>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// A cluster, of which the victim reads the name and the revision that the
/// driver wrote into it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cluster {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "28")]
    pub(crate) alt_stat_name: String,
}

/// `envoy.service.load_stats.v3.LoadStatsRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LoadRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) node: Option<Node>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) stats: Vec<ClusterStats>,
}

/// `envoy.config.endpoint.v3.ClusterStats`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClusterStats {
    #[prost(string, tag = "1")]
    pub(crate) cluster: String,
    #[prost(uint64, tag = "3")]
    pub(crate) dropped: u64,
}

/// `envoy.service.status.v3.ClientStatusRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) matchers: Vec<NodeMatcher>,
}

/// `envoy.type.matcher.v3.NodeMatcher`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeMatcher {
    #[prost(message, optional, tag = "1")]
    pub(crate) id: Option<StringMatcher>,
}

/// `envoy.type.matcher.v3.StringMatcher`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StringMatcher {
    #[prost(message, optional, tag = "5")]
    pub(crate) regex: Option<RegexMatcher>,
}

/// `envoy.type.matcher.v3.RegexMatcher`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegexMatcher {
    #[prost(string, tag = "2")]
    pub(crate) regex: String,
}

impl StatusRequest {
    /// A question about the clients whose node matches a regex.
    pub(crate) fn by_regex(regex: &str) -> Self {
        let regex = RegexMatcher {
            regex: regex.to_owned(),
        };
        let id = StringMatcher { regex: Some(regex) };
        Self {
            matchers: vec![NodeMatcher { id: Some(id) }],
        }
    }
}

/// `grpc.reflection.v1.ServerReflectionRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReflectionRequest {
    #[prost(string, tag = "4")]
    pub(crate) symbol: String,
}

/// `istio.mcp.v1alpha1.SinkNode`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct McpNode {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(map = "string, string", tag = "2")]
    pub(crate) annotations: HashMap<String, String>,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct McpError {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// `istio.mcp.v1alpha1.RequestResources`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct McpRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) node: Option<McpNode>,
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
    #[prost(map = "string, string", tag = "3")]
    pub(crate) versions: HashMap<String, String>,
    #[prost(string, tag = "4")]
    pub(crate) nonce: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) error: Option<McpError>,
    #[prost(bool, tag = "6")]
    pub(crate) incremental: bool,
}

impl McpRequest {
    /// The first request of a sink for a collection.
    pub(crate) fn first(collection: &str) -> Self {
        Self {
            collection: collection.to_owned(),
            ..Self::default()
        }
    }
}

/// `istio.mcp.v1alpha1.Resources`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct McpResources {
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(crate) resources: Vec<Bytes>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) removed: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) nonce: String,
    #[prost(bool, tag = "6")]
    pub(crate) incremental: bool,
}

/// `istio.mcp.v1alpha1.Resource`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct McpResource {
    #[prost(message, optional, tag = "2")]
    pub(crate) body: Option<Any>,
}

/// A message in gRPC's frame, not compressed.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(length + 5);
    bytes.put(head(0, length));
    // A buffer of that length has room.
    let _ = message.encode(&mut bytes);
    bytes.freeze()
}

/// The head of gRPC's frame: whether the message is compressed, and its length.
pub(crate) fn head(compressed: u8, length: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5);
    bytes.put_u8(compressed);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    bytes.freeze()
}

/// Takes the first whole message off the bytes that were received so far.
pub(crate) fn take_message(received: &mut BytesMut) -> Option<Bytes> {
    let head: [u8; 4] = received.get(1..5)?.try_into().ok()?;
    let length = u32::from_be_bytes(head) as usize + 5;
    if received.len() < length {
        return None;
    }
    Some(received.split_to(length).freeze().slice(5..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_as_they_come() {
        let request = DeltaRequest::first("n", CLUSTER, vec!["a".into()]);
        let whole = frame(&request);
        let mut received = BytesMut::from(&whole[..whole.len() - 1]);
        assert_eq!(take_message(&mut received), None);
        received.put_u8(whole[whole.len() - 1]);
        received.put_u8(0);
        let message = take_message(&mut received).unwrap();
        assert_eq!(DeltaRequest::decode(message).unwrap(), request);
        assert_eq!(received.len(), 1);
    }
}
