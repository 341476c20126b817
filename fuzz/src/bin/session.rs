//! Any operators and any clients on one database: it stays sound, and nothing
//! is left of a client that disconnected.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, Scope};
use trunkline_core::limits::Limits;
use trunkline_core::message::{DeltaRequest, Mode, Response, SotwRequest};
use trunkline_core::name::Glob;
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_core::session::{Config, Session};
use trunkline_fuzz::{Asked, Content, Failure, For, NAMES, Named, Peer, Says, Type, rejection};

#[derive(Arbitrary, Debug)]
struct Input {
    is_cache: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Apply(Vec<Edit>),
    Open(Opening),
    Request(u8, Request),
    /// A correct client's ACK or NACK of the newest response.
    Answer(u8, bool),
    Poll(u8),
    Wait(u16),
    Close(u8),
    Known(Type, Option<Named>, bool),
    Authoritative,
    Forget(Type, Named),
    Woken,
}

#[derive(Arbitrary, Debug)]
enum Edit {
    Upsert(Type, Content),
    Remove(Type, Named),
    RemoveVariant(Type, Named, Option<For>),
    ReplaceAll(Type, Vec<Content>),
    Fail(Type, Named, Failure),
}

#[derive(Arbitrary, Debug)]
struct Opening {
    is_delta: bool,
    only: Option<Type>,
    named_only: Option<Type>,
    params: Says,
    speaks_errors: bool,
    tight: bool,
}

#[derive(Arbitrary, Debug)]
struct Request {
    node: Option<Peer>,
    of: Option<Type>,
    subscribe: Vec<Asked>,
    unsubscribe: Vec<Asked>,
    initial: Vec<(Named, u8)>,
    /// Of the responses that were sent, counted from the newest; or any text.
    nonce: Option<Result<u8, u8>>,
    version: Option<u8>,
    rejects: bool,
}

struct Client {
    mode: Mode,
    session: Session,
    sent: Vec<(TypeUrl, Nonce, Option<Version>)>,
    /// Its subscriptions: a state-of-the-world acknowledgement repeats them.
    names: Vec<(TypeUrl, Vec<Asked>)>,
}

struct World {
    db: Database,
    clients: Vec<Client>,
    now: Moment,
}

fuzz_target!(|input: Input| {
    let db = if input.is_cache {
        Database::cache()
    } else {
        Database::new()
    };
    let mut world = World {
        db,
        clients: Vec::new(),
        now: Moment::START,
    };
    for step in &input.steps {
        world.step(step);
        world.db.check().expect("the invariants hold");
    }
    world.end();
});

impl World {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply(edits) => {
                let _ = self.db.apply(edits.iter().map(Edit::change).collect());
            }
            Step::Open(opening) if self.clients.len() < 4 => {
                let client = Client::open(&mut self.db, opening);
                self.clients.push(client);
            }
            Step::Open(_) => {}
            Step::Request(client, request) => {
                self.with(*client, |client, db, now| client.request(db, request, now));
            }
            Step::Answer(client, acks) => {
                self.with(*client, |client, db, now| client.answer(db, *acks, now));
            }
            Step::Poll(client) => self.with(*client, Client::poll),
            Step::Wait(millis) => {
                self.now = self.now + Duration::from_millis(u64::from(*millis) * 10);
            }
            Step::Close(client) if !self.clients.is_empty() => {
                let index = usize::from(*client) % self.clients.len();
                self.clients.remove(index).session.close(&mut self.db);
            }
            Step::Close(_) => {}
            Step::Known(of, name, known) => {
                let glob = name.and_then(|name| Glob::parse(name.text()).ok());
                let scope = glob.map_or(Scope::All, Scope::Glob);
                let type_id = self.db.type_id(&of.url());
                match known {
                    true => self.db.set_complete(type_id, &scope),
                    false => self.db.set_incomplete(type_id, &scope),
                }
            }
            Step::Authoritative => self.db.set_authoritative(),
            Step::Forget(of, name) => {
                let type_id = self.db.type_id(&of.url());
                self.db.forget(type_id, &name.name());
            }
            Step::Woken => {
                for stream in self.db.take_woken_streams() {
                    assert!(self.clients.iter().any(|c| c.session.stream() == stream));
                }
                self.db.take_demand_changes().for_each(drop);
            }
        }
    }

    fn with(&mut self, number: u8, act: impl FnOnce(&mut Client, &mut Database, Moment)) {
        if !self.clients.is_empty() {
            let index = usize::from(number) % self.clients.len();
            act(&mut self.clients[index], &mut self.db, self.now);
        }
    }

    /// All clients go, then all contents: nothing keeps anything any more.
    fn end(mut self) {
        for client in self.clients.drain(..) {
            client.session.close(&mut self.db);
            self.db.check().expect("the invariants hold");
        }
        assert!(self.db.take_woken_streams().is_empty());
        let types: Vec<_> = self.db.types().map(|(id, url)| (id, url.clone())).collect();
        for (id, _) in &types {
            let kept = self.db.memory_counts(*id);
            assert_eq!((kept.views, kept.items, kept.retired), (0, 0, 0));
        }
        for (id, url) in types {
            let removed = self.db.apply(vec![Change::ReplaceAll(url, Vec::new())]);
            removed.expect("nothing overlaps with nothing");
            for name in NAMES {
                self.db.forget(id, &name.into());
            }
            assert_eq!(self.db.memory_counts(id).names, 0);
        }
        self.db.check().expect("the invariants hold");
        assert!(self.db.is_empty());
    }
}

impl Edit {
    fn change(&self) -> Change {
        match self {
            Self::Upsert(of, content) => Change::Upsert(of.url(), content.resource()),
            Self::Remove(of, name) => Change::Remove(of.url(), name.name()),
            Self::RemoveVariant(of, name, constraints) => {
                Change::RemoveVariant(of.url(), name.name(), constraints.map(For::constraints))
            }
            Self::ReplaceAll(of, all) => {
                Change::ReplaceAll(of.url(), all.iter().map(Content::resource).collect())
            }
            Self::Fail(of, name, failure) => Change::Fail(of.url(), name.name(), failure.error()),
        }
    }
}

impl Client {
    fn open(db: &mut Database, opening: &Opening) -> Self {
        let mode = if opening.is_delta {
            Mode::Delta
        } else {
            Mode::Sotw
        };
        let mut config = Config::new(mode);
        config.single_type = opening.only.map(Type::url);
        config.named_only = opening.named_only.map(Type::url).into_iter().collect();
        config.params = opening.params.params();
        config.supports_resource_errors = opening.speaks_errors;
        if opening.tight {
            config.limits = Limits {
                name_bytes: 13,
                subscriptions: 3,
                subscription_bytes: 400,
                missing_bytes: 1_000,
                hosts: 4,
                globs: 1,
                types: 2,
                all_types: 3,
                params: 2,
                all_params: 8,
                error_bytes: 2,
                response_bytes: 200,
            };
        }
        Self {
            mode,
            session: Session::open(db, config),
            sent: Vec::new(),
            names: Vec::new(),
        }
    }

    fn request(&mut self, db: &mut Database, request: &Request, now: Moment) {
        let sent = self.sent.iter().rev();
        let nonce = request.nonce.map(|which| match which {
            Ok(back) => sent
                .clone()
                .nth(back.into())
                .map_or("none".into(), |s| s.1.clone()),
            Err(text) => format!("{text:x}").as_str().into(),
        });
        let version = request
            .version
            .map(|back| match sent.clone().nth(back.into()) {
                Some((_, _, Some(version))) => version.clone(),
                _ => Version::of_body(&[back % 4]),
            });
        let node = request.node.map(Peer::node);
        let type_url = request.of.map(Type::url);
        let error = request.rejects.then(rejection);
        // A stream that broke the protocol ends, which others may do here.
        match self.mode {
            Mode::Delta => {
                let initial = request.initial.iter();
                let request = DeltaRequest {
                    node,
                    type_url,
                    subscribe: Asked::all(&request.subscribe),
                    unsubscribe: Asked::all(&request.unsubscribe),
                    initial_versions: initial
                        .map(|(name, body)| (name.text().into(), Version::of_body(&[body % 4])))
                        .collect(),
                    nonce,
                    error,
                };
                let _ = self.session.handle_delta(db, request, now);
            }
            Mode::Sotw => {
                if let Some(url) = &type_url {
                    self.names.retain(|(of, _)| of != url);
                    self.names.push((url.clone(), request.subscribe.clone()));
                }
                let request = SotwRequest {
                    node,
                    type_url,
                    names: Asked::all(&request.subscribe).into(),
                    version,
                    nonce,
                    error,
                };
                let _ = self.session.handle_sotw(db, request, now);
            }
        }
        while self.session.poll_event().is_some() {}
    }

    fn answer(&mut self, db: &mut Database, acks: bool, now: Moment) {
        let Some((url, nonce, version)) = self.sent.last().cloned() else {
            return;
        };
        let names = self.names.iter().find(|(of, _)| *of == url);
        let names = names.map_or(Vec::new(), |(_, names)| Asked::all(names));
        let (type_url, nonce) = (Some(url), Some(nonce));
        let error = (!acks).then(rejection);
        let handled = match self.mode {
            Mode::Delta => {
                let request = DeltaRequest {
                    type_url,
                    nonce,
                    error,
                    ..DeltaRequest::default()
                };
                self.session.handle_delta(db, request, now)
            }
            Mode::Sotw => {
                let request = SotwRequest {
                    type_url,
                    names: names.into(),
                    version,
                    nonce,
                    error,
                    ..SotwRequest::default()
                };
                self.session.handle_sotw(db, request, now)
            }
        };
        handled.expect("an answer is within the protocol");
        while self.session.poll_event().is_some() {}
    }

    /// Takes all there is to say: it comes to an end.
    fn poll(&mut self, db: &mut Database, now: Moment) {
        let mut nonces = BTreeSet::new();
        loop {
            let sent = self.session.poll(db, now).map(|response| match response {
                Response::Delta(r) => (r.type_url, r.nonce, None),
                Response::Sotw(r) => (r.type_url, r.nonce, Some(r.version)),
            });
            let Some(sent) = sent else { break };
            db.check().expect("the invariants hold");
            assert!(nonces.insert(sent.1.clone()), "a nonce is used once");
            assert!(nonces.len() < 100, "it does not come to an end");
            self.sent.push(sent);
        }
        assert!(self.session.poll_timeout().is_none_or(|at| at > now));
    }
}
