//! Requests: from received bytes to what the machines take.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::message::{DeltaRequest, ErrorDetail, Locator, SotwRequest};
use trunkline_core::name::Name;
use trunkline_core::params::{Params, ParamsError};
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_proto::discovery::{
    Answer, DecodeError, DeltaDiscoveryRequest, DiscoveryRequest, Inbound, Limits, Node, Refusal,
    ResourceLocator, Status,
};

use super::known_versions::KnownVersions;
use super::node::{NodeMemory, core_node};

/// A request, and what of it was refused.
pub(crate) struct Read<R> {
    pub(crate) request: R,
    /// The node, if it is not the one that was read before.
    pub(crate) node: Option<Node>,
    pub(crate) refused: Vec<Refused>,
}

impl<R> Read<R> {
    fn answer(request: R) -> Self {
        Self {
            request,
            node: None,
            refused: Vec::new(),
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
    /// Types that were asked for, to be known again.
    urls: Vec<TypeUrl>,
}

/// Types that are remembered; there are fewer kinds of resources.
const URLS: usize = 16;

impl Reader {
    pub(crate) fn new(limits: Limits, known_versions: Arc<KnownVersions>) -> Self {
        Self {
            limits,
            known_versions,
            ..Self::default()
        }
    }

    /// The type of an answer to something that was asked for before, by a node
    /// that is known: then there is nothing else to read in it.
    fn known(&self, answer: &Answer<'_>, len: usize) -> Option<&TypeUrl> {
        let Limits {
            message_bytes,
            text_bytes,
            ..
        } = self.limits;
        let longest = answer.nonce.len().max(answer.version.len());
        if len > message_bytes || longest > text_bytes {
            return None;
        }
        let url = |url: &&TypeUrl| url.as_str() == answer.type_url;
        let known = answer.node.is_none_or(|node| self.node.is(node));
        self.urls.iter().find(url).filter(|_| known)
    }

    fn url(&mut self, text: String) -> Option<TypeUrl> {
        let url = said(text).map(TypeUrl::new)?;
        if let Some(known) = self.urls.iter().find(|known| **known == url) {
            return Some(known.clone());
        }
        if self.urls.len() < URLS {
            self.urls.push(url.clone());
        }
        Some(url)
    }

    /// Reads a state-of-the-world request.
    pub(crate) fn sotw(&mut self, raw: Bytes) -> Result<Read<SotwRequest>, DecodeError> {
        if let Some(answer) = Answer::sotw(&raw)
            && let Some(url) = self.known(&answer, raw.len())
        {
            return Ok(Read::answer(SotwRequest {
                type_url: Some(url.clone()),
                nonce: Some(Nonce::new(answer.nonce)),
                version: Some(answer.version)
                    .filter(|version| !version.is_empty())
                    .map(Version::new),
                ..SotwRequest::default()
            }));
        }
        let checked = DiscoveryRequest::decode_checked(raw, &self.limits)?;
        let message = checked.message;
        let mut refused = refusals(checked.refused);
        let names = names(
            message.resource_names,
            message.resource_locators,
            &mut refused,
        );
        let node = self.node.read(message.node.as_ref(), &self.limits)?;
        let request = SotwRequest {
            node: node.as_ref().map(core_node),
            type_url: self.url(message.type_url),
            names,
            version: said(message.version_info).map(Version::new),
            nonce: said(message.response_nonce).map(Nonce::new),
            error: message.error_detail.map(error_detail),
        };
        Ok(Read {
            request,
            node,
            refused,
        })
    }

    /// Reads a delta request.
    pub(crate) fn delta(&mut self, raw: Bytes) -> Result<Read<DeltaRequest>, DecodeError> {
        if let Some(answer) = Answer::delta(&raw)
            && let Some(url) = self.known(&answer, raw.len())
        {
            return Ok(Read::answer(DeltaRequest {
                type_url: Some(url.clone()),
                nonce: Some(Nonce::new(answer.nonce)),
                ..DeltaRequest::default()
            }));
        }
        let is_taken = raw.len() <= self.limits.message_bytes;
        let unread = is_taken.then(|| self.known_versions.split(&raw)).flatten();
        let print = unread.as_ref().map(|unread| unread.print);
        if let Some(unread) = unread
            && let Some(known) = self.known_versions.find(unread.print)
        {
            let mut read = self.whole_delta(unread.rest.into())?;
            read.request.initial_versions = known;
            return Ok(read);
        }
        let read = self.whole_delta(raw)?;
        if let Some(print) = print.filter(|_| read.refused.is_empty()) {
            let versions = &read.request.initial_versions;
            self.known_versions.remember(print, versions);
        }
        Ok(read)
    }

    fn whole_delta(&mut self, raw: Bytes) -> Result<Read<DeltaRequest>, DecodeError> {
        let checked = DeltaDiscoveryRequest::decode_checked(raw, &self.limits)?;
        let message = checked.message;
        let mut refused = refusals(checked.refused);
        let subscribe = names(
            message.resource_names_subscribe,
            message.resource_locators_subscribe,
            &mut refused,
        );
        let unsubscribe = names(
            message.resource_names_unsubscribe,
            message.resource_locators_unsubscribe,
            &mut refused,
        );
        let held = message.initial_resource_versions.into_iter();
        let node = self.node.read(message.node.as_ref(), &self.limits)?;
        let request = DeltaRequest {
            node: node.as_ref().map(core_node),
            type_url: self.url(message.type_url),
            subscribe,
            unsubscribe,
            initial_versions: held
                .map(|h| (Name::new(&h.name), Version::new(h.version)))
                .collect(),
            nonce: said(message.response_nonce).map(Nonce::new),
            error: message.error_detail.map(error_detail),
        };
        Ok(Read {
            request,
            node,
            refused,
        })
    }
}

/// Protobuf cannot tell an empty string from none, and neither means anything.
fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn error_detail(status: Status) -> ErrorDetail {
    ErrorDetail {
        code: status.code,
        message: status.message,
    }
}

fn refusals(names: Vec<Refusal>) -> Vec<Refused> {
    names.into_iter().map(Refused::Name).collect()
}

/// Plain names take the parameters of the stream, locators bring their own.
fn names(
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
        let read = reader.delta(message.encode_to_vec().into()).unwrap();
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
            let read = reader.delta(raw).unwrap().request;
            assert_eq!(read.node.map(|node| node.id), told.then(|| id.to_owned()));
            assert_eq!(read.type_url, Some("t".into()));
            assert_eq!(read.nonce, Some("7".into()));
        }
        let mut reader = Reader::default();
        for (id, told) in [("a", true), ("a", false), ("b", true), ("b", false)] {
            let raw = sotw(id).encode_to_vec().into();
            let read = reader.sotw(raw).unwrap().request;
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
        let request = Reader::default().sotw(Bytes::new()).unwrap().request;
        assert_eq!(request, SotwRequest::default());
        let request = Reader::default().delta(Bytes::new()).unwrap().request;
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
            .sotw(message.encode_to_vec().into())
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
            let read = reader.delta(message.encode_to_vec().into());
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
