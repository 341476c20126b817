//! One server of the world: contents, and at most one stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::client::{Client, ServerId};
use trunkline_core::database::Database;
use trunkline_core::message::{Mode, Request, Response};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};
use trunkline_core::sink::{Rejection, Verdict};

use super::consumer::{Key, short};
use super::{NAMES, TYPES};
use crate::world::Fault;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Server {
    place: usize,
    pub(super) mode: Mode,
    pub(super) is_up: bool,
    /// Streams that begin now are silent.
    is_silent: bool,
    /// The present stream is silent.
    is_mute: bool,
    db: Database,
    session: Option<Session>,
    /// What it has now.
    pub(super) contents: BTreeMap<Key, String>,
    /// The step since which it has a good resource of a name.
    pub(super) good_since: BTreeMap<Key, usize>,
    /// Every body that it ever had.
    pub(super) had: BTreeSet<String>,
    /// Types of which it had a bad resource.
    bad: BTreeSet<TypeUrl>,
    edits: u64,
}

impl Server {
    pub(super) fn new(place: usize, mode: Mode) -> Self {
        Self {
            place,
            mode,
            is_up: true,
            is_silent: false,
            is_mute: false,
            db: Database::new(),
            session: None,
            contents: BTreeMap::new(),
            good_since: BTreeMap::new(),
            had: BTreeSet::new(),
            bad: BTreeSet::new(),
            edits: 0,
        }
    }

    /// Returns whether it ever had a bad resource of a type.
    pub(super) fn had_bad(&self, url: &TypeUrl) -> bool {
        self.bad.contains(url)
    }

    pub(super) fn has_stream(&self) -> bool {
        self.session.is_some()
    }

    /// Opens a stream.
    pub(super) fn accept(&mut self) {
        self.hang_up();
        self.is_mute = self.is_silent;
        self.session = Some(Session::open(&mut self.db, Config::new(self.mode)));
    }

    /// Ends the stream. Returns whether there was one.
    pub(super) fn hang_up(&mut self) -> bool {
        let session = self.session.take();
        let was_open = session.is_some();
        session
            .into_iter()
            .for_each(|session| session.close(&mut self.db));
        was_open
    }

    /// Makes the streams that begin from now on silent, or wakes them all up:
    /// a stream that has answered does not fall silent. Returns which.
    pub(super) fn toggle_silence(&mut self) -> bool {
        self.is_silent = !self.is_silent;
        self.is_mute &= self.is_silent;
        self.is_silent
    }

    pub(super) fn wake(&mut self) {
        self.is_silent = false;
        self.is_mute = false;
    }

    /// Puts or removes a resource; one in ten is bad. Returns it in words.
    pub(super) fn change(&mut self, rng: &mut Rng, step: usize) -> Result<String, Fault> {
        let url = TypeUrl::from(TYPES[rng.usize(..TYPES.len())]);
        let name = Name::new(NAMES[rng.usize(..NAMES.len())]);
        let key = (url.clone(), name.clone());
        if rng.u8(..4) == 0 {
            self.contents.remove(&key);
            self.good_since.remove(&key);
            let words = format!("removes {} {name}", short(&url));
            return self.apply(Change::Remove(url, name)).map(|()| words);
        }
        self.edits += 1;
        let kind = match rng.u8(..10) {
            0 => {
                self.bad.insert(url.clone());
                self.good_since.remove(&key);
                "bad"
            }
            _ => {
                self.good_since.entry(key.clone()).or_insert(step);
                "good"
            }
        };
        let body = format!("{kind} {} {} {}", self.place, name, self.edits);
        self.had.insert(body.clone());
        let words = format!("puts {} {body}", short(&url));
        let resource = Resource::new(name, Bytes::from(body.clone()));
        self.contents.insert(key, body);
        let change = Change::Upsert(url, Arc::new(resource));
        self.apply(change).map(|()| words)
    }

    fn apply(&mut self, change: Change) -> Result<(), Fault> {
        let applied = self.db.apply(vec![change]);
        applied.map_err(|error| error.to_string())?;
        self.db.check()
    }

    pub(super) fn handle(&mut self, request: Request, now: Moment) -> Result<(), Fault> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let heard = match request {
            Request::Delta(request) => session.handle_delta(&mut self.db, request, now),
            Request::Sotw(request) => session.handle_sotw(&mut self.db, request, now),
        };
        heard
            .map(drop)
            .map_err(|error| format!("the client broke the protocol: {error}"))
    }

    pub(super) fn poll(&mut self, now: Moment) -> Option<Response> {
        if self.is_mute {
            return None;
        }
        self.session.as_mut()?.poll(&mut self.db, now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let session = self.session.as_ref().filter(|_| !self.is_mute);
        session.and_then(Session::poll_timeout)
    }
}

/// Hands a response to the client, and judges it: bad bodies are rejected.
/// Returns the response in words.
pub(super) fn judge(
    client: &mut Client,
    id: ServerId,
    response: Response,
    now: Moment,
) -> Result<String, Fault> {
    let delivery = match client.handle_response(id, response, now) {
        Ok(delivery) => delivery,
        // A type that is not subscribed to any more may still be on its way.
        Err(error) => return Ok(error.to_string()),
    };
    let bodies = delivery.resources.iter().filter_map(|r| r.body.as_deref());
    let bodies: Vec<_> = bodies.map(String::from_utf8_lossy).collect();
    let words = format!(
        "{} {bodies:?} -{:?}",
        short(&delivery.type_url),
        delivery.removed
    );
    let is_bad = |r: &&Arc<Resource>| r.body.as_ref().is_some_and(|b| !b.starts_with(b"good"));
    let bad = delivery.resources.iter().filter(is_bad);
    let verdict = Verdict::reject(bad.map(|r| Rejection::of(&r.name, "bad")).collect());
    let judged = client.handle_verdict(id, &delivery.type_url, &delivery.nonce, verdict, now);
    judged.map(|_| words).map_err(|error| error.to_string())
}
