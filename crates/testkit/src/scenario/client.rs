//! The client that a scenario plays: it fills in the fields that real clients
//! repeat from one request to the next.

use std::collections::{BTreeMap, HashMap};

use trunkline_core::message::Mode;
use trunkline_core::message::{DeltaRequest, ErrorDetail, Locator, Node, SotwRequest};
use trunkline_core::resource::{Nonce, TypeUrl, Version};

use super::held::Held;
use super::request::{Answer, Given, NodeSaid, Request};
use super::script::{Opening, Talk};

/// A response, as far as it is needed to acknowledge it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) nonce: Nonce,
    pub(super) version: Option<Version>,
    /// Its parts.
    pub(super) parts: Vec<String>,
}

/// Responses by their labels.
pub(super) type Labels = HashMap<String, Seen>;

/// A request of either protocol.
pub(super) enum Built {
    Delta(DeltaRequest),
    Sotw(SotwRequest),
}

#[derive(Debug, Default)]
struct Asked {
    names: Vec<Locator>,
    accepted: Option<Version>,
    received: Option<Seen>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Client {
    opening: Opening,
    types: BTreeMap<TypeUrl, Asked>,
    node_sent: bool,
    /// The resources that it accepted.
    pub(super) held: Held,
}

impl Client {
    pub(super) fn new(opening: Opening) -> Self {
        Self {
            opening,
            types: BTreeMap::new(),
            node_sent: false,
            held: Held::default(),
        }
    }

    /// A new stream: nonces are forgotten, names and versions are not.
    pub(super) fn reconnect(&mut self) {
        self.node_sent = false;
        for asked in self.types.values_mut() {
            asked.received = None;
        }
    }

    pub(super) fn received(&mut self, type_url: &TypeUrl, seen: Seen) {
        self.types.entry(type_url.clone()).or_default().received = Some(seen);
    }

    /// The request that a line means.
    pub(super) fn build(&mut self, written: &Request, labels: &Labels) -> Result<Built, String> {
        let node = self.node(&written.node);
        let only = self.opening.config.single_type.clone();
        let about = written.type_url.clone().or(only);
        let about = about.unwrap_or_else(|| TypeUrl::new("no type"));
        self.note_held(&about, written);
        let asked = self.types.entry(about.clone()).or_default();
        let (answered, error) = asked.answer(&written.answer, labels)?;
        let nonce = match (&answered, &written.nonce) {
            (Some(seen), Given::Usual) => Some(seen.nonce.clone()),
            (None, Given::Usual) if self.opening.config.mode == Mode::Delta => None,
            (None, Given::Usual) => asked.received.as_ref().map(|seen| seen.nonce.clone()),
            (_, Given::None) => None,
            (_, Given::Text(text)) => Some(Nonce::new(text.as_str())),
            (_, Given::Label(label)) => Some(find(labels, label)?.nonce.clone()),
        };
        if let (Some(seen), None) = (&answered, &error) {
            asked.accepted.clone_from(&seen.version);
            let mode = self.opening.config.mode;
            self.held.take(mode, &about, &seen.parts, &[]);
        }
        if self.opening.config.mode == Mode::Delta {
            return Ok(Built::Delta(DeltaRequest {
                node,
                type_url: written.type_url.clone(),
                subscribe: written.subscribe.clone(),
                unsubscribe: written.unsubscribe.clone(),
                initial_versions: written.initial.clone().into(),
                nonce,
                error,
            }));
        }
        if let Some(names) = &written.names {
            asked.names.clone_from(names);
        }
        let version = match &written.version {
            Given::Usual => asked.accepted.clone(),
            Given::None => None,
            Given::Text(text) => Some(Version::new(text.as_str())),
            Given::Label(label) => find(labels, label)?.version.clone(),
        };
        Ok(Built::Sotw(SotwRequest {
            node,
            type_url: written.type_url.clone(),
            names: asked.names.clone().into(),
            version,
            nonce,
            error,
        }))
    }

    /// The versions that a request names.
    fn note_held(&mut self, about: &TypeUrl, written: &Request) {
        for item in &written.had {
            let (name, body) = item.split_once('@').unwrap_or((item, ""));
            self.held.had(about, name, body);
        }
        if let Some(names) = written.names.as_ref().filter(|names| !names.is_empty()) {
            self.held.keep_only(about, names);
        }
    }

    /// Takes a response, or rejects it. Returns the ACK or NACK, and the names
    /// that the client lost.
    pub(super) fn judge(&mut self, url: &TypeUrl, talk: &Talk) -> (Request, Vec<String>) {
        let mode = self.opening.config.mode;
        let received = self
            .types
            .get(url)
            .and_then(|asked| asked.received.as_ref());
        let parts = received.map_or(&[][..], |seen| &seen.parts);
        let bad = |part: &String| talk.rejecting.iter().any(|bad| part[1..] == **bad);
        let is_bad = parts.iter().any(bad);
        let lost = match is_bad && !talk.partly {
            true => Vec::new(),
            false => self.held.take(mode, url, parts, &talk.rejecting),
        };
        let answer = match is_bad {
            true => Answer::Nack(None, "?".to_owned()),
            false => Answer::Ack(None),
        };
        let request = Request {
            type_url: Some(url.clone()),
            answer,
            ..Request::default()
        };
        (request, lost)
    }

    fn node(&mut self, said: &NodeSaid) -> Option<Node> {
        let first = !std::mem::replace(&mut self.node_sent, true);
        let own = Node {
            id: "n1".to_owned(),
            cluster: "c1".to_owned(),
            user_agent: agent(&self.opening.program),
            client_features: self.opening.features.clone(),
            ..Node::default()
        };
        match said {
            NodeSaid::Usual => first.then_some(own),
            NodeSaid::None => None,
            NodeSaid::Same => Some(own),
            NodeSaid::Other(program) if program == "other" => Some(Node {
                id: "n2".to_owned(),
                ..own
            }),
            NodeSaid::Other(program) => Some(Node {
                user_agent: agent(program),
                ..own
            }),
        }
    }
}

impl Asked {
    /// The response that is acknowledged, and the error of a NACK.
    fn answer(
        &self,
        answer: &Answer,
        labels: &Labels,
    ) -> Result<(Option<Seen>, Option<ErrorDetail>), String> {
        let (label, text) = match answer {
            Answer::None => return Ok((None, None)),
            Answer::Ack(label) => (label, None),
            Answer::Nack(label, text) => (label, Some(text)),
        };
        let seen = match label {
            Some(label) => find(labels, label)?.clone(),
            None => self
                .received
                .clone()
                .ok_or("there is no response of the type to answer")?,
        };
        let error = text.map(|text| ErrorDetail {
            code: 13,
            message: text.clone(),
        });
        Ok((Some(seen), error))
    }
}

/// The user agent of a program.
fn agent(program: &str) -> String {
    match program {
        "grpc" => "gRPC C-core linux Python".to_owned(),
        other => other.to_owned(),
    }
}

/// A labelled response.
pub(super) fn find<'a>(labels: &'a Labels, label: &str) -> Result<&'a Seen, String> {
    labels
        .get(label)
        .ok_or_else(|| format!("no response is labelled `{label}`"))
}
