//! A control plane of the world: a sink of the source, and the server of a
//! client.

use std::collections::VecDeque;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::mcp::{
    Delivery, McpSink, Publisher, PublisherStream, Received, Rejected, RequestResources, Resources,
    SinkNode, Verdict,
};
use trunkline_core::message::Mode;
use trunkline_core::name::Selector;
use trunkline_core::resource::Resource;

use super::COLLECTIONS;
use crate::pair::Pair;
use crate::world::Fault;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Plane {
    is_canary: bool,
    sink: McpSink,
    stream: Option<PublisherStream>,
    to_source: VecDeque<RequestResources>,
    to_sink: VecDeque<Resources>,
    /// A delivery without a verdict.
    judged: Option<Delivery>,
    /// Its database, and its client.
    pair: Pair,
}

impl Plane {
    pub(super) fn new(nth: usize, is_canary: bool, rng: &mut Rng) -> Self {
        let mut node = SinkNode {
            id: format!("plane-{nth}"),
            ..SinkNode::default()
        };
        if is_canary {
            let annotations = &mut node.annotations;
            annotations.insert("env".to_owned(), "canary".to_owned());
        }
        let mode = match rng.bool() {
            true => Mode::Delta,
            false => Mode::Sotw,
        };
        let mut pair = Pair::new(mode, "envoy");
        for url in COLLECTIONS {
            pair.subscribe(url, selector(url));
            if selector(url) != Selector::Wildcard {
                for name in super::NAMES {
                    pair.subscribe(url, Selector::Name(name.into()));
                }
            }
        }
        Self {
            is_canary,
            sink: McpSink::new(node, COLLECTIONS.map(Into::into), rng.bool()),
            stream: None,
            to_source: VecDeque::new(),
            to_sink: VecDeque::new(),
            judged: None,
            pair,
        }
    }

    pub(super) fn is_canary(&self) -> bool {
        self.is_canary
    }

    /// One message or verdict on the way between source and control plane moves.
    /// Returns what it was, if there is one.
    pub(super) fn step(
        &mut self,
        source: &mut Publisher,
        now: Moment,
    ) -> Result<Option<String>, Fault> {
        let Some(stream) = self.stream else {
            self.stream = Some(source.open());
            self.sink.begin_stream();
            return Ok(Some("connected".to_owned()));
        };
        if let Some(delivery) = self.judged.take() {
            return Ok(Some(format!("verdict {:?}", self.judge(delivery))));
        }
        if let Some(request) = self.sink.poll_request() {
            self.to_source.push_back(request);
            return Ok(Some("asks".to_owned()));
        }
        if let Some(request) = self.to_source.pop_front() {
            let handled = source.handle_request(stream, request, now);
            let handled = handled.map_err(|error| error.to_string())?;
            return Ok(Some(format!("{handled:?}")));
        }
        if let Some(response) = self.to_sink.pop_front() {
            let told = format!("got {response:?}");
            let received = self.sink.handle_resources(response);
            if let Received::Delivered(delivery) = received.map_err(|error| error.to_string())? {
                self.judged = Some(delivery);
            }
            return Ok(Some(told));
        }
        let response = source.poll_resources(stream);
        let told = response.is_some().then(|| "sent".to_owned());
        self.to_sink.extend(response);
        Ok(told)
    }

    /// Takes a delivery, unless something in it is bad.
    fn judge(&mut self, delivery: Delivery) -> Verdict {
        let is_bad = |resource: &Resource| {
            let body = resource.body.as_deref().unwrap_or_default();
            body.starts_with(b"bad")
        };
        let bad = delivery.changes.iter().find_map(|change| match change {
            Change::ReplaceAll(_, all) => all.iter().find(|one| is_bad(one)),
            Change::Upsert(_, resource) => Some(resource).filter(|one| is_bad(one)),
            _ => None,
        });
        let verdict = match bad {
            Some(resource) => Verdict::Reject(vec![Rejected {
                name: Some(resource.name.clone()),
                reason: "bad".to_owned(),
            }]),
            None => {
                self.pair.apply(delivery.changes);
                Verdict::Accept
            }
        };
        self.sink.handle_verdict(&delivery.collection, &verdict);
        verdict
    }

    /// The stream to the source is lost, with all messages on it. The owner may
    /// be done with a delivery whose verdict nobody hears.
    pub(super) fn lose_source(&mut self, source: &mut Publisher, now: Moment, applies: bool) {
        self.to_source.clear();
        self.to_sink.clear();
        self.sink.end_stream();
        if let Some(delivery) = self.judged.take()
            && applies
        {
            self.judge(delivery);
        }
        if let Some(stream) = self.stream.take() {
            source.close(stream, now);
        }
    }

    /// The stream to the client is lost, and begins anew later.
    pub(super) fn lose_client(&mut self) {
        self.pair.disconnect();
    }

    /// The client gets what there is, on a new stream if it has none.
    pub(super) fn serve(&mut self) {
        self.pair.connect();
        self.pair.run();
    }

    /// The state of a collection here, in words.
    pub(super) fn holds(&self, url: &str) -> String {
        words(&self.pair.db, url)
    }

    /// The same at the client.
    pub(super) fn client_holds(&self, url: &str) -> String {
        words_of(url, self.pair.holds(url).into_iter())
    }
}

/// The type of endpoints has no wildcard in state of the world.
fn selector(url: &str) -> Selector {
    match url == trunkline_core::kind::EDS {
        true => Selector::Name("a".into()),
        false => Selector::Wildcard,
    }
}

/// A type of a database, in words.
pub(super) fn words(db: &Database, url: &str) -> String {
    let id = db.find_type(&url.into());
    let all = id.into_iter().flat_map(|id| db.resources(id));
    let all = all.map(|resource| {
        let body = resource.body.as_deref().unwrap_or_default();
        format!("{}@{}", resource.name, String::from_utf8_lossy(body))
    });
    words_of(url, all)
}

/// The same, of resources in words.
pub(super) fn words_of(url: &str, all: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = all.collect();
    all.sort();
    format!("{url}: {}", all.join(" "))
}
