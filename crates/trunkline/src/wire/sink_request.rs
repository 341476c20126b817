//! A sink's requests: from the engine to bytes.
//!
//! A server reads requests in [`super::request`].

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::message::{self, DeltaRequest, ErrorDetail, Locator, SotwRequest};
use trunkline_core::params::Params;
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_core::sink::Request;
use trunkline_proto::discovery::{
    DeltaDiscoveryRequest, DiscoveryRequest, Node, ResourceLocator, Status,
};

/// Writes the requests of one sink.
///
/// The engine knows little of a node; the rest (metadata, locality, version) is
/// given here once.
#[derive(Debug, Default)]
pub struct RequestWriter {
    about: Node,
    params: Option<Params>,
    /// The node that was written last: streams change, and the node stays.
    written: Option<(message::Node, Bytes)>,
}

impl RequestWriter {
    /// A writer without parameters. `about` is the part of the node that the
    /// engine does not know. Id, cluster, user agent and features come from the
    /// requests.
    #[must_use]
    pub fn new(about: Node) -> Self {
        Self {
            about,
            ..Self::default()
        }
    }

    /// Subscribes to every name with these parameters (TP2). A legacy wildcard,
    /// which names nothing, cannot carry them: in state of the world it looks
    /// like a subscription to nothing, so such a request stays as it is; a
    /// delta stream names the wildcard instead.
    #[must_use]
    pub fn with_params(mut self, params: Params) -> Self {
        self.params = Some(params);
        self
    }

    /// Writes a request as bytes, without the gRPC prefix.
    #[must_use]
    pub fn write(&mut self, request: Request) -> Bytes {
        match request {
            Request::Sotw(request) => self.write_sotw(request),
            Request::Delta(request) => self.write_delta(request),
        }
    }

    /// Writes a state-of-the-world request. A legacy wildcard stays one,
    /// without parameters.
    fn write_sotw(&mut self, request: SotwRequest) -> Bytes {
        let (resource_names, resource_locators) = self.split_locators(request.names);
        let message = DiscoveryRequest {
            version_info: or_empty(request.version.as_ref().map(Version::as_str)),
            node: request.node.map(|node| self.encode_node(node)),
            resource_names,
            type_url: or_empty(request.type_url.as_ref().map(TypeUrl::as_str)),
            response_nonce: or_empty(request.nonce.as_ref().map(Nonce::as_str)),
            error_detail: request.error.map(write_status),
            resource_locators,
        };
        message.encode_to_vec().into()
    }

    /// Writes a delta request. A legacy wildcard becomes an explicit one if
    /// there are parameters, which need a name to go with.
    fn write_delta(&mut self, mut request: DeltaRequest) -> Bytes {
        let names_nothing = request.subscribe.is_empty() && request.unsubscribe.is_empty();
        let is_legacy_wildcard = names_nothing && request.nonce.is_none();
        if is_legacy_wildcard && self.params.is_some() {
            request.subscribe.push("*".into());
        }

        let (resource_names_subscribe, resource_locators_subscribe) =
            self.split_locators(request.subscribe);
        let (resource_names_unsubscribe, resource_locators_unsubscribe) =
            self.split_locators(request.unsubscribe);

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

    /// Splits names into those without parameters and those with them: their
    /// own, or else the writer's.
    fn split_locators(&self, locators: Vec<Locator>) -> (Vec<String>, Vec<ResourceLocator>) {
        let (mut plain, mut located) = (Vec::new(), Vec::new());
        for Locator { name, params } in locators {
            match params.as_ref().or(self.params.as_ref()) {
                None => plain.push(name),
                Some(params) => located.push(ResourceLocator {
                    name,
                    dynamic_parameters: write_params(params),
                }),
            }
        }
        (plain, located)
    }

    /// Encodes a node, with the part that the engine does not know. The bytes
    /// of the node that was written last are used again.
    fn encode_node(&mut self, node: message::Node) -> Bytes {
        if let Some((_, bytes)) = self.written.as_ref().filter(|(last, _)| *last == node) {
            return bytes.clone();
        }
        let message = Node {
            id: node.id.clone(),
            cluster: node.cluster.clone(),
            user_agent_name: node.user_agent.clone(),
            client_features: node.client_features.clone(),
            ..self.about.clone()
        };
        let bytes = Bytes::from(message.encode_to_vec());
        self.written = Some((node, bytes.clone()));
        bytes
    }
}

/// Writes a text field that may be missing, which protobuf takes for empty.
fn or_empty(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn write_status(error: ErrorDetail) -> Status {
    Status {
        code: error.code,
        message: error.message,
        details: Vec::new(),
    }
}

fn write_params(params: &Params) -> BTreeMap<String, String> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    params.iter().map(owned).collect()
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
            names: vec!["a".into(), "b".into()],
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
    fn parameters_go_with_every_name() {
        let mut writer = RequestWriter::default().with_params(params());
        let mut read = |subscribe: Vec<Locator>, nonce: Option<Nonce>| {
            let request = DeltaRequest {
                subscribe,
                nonce,
                ..DeltaRequest::default()
            };
            let bytes = writer.write(Request::Delta(request));
            Reader::default()
                .read_delta(bytes)
                .unwrap()
                .request
                .subscribe
        };
        let with = |name: &str| Locator {
            name: name.into(),
            params: Some(params()),
        };
        assert_eq!(read(vec!["a".into()], None), [with("a")]);
        assert_eq!(read(Vec::new(), None), [with("*")]);
        assert_eq!(read(Vec::new(), Some("1".into())), []);
    }
}
