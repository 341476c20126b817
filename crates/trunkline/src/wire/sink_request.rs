//! A sink's requests: from the engine to bytes.
//!
//! A server reads requests in [`super::request`].

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::kind;
use trunkline_core::message::{self, DeltaRequest, ErrorDetail, Locator, Locators, SotwRequest};
use trunkline_core::params::Params;
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_core::sink::Request;
use trunkline_proto::discovery::{
    ContextParams, DeltaDiscoveryRequest, DiscoveryRequest, Node, ResourceLocator, Status,
};

/// Writes the requests of one sink.
///
/// The engine knows little of a node; the rest (metadata, locality, version) is
/// given here once.
#[derive(Debug, Default)]
pub struct RequestWriter {
    about: Node,
    /// The node that was written last: streams change, and the node stays.
    last_node: Option<(message::Node, Bytes)>,
    /// The names that were written last, by type: most requests of a type
    /// repeat them (C17).
    last_names: HashMap<TypeUrl, WrittenNames>,
}

/// The names of a state-of-the-world request, and their bytes.
#[derive(Debug)]
struct WrittenNames {
    names: Locators,
    /// Those without parameters, and those with them.
    plain: Bytes,
    located: Bytes,
}

impl RequestWriter {
    /// Returns a writer that has written nothing. `about` is the part of the
    /// node that the engine does not know. Id, cluster, user agent, features
    /// and parameters come from the requests.
    #[must_use]
    pub fn new(about: Node) -> Self {
        Self {
            about,
            ..Self::default()
        }
    }

    /// Writes a request as bytes, without the gRPC prefix.
    #[must_use]
    pub fn write(&mut self, request: Request) -> Bytes {
        match request {
            Request::Sotw(request) => self.write_sotw(request),
            Request::Delta(request) => self.write_delta(request),
        }
    }

    /// Encodes a state-of-the-world request.
    fn write_sotw(&mut self, request: SotwRequest) -> Bytes {
        // The names are encoded apart, since the next request often repeats
        // them.
        let head = DiscoveryRequest {
            version_info: or_empty(request.version.as_ref().map(Version::as_str)),
            node: request.node.map(|node| self.encode_node(node)),
            ..DiscoveryRequest::default()
        };
        let tail = DiscoveryRequest {
            type_url: or_empty(request.type_url.as_ref().map(TypeUrl::as_str)),
            response_nonce: or_empty(request.nonce.as_ref().map(Nonce::as_str)),
            error_detail: request.error.map(write_status),
            ..DiscoveryRequest::default()
        };
        let (head, tail) = (head.encode_to_vec(), tail.encode_to_vec());
        let names = self.encode_names(request.type_url, request.names);
        let parts: [&[u8]; 4] = [&head, &names.plain, &tail, &names.located];
        parts.concat().into()
    }

    /// Returns the encoded names of a type. The last list of the type is
    /// encoded only once.
    fn encode_names(&mut self, type_url: Option<TypeUrl>, names: Locators) -> &WrittenNames {
        let type_url = type_url.unwrap_or_else(|| TypeUrl::new(""));
        match self.last_names.entry(type_url) {
            Entry::Occupied(entry) if entry.get().names.is_shared_with(&names) => entry.into_mut(),
            Entry::Occupied(mut entry) => {
                entry.insert(WrittenNames::new(names));
                entry.into_mut()
            }
            Entry::Vacant(entry) => entry.insert(WrittenNames::new(names)),
        }
    }

    /// Encodes a delta request.
    fn write_delta(&mut self, request: DeltaRequest) -> Bytes {
        let (resource_names_subscribe, resource_locators_subscribe) =
            split_locators(request.subscribe);
        let (resource_names_unsubscribe, resource_locators_unsubscribe) =
            split_locators(request.unsubscribe);

        let versions = request.initial_versions.into_iter();
        let message = DeltaDiscoveryRequest {
            node: request.node.map(|node| self.encode_node(node)),
            type_url: or_empty(request.type_url.as_ref().map(TypeUrl::as_str)),
            resource_names_subscribe,
            resource_names_unsubscribe,
            initial_resource_versions: versions
                .map(|(name, version)| (name.as_str(), version.as_str()).into())
                .collect(),
            response_nonce: or_empty(request.nonce.as_ref().map(Nonce::as_str)),
            error_detail: request.error.map(write_status),
            resource_locators_subscribe,
            resource_locators_unsubscribe,
        };
        message.encode_to_vec().into()
    }

    /// Returns an encoded node, with the fields that the engine does not know.
    /// The last node is encoded only once.
    fn encode_node(&mut self, node: message::Node) -> Bytes {
        if let Some((_, bytes)) = self.last_node.as_ref().filter(|(last, _)| *last == node) {
            return bytes.clone();
        }
        let mut dynamic_parameters = self.about.dynamic_parameters.clone();
        if !node.params.is_empty() {
            dynamic_parameters.extend(write_node_params(&node.params));
        }

        let message = Node {
            dynamic_parameters,
            id: node.id.clone(),
            cluster: node.cluster.clone(),
            user_agent_name: node.user_agent.clone(),
            client_features: node.client_features.clone(),
            ..self.about.clone()
        };
        let bytes = Bytes::from(message.encode_to_vec());
        self.last_node = Some((node, bytes.clone()));
        bytes
    }
}

impl WrittenNames {
    /// Encodes names, those without parameters apart from those with them.
    fn new(names: Locators) -> Self {
        let (resource_names, resource_locators) = split_locators(names.iter().cloned());
        let plain = DiscoveryRequest {
            resource_names,
            ..DiscoveryRequest::default()
        };
        let located = DiscoveryRequest {
            resource_locators,
            ..DiscoveryRequest::default()
        };
        Self {
            names,
            plain: plain.encode_to_vec().into(),
            located: located.encode_to_vec().into(),
        }
    }
}

/// Splits names into those without parameters and those with them (TP2).
fn split_locators(
    locators: impl IntoIterator<Item = Locator>,
) -> (Vec<String>, Vec<ResourceLocator>) {
    let (mut plain, mut located) = (Vec::new(), Vec::new());
    for Locator { name, params } in locators {
        match &params {
            None => plain.push(name),
            Some(params) => located.push(ResourceLocator {
                name,
                dynamic_parameters: write_params(params),
            }),
        }
    }
    (plain, located)
}

/// Returns the parameters of a node, which are per type, for all types that are
/// known: the node goes with the first request, whatever the type of that is.
fn write_node_params(params: &Params) -> BTreeMap<String, ContextParams> {
    let params = ContextParams {
        params: write_params(params),
    };
    let types = kind::ALL.iter();
    types
        .map(|url| ((*url).to_owned(), params.clone()))
        .collect()
}

/// Returns a text field that may be missing, as protobuf has it: an empty text.
fn or_empty(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

/// Writes the error that makes a request a NACK.
fn write_status(error: ErrorDetail) -> Status {
    Status {
        code: error.code,
        message: error.message,
        details: Vec::new(),
    }
}

/// Writes parameters as a message has them.
fn write_params(params: &Params) -> BTreeMap<String, String> {
    let to_owned_pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    params.iter().map(to_owned_pair).collect()
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests {
    use super::super::request::Reader;
    use super::*;

    fn node() -> message::Node {
        message::Node {
            id: "n1".into(),
            cluster: "c1".into(),
            user_agent: "bench".into(),
            client_features: vec!["f".into()],
            params: Params::default(),
        }
    }

    fn params() -> Params {
        Params::new([("env", "prod")]).unwrap()
    }

    #[test]
    fn what_a_sink_says_a_server_reads() {
        let sotw = SotwRequest {
            node: Some(node()),
            type_url: Some("t".into()),
            names: vec!["a".into(), "b".into()].into(),
            version: Some("v".into()),
            nonce: Some("7".into()),
            error: Some(ErrorDetail {
                code: 3,
                message: "bad".into(),
            }),
        };
        let bytes = RequestWriter::default().write(Request::Sotw(sotw.clone()));
        assert_eq!(Reader::default().read_sotw(bytes).unwrap().request, sotw);

        let delta = DeltaRequest {
            node: Some(node()),
            type_url: Some("t".into()),
            subscribe: vec![
                "a".into(),
                Locator {
                    name: "b".into(),
                    params: Some(params()),
                },
            ],
            unsubscribe: vec!["c".into()],
            initial_versions: vec![("a".into(), "1".into())].into(),
            nonce: Some("7".into()),
            error: None,
        };
        let bytes = RequestWriter::default().write(Request::Delta(delta.clone()));
        assert_eq!(Reader::default().read_delta(bytes).unwrap().request, delta);
    }

    #[test]
    fn a_node_says_what_the_rules_do_not_know() {
        let about = Node {
            metadata: Some(Bytes::from_static(b"\x0a\x00")),
            id: "not this".into(),
            ..Node::default()
        };
        let mut writer = RequestWriter::new(about);
        let mut write = |id: &str| {
            let node = message::Node {
                id: id.into(),
                ..node()
            };
            let request = DeltaRequest {
                node: Some(node),
                ..DeltaRequest::default()
            };
            let bytes = writer.write(Request::Delta(request));
            let raw = DeltaDiscoveryRequest::decode(bytes).unwrap().node.unwrap();
            Node::decode(raw).unwrap()
        };
        let said = write("n1");
        assert_eq!(said.metadata.as_deref(), Some(&b"\x0a\x00"[..]));
        assert_eq!((&*said.id, &*said.cluster), ("n1", "c1"));
        assert_eq!(write("n1"), said);
        assert_eq!(write("n2").id, "n2");
    }

    #[test]
    fn parameters_of_the_stream_are_in_the_node() {
        let node = message::Node {
            params: params(),
            ..node()
        };
        let request = DeltaRequest {
            node: Some(node),
            ..DeltaRequest::default()
        };
        let bytes = RequestWriter::default().write(Request::Delta(request));
        let raw = DeltaDiscoveryRequest::decode(bytes).unwrap().node.unwrap();
        let said = Node::decode(raw).unwrap().dynamic_parameters;
        assert_eq!(said.len(), kind::ALL.len());
        for url in kind::ALL {
            assert_eq!(said[*url].params["env"], "prod");
        }
    }
}
