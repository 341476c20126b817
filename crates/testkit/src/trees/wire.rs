//! The protocol half of a client, as real ones speak it: its subscriptions, and
//! what it repeats when it reconnects. Nothing of it is shared with the sink of
//! core, so that both sides of an exchange are not wrong in the same way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use trunkline_core::kind::Kind;
use trunkline_core::message::{
    DeltaRequest, ErrorDetail, Locator, Mode, Node, Response, SotwRequest,
};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_core::sink::Request;

use super::contents::Published;

/// Names of a subscription list; `*` is the wildcard.
pub(super) type Names = BTreeSet<String>;

#[derive(Debug, Default)]
struct Asked {
    names: Names,
    accepted: Option<Version>,
    nonce: Option<Nonce>,
    /// The type was requested on this stream.
    begun: bool,
    /// Something was named on this stream.
    named: bool,
    /// A response was ACKed on this stream.
    settled: bool,
}

impl Asked {
    fn accept(&mut self, news: &News) {
        self.accepted.clone_from(&news.version);
        self.settled = true;
    }
}

/// A response, of either protocol.
#[derive(Debug)]
pub(super) struct News {
    pub(super) url: TypeUrl,
    pub(super) nonce: Nonce,
    version: Option<Version>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) removed: Vec<Name>,
    /// A resource that it does not list is removed (S38).
    pub(super) whole: bool,
}

impl From<Response> for News {
    fn from(response: Response) -> Self {
        match response {
            Response::Delta(r) => Self {
                url: r.type_url,
                nonce: r.nonce,
                version: None,
                resources: r
                    .resources
                    .iter()
                    .map(|d| Arc::clone(&d.resource))
                    .collect(),
                removed: r.removed,
                whole: false,
            },
            Response::Sotw(r) => Self {
                whole: Kind::of(&r.type_url).whole_set,
                url: r.type_url,
                nonce: r.nonce,
                version: Some(r.version),
                resources: r
                    .resources
                    .iter()
                    .map(|d| Arc::clone(&d.resource))
                    .collect(),
                removed: Vec::new(),
            },
        }
    }
}

impl News {
    /// The names of a type that it removes from a client that holds these.
    pub(super) fn gone(&self, held: &Published) -> Vec<Name> {
        if !self.whole {
            return self.removed.clone();
        }
        let listed: BTreeSet<&Name> = self.resources.iter().map(|r| &r.name).collect();
        let own = held.keys().filter(|(url, _)| *url == self.url);
        let gone = own.filter(|(_, name)| !listed.contains(name));
        gone.map(|(_, name)| name.clone()).collect()
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) mode: Mode,
    agent: &'static str,
    types: BTreeMap<TypeUrl, Asked>,
    /// Requests to be sent.
    pub(super) queue: VecDeque<Request>,
    node_sent: bool,
    /// This stream resumes another one.
    pub(super) resumed: bool,
    /// On this stream a set was NACKed that listed invalid clusters and a bad
    /// resource. A set with invalid clusters gets its NACK anyway, so no server
    /// can tell that there was another reason.
    pub(super) unclear: bool,
}

impl Wire {
    pub(super) fn new(mode: Mode, agent: &'static str) -> Self {
        Self {
            mode,
            agent,
            types: BTreeMap::new(),
            queue: VecDeque::new(),
            node_sent: false,
            resumed: false,
            unclear: false,
        }
    }

    /// The names of a type that it is subscribed to.
    pub(super) fn names(&self, url: &str) -> Names {
        let asked = self.types.get(&TypeUrl::from(url));
        asked.map(|asked| asked.names.clone()).unwrap_or_default()
    }

    /// Subscribes to these names of a type, and no others, from now on.
    pub(super) fn ask(&mut self, url: &str, names: Names, held: &Published) {
        let url = TypeUrl::from(url);
        let asked = self.types.entry(url.clone()).or_default();
        let before = std::mem::replace(&mut asked.names, names);
        if asked.names == before && (asked.begun || before.is_empty()) {
            return;
        }
        let request = match (self.mode, asked.begun) {
            (Mode::Sotw, _) => self.list(&url, None),
            (Mode::Delta, false) => self.first_delta(&url, held),
            (Mode::Delta, true) => {
                let names = &self.types[&url].names;
                Request::Delta(DeltaRequest {
                    type_url: Some(url.clone()),
                    subscribe: names.difference(&before).map(|n| locator(n)).collect(),
                    unsubscribe: before.difference(names).map(|n| locator(n)).collect(),
                    ..DeltaRequest::default()
                })
            }
        };
        self.send(&url, request);
    }

    /// Acknowledges a response.
    pub(super) fn answer(&mut self, news: &News, error: Option<String>) {
        let asked = self.types.entry(news.url.clone()).or_default();
        let error = error.map(|message| ErrorDetail { code: 3, message });
        if error.is_none() {
            asked.accept(news);
        }
        let request = match self.mode {
            Mode::Sotw => self.list(&news.url, Some((news.nonce.clone(), error))),
            Mode::Delta => Request::Delta(DeltaRequest {
                type_url: Some(news.url.clone()),
                nonce: Some(news.nonce.clone()),
                error,
                ..DeltaRequest::default()
            }),
        };
        self.send(&news.url, request);
    }

    /// A response is in force, although its ACK waits.
    pub(super) fn accepted(&mut self, news: &News) {
        let asked = self.types.entry(news.url.clone()).or_default();
        asked.accept(news);
    }

    /// Whether a response of a type was ACKed on this stream.
    pub(super) fn has_accepted(&self, url: &str) -> bool {
        let asked = self.types.get(&TypeUrl::from(url));
        asked.is_some_and(|asked| asked.settled)
    }

    /// The nonce that requests of the type repeat from now on.
    pub(super) fn received(&mut self, news: &News) {
        let asked = self.types.entry(news.url.clone()).or_default();
        asked.nonce = Some(news.nonce.clone());
    }

    /// A new stream: it subscribes to everything again, the types in any order
    /// (S82); but first those that are resumed, for by them a server knows that
    /// the stream resumes.
    pub(super) fn reconnect(&mut self, held: &Published, rng: &mut Rng) {
        self.queue.clear();
        self.node_sent = false;
        self.resumed = true;
        self.unclear = false;
        for asked in self.types.values_mut() {
            (asked.nonce, asked.begun, asked.named) = (None, false, false);
            asked.settled = false;
        }
        let named = self
            .types
            .iter()
            .filter(|(_, asked)| !asked.names.is_empty());
        let mut urls: Vec<_> = named.map(|(url, _)| url.clone()).collect();
        rng.shuffle(&mut urls);
        let is_new = |url: &TypeUrl| match self.mode {
            Mode::Sotw => self.types[url].accepted.is_none(),
            Mode::Delta => !held.keys().any(|(of, _)| of == url),
        };
        // An Envoy subscribes to types in the order in which it first did, and
        // a server that does not know the client can only go by that.
        let rank = |url: &TypeUrl| match self.agent {
            "envoy" => Kind::of(url).rank,
            _ => 0,
        };
        urls.sort_by_key(|url| (is_new(url), is_new(url).then(|| rank(url))));
        for url in urls {
            let request = match self.mode {
                Mode::Sotw => self.list(&url, None),
                Mode::Delta => self.first_delta(&url, held),
            };
            self.send(&url, request);
        }
    }

    fn first_delta(&self, url: &TypeUrl, held: &Published) -> Request {
        let own = held.iter().filter(|((of, _), _)| of == url);
        Request::Delta(DeltaRequest {
            type_url: Some(url.clone()),
            subscribe: self.listed(url),
            initial_versions: own
                .map(|((_, n), r)| (n.clone(), r.version.clone()))
                .collect(),
            ..DeltaRequest::default()
        })
    }

    fn list(&self, url: &TypeUrl, answer: Option<(Nonce, Option<ErrorDetail>)>) -> Request {
        let asked = &self.types[url];
        let (nonce, error) = match answer {
            Some((nonce, error)) => (Some(nonce), error),
            None => (asked.nonce.clone(), None),
        };
        Request::Sotw(SotwRequest {
            type_url: Some(url.clone()),
            names: self.listed(url).into(),
            version: asked.accepted.clone(),
            nonce,
            error,
            ..SotwRequest::default()
        })
    }

    /// It subscribes to the wildcard alone by an empty list, as Envoy does.
    fn listed(&self, url: &TypeUrl) -> Vec<Locator> {
        let names = &self.types[url].names;
        let only_star = names.len() == 1 && names.contains("*");
        // Once something was named, an empty list is no wildcard (S19).
        match only_star && self.agent == "envoy" && !self.types[url].named {
            true => Vec::new(),
            false => names.iter().map(|name| locator(name)).collect(),
        }
    }

    fn send(&mut self, url: &TypeUrl, mut request: Request) {
        let node = Node {
            id: "n".to_owned(),
            user_agent: self.agent.to_owned(),
            ..Node::default()
        };
        if !std::mem::replace(&mut self.node_sent, true) {
            match &mut request {
                Request::Delta(request) => request.node = Some(node),
                Request::Sotw(request) => request.node = Some(node),
            }
        }
        let named = match &request {
            Request::Delta(request) => !request.subscribe.is_empty(),
            Request::Sotw(request) => !request.names.is_empty(),
        };
        if let Some(asked) = self.types.get_mut(url) {
            asked.named |= named;
            asked.begun = true;
        }
        self.queue.push_back(request);
    }
}

fn locator(name: &str) -> Locator {
    Locator {
        name: name.to_owned(),
        params: None,
    }
}
