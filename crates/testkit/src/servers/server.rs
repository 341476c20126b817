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

use super::{NAMES, TYPES};
use crate::world::Fault;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Server {
    place: usize,
    mode: Mode,
    pub(super) is_up: bool,
    db: Database,
    session: Option<Session>,
    /// What it has now.
    pub(super) contents: BTreeMap<(TypeUrl, Name), String>,
    /// Every body that it ever had.
    pub(super) had: BTreeSet<String>,
    edits: u64,
}

impl Server {
    pub(super) fn new(place: usize, mode: Mode) -> Self {
        Self {
            place,
            mode,
            is_up: true,
            db: Database::new(),
            session: None,
            contents: BTreeMap::new(),
            had: BTreeSet::new(),
            edits: 0,
        }
    }

    pub(super) fn has_stream(&self) -> bool {
        self.session.is_some()
    }

    /// Opens a stream.
    pub(super) fn accept(&mut self) {
        self.hang_up();
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

    /// Puts or removes a resource; one in ten is bad.
    pub(super) fn change(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let url = TypeUrl::from(TYPES[rng.usize(..TYPES.len())]);
        let name = Name::new(NAMES[rng.usize(..NAMES.len())]);
        let key = (url.clone(), name.clone());
        if rng.u8(..3) == 0 {
            self.contents.remove(&key);
            return self.apply(Change::Remove(url, name));
        }
        self.edits += 1;
        let kind = match rng.u8(..10) {
            0 => "bad",
            _ => "good",
        };
        let body = format!("{kind} {} {} {}", self.place, name, self.edits);
        self.had.insert(body.clone());
        let resource = Resource::new(name, Bytes::from(body.clone()));
        self.contents.insert(key, body);
        self.apply(Change::Upsert(url, Arc::new(resource)))
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
        self.session.as_mut()?.poll(&mut self.db, now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.session.as_ref().and_then(Session::poll_timeout)
    }
}

/// Hands a response to the client, and judges it: bad bodies are rejected.
pub(super) fn judge(
    client: &mut Client,
    id: ServerId,
    response: Response,
    now: Moment,
) -> Result<(), Fault> {
    // A type that is not subscribed to any more may still be on its way.
    let Ok(delivery) = client.handle_response(id, response, now) else {
        return Ok(());
    };
    let is_bad = |r: &&Arc<Resource>| r.body.as_ref().is_some_and(|b| b.starts_with(b"bad"));
    let bad = delivery.resources.iter().filter(is_bad);
    let verdict = Verdict::reject(bad.map(|r| Rejection::of(&r.name, "bad")).collect());
    let judged = client.handle_verdict(id, &delivery.type_url, &delivery.nonce, verdict, now);
    judged.map(drop).map_err(|error| error.to_string())
}
