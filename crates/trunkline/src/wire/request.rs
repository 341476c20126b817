//! A stream's requests: from received bytes to the engine.
//!
//! Most requests only acknowledge a response. Where type and node are known,
//! such a request is read without decoding it.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::message::{DeltaRequest, ErrorDetail, Locator, Mode, Request, SotwRequest};
use trunkline_core::name::Name;
use trunkline_core::params::{Params, ParamsError};
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_proto::discovery::{
    DecodeError, DeltaDiscoveryRequest, DiscoveryRequest, Inbound, Limits, Node, PlainAck, Refusal,
    ResourceLocator, Status,
};

use super::known_versions::{KnownVersions, Unread};
use super::node::{NodeMemory, core_node};

/// A request as it was read.
pub(crate) struct Read<R> {
    pub(crate) request: R,
    /// The node, if it is not the one that was read before.
    pub(crate) node: Option<Node>,
    /// The names that were taken out of the request.
    pub(crate) refused: Vec<Refused>,
}

impl<R> Read<R> {
    /// Returns a request that only acknowledges a response: it has no names,
    /// and its node is known.
    fn acknowledgement(request: R) -> Self {
        Self {
            request,
            node: None,
            refused: Vec::new(),
        }
    }

    /// Converts the request, and keeps what was read beside it.
    fn map<T>(self, convert: impl FnOnce(R) -> T) -> Read<T> {
        Read {
            request: convert(self.request),
            node: self.node,
            refused: self.refused,
        }
    }
}

/// A name that was taken out of a request; the rest of it counts (S72).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is longer than a name may be.
    #[error(transparent)]
    Name(Refusal),
    /// It comes with more parameters than a client may have (TP2).
    #[error("{name}: {source}; it was ignored")]
    Params {
        /// The name.
        name: String,
        /// Which limit.
        source: ParamsError,
    },
}

/// Reads the requests of one stream.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    limits: Limits,
    node: NodeMemory,
    /// Shared by all streams of a server.
    known_versions: Arc<KnownVersions>,
    /// The types that were requested before, shared with the requests that
    /// repeat them.
    known_types: Vec<TypeUrl>,
}

/// The maximum of remembered types; there are fewer kinds of resources.
const MAX_TYPES: usize = 16;

impl Reader {
    /// Returns a reader that has read nothing yet.
    pub(crate) fn new(limits: Limits, known_versions: Arc<KnownVersions>) -> Self {
        Self {
            limits,
            known_versions,
            ..Self::default()
        }
    }

    /// Reads a request in the protocol that the stream speaks. Names beyond a
    /// limit are taken out of it; any other part beyond a limit is an error.
    pub(crate) fn read(&mut self, mode: Mode, raw: Bytes) -> Result<Read<Request>, DecodeError> {
        match mode {
            Mode::Sotw => Ok(self.read_sotw(raw)?.map(Request::Sotw)),
            Mode::Delta => Ok(self.read_delta(raw)?.map(Request::Delta)),
        }
    }

    /// Parses a state-of-the-world request. A request that only acknowledges a
    /// response of a known type is not decoded.
    pub(crate) fn read_sotw(&mut self, raw: Bytes) -> Result<Read<SotwRequest>, DecodeError> {
        if let Some(ack) = PlainAck::sotw(&raw)
            && let Some(type_url) = self.known_type(&ack, raw.len())
        {
            return Ok(Read::acknowledgement(SotwRequest {
                type_url: Some(type_url.clone()),
                nonce: Some(Nonce::new(ack.nonce)),
                version: non_empty(ack.version).map(Version::new),
                ..SotwRequest::default()
            }));
        }
        self.decode_sotw(raw)
    }

    /// Parses a delta request. A request that only acknowledges a response of a
    /// known type is not decoded, and neither are long initial versions that
    /// another stream has sent before.
    pub(crate) fn read_delta(&mut self, raw: Bytes) -> Result<Read<DeltaRequest>, DecodeError> {
        if let Some(ack) = PlainAck::delta(&raw)
            && let Some(type_url) = self.known_type(&ack, raw.len())
        {
            return Ok(Read::acknowledgement(DeltaRequest {
                type_url: Some(type_url.clone()),
                nonce: Some(Nonce::new(ack.nonce)),
                ..DeltaRequest::default()
            }));
        }

        // The decoder refuses a request beyond the limit.
        let is_within_limit = raw.len() <= self.limits.message_bytes;
        if is_within_limit && let Some(unread) = self.known_versions.split_off(&raw) {
            return self.read_delta_with_versions(raw, unread);
        }
        self.decode_delta(raw)
    }

    /// Parses a delta request with a long list of initial versions. The list is
    /// decoded only if no other stream has sent the same one (S46).
    fn read_delta_with_versions(
        &mut self,
        raw: Bytes,
        unread: Unread,
    ) -> Result<Read<DeltaRequest>, DecodeError> {
        if let Some(known_list) = self.known_versions.find(unread.fingerprint) {
            let mut read = self.decode_delta(unread.request.into())?;
            read.request.initial_versions = known_list;
            return Ok(read);
        }

        let read = self.decode_delta(raw)?;
        // A list without its refused names is not the one of the fingerprint.
        if read.refused.is_empty() {
            let versions = &read.request.initial_versions;
            self.known_versions.remember(unread.fingerprint, versions);
        }
        Ok(read)
    }

    /// Returns the type of an acknowledgement that needs no decoding: within
    /// the limits, of a type that was requested before, and by the node that
    /// was read last. `len` is the length of the whole request. `None` means
    /// that the request has to be decoded.
    fn known_type(&self, ack: &PlainAck<'_>, len: usize) -> Option<&TypeUrl> {
        let longest = ack.nonce.len().max(ack.version.len());
        let is_within_limits =
            len <= self.limits.message_bytes && longest <= self.limits.text_bytes;
        if !is_within_limits {
            return None;
        }
        let has_known_node = ack.node.is_none_or(|node| self.node.is_last(node));
        if !has_known_node {
            return None;
        }

        let mut known_types = self.known_types.iter();
        known_types.find(|type_url| type_url.as_str() == ack.type_url)
    }

    /// Returns the copy of a type that was read first, so that requests of one
    /// type share it. Types beyond [`MAX_TYPES`] are not shared. Returns `None`
    /// if the request has no type.
    fn intern_type(&mut self, text: &str) -> Option<TypeUrl> {
        let text = non_empty(text)?;
        let mut known_types = self.known_types.iter();
        if let Some(type_url) = known_types.find(|type_url| type_url.as_str() == text) {
            return Some(type_url.clone());
        }
        let type_url = TypeUrl::new(text);
        if self.known_types.len() < MAX_TYPES {
            self.known_types.push(type_url.clone());
        }
        Some(type_url)
    }

    /// Decodes a whole state-of-the-world request, and remembers its node and
    /// its type. Names beyond a limit are refused and left out.
    fn decode_sotw(&mut self, raw: Bytes) -> Result<Read<SotwRequest>, DecodeError> {
        let decoded = DiscoveryRequest::decode_checked(raw, &self.limits)?;
        let message = decoded.message;
        let mut refused = refused_names(decoded.refused);

        let names = join_locators(
            message.resource_names,
            message.resource_locators,
            &mut refused,
        );
        let node = self.node.read_if_new(message.node.as_ref(), &self.limits)?;
        let request = SotwRequest {
            node: node.as_ref().map(core_node),
            type_url: self.intern_type(&message.type_url),
            names: names.into(),
            version: non_empty(&message.version_info).map(Version::new),
            nonce: non_empty(&message.response_nonce).map(Nonce::new),
            error: message.error_detail.map(read_error),
        };
        Ok(Read {
            request,
            node,
            refused,
        })
    }

    /// Decodes a whole delta request, and remembers its node and its type.
    /// Names beyond a limit are refused and left out.
    fn decode_delta(&mut self, raw: Bytes) -> Result<Read<DeltaRequest>, DecodeError> {
        let decoded = DeltaDiscoveryRequest::decode_checked(raw, &self.limits)?;
        let message = decoded.message;
        let mut refused = refused_names(decoded.refused);

        let subscribe = join_locators(
            message.resource_names_subscribe,
            message.resource_locators_subscribe,
            &mut refused,
        );
        let unsubscribe = join_locators(
            message.resource_names_unsubscribe,
            message.resource_locators_unsubscribe,
            &mut refused,
        );

        let versions = message.initial_resource_versions.into_iter();
        let node = self.node.read_if_new(message.node.as_ref(), &self.limits)?;
        let request = DeltaRequest {
            node: node.as_ref().map(core_node),
            type_url: self.intern_type(&message.type_url),
            subscribe,
            unsubscribe,
            initial_versions: versions
                .map(|entry| (Name::new(&entry.name), Version::new(entry.version)))
                .collect(),
            nonce: non_empty(&message.response_nonce).map(Nonce::new),
            error: message.error_detail.map(read_error),
        };
        Ok(Read {
            request,
            node,
            refused,
        })
    }
}

/// Returns the text of a field that may be missing; `None` if it is empty.
/// Protobuf does not tell an empty string from none, and no rule gives the
/// empty one a meaning.
fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Reads the error that makes a request a NACK.
fn read_error(status: Status) -> ErrorDetail {
    ErrorDetail {
        code: status.code,
        message: status.message,
    }
}

/// Returns names that were too long as refused.
fn refused_names(names: Vec<Refusal>) -> Vec<Refused> {
    names.into_iter().map(Refused::Name).collect()
}

/// Joins plain names, which take the parameters of the stream, and locators,
/// which bring their own (TP2). A locator with more parameters than a client
/// may have is left out and added to `refused`.
fn join_locators(
    plain: Vec<String>,
    locators: Vec<ResourceLocator>,
    refused: &mut Vec<Refused>,
) -> Vec<Locator> {
    let plain = plain.into_iter().map(|name| Locator { name, params: None });
    let mut names: Vec<Locator> = plain.collect();
    for locator in locators {
        let name = locator.name;
        match Params::new(locator.dynamic_parameters) {
            Ok(params) => names.push(Locator {
                name,
                params: Some(params),
            }),
            Err(source) => refused.push(Refused::Params { name, source }),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use std::collections::BTreeMap;

    #[test]
    fn a_delta_request_is_read() {
        let node = Node {
            id: "n1".into(),
            client_features: vec!["f".into()],
            ..Node::default()
        };
        let message = DeltaDiscoveryRequest {
            node: Some(node.encode_to_vec().into()),
            type_url: "t".into(),
            resource_names_subscribe: vec!["a".into()],
            resource_names_unsubscribe: vec!["b".into()],
            initial_resource_versions: vec![("a", "1").into()],
            response_nonce: "7".into(),
            error_detail: Some(Status {
                code: 13,
                message: "bad".into(),
                details: Vec::new(),
            }),
            resource_locators_subscribe: vec![ResourceLocator {
                name: "c".into(),
                dynamic_parameters: BTreeMap::from([("env".into(), "prod".into())]),
            }],
            ..DeltaDiscoveryRequest::default()
        };
        let mut reader = Reader::default();
        let read = reader.read_delta(message.encode_to_vec().into()).unwrap();
        assert_eq!(read.refused, []);
        let request = read.request;
        assert_eq!(request.node.unwrap().client_features, ["f"]);
        assert_eq!(request.type_url, Some("t".into()));
        let with_params = Locator {
            name: "c".into(),
            params: Some(Params::new([("env", "prod")]).unwrap()),
        };
        assert_eq!(request.subscribe, [Locator::from("a"), with_params]);
        assert_eq!(request.unsubscribe, [Locator::from("b")]);
        assert_eq!(
            request.initial_versions,
            vec![("a".into(), "1".into())].into()
        );
        assert_eq!(request.nonce, Some("7".into()));
        assert_eq!(request.error.unwrap().code, 13);
    }

    #[test]
    fn an_answer_is_read_the_same_when_its_type_and_node_are_known() {
        let node = |id: &str| Some(Bytes::from(id_node(id)));
        let delta = |id: &str| DeltaDiscoveryRequest {
            node: node(id),
            type_url: "t".into(),
            response_nonce: "7".into(),
            ..DeltaDiscoveryRequest::default()
        };
        let sotw = |id: &str| DiscoveryRequest {
            node: node(id),
            type_url: "t".into(),
            response_nonce: "7".into(),
            version_info: "v".into(),
            ..DiscoveryRequest::default()
        };
        let mut reader = Reader::default();
        for (id, told) in [("a", true), ("a", false), ("b", true), ("b", false)] {
            let raw = delta(id).encode_to_vec().into();
            let read = reader.read_delta(raw).unwrap().request;
            assert_eq!(read.node.map(|node| node.id), told.then(|| id.to_owned()));
            assert_eq!(read.type_url, Some("t".into()));
            assert_eq!(read.nonce, Some("7".into()));
        }
        let mut reader = Reader::default();
        for (id, told) in [("a", true), ("a", false), ("b", true), ("b", false)] {
            let raw = sotw(id).encode_to_vec().into();
            let read = reader.read_sotw(raw).unwrap().request;
            assert_eq!(read.node.map(|node| node.id), told.then(|| id.to_owned()));
            assert_eq!(read.version, Some("v".into()));
            assert_eq!(read.nonce, Some("7".into()));
        }
    }

    fn id_node(id: &str) -> Vec<u8> {
        let node = Node {
            id: id.into(),
            ..Node::default()
        };
        node.encode_to_vec()
    }

    #[test]
    fn an_empty_request_says_nothing() {
        let request = Reader::default().read_sotw(Bytes::new()).unwrap().request;
        assert_eq!(request, SotwRequest::default());
        let request = Reader::default().read_delta(Bytes::new()).unwrap().request;
        assert_eq!(request, DeltaRequest::default());
    }

    #[test]
    fn s72_what_is_too_much_costs_its_name_only() {
        let many = (0..=Params::MAX_KEYS).map(|n| (n.to_string(), String::new()));
        let message = DiscoveryRequest {
            resource_names: vec!["x".repeat(1 << 20), "a".into()],
            resource_locators: vec![ResourceLocator {
                name: "b".into(),
                dynamic_parameters: many.collect(),
            }],
            ..DiscoveryRequest::default()
        };
        let read = Reader::default()
            .read_sotw(message.encode_to_vec().into())
            .unwrap();
        assert_eq!(read.request.names, [Locator::from("a")]);
        assert!(matches!(
            &read.refused[..],
            [Refused::Name(_), Refused::Params { name, .. }] if name == "b"
        ));
    }

    #[test]
    fn s46_the_lists_of_a_fleet_are_read_once() {
        let entries = |n: usize| {
            let names = (0..n).map(|n| format!("name-{n}"));
            names.map(|name| (name.as_str(), "1").into()).collect()
        };
        let message = |n: usize, nonce: &str| DeltaDiscoveryRequest {
            type_url: "t".into(),
            initial_resource_versions: entries(n),
            response_nonce: nonce.into(),
            ..DeltaDiscoveryRequest::default()
        };
        let known = Arc::<KnownVersions>::default();
        let read = |message: DeltaDiscoveryRequest| {
            let mut reader = Reader::new(Limits::default(), Arc::clone(&known));
            let read = reader.read_delta(message.encode_to_vec().into());
            read.unwrap().request
        };
        let first = read(message(1000, "1"));
        let mut other = message(1000, "2");
        other.initial_resource_versions.reverse();
        let other = read(other);
        assert_eq!(first.initial_versions.len(), 1000);
        assert_eq!(other.nonce, Some("2".into()));
        // What was read second is not in its own order: it was not read.
        assert_eq!(other.initial_versions, first.initial_versions);
        assert_eq!(read(message(999, "3")).initial_versions.len(), 999);
    }
}
