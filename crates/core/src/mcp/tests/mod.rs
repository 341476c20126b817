//! Sources and sinks, alone and against each other.

mod bounds;
mod canary;
mod claims;
mod exchanges;
mod publisher;
mod sink;
mod source;
mod world;

use std::sync::Arc;

use super::*;
use crate::change::Change;
use crate::database::Database;
use crate::message::{ErrorDetail, InitialVersions};
use crate::resource::{Nonce, Resource, TypeUrl};

/// A resource from `foo@v0`.
fn resource(text: &str) -> Arc<Resource> {
    let (name, version) = text.split_once('@').unwrap();
    Arc::new(Resource {
        version: version.into(),
        ..Resource::new(name.into(), text.to_owned().into())
    })
}

/// Resources from `foo@v0 bar@v0`.
fn resources(text: &str) -> Vec<Arc<Resource>> {
    text.split_whitespace().map(resource).collect()
}

/// Makes a collection of a database have these resources and no others.
fn set(db: &mut Database, collection: &str, text: &str) {
    let change = Change::ReplaceAll(collection.into(), resources(text));
    db.apply(vec![change]).unwrap();
    assert_eq!(db.check(), Ok(()));
}

/// A request without a nonce.
fn first(collection: &str, incremental: bool) -> RequestResources {
    RequestResources {
        node: None,
        collection: collection.into(),
        initial_versions: InitialVersions::default(),
        nonce: None,
        error: None,
        incremental,
    }
}

/// An ACK of a response, which wishes for what `asked` wishes for.
fn ack(response: &Resources, incremental: bool) -> RequestResources {
    RequestResources {
        nonce: Some(response.nonce.clone()),
        ..first(response.collection.as_str(), incremental)
    }
}

/// A NACK of a response.
fn nack(response: &Resources, incremental: bool) -> RequestResources {
    RequestResources {
        error: Some(error("no")),
        ..ack(response, incremental)
    }
}

fn error(message: &str) -> ErrorDetail {
    ErrorDetail {
        code: 3,
        message: message.to_owned(),
    }
}

/// A response in words: `A 1 full: foo@v0`, `A 2 incremental: foo@v0 -bar`.
fn words(response: &Resources) -> String {
    let (form, removed) = match &response.update {
        ResourcesUpdate::FullState(_) => ("full", &[][..]),
        ResourcesUpdate::Incremental { removed, .. } => ("incremental", &removed[..]),
    };
    let mut words = format!("{} {} {form}:", response.collection, response.nonce);
    for resource in response.update.resources() {
        words.push_str(&format!(" {resource:?}"));
    }
    for name in removed {
        words.push_str(&format!(" -{name}"));
    }
    words
}

/// A source with its contents.
struct Source {
    db: Database,
    machine: McpSource,
}

impl Source {
    fn new(served: Served) -> Self {
        let mut db = Database::new();
        let machine = McpSource::new(&mut db, served);
        Self { db, machine }
    }

    fn with(contents: &[(&str, &str)]) -> Self {
        let mut source = Self::new(Served::Any);
        for (collection, text) in contents {
            source.set(collection, text);
        }
        source
    }

    fn set(&mut self, collection: &str, text: &str) {
        set(&mut self.db, collection, text);
    }

    fn handle(&mut self, request: RequestResources) -> Handled {
        self.machine.handle_request(&mut self.db, request).unwrap()
    }

    fn poll(&mut self) -> Option<Resources> {
        let response = self.machine.poll_resources(&mut self.db);
        assert_eq!(self.db.check(), Ok(()));
        response
    }

    /// The next response, which must be this one.
    #[track_caller]
    fn sends(&mut self, expected: &str) -> Resources {
        let response = self.poll().expect("a response");
        assert_eq!(words(&response), expected);
        response
    }

    #[track_caller]
    fn is_silent(&mut self) {
        assert_eq!(self.poll(), None);
    }
}

/// A sink with its owner's contents.
struct Sink {
    db: Database,
    machine: McpSink,
}

impl Sink {
    fn new(collections: &[&str], incremental: bool) -> Self {
        let node = SinkNode {
            id: "pilot".to_owned(),
            ..SinkNode::default()
        };
        let collections = collections.iter().map(TypeUrl::new);
        let mut machine = McpSink::new(node, collections, incremental);
        machine.begin_stream();
        Self {
            db: Database::new(),
            machine,
        }
    }

    /// Gives a response to the owner, who rejects the named resource, if there
    /// is one.
    fn handle(&mut self, response: Resources, rejects: Option<&str>) {
        let Received::Delivered(delivery) = self.machine.handle_resources(response).unwrap() else {
            return;
        };
        let verdict = match rejects {
            None => {
                self.db.apply(delivery.changes).unwrap();
                Verdict::Accept
            }
            Some(name) => Verdict::Reject(vec![Rejected {
                name: Some(name.into()),
                reason: "spec.hosts: needed".to_owned(),
            }]),
        };
        self.machine.handle_verdict(&delivery.collection, &verdict);
    }

    /// What the owner has of a collection; the machine's versions must agree.
    fn holds(&mut self, collection: &str) -> String {
        let url = TypeUrl::new(collection);
        let type_id = self.db.type_id(&url);
        let mut held: Vec<_> = self.db.resources(type_id).cloned().collect();
        held.sort_by(|left, right| left.name.cmp(&right.name));
        let held: Vec<_> = held
            .iter()
            .map(|resource| format!("{resource:?}"))
            .collect();
        let versions = self.machine.versions(&url);
        let versions: Vec<_> = versions.map(|(name, v)| format!("{name}@{v}")).collect();
        assert_eq!(held, versions);
        held.join(" ")
    }
}

/// Carries messages until both are silent. Returns the responses in words.
fn run(source: &mut Source, sink: &mut Sink, rejects: Option<&str>) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        while let Some(request) = sink.machine.poll_request() {
            source.handle(request);
        }
        let Some(response) = source.poll() else {
            return seen;
        };
        seen.push(words(&response));
        sink.handle(response, rejects);
    }
}
