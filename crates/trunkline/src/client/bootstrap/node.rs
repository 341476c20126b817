//! The node that a client sends: what the bootstrap says, and what the library
//! says of itself (C3).

use prost::Message as _;
use trunkline_proto::discovery;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::config::core::v3::node::UserAgentVersionType;

/// The name of the program.
const USER_AGENT: &str = "trunkline";

/// The features of the client: no overprovisioning of its own, wrapped
/// resources in state of the world, and their time to live. The documents
/// disagree in the spelling of the second, so both are sent (E10).
const FEATURES: [&str; 4] = [
    "envoy.lb.does_not_support_overprovisioning",
    "xds.config.resource-in-sotw",
    "xds.config.supports-resource-in-sotw",
    "xds.config.supports-resource-ttl",
];

/// Sets the user agent, its version and the client's features in a node,
/// whatever the bootstrap has there (C3).
pub(super) fn add_client_fields(node: &mut Node) {
    USER_AGENT.clone_into(&mut node.user_agent_name);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    node.user_agent_version_type = Some(UserAgentVersionType::UserAgentVersion(version));
    for feature in FEATURES {
        if !node.client_features.iter().any(|other| other == feature) {
            node.client_features.push(feature.to_owned());
        }
    }
}

/// Returns the node as requests are written with it.
pub(super) fn on_the_wire(node: &Node) -> discovery::Node {
    let bytes = node.encode_to_vec();
    // The same message with fewer fields, so the decoding does not fail.
    discovery::Node::decode(bytes.as_slice()).unwrap_or_default()
}

/// Returns the node of requests as Envoy's own message.
pub(in crate::client) fn envoy_node(node: &discovery::Node) -> Node {
    // Both have the same fields on the wire, so the decoding does not fail.
    Node::decode(node.encode_to_vec().as_slice()).unwrap_or_default()
}
