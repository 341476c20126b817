//! Two machines in memory: a session over a database, and the sink that talks
//! to it. Time is virtual, nothing is lost, and nothing waits.
//!
//! ```
//! use testkit::pair::{Pair, put};
//! use trunkline_core::kind::CDS;
//! use trunkline_core::message::Mode;
//! use trunkline_core::name::Selector;
//!
//! let mut pair = Pair::new(Mode::Delta, "envoy");
//! pair.apply(vec![put(CDS, "c1", "v1")]);
//! pair.subscribe(CDS, Selector::Wildcard);
//! pair.run();
//! assert_eq!(pair.holds(CDS), ["c1@v1"]);
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_core::Moment;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::database::Database;
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};
use trunkline_core::sink::{Rejection, Request, Sink, SinkConfig, Verdict};

/// More messages than this without a pause are a loop.
const ENDLESS: usize = 10_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct Pair {
    /// The contents of the source.
    pub db: Database,
    session: Option<Session>,
    sink: Sink,
    mode: Mode,
    now: Moment,
    /// The client's database: it drops nothing that it could not get back.
    held: BTreeMap<(TypeUrl, Name), Arc<Resource>>,
}

/// The change that gives a name this body. A body that begins with `bad` is
/// rejected by the sink's owner.
#[must_use]
pub fn put(url: &str, name: &str, body: &str) -> Change {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Change::Upsert(url.into(), Arc::new(Resource::new(Name::new(name), body)))
}

/// The change that removes a name.
#[must_use]
pub fn remove(url: &str, name: &str) -> Change {
    Change::Remove(url.into(), Name::new(name))
}

impl Pair {
    /// An empty database, and a client of a program without a subscription.
    #[must_use]
    pub fn new(mode: Mode, program: &str) -> Self {
        let node = Node {
            user_agent: program.to_owned(),
            ..Node::default()
        };
        let mut pair = Self {
            db: Database::new(),
            session: None,
            sink: Sink::new(SinkConfig::new(mode, node)),
            mode,
            now: Moment::START,
            held: BTreeMap::new(),
        };
        pair.connect();
        pair
    }

    /// A new stream; the one before is lost with all messages on it.
    pub fn connect(&mut self) {
        if let Some(session) = self.session.take() {
            session.close(&mut self.db);
            self.sink.handle_disconnected("lost");
        }
        self.session = Some(Session::open(&mut self.db, Config::new(self.mode)));
        self.sink.handle_connected();
    }

    /// The stream is lost.
    pub fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            session.close(&mut self.db);
            self.sink.handle_disconnected("lost");
        }
    }

    /// Changes the contents.
    ///
    /// # Panics
    /// If the database refuses it.
    pub fn apply(&mut self, changes: Transaction) {
        #[expect(
            clippy::expect_used,
            reason = "a test that gets this wrong should fail"
        )]
        self.db.apply(changes).expect("sound contents");
    }

    /// The client subscribes.
    ///
    /// # Panics
    /// Never: an aggregated stream carries every type.
    pub fn subscribe(&mut self, url: &str, ask: Selector) {
        #[expect(
            clippy::expect_used,
            reason = "an aggregated stream carries every type"
        )]
        self.sink
            .subscribe(&url.into(), ask, self.now)
            .expect("any type may be asked for");
    }

    /// The client unsubscribes.
    pub fn unsubscribe(&mut self, url: &str, ask: &Selector) {
        self.sink.unsubscribe(&url.into(), &ask.clone().into());
    }

    /// Lets both sides talk until neither has anything to send. Returns the
    /// number of responses.
    ///
    /// # Panics
    /// If they do not come to an end, one breaks the protocol, or the database
    /// its invariants.
    pub fn run(&mut self) -> usize {
        let mut responses = 0;
        for _ in 0..ENDLESS {
            self.keep();
            if self.speak_up() {
                continue;
            }
            if !self.speak_down() {
                #[expect(clippy::expect_used, reason = "what the test is for")]
                self.db.check().expect("the database is sound");
                return responses;
            }
            responses += 1;
        }
        panic!("the two do not come to an end");
    }

    /// Time passes, and both sides talk when it is due.
    pub fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.run();
        while let Some(next) = self.next_moment().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.sink.handle_timeout(self.now);
            self.run();
        }
        self.now = end;
    }

    /// The resources of a type that the client is subscribed to and holds, as
    /// `name@body`, by name.
    #[must_use]
    pub fn holds(&self, url: &str) -> Vec<String> {
        let interest = self.sink.interest(&url.into());
        let wants = |name: &Name| interest.is_some_and(|interest| interest.contains(name));
        let of_type = self
            .held
            .iter()
            .filter(|((held, name), _)| held.as_str() == url && wants(name));
        let shown = of_type.map(|((_, name), resource)| {
            let body = resource.body.as_deref().unwrap_or_default();
            format!("{name}@{}", String::from_utf8_lossy(body))
        });
        shown.collect()
    }

    fn next_moment(&self) -> Option<Moment> {
        let session = self.session.as_ref().and_then(Session::poll_timeout);
        session.into_iter().chain(self.sink.poll_timeout()).min()
    }

    /// One request, if there is one.
    fn speak_up(&mut self) -> bool {
        let (Some(session), Some(request)) = (&mut self.session, self.sink.poll_request(self.now))
        else {
            return false;
        };
        let heard = match request {
            Request::Delta(request) => session.handle_delta(&mut self.db, request, self.now),
            Request::Sotw(request) => session.handle_sotw(&mut self.db, request, self.now),
        };
        #[expect(clippy::expect_used, reason = "what the test is for")]
        heard.expect("the sink keeps the protocol");
        true
    }

    /// One response and its verdict, if there is one.
    fn speak_down(&mut self) -> bool {
        let Some(session) = &mut self.session else {
            return false;
        };
        let Some(response) = session.poll(&mut self.db, self.now) else {
            return false;
        };
        #[expect(clippy::expect_used, reason = "what the test is for")]
        let delivery = self
            .sink
            .handle_response(response)
            .expect("the source keeps the protocol");
        let is_bad = |r: &&Arc<Resource>| r.body.as_ref().is_some_and(|b| b.starts_with(b"bad"));
        let bad = delivery.resources.iter().filter(is_bad);
        let verdict = Verdict::reject(bad.map(|r| Rejection::of(&r.name, "bad")).collect());
        #[expect(clippy::expect_used, reason = "it was just delivered")]
        self.sink
            .handle_verdict(&delivery.type_url, &delivery.nonce, verdict, self.now)
            .expect("the response waits for its verdict");
        true
    }

    /// Applies the effects of the sink.
    fn keep(&mut self) {
        let effects = self.sink.take_effects();
        for forgotten in effects.forgotten {
            self.held.remove(&forgotten);
        }
        for change in effects.changes {
            match change {
                Change::Upsert(url, resource) => {
                    self.held.insert((url, resource.name.clone()), resource);
                }
                Change::Remove(url, name) | Change::RemoveVariant(url, name, _) => {
                    self.held.remove(&(url, name));
                }
                Change::ReplaceAll(url, resources) => {
                    self.held.retain(|(held, _), _| *held != url);
                    let named = |r: Arc<Resource>| ((url.clone(), r.name.clone()), r);
                    self.held.extend(resources.into_iter().map(named));
                }
                Change::Fail(url, name, error) => {
                    if error.code.is_data_error() {
                        self.held.remove(&(url, name));
                    }
                }
            }
        }
    }
}
