//! A relay: a database that a sink fills, and that says upstream what is asked
//! of it.

use std::collections::BTreeMap;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, Edge, Scope, TypeId};
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::Ask;
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{Effects, Event, Response, Sink, SinkConfig, Verdict};

/// See the module's documentation.
#[derive(Debug)]
pub struct Relay {
    /// What is known, and who asks for it.
    pub db: Database,
    /// The asking side.
    pub sink: Sink,
}

impl Relay {
    /// A relay that knows nothing.
    #[must_use]
    pub fn new(id: usize, mode: Mode) -> Self {
        let node = Node {
            id: format!("relay-{id}"),
            ..Node::default()
        };
        Self {
            db: Database::cache(),
            sink: Sink::new(SinkConfig::new(mode, node)),
        }
    }

    /// Passes on what is newly asked for, and what no longer is. Returns whether
    /// that needs a new stream: a response that was under way when everything of
    /// a type was asked for beside names cannot be told from the answer to that.
    ///
    /// # Panics
    /// If the sink refuses, which on an aggregated stream it never does.
    #[must_use]
    pub fn pass_on(&mut self, now: Moment) -> bool {
        let mut anew = false;
        for (type_id, ask, edge) in self.db.take_edges() {
            let url = self.db.type_url(type_id).clone();
            match edge {
                Edge::First => {
                    if ask == Ask::Wildcard && self.sink.is_answered(&url, &ask) {
                        self.db.set_known(type_id, &Scope::All);
                    } else if ask == Ask::Wildcard {
                        anew |= self.sink.interest(&url).is_some_and(|i| !i.is_empty());
                    }
                    let held = self.sink.subscribe(&url, ask, now);
                    #[expect(
                        clippy::expect_used,
                        reason = "an aggregated stream carries every type"
                    )]
                    let changes = held.expect("any type may be asked for");
                    self.apply(Effects {
                        changes,
                        events: Vec::new(),
                    });
                }
                Edge::Last => {
                    self.sink.unsubscribe(&url, &ask);
                    self.forget(type_id, &url, &ask);
                }
            }
        }
        anew
    }

    /// Drops what nobody asks for any more.
    fn forget(&mut self, type_id: TypeId, url: &TypeUrl, ask: &Ask) {
        let interest = self.sink.interest(url).cloned().unwrap_or_default();
        if let Ask::Name(name) = ask {
            if !interest.contains(name) {
                self.db.forget(type_id, name);
            }
            return;
        }
        self.db.set_unknown(type_id, &Scope::All);
        let names: Vec<_> = self.db.resources(type_id).map(|r| r.name.clone()).collect();
        for name in names.iter().filter(|name| !interest.contains(name)) {
            self.db.forget(type_id, name);
        }
    }

    /// Takes a response. A relay reads no bodies and rejects nothing.
    pub fn take(&mut self, response: Response, now: Moment) {
        let Ok(delivery) = self.sink.handle_response(response) else {
            return;
        };
        let (url, nonce) = (delivery.type_url, delivery.nonce);
        if let Ok(outcome) = self
            .sink
            .handle_verdict(&url, &nonce, Verdict::accept(), now)
        {
            self.apply(outcome.effects);
        }
        // What nobody below asks for any more was forgotten, and is not kept.
        let wanted = self.sink.interest(&url).is_some_and(|i| i.has_wildcard());
        if wanted && self.sink.is_answered(&url, &Ask::Wildcard) {
            let type_id = self.db.type_id(&url);
            self.db.set_known(type_id, &Scope::All);
        }
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Moment) {
        let effects = self.sink.handle_timeout(now);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Effects) {
        let mut changes = effects.changes;
        let last: BTreeMap<_, _> = effects
            .events
            .into_iter()
            .filter_map(|event| match event {
                Event::Changed(url, name, value) => Some(((url, name), value.is_err())),
                Event::Ambient(..) => None,
            })
            .collect();
        for ((url, name), gone) in last {
            // What the source says is not there is known not to be there.
            if gone {
                changes.push(Change::Remove(url, name));
            }
        }
        #[expect(
            clippy::expect_used,
            reason = "one source's variants exclude each other"
        )]
        self.db.apply(changes).expect("the source checked it");
    }
}
