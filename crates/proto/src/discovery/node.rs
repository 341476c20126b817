//! The node of a client, parsed on demand from the raw bytes of a request.
//!
//! Envoy sends 61 KB of node with some messages, nearly all of it a list of 516
//! extensions that no rule reads. Only the fields that identity, parameters and
//! client quirks (S58) depend on are kept; the rest is skipped, and metadata
//! stays raw because only chosen keys of it are ever read.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

use super::{
    inbound::DecodeError,
    limits::Limits,
    scan::{self, Shape},
};

/// `envoy.config.core.v3.Node`, the parts that matter.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Node {
    /// The id of the node.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The cluster of the node itself.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// `google.protobuf.Struct`, raw.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub metadata: Option<Bytes>,
    /// Its locality.
    #[prost(message, optional, tag = "4")]
    pub locality: Option<Locality>,
    /// The name of the program.
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// Its version, in one of two forms.
    #[prost(oneof = "UserAgentVersion", tags = "7, 8")]
    pub user_agent_version: Option<UserAgentVersion>,
    /// The client's features.
    #[prost(string, repeated, tag = "10")]
    pub client_features: Vec<String>,
    /// For each type URL, the context parameters of its names.
    #[prost(btree_map = "string, message", tag = "12")]
    pub dynamic_parameters: BTreeMap<String, ContextParams>,
}

/// The version of the program.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum UserAgentVersion {
    /// Free text.
    #[prost(string, tag = "7")]
    Text(String),
    /// Numbers.
    #[prost(message, tag = "8")]
    Build(BuildVersion),
}

/// `envoy.config.core.v3.BuildVersion` without its metadata.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BuildVersion {
    /// The version.
    #[prost(message, optional, tag = "1")]
    pub version: Option<SemanticVersion>,
}

/// `envoy.type.v3.SemanticVersion`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct SemanticVersion {
    /// Major number.
    #[prost(uint32, tag = "1")]
    pub major_number: u32,
    /// Minor number.
    #[prost(uint32, tag = "2")]
    pub minor_number: u32,
    /// Patch.
    #[prost(uint32, tag = "3")]
    pub patch: u32,
}

/// `envoy.config.core.v3.Locality`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Locality {
    /// Region.
    #[prost(string, tag = "1")]
    pub region: String,
    /// Zone.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// Sub-zone.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// `xds.core.v3.ContextParams`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContextParams {
    /// Key and value.
    #[prost(btree_map = "string, string", tag = "1")]
    pub params: BTreeMap<String, String>,
}

static NODE: Shape = Shape {
    name: "Node",
    fields: &[
        scan::text(1, "id", |l| l.text_bytes),
        scan::text(2, "cluster", |l| l.text_bytes),
        scan::message(4, "locality", &LOCALITY),
        scan::text(6, "user_agent_name", |l| l.text_bytes),
        scan::text(7, "user_agent_version", |l| l.text_bytes),
        scan::text(10, "client_features", |l| l.text_bytes),
        scan::message(12, "dynamic_parameters", &PARAMETERS),
    ],
};
static LOCALITY: Shape = Shape {
    name: "Locality",
    fields: &[
        scan::text(1, "region", |l| l.text_bytes),
        scan::text(2, "zone", |l| l.text_bytes),
        scan::text(3, "sub_zone", |l| l.text_bytes),
    ],
};
static PARAMETERS: Shape = Shape {
    name: "dynamic_parameters entry",
    fields: &[
        scan::text(1, "key", |l| l.text_bytes),
        scan::message(2, "value", &CONTEXT),
    ],
};
static CONTEXT: Shape = Shape {
    name: "ContextParams",
    fields: &[scan::message(1, "params", &scan::ENTRY)],
};

impl Node {
    /// Reads the raw node of a request: the fields that are declared here, and
    /// no others.
    ///
    /// # Errors
    /// The bytes are no protobuf message, or pass one of `limits`.
    pub fn parse(raw: &Bytes, limits: &Limits) -> Result<Self, DecodeError> {
        scan::check_message(&NODE, raw, limits.node_bytes, limits)?;
        Node::decode(raw.clone()).map_err(|source| DecodeError::Malformed {
            message: NODE.name,
            source,
        })
    }
}
