//! A source under test: sessions over one database; the scenario plays the
//! clients, the operator and time.

mod event;
mod operator;
mod status;
mod stream;
mod talk;
mod time;

use std::collections::BTreeMap;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::session::ProtocolError;

use super::Fault;
use super::client::{Labels, Seen, find};
use super::script::{Action, Expected, Script, Step};
use super::show::{Message, difference, line};
use event::Bodies;
use stream::Stream;

/// See the module's documentation.
pub(super) struct Stage {
    db: Database,
    /// The transactions that the database took.
    transactions: Vec<Vec<Change>>,
    streams: BTreeMap<String, Stream>,
    labels: Labels,
    now: Moment,
    /// The changes since `begin`.
    draft: Option<Vec<Change>>,
    /// The protocol error of the last request.
    error: Option<ProtocolError>,
    edges: Vec<String>,
    bodies: Bodies,
    transcript: Vec<String>,
}

impl Stage {
    pub(super) fn new() -> Self {
        let mut db = Database::new();
        db.watch_demand();
        Self {
            db,
            transactions: Vec::new(),
            streams: BTreeMap::new(),
            labels: Labels::new(),
            now: Moment::START,
            draft: None,
            error: None,
            edges: Vec::new(),
            bodies: Bodies::new(),
            transcript: Vec::new(),
        }
    }

    /// The exchange so far.
    pub(super) fn transcript(self) -> Vec<String> {
        self.transcript
    }

    /// Plays a scenario from its first line to its last.
    pub(super) fn play(&mut self, script: &Script) -> Result<(), Fault> {
        let mut last = script.line;
        for step in &script.steps {
            last = step.line;
            let played = self.step(step).and_then(|()| self.check());
            played.map_err(|what| Fault::new(step.line, what))?;
        }
        let ended = self.finish();
        ended.map_err(|what| Fault::new(last, format!("at the end of the scenario\n{what}")))
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if let (Some(error), false) = (&self.error, matches!(step.action, Action::Error(_))) {
            return Err(format!("the request before broke the protocol: {error}"));
        }
        match &step.action {
            Action::Open(opening) => {
                let stream = Stream::open(&mut self.db, opening);
                self.streams.insert(step.stream.clone(), stream);
                Ok(())
            }
            Action::Close => {
                let (stream, db, _) = self.parts(&step.stream)?;
                stream.close(db)
            }
            Action::Reconnect => {
                let (stream, db, _) = self.parts(&step.stream)?;
                stream.close(db)?;
                stream.reopen(db);
                Ok(())
            }
            Action::Become(params) => {
                let (stream, db, _) = self.parts(&step.stream)?;
                stream.become_other(db, params);
                Ok(())
            }
            Action::Restart(begins) => self.restart(*begins),
            Action::Knowledge(knowledge) => self.know(knowledge),
            Action::Wait(time) => self.wait(*time),
            Action::Begin => {
                self.draft = Some(Vec::new());
                Ok(())
            }
            Action::Commit(fate) => {
                let changes = self.draft.take().ok_or("nothing was begun")?;
                self.apply(changes, fate)
            }
            Action::Change(ops, fate) => self.change(ops, fate),
            Action::Request(request) => {
                let now = self.now;
                let (stream, db, labels) = self.parts(&step.stream)?;
                let (sent, result) = stream.request(db, request, labels, now)?;
                self.error = result.err();
                self.note(&step.stream, sent);
                Ok(())
            }
            Action::Response(expected) => self.response(&step.stream, expected),
            Action::Nothing => match self.poll(&step.stream)? {
                None => Ok(()),
                Some(got) => Err(format!("expected  < nothing\ngot       {}", got.line())),
            },
            Action::Event(words) => self.event(&step.stream, words),
            Action::Status(short, clauses) => self.status(&step.stream, short, clauses),
            Action::Talk(talk) => self.talk(&step.stream, talk),
            Action::Holds(url, expected) => {
                let (stream, ..) = self.parts(&step.stream)?;
                match stream.client.held.of(url) {
                    held if held == *expected => Ok(()),
                    held => Err(format!("expected  {expected:?}\ngot       {held:?}")),
                }
            }
            Action::Error(kind) => {
                let error = self.error.take().ok_or("the request was accepted")?;
                match event::error_kind(&error) {
                    got if got == kind => Ok(()),
                    got => Err(format!("expected  error {kind}\ngot       error {got}")),
                }
            }
        }
    }

    /// The next response must be this one.
    fn response(&mut self, name: &str, expected: &Expected) -> Result<(), String> {
        let parts = expected.shown();
        let wanted = line(&expected.type_url, &parts);
        let Some(got) = self.poll(name)? else {
            return Err(format!("expected  {wanted}\ngot       < nothing"));
        };
        if (&got.type_url, &got.parts) != (&expected.type_url, &parts) {
            let difference = difference(&parts, &got.parts);
            return Err(format!(
                "expected  {wanted}\ngot       {}{difference}",
                got.line()
            ));
        }
        if let Some((label, equal)) = &expected.version {
            let known = find(&self.labels, label)?;
            if (known.version == got.version) != *equal {
                let (a, b) = (&known.version, &got.version);
                return Err(format!(
                    "the version of `{label}` is {a:?}, this one's {b:?}"
                ));
            }
        }
        let seen = Seen {
            nonce: got.nonce,
            version: got.version,
            parts: got.parts,
        };
        if let Some(label) = &expected.label {
            self.labels.insert(label.clone(), seen.clone());
        }
        let (stream, ..) = self.parts(name)?;
        stream.client.received(&got.type_url, seen);
        Ok(())
    }

    /// The next response of the stream: one that it sent while time passed, or
    /// one that it sends now.
    fn poll(&mut self, name: &str) -> Result<Option<Message>, String> {
        let now = self.now;
        let (stream, db, _) = self.parts(name)?;
        let message = match stream.inbox.pop_front() {
            Some(earlier) => Some(earlier),
            None => stream.poll(db, now)?,
        };
        if let Some(message) = &message {
            self.note(
                name,
                format!("{}  (nonce {})", message.line(), message.nonce),
            );
        }
        self.take_edges();
        Ok(message)
    }

    /// No response and no event may be left.
    fn finish(&mut self) -> Result<(), String> {
        if let Some(error) = &self.error {
            return Err(format!("the last request broke the protocol: {error}"));
        }
        let names: Vec<_> = self.streams.keys().cloned().collect();
        for name in names {
            let (stream, ..) = self.parts(&name)?;
            if stream.is_open()
                && let Some(got) = self.poll(&name)?
            {
                return Err(format!("unexpected  {}", got.line()));
            }
            self.no_unheard_event(&name)?;
            let (stream, db, _) = self.parts(&name)?;
            stream.close(db)?;
        }
        self.check()
    }

    /// Database and sessions prove their invariants.
    fn check(&mut self) -> Result<(), String> {
        for (name, stream) in &self.streams {
            let held = stream.session().map(|session| session.check(&mut self.db));
            held.unwrap_or(Ok(()))
                .map_err(|fault| format!("stream `{name}`: {fault}"))?;
        }
        self.db.check()
    }

    fn parts(&mut self, name: &str) -> Result<(&mut Stream, &mut Database, &Labels), String> {
        let stream = self.streams.get_mut(name);
        let stream = stream.ok_or("there is no such stream; `stream` opens one")?;
        Ok((stream, &mut self.db, &self.labels))
    }

    fn note(&mut self, stream: &str, what: String) {
        let time = self.now.since_start();
        let label = match stream {
            "" => String::new(),
            name => format!("@{name} "),
        };
        self.transcript.push(format!("{time:>6.1?} {label}{what}"));
    }
}
