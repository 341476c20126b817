//! The node of a stream, read when it changes.
//!
//! Envoy repeats 61 KB of node in every request unless it is told not to. A
//! node that was read is recognised by its hash: the bytes themselves would
//! keep a whole received message alive for each stream.

use bytes::Bytes;
use trunkline_core::message;
use trunkline_core::params::Params;
use trunkline_proto::discovery::{DecodeError, Limits, Node};
use twox_hash::XxHash3_128;

/// The hash of the node that a stream last sent.
#[derive(Debug, Default)]
pub(super) struct NodeMemory(Option<u128>);

impl NodeMemory {
    /// Returns whether these are the bytes of the node that was read last.
    pub(super) fn is_last(&self, raw: &[u8]) -> bool {
        self.0.is_some_and(|hash| hash == XxHash3_128::oneshot(raw))
    }

    /// Parses a node and remembers it. Returns `None` without parsing if the
    /// node is the one that was parsed last, or if the request has none. A
    /// malformed node is not remembered.
    pub(super) fn read_if_new(
        &mut self,
        raw: Option<&Bytes>,
        limits: &Limits,
    ) -> Result<Option<Node>, DecodeError> {
        let Some(raw) = raw else { return Ok(None) };
        if self.is_last(raw) {
            return Ok(None);
        }
        let node = Node::parse(raw, limits)?;
        self.0 = Some(XxHash3_128::oneshot(raw));
        Ok(Some(node))
    }
}

/// Returns the fields of a node that the protocol engine reads. Its parameters
/// are empty: the rules of the server derive them.
pub(super) fn core_node(node: &Node) -> message::Node {
    message::Node {
        id: node.id.clone(),
        cluster: node.cluster.clone(),
        user_agent: node.user_agent_name.clone(),
        client_features: node.client_features.clone(),
        params: Params::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn a_node_is_read_when_it_differs() {
        let raw = |id: &str| -> Bytes {
            let node = Node {
                id: id.into(),
                user_agent_name: "envoy".into(),
                ..Node::default()
            };
            node.encode_to_vec().into()
        };
        let limits = Limits::default();
        let mut memory = NodeMemory::default();
        let mut id = |raw: Option<Bytes>| {
            let node = memory.read_if_new(raw.as_ref(), &limits).unwrap();
            let node = node.map(|node| core_node(&node));
            node.map(|node| (node.id, node.user_agent))
        };
        let read = |id: &str| Some((id.to_owned(), "envoy".to_owned()));
        assert_eq!(id(Some(raw("a"))), read("a"));
        assert_eq!(id(Some(raw("a"))), None);
        assert_eq!(id(None), None);
        assert_eq!(id(Some(raw("b"))), read("b"));
    }
}
