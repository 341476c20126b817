//! A `DiscoveryRequest` in JSON.
//!
//! Envoy sends some 77 KB of node each time. A field that is not needed is
//! skipped, whatever it is, and costs nothing.

use serde::Deserialize;
use trunkline_core::message::{Locator, Node, SotwRequest};
use trunkline_core::resource::{TypeUrl, Version};
use trunkline_proto::descriptor::full_name;
use trunkline_proto::discovery;

use super::RestError;
use super::node::RequestNode;

/// Bounds on a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestLimits {
    /// Bytes of the body. A larger poll is refused.
    pub body_bytes: usize,
    /// Bytes of a version, a type, or a text of the node. A poll with a longer
    /// one is refused.
    pub text_bytes: usize,
    /// Bytes of one name. A longer name is refused (S72).
    pub name_bytes: usize,
    /// Names. Further ones are refused.
    pub names: usize,
    /// Client features. Further ones are ignored.
    pub features: usize,
    /// Whether the metadata of the node is read.
    pub metadata: bool,
}

impl Default for RestLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            text_bytes: 16 << 10,
            name_bytes: 4 << 10,
            names: 100_000,
            features: 1000,
            metadata: false,
        }
    }
}

/// A poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The request. It always has a node and a type.
    pub request: SotwRequest,
    /// The rest of the node: its locality, and its metadata if rules read it.
    pub node: discovery::Node,
    /// How many names were refused because they are too long or too many.
    pub refused: usize,
}

/// The fields of a `DiscoveryRequest` that are read, by their names in both
/// kinds of JSON.
#[derive(Deserialize)]
struct Request {
    #[serde(alias = "versionInfo")]
    version_info: Option<String>,
    node: Option<RequestNode>,
    #[serde(alias = "resourceNames")]
    resource_names: Option<Vec<String>>,
    #[serde(alias = "typeUrl")]
    type_url: Option<String>,
}

/// Parses a poll of the type of its path. Names beyond the limits are left out
/// and counted in [`Read::refused`].
///
/// # Errors
/// The body is no discovery request, a size limit is exceeded, or the request
/// is for another type.
pub fn read(kind: &'static str, body: &[u8], limits: &RestLimits) -> Result<Read, RestError> {
    if body.len() > limits.body_bytes {
        let limit = limits.body_bytes;
        return Err(RestError::TooLarge { limit });
    }
    let request: Request = serde_json::from_slice(body)?;

    let version = check_text("version_info", request.version_info, limits)?;
    if let Some(found) = check_text("type_url", request.type_url, limits)?
        && full_name(&found) != full_name(kind)
    {
        let expected = kind;
        return Err(RestError::WrongType { expected, found });
    }

    let (core_node, node) = read_node(request.node.unwrap_or_default(), limits)?;
    let requested = request.resource_names.unwrap_or_default();
    let requested_count = requested.len();
    let names = names_within(requested, limits);
    Ok(Read {
        refused: requested_count - names.len(),
        node,
        request: SotwRequest {
            node: Some(core_node),
            type_url: Some(TypeUrl::new(kind)),
            names: names.into(),
            version: version.map(Version::new),
            nonce: None,
            error: None,
        },
    })
}

/// Checks the length of a text field, and returns its value. An empty text
/// gives `None`, since proto3 makes no difference between empty and missing.
fn check_text(
    field: &'static str,
    text: Option<String>,
    limits: &RestLimits,
) -> Result<Option<String>, RestError> {
    let limit = limits.text_bytes;
    match text {
        Some(text) if text.len() > limit => Err(RestError::TooLong { field, limit }),
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// Converts a node into the part that the protocol engine reads, and the whole
/// as rules read it. An id, cluster or user agent beyond the limit is an error;
/// client features beyond the limits are left out.
fn read_node(
    mut request_node: RequestNode,
    limits: &RestLimits,
) -> Result<(Node, discovery::Node), RestError> {
    let rule_fields = request_node.take_part_for_rules(limits.metadata);

    let text = |name, value| check_text(name, value, limits).map(Option::unwrap_or_default);
    let core = Node {
        id: text("node.id", request_node.id)?,
        cluster: text("node.cluster", request_node.cluster)?,
        user_agent: text("node.user_agent_name", request_node.user_agent_name)?,
        client_features: features_within(request_node.client_features.unwrap_or_default(), limits),
        ..Node::default()
    };

    let node = discovery::Node {
        id: core.id.clone(),
        cluster: core.cluster.clone(),
        user_agent_name: core.user_agent.clone(),
        client_features: core.client_features.clone(),
        ..rule_fields
    };
    Ok((core, node))
}

/// Keeps the client features that are not too long, the first ones of too many.
fn features_within(features: Vec<String>, limits: &RestLimits) -> Vec<String> {
    let is_short = |feature: &String| feature.len() <= limits.text_bytes;
    let short = features.into_iter().filter(is_short);
    short.take(limits.features).collect()
}

/// Keeps the names that are not too long, the first ones of too many.
fn names_within(names: Vec<String>, limits: &RestLimits) -> Vec<Locator> {
    let is_short = |name: &String| name.len() <= limits.name_bytes;
    let kept = names.into_iter().filter(is_short).take(limits.names);
    kept.map(|name| Locator { name, params: None }).collect()
}
