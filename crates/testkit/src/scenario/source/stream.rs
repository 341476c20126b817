//! One stream: the session under test and the client that talks to it.

use std::collections::{BTreeSet, HashSet, VecDeque};

use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::message::Response;
use trunkline_core::params::Params;
use trunkline_core::resource::Nonce;
use trunkline_core::session::{Event, ProtocolError, Session};

use super::super::client::{Built, Client, Labels};
use super::super::contents::short;
use super::super::request::Request;
use super::super::script::Opening;
use super::super::show::Message;
use crate::world::link::is_quiet;

/// See the module's documentation.
pub(super) struct Stream {
    opening: Opening,
    session: Option<Session>,
    pub(super) client: Client,
    /// The responses that were sent while time passed.
    pub(super) inbox: VecDeque<Message>,
    pub(super) events: VecDeque<Event>,
    nonces: HashSet<Nonce>,
    /// The last poll gave nothing, and no request came since. Only the database
    /// or time can give it something to send, and must announce it.
    quiet: bool,
    /// The database announced something since.
    pub(super) woken: bool,
}

impl Stream {
    pub(super) fn open(db: &mut Database, opening: &Opening) -> Self {
        Self {
            session: Some(Session::open(db, opening.config.clone())),
            client: Client::new(opening.clone()),
            opening: opening.clone(),
            inbox: VecDeque::new(),
            events: VecDeque::new(),
            nonces: HashSet::new(),
            quiet: true,
            woken: false,
        }
    }

    /// The stream ends.
    pub(super) fn close(&mut self, db: &mut Database) -> Result<(), String> {
        if let Some(session) = self.session.take() {
            session.close(db);
        }
        match self.inbox.pop_front() {
            None => Ok(()),
            Some(unread) => Err(format!("unexpected  {}", unread.line())),
        }
    }

    /// The stream is lost with its database.
    pub(super) fn lose(&mut self) {
        self.session = None;
    }

    /// Another stream of the same client.
    pub(super) fn reopen(&mut self, db: &mut Database) {
        self.session = Some(Session::open(db, self.opening.config.clone()));
        self.client.reconnect();
        self.nonces.clear();
        (self.quiet, self.woken) = (true, false);
    }

    /// Other parameters of the client from now on.
    pub(super) fn become_other(&mut self, db: &mut Database, params: &Params) {
        if let Some(session) = &mut self.session {
            session.set_params(db, params.clone());
        }
        self.quiet = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Sends the request of a line; returns it as text, and the outcome.
    pub(super) fn request(
        &mut self,
        db: &mut Database,
        written: &Request,
        labels: &Labels,
        now: Moment,
    ) -> Result<(String, Result<(), ProtocolError>), String> {
        let session = self.session.as_mut().ok_or("the stream is closed")?;
        let built = self.client.build(written, labels)?;
        let text = shown(&built);
        let result = match built {
            Built::Delta(request) => session.handle_delta(db, request, now),
            Built::Sotw(request) => session.handle_sotw(db, request, now),
        };
        self.quiet = false;
        self.hear();
        Ok((text, result))
    }

    /// The response that the session sends now.
    pub(super) fn poll(
        &mut self,
        db: &mut Database,
        now: Moment,
    ) -> Result<Option<Message>, String> {
        let session = self.session.as_mut().ok_or("the stream is closed")?;
        let silent = is_quiet(session, db, now);
        let said = session.poll(db, now).map(|response| match response {
            Response::Delta(response) => Message::from(response),
            Response::Sotw(response) => Message::from(response),
        });
        self.hear();
        match said {
            None => (self.quiet, self.woken) = (true, false),
            Some(message) => {
                if silent {
                    return Err(format!("a quiet session says  {}", message.line()));
                }
                if self.quiet && !self.woken {
                    return Err(format!("nobody announced  {}", message.line()));
                }
                self.check(&message)?;
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Checks what holds for every response (S4, S41).
    fn check(&mut self, message: &Message) -> Result<(), String> {
        let line = message.line();
        if message.nonce.as_str().is_empty() || !self.nonces.insert(message.nonce.clone()) {
            return Err(format!("S4: the nonce is empty or used before: {line}"));
        }
        let name = |part: &String| part[1..].split(['@', '(']).next().map(str::to_owned);
        let signed = |sign| {
            message
                .parts
                .iter()
                .filter(move |part| part.starts_with(sign))
        };
        let present: Vec<_> = signed('+').chain(signed('~')).filter_map(name).collect();
        let distinct: BTreeSet<_> = message.parts.iter().collect();
        let gone = |part: &&String| !part.contains('(');
        let mut removed = signed('-').filter(gone).filter_map(name);
        if distinct.len() < message.parts.len() || removed.any(|name| present.contains(&name)) {
            return Err(format!("S41: a name twice, or both there and gone: {line}"));
        }
        Ok(())
    }

    fn hear(&mut self) {
        if let Some(session) = &mut self.session {
            while let Some(event) = session.poll_event() {
                self.events.push_back(event);
            }
        }
    }
}

/// A request as text, with the fields that the client filled in.
fn shown(built: &Built) -> String {
    let names = |list: &[trunkline_core::message::Locator]| {
        let names: Vec<_> = list.iter().map(|locator| locator.name.as_str()).collect();
        names.join(" ")
    };
    let (url, nonce, error) = match built {
        Built::Delta(r) => (&r.type_url, &r.nonce, &r.error),
        Built::Sotw(r) => (&r.type_url, &r.nonce, &r.error),
    };
    let mut text = format!("> {}", url.as_ref().map_or("?".to_owned(), short));
    match built {
        Built::Delta(request) => {
            for (word, list) in [("sub", &request.subscribe), ("unsub", &request.unsubscribe)] {
                if !list.is_empty() {
                    text += &format!(" {word} {}", names(list));
                }
            }
            let have: Vec<_> = request
                .initial_versions
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            if !have.is_empty() {
                text += &format!(" have {}", have.join(" "));
            }
        }
        Built::Sotw(request) => {
            text += &format!(" [{}]", names(&request.names));
            if let Some(version) = &request.version {
                text += &format!(" version {version}");
            }
        }
    }
    if let Some(nonce) = nonce {
        text += &format!(" nonce {nonce}");
    }
    if let Some(error) = error {
        text += &format!(" error {:?}", error.message);
    }
    text
}
