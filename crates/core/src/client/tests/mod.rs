//! Tests of the client's machine, named for their rules.
//!
//! A rig has a client and writes what a watch is told in short lines:
//!
//! ```text
//!   -                nothing is known      ! Silent      no resource, and why
//!   a@1              a resource            a@1 ~ Unreachable   in use all the same
//! ```

mod fallback;
mod old_word;
mod origins;
mod watches;

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::kind;
use crate::message::{DeltaResponse, Mode, Node, SotwResponse, WireResource};
use crate::params::Params;
use crate::sink::{BackoffConfig, SinkConfig};

/// A client, its time, and short ways to use both.
struct Rig {
    client: Client,
    now: Moment,
    nonce: u64,
}

impl Rig {
    fn new() -> Self {
        Self {
            client: Client::new(7),
            now: Moment::from_millis(1_000_000),
            nonce: 0,
        }
    }

    fn server(&mut self, mode: Mode) -> ServerId {
        self.client.add_server(ServerConfig {
            sink: SinkConfig::new(mode, Node::default()),
            backoff: BackoffConfig::default(),
            rate_limit: None,
        })
    }

    /// A source with so many servers, the best first.
    fn source(&mut self, servers: usize) -> (SourceId, Vec<ServerId>) {
        let servers: Vec<_> = (0..servers).map(|_| self.server(Mode::Delta)).collect();
        let source = self
            .client
            .add_source(servers.clone(), FallbackPolicy::Grpc);
        (source, servers)
    }

    fn subscribe(&mut self, source: SourceId, name: &str) {
        let selector = selector(name);
        let subscribed = self.client.subscribe(source, &cds(), selector, self.now);
        subscribed.unwrap();
        self.check();
    }

    fn unsubscribe(&mut self, source: SourceId, name: &str) {
        let subscription = selector(name).into();
        self.client
            .unsubscribe(source, &cds(), &subscription, self.now);
        self.check();
    }

    fn watch(&mut self, source: Option<SourceId>, name: &str) -> WatchId {
        self.client.watch(Watched {
            type_url: cds(),
            selector: selector(name),
            params: Params::default(),
            source,
        })
    }

    /// All that the owner has to do.
    fn actions(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = self.client.poll_action(self.now) {
            actions.push(action);
        }
        actions
    }

    /// Connects to a server that is to be connected to.
    fn connect(&mut self, server: ServerId) {
        assert!(
            self.actions().contains(&Action::Connect(server)),
            "{server:?}"
        );
        self.client.handle_connected(server, self.now);
        self.requests(server);
    }

    /// Lets the present attempt, or stream, of a server end.
    fn fail(&mut self, server: ServerId) {
        self.client.handle_disconnected(server, "refused", self.now);
        self.check();
    }

    fn requests(&mut self, server: ServerId) -> usize {
        let mut count = 0;
        while self.client.poll_request(server, self.now).is_some() {
            count += 1;
        }
        self.check();
        count
    }

    /// A server sends resources, which are accepted, and acknowledged.
    fn send(&mut self, server: ServerId, resources: &[&str]) {
        self.send_all(server, resources, &[]);
    }

    fn send_all(&mut self, server: ServerId, resources: &[&str], removed: &[&str]) {
        self.nonce += 1;
        let resources = resources.iter().map(|text| wire(text));
        let response = DeltaResponse {
            type_url: cds(),
            nonce: self.nonce.to_string().as_str().into(),
            resources: resources.collect::<Vec<_>>().into(),
            removed: removed.iter().map(|name| Name::new(name)).collect(),
            removed_variants: Vec::new(),
            errors: Vec::new(),
        };
        self.judge(server, response, Verdict::accept());
    }

    fn judge(&mut self, server: ServerId, response: impl Into<Response>, verdict: Verdict) {
        let delivery = self.client.handle_response(server, response, self.now);
        let delivery = delivery.unwrap();
        let judged = self.client.handle_verdict(
            server,
            &delivery.type_url,
            &delivery.nonce,
            verdict,
            self.now,
        );
        judged.unwrap();
        self.requests(server);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now + std::time::Duration::from_millis(millis);
        self.client.handle_timeout(self.now);
        self.check();
    }

    /// The watches with news, in order.
    fn news(&mut self) -> Vec<WatchId> {
        std::iter::from_fn(|| self.client.poll_watch()).collect()
    }

    fn state(&self, id: WatchId) -> String {
        self.client.state(id).map_or_else(String::new, show)
    }

    /// The news of a watch of many names.
    fn changes(&mut self, id: WatchId) -> Vec<String> {
        let changes = self.client.take_changes(id).into_iter();
        let lines = changes.map(|(name, state)| match state.value {
            Some(_) => show(&state),
            None => format!("{name} {}", show(&state)),
        });
        lines.collect()
    }

    fn check(&mut self) {
        self.client.check().unwrap();
    }
}

fn cds() -> TypeUrl {
    kind::CDS.into()
}

fn selector(text: &str) -> Selector {
    Selector::parse(text, 100).unwrap()
}

/// `a@1`: the resource `a` in version 1, whose body is the version.
fn resource(text: &str) -> Arc<Resource> {
    let (name, version) = text.split_once('@').unwrap();
    Arc::new(Resource {
        version: version.into(),
        ..Resource::new(name.into(), Bytes::copy_from_slice(version.as_bytes()))
    })
}

fn wire(text: &str) -> WireResource {
    WireResource::full(resource(text))
}

fn show(state: &State) -> String {
    let value = state.value.as_ref();
    let value = value.map(|value| format!("{}@{}", value.name, value.version));
    match (value, &state.error) {
        (None, None) => "-".into(),
        (Some(value), None) => value,
        (None, Some(error)) => format!("! {:?}", error.cause),
        (Some(value), Some(error)) => format!("{value} ~ {:?}", error.cause),
    }
}

/// A state-of-the-world response.
fn sotw(nonce: &str, resources: &[&str]) -> SotwResponse {
    SotwResponse {
        type_url: cds(),
        version: nonce.into(),
        nonce: nonce.into(),
        resources: resources
            .iter()
            .map(|text| wire(text))
            .collect::<Vec<_>>()
            .into(),
        errors: Vec::new(),
        removed: Vec::new(),
    }
}
