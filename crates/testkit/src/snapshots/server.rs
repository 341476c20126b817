//! The server of a world of snapshots: a database, and at most one stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::client::{Client, ServerId};
use trunkline_core::database::Database;
use trunkline_core::message::{Mode, Request, Response};
use trunkline_core::resource::Resource;
use trunkline_core::session::{Config, Session};
use trunkline_core::sink::{Rejection, Verdict};

use super::contents::{Contents, resource, split, text};
use crate::world::Fault;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) mode: Mode,
    /// It takes requests and says nothing.
    pub(super) is_silent: bool,
    db: Database,
    session: Option<Session>,
    published: BTreeMap<String, String>,
}

impl Server {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            is_silent: false,
            db: Database::new(),
            session: None,
            published: BTreeMap::new(),
        }
    }

    /// Applies what changed, as one transaction.
    pub(super) fn publish(&mut self, contents: &Contents) -> Result<(), Fault> {
        let bodies = &contents.bodies;
        let changed = bodies
            .iter()
            .filter(|(name, body)| self.published.get(*name) != Some(*body));
        let upserts = changed.map(|(key, body)| {
            let (url, name) = split(key);
            Change::Upsert(url, resource(&name, body))
        });
        let gone = self
            .published
            .keys()
            .filter(|name| !bodies.contains_key(*name));
        let removals = gone.map(|key| {
            let (url, name) = split(key);
            Change::Remove(url, name)
        });
        let changes: Vec<_> = upserts.chain(removals).collect();
        self.published.clone_from(bodies);
        self.db.apply(changes).map_err(|error| error.to_string())?;
        self.db.check()
    }

    /// Forgets everything but the contents. There is no stream.
    pub(super) fn restart(&mut self, contents: &Contents) -> Result<(), Fault> {
        self.db = Database::new();
        self.published.clear();
        self.publish(contents)
    }

    pub(super) fn has_stream(&self) -> bool {
        self.session.is_some()
    }

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

    pub(super) fn handle(&mut self, request: Request, now: Moment) -> Result<(), Fault> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let heard = match request {
            Request::Delta(request) => session.handle_delta(&mut self.db, request, now),
            Request::Sotw(request) => session.handle_sotw(&mut self.db, request, now),
        };
        let heard = heard.map(drop);
        heard.map_err(|error| format!("the client broke the protocol: {error}"))
    }

    pub(super) fn poll(&mut self, now: Moment) -> Option<Response> {
        match self.is_silent {
            true => None,
            false => self.session.as_mut()?.poll(&mut self.db, now),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let session = self.session.as_ref().filter(|_| !self.is_silent);
        session.and_then(Session::poll_timeout)
    }
}

/// Hands a response to the client, and rejects what is bad. Returns it in words.
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
    let bodies = delivery.resources.iter().map(|resource| {
        let body = resource.body.as_deref().unwrap_or_default();
        let name = text(&delivery.type_url, &resource.name);
        format!("{name} = {}", String::from_utf8_lossy(body))
    });
    let words = format!(
        "-> {:?} -{:?}",
        bodies.collect::<Vec<_>>(),
        delivery.removed
    );
    let is_bad = |r: &&Arc<Resource>| r.body.as_ref().is_some_and(|b| !b.starts_with(b"good"));
    let bad = delivery.resources.iter().filter(is_bad);
    let verdict = Verdict::reject(bad.map(|r| Rejection::of(&r.name, "bad")).collect());
    let judged = client.handle_verdict(id, &delivery.type_url, &delivery.nonce, verdict, now);
    judged.map(|_| words).map_err(|error| error.to_string())
}
