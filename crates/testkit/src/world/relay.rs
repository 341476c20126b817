//! A relay: a database that a sink fills, and whose demand the sink subscribes
//! to upstream.

use std::collections::BTreeSet;
use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, DemandChange, Scope};
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
}

/// How long a server that sends large contents in parts is silent after the
/// last one.
const SILENCE: Duration = Duration::from_secs(5);

impl Relay {
    /// A relay that knows nothing.
    #[must_use]
    pub fn new(id: usize, mode: Mode, parts: bool) -> Self {
        let node = Node {
            id: format!("relay-{id}"),
            ..Node::default()
        };
        let config = SinkConfig {
            silence: if parts { SILENCE } else { Duration::ZERO },
            ..SinkConfig::new(mode, node)
        };
        Self {
            db: Database::cache(),
            sink: Sink::new(config),
            had: BTreeSet::new(),
        }
    }

    /// Passes changes of demand on to the sink.
    ///
    /// # Panics
    /// If the sink refuses, which on an aggregated stream it never does.
    pub fn pass_on(&mut self, now: Moment) {
        for (type_id, ask, edge) in self.db.take_demand_changes() {
            let url = self.db.type_url(type_id).clone();
            match edge {
                DemandChange::Started => {
                    let subscribed = self.sink.subscribe(&url, ask, now);
                    #[expect(
                        clippy::expect_used,
                        reason = "an aggregated stream carries every type"
                    )]
                    subscribed.expect("any type may be asked for");
                }
                DemandChange::Ended => {
                    if ask == Selector::Wildcard {
                        self.db.set_incomplete(type_id, &Scope::All);
                    }
                    self.sink.unsubscribe(&url, &ask.into());
                }
            }
        }
        self.apply_effects();
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
    }

    /// The stream is lost.
    pub fn disconnected(&mut self) {
        self.sink.handle_disconnected("gone");
        self.apply_effects();
    }

    /// When [`Self::timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.sink.poll_timeout()
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Moment) {
        self.sink.handle_timeout(now);
        self.apply_effects();
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
        for (url, subscription) in effects.complete {
            if subscription.selector == Selector::Wildcard {
                let type_id = self.db.type_id(&url);
                self.db.set_complete(type_id, &Scope::All);
            }
        }
    }
}
