//! A relay: a database that a sink fills, and whose demand the sink subscribes
//! to upstream.
//!
//! A delta response does not say whether it is all of a wildcard, or the first
//! part of it (S44). A relay whose server sends in parts waits until it is
//! silent before it takes a missing name for absent (S51).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, DemandChange, Scope, TypeId};
use trunkline_core::kind::CDS;
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{Cause, Event, Request, Response, Sink, SinkConfig, Verdict};

/// See the module's documentation.
#[derive(Debug)]
pub struct Relay {
    /// The cache, and its subscribers.
    pub db: Database,
    /// Its protocol half.
    pub sink: Sink,
    /// The clusters that it had at some time since there was demand for them.
    pub had: BTreeSet<Name>,
    /// Whether its server sends large contents in parts.
    parts: bool,
    /// When a type is complete, unless more of it comes.
    silences: BTreeMap<TypeId, Moment>,
}

/// How long a server is silent after the last part.
const SILENCE: Duration = Duration::from_secs(5);

impl Relay {
    /// A relay that knows nothing.
    #[must_use]
    pub fn new(id: usize, mode: Mode, parts: bool) -> Self {
        let node = Node {
            id: format!("relay-{id}"),
            ..Node::default()
        };
        Self {
            db: Database::cache(),
            sink: Sink::new(SinkConfig::new(mode, node)),
            had: BTreeSet::new(),
            parts: parts && mode == Mode::Delta,
            silences: BTreeMap::new(),
        }
    }

    /// Passes changes of demand on to the sink. Returns whether that needs a
    /// new stream: a response that was on its way when a wildcard was added to
    /// names cannot be told from the answer to the wildcard.
    ///
    /// # Panics
    /// If the sink refuses, which on an aggregated stream it never does.
    #[must_use]
    pub fn pass_on(&mut self, now: Moment) -> bool {
        let mut anew = false;
        for (type_id, ask, edge) in self.db.take_demand_changes() {
            let url = self.db.type_url(type_id).clone();
            match edge {
                DemandChange::Started => {
                    if ask == Selector::Wildcard && self.sink.is_answered(&url, &ask) {
                        self.learn_all(type_id, now);
                    } else if ask == Selector::Wildcard {
                        anew |= self.sink.interest(&url).is_some_and(|i| !i.is_empty());
                    }
                    let subscribed = self.sink.subscribe(&url, ask, now);
                    #[expect(
                        clippy::expect_used,
                        reason = "an aggregated stream carries every type"
                    )]
                    subscribed.expect("any type may be asked for");
                }
                DemandChange::Ended => {
                    if ask == Selector::Wildcard {
                        self.silences.remove(&type_id);
                        self.db.set_incomplete(type_id, &Scope::All);
                    }
                    self.sink.unsubscribe(&url, &ask.into());
                }
            }
        }
        self.apply_effects();
        anew
    }

    /// Takes the next request.
    pub fn poll_request(&mut self, now: Moment) -> Option<Request> {
        let request = self.sink.poll_request(now);
        self.apply_effects();
        request
    }

    /// Drops a name of which its server was told that nobody wants it.
    fn forget(&mut self, url: &TypeUrl, name: &Name) {
        self.had.retain(|had| url.as_str() != CDS || had != name);
        let type_id = self.db.type_id(url);
        self.db.forget(type_id, name);
    }

    /// Takes a response. A relay reads no bodies and rejects nothing.
    pub fn take(&mut self, response: Response, now: Moment) {
        let Ok(delivery) = self.sink.handle_response(response) else {
            return;
        };
        let (url, nonce) = (delivery.type_url, delivery.nonce);
        // The response was delivered just now, so it waits for its verdict.
        let _ = self
            .sink
            .handle_verdict(&url, &nonce, Verdict::accept(), now);
        self.apply_effects();
        // Names without demand were forgotten, and are not kept.
        let wanted = self.sink.interest(&url).is_some_and(|i| i.has_wildcard());
        if wanted && self.sink.is_answered(&url, &Selector::Wildcard) {
            let type_id = self.db.type_id(&url);
            self.learn_all(type_id, now);
        }
    }

    /// A wildcard is answered: with all of it, or with a part.
    fn learn_all(&mut self, type_id: TypeId, now: Moment) {
        match self.parts {
            true => _ = self.silences.insert(type_id, now + SILENCE),
            false => self.db.set_complete(type_id, &Scope::All),
        }
    }

    /// The stream is lost, and with it the parts that were on their way.
    pub fn disconnected(&mut self) {
        self.silences.clear();
        self.sink.handle_disconnected("gone");
        self.apply_effects();
    }

    /// When [`Self::timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let silence = self.silences.values().min().copied();
        silence.into_iter().chain(self.sink.poll_timeout()).min()
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Moment) {
        self.sink.handle_timeout(now);
        self.apply_effects();
        let silent = self.silences.extract_if(.., |_, until| *until <= now);
        for (type_id, _) in silent {
            self.db.set_complete(type_id, &Scope::All);
        }
    }

    /// Applies the effects of the sink.
    fn apply_effects(&mut self) {
        let effects = self.sink.take_effects();
        for (url, name) in &effects.forgotten {
            self.forget(url, name);
        }
        let mut changes = effects.changes;
        for event in effects.events {
            // A name that has failed is known not to exist, as far as clients
            // of the relay can be told.
            if let Event::Failed(url, name, error) = event
                && error.cause != Cause::Unreachable
            {
                changes.push(Change::Remove(url, name));
            }
        }
        for change in &changes {
            if let Change::Upsert(url, resource) = change
                && url.as_str() == CDS
            {
                self.had.insert(resource.name.clone());
            }
        }
        #[expect(
            clippy::expect_used,
            reason = "one source's variants exclude each other"
        )]
        self.db.apply(changes).expect("the source checked it");
    }
}
