//! The messages themselves: plain fields, numbered as in Envoy's
//! `discovery.proto`, TP2 and TP3 fields included (S61, S62).
//!
//! `prost`'s derive reads and writes them. A `Bytes` field that is decoded from
//! a `Bytes` buffer is a slice of it. Messages that are not read here (`node`,
//! `metadata`) are declared as bytes: on the wire the two are the same. One
//! difference follows: a singular message that occurs twice is merged by the
//! specification, while here the last one wins. No known client sends one
//! twice.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::constraints::DynamicParameterConstraints;

/// `google.protobuf.Any`: a body and the name of its type.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Any {
    /// `type.googleapis.com/` and the full name of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message, shared with the buffer it came from.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds with the sign of `seconds`.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `google.rpc.Status`. Its text is for people; nothing is decided by it (S64).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// A gRPC status code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The error in words.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Typed details.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `envoy.config.core.v3.ControlPlane` (S68).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ControlPlane {
    /// The identifier of the server.
    #[prost(string, tag = "1")]
    pub identifier: String,
}

/// A name and the parameters of its subscription (TP2).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceLocator {
    /// The requested name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The parameters of the subscription.
    #[prost(btree_map = "string, string", tag = "2")]
    pub dynamic_parameters: BTreeMap<String, String>,
}

/// A name and the constraints that make one variant of it (TP2).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceName {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The constraints of the variant; absent means all clients.
    #[prost(message, optional, tag = "2")]
    pub dynamic_parameter_constraints: Option<DynamicParameterConstraints>,
}

/// Why a resource cannot be sent (TP3, S61).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceError {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource_name: Option<ResourceName>,
    /// The error.
    #[prost(message, optional, tag = "2")]
    pub error_detail: Option<Status>,
}

/// `Resource.CacheControl`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct CacheControl {
    /// The client must not keep the resource.
    #[prost(bool, tag = "1")]
    pub do_not_cache: bool,
}

/// A resource as delta carries it, and as SotW wraps it (S58).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Resource {
    /// The version of this resource alone.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The body; absent in a heartbeat (S59).
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    /// The name. Always set, also beside `resource_name`: Envoy files a
    /// resource without it under the empty name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Other names that this resource answers (S36).
    #[prost(string, repeated, tag = "4")]
    pub aliases: Vec<String>,
    /// How long the client may use it (S58-S60).
    #[prost(message, optional, tag = "6")]
    pub ttl: Option<Duration>,
    /// Cache hints.
    #[prost(message, optional, tag = "7")]
    pub cache_control: Option<CacheControl>,
    /// The name with its constraints (TP2, S62).
    #[prost(message, optional, tag = "8")]
    pub resource_name: Option<ResourceName>,
    /// `envoy.config.core.v3.Metadata`, raw.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub metadata: Option<Bytes>,
}

impl Resource {
    /// The type URL of a resource in its SotW wrapper (S58).
    pub const TYPE_URL: &'static str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
}

/// A SotW request: a subscription, an ACK or a NACK (S11).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DiscoveryRequest {
    /// The version last ACKed.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// The node, raw: see [`Node::parse`](super::Node::parse).
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub node: Option<Bytes>,
    /// The whole list of subscribed names.
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    /// The type of the subscription.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// The nonce of the response that this acknowledges.
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    /// Present exactly in a NACK (S11).
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<Status>,
    /// Names with parameters (TP2).
    #[prost(message, repeated, tag = "7")]
    pub resource_locators: Vec<ResourceLocator>,
}

/// A SotW response.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DiscoveryResponse {
    /// The version of the whole set.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// The bodies.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    /// Canary flag; nobody reads it.
    #[prost(bool, tag = "3")]
    pub canary: bool,
    /// The type of the bodies.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Unique on the stream (S4).
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// The server.
    #[prost(message, optional, tag = "6")]
    pub control_plane: Option<ControlPlane>,
    /// Resources that cannot be sent (TP3).
    #[prost(message, repeated, tag = "7")]
    pub resource_errors: Vec<ResourceError>,
}

/// A resource that a client holds: an entry of a map, which on the wire is a
/// repeated message. Of two for one name the last counts.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HeldVersion {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

impl<N: Into<String>, V: Into<String>> From<(N, V)> for HeldVersion {
    /// Makes the version that a client holds of a name.
    fn from((name, version): (N, V)) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
        }
    }
}

/// A delta request: subscriptions, an ACK or a NACK, in any mixture (S8).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeltaDiscoveryRequest {
    /// The node, raw: see [`Node::parse`](super::Node::parse).
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub node: Option<Bytes>,
    /// The type of the subscriptions.
    #[prost(string, tag = "2")]
    pub type_url: String,
    /// Names to subscribe.
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    /// Names to unsubscribe.
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// The resources that the client holds from an earlier stream (S45-S49).
    /// The name may be empty: Envoy sends this after a resource without a name.
    #[prost(message, repeated, tag = "5")]
    pub initial_resource_versions: Vec<HeldVersion>,
    /// The nonce of the response that this acknowledges.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Present exactly in a NACK (S11).
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<Status>,
    /// Names with parameters to subscribe (TP2).
    #[prost(message, repeated, tag = "8")]
    pub resource_locators_subscribe: Vec<ResourceLocator>,
    /// Names with parameters to unsubscribe (TP2).
    #[prost(message, repeated, tag = "9")]
    pub resource_locators_unsubscribe: Vec<ResourceLocator>,
}

/// A delta response.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeltaDiscoveryResponse {
    /// For people only (S68).
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// New and changed resources.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    /// The type of the bodies.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Unique on the stream (S4).
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Removed names.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
    /// The server.
    #[prost(message, optional, tag = "7")]
    pub control_plane: Option<ControlPlane>,
    /// Removed variants (TP2), in addition to `removed_resources`.
    #[prost(message, repeated, tag = "8")]
    pub removed_resource_names: Vec<ResourceName>,
    /// Resources that cannot be sent (TP3).
    #[prost(message, repeated, tag = "9")]
    pub resource_errors: Vec<ResourceError>,
}
