//! A delta stream with its database and a client that does as the test says.

use std::sync::Arc;

use crate::change::Change;
use crate::database::Database;
use crate::facts::{Facts, Reference};
use crate::kind::RTDS;
use crate::message::{DeltaRequest, DeltaResponse, ErrorDetail, Mode, Node, Response};
use crate::moment::Moment;
use crate::name::Name;
use crate::params::Params;
use crate::resource::{Resource, Version};
use crate::session::{Config, Session};

/// More responses than this at one moment are a loop.
const ENDLESS: usize = 100;

/// The type, name and body of a resource, and what it refers to.
type Contents<'a> = (&'a str, &'a str, &'static str, &'a [(&'a str, &'a str)]);

/// The parameter `env` with a value.
pub(super) fn env(value: &str) -> Params {
    Params::new([("env", value)]).unwrap()
}

/// The body of the first resource of a response.
pub(super) fn first_body(response: &DeltaResponse) -> Option<&[u8]> {
    let first = response.resources.first()?;
    first.resource.body.as_deref()
}

/// See the module's documentation.
pub(super) struct Stream {
    pub(super) db: Database,
    pub(super) session: Session,
    pub(super) now: Moment,
}

impl Stream {
    /// A stream of the default configuration, over an empty database.
    pub(super) fn open() -> Self {
        Self::with(Config::new(Mode::Delta))
    }

    pub(super) fn with(config: Config) -> Self {
        Self::over(Database::new(), config)
    }

    pub(super) fn over(mut db: Database, config: Config) -> Self {
        Self {
            session: Session::open(&mut db, config),
            db,
            now: Moment::START,
        }
    }

    /// A stream with the parameter `env`, over variants of the name `a` for the
    /// values x, y and z: the body of each is its value.
    pub(super) fn with_variants(value: &str, urls: &[&str]) -> Self {
        let mut stream = Self::with(Config {
            params: env(value),
            ..Config::new(Mode::Delta)
        });
        for url in urls {
            let variants = ["x", "y", "z"].map(|value| Resource {
                constraints: Some(format!("env={value}").parse().unwrap()),
                ..Resource::new("a".into(), value.into())
            });
            let changes = variants.map(|variant| Change::Upsert((*url).into(), Arc::new(variant)));
            stream.db.apply(changes.into()).unwrap();
        }
        stream
    }

    /// Says that the client is an Envoy, in a first request for a type that
    /// matters to no other.
    pub(super) fn begin_as_envoy(&mut self) {
        let node = Node {
            user_agent: "envoy".into(),
            ..Node::default()
        };
        self.request(DeltaRequest {
            node: Some(node),
            type_url: Some(RTDS.into()),
            ..DeltaRequest::default()
        });
    }

    /// Puts one resource in place.
    pub(super) fn put(&mut self, url: &str, name: &str, body: &'static str) {
        self.put_all(&[(url, name, body, &[])]);
    }

    /// Puts resources with their references in place, in one transaction.
    pub(super) fn put_all(&mut self, all: &[Contents<'_>]) {
        let upsert = |(url, name, body, to): &Contents<'_>| {
            let reference = |(url, name): &(&str, &str)| Reference {
                type_url: (*url).into(),
                name: Name::new(name),
            };
            let facts = Facts {
                references: to.iter().map(reference).collect(),
                ..Facts::default()
            };
            let resource = Resource {
                facts: Some(Box::new(facts)),
                ..Resource::new(Name::new(name), (*body).into())
            };
            Change::Upsert((*url).into(), Arc::new(resource))
        };
        self.db.apply(all.iter().map(upsert).collect()).unwrap();
    }

    /// Sends a request that subscribes to these names.
    pub(super) fn subscribe(&mut self, url: &str, names: &[&str]) {
        self.resume(url, names, &[]);
    }

    /// Ends the stream, and opens another one over the same database.
    pub(super) fn reconnect(&mut self) {
        let next = Session::open(&mut self.db, Config::new(Mode::Delta));
        std::mem::replace(&mut self.session, next).close(&mut self.db);
    }

    /// Sends a request that subscribes to these names and says which of them
    /// the client holds with which body.
    pub(super) fn resume(&mut self, url: &str, names: &[&str], held: &[(&str, &str)]) {
        let version = |(name, body): &(&str, &str)| {
            let version = Version::of_body(body.as_bytes());
            (Name::new(name), version)
        };
        self.request(DeltaRequest {
            type_url: Some(url.into()),
            subscribe: names.iter().map(|name| (*name).into()).collect(),
            initial_versions: held.iter().map(version).collect(),
            ..DeltaRequest::default()
        });
    }

    pub(super) fn request(&mut self, request: DeltaRequest) {
        let handled = self.session.handle_delta(&mut self.db, request, self.now);
        handled.unwrap();
    }

    /// The next response.
    pub(super) fn poll(&mut self) -> Option<DeltaResponse> {
        let response = self.session.poll(&mut self.db, self.now);
        response.and_then(Response::into_delta)
    }

    /// ACKs a response.
    pub(super) fn ack(&mut self, response: DeltaResponse) {
        self.answer(response, None);
    }

    /// NACKs a response.
    pub(super) fn nack(&mut self, response: DeltaResponse) {
        let error = ErrorDetail {
            code: 3,
            message: "no".into(),
        };
        self.answer(response, Some(error));
    }

    fn answer(&mut self, response: DeltaResponse, error: Option<ErrorDetail>) {
        self.request(DeltaRequest {
            type_url: Some(response.type_url),
            nonce: Some(response.nonce),
            error,
            ..DeltaRequest::default()
        });
    }

    /// ACKs every response until there is none.
    pub(super) fn settle(&mut self) {
        for _ in 0..ENDLESS {
            match self.poll() {
                Some(response) => self.ack(response),
                None => return,
            }
        }
        panic!("there is no end of responses");
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.session.is_quiet(&self.db, self.now)
    }
}
