//! A client that keeps the revision of each resource and nothing else.
//!
//! It sends the requests of a full one: it ACKs, names the versions that it
//! holds when it reconnects, and checks what it is sent. It leaves out the
//! machinery of a real client: bodies, versions of its own (the tool knows a
//! server's version of each revision), aliases, variants, resource errors and
//! TTLs. It does not NACK.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::RequestWriter;
use trunkline_core::kind::Kind as Rules;
use trunkline_core::message::{DeltaRequest, Locator, Mode, Node, SotwRequest};
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{Nonce, Version};
use trunkline_core::sink::Request;
use trunkline_proto::discovery::{Glance, fields, name_of};

use super::ledger::Ledger;
use super::shared::Shared;
use super::spec::{Spec, Want};
use crate::contents::Kind;
use crate::measure::Counters;

/// The field of resources, in responses of both protocols.
const RESOURCES: u32 = 2;
/// The field of removed variants, in a delta response.
const REMOVED_VARIANTS: u32 = 8;

/// Returns the names of the variants that a response removes. A client of the
/// tool has one variant of each name.
fn removed_variants(mode: Mode, response: &[u8]) -> impl Iterator<Item = &str> {
    let all = fields(response);
    let removed = all.filter(move |(field, _)| mode == Mode::Delta && *field == REMOVED_VARIANTS);
    // A `ResourceName` begins with its name, as a resource does.
    removed.filter_map(|(_, name)| name_of(name))
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Light {
    mode: Mode,
    node: Node,
    /// The node was sent on this stream.
    introduced: bool,
    writer: RequestWriter,
    /// The parameters of its names, if it sends locators.
    params: Option<Params>,
    shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
    types: Vec<Type>,
    requests: VecDeque<Request>,
}

/// A client's subscription to a type, and how far it is.
#[derive(Debug)]
struct Type {
    kind: Kind,
    want: Want,
    /// Names that no request had yet.
    news: Vec<usize>,
    version: Option<Version>,
    nonce: Option<Nonce>,
    asked: bool,
}

impl Light {
    /// Makes a client that subscribes to what its spec says, over streams that
    /// come later.
    pub(crate) fn new(spec: &Spec, shared: Arc<Shared>, ledger: Ledger) -> Self {
        let one = |(kind, want): &(Kind, Want)| Type {
            kind: *kind,
            want: match want {
                Want::Led => Want::Names(Vec::new()),
                other => other.clone(),
            },
            news: Vec::new(),
            version: None,
            nonce: None,
            asked: false,
        };
        Self {
            mode: spec.mode,
            node: spec.node(),
            introduced: false,
            writer: spec.writer(),
            params: Some(spec.params()).filter(|params| !params.is_empty()),
            shared,
            ledger,
            types: spec.wants.iter().map(one).collect(),
            requests: VecDeque::new(),
        }
    }

    /// Adds the name of a place to those that the client subscribes to, if it
    /// subscribes to the type by names.
    pub(crate) fn subscribe_name(&mut self, kind: Kind, index: usize) {
        let Some(state) = self.types.iter_mut().find(|state| state.kind == kind) else {
            return;
        };
        if let Want::Names(names) = &mut state.want {
            names.push(index);
            state.news.push(index);
        }
    }

    /// Begins a stream: nothing was requested on it yet.
    pub(crate) fn handle_connected(&mut self) {
        for place in 0..self.types.len() {
            let state = &mut self.types[place];
            state.asked = false;
            state.nonce = None;
            state.news = match &state.want {
                Want::Names(names) => names.clone(),
                _ => Vec::new(),
            };
        }
        self.queue_requests();
    }

    /// Ends a stream: requests that were not sent are dropped.
    pub(crate) fn handle_disconnected(&mut self) {
        self.introduced = false;
        self.requests.clear();
    }

    /// Returns the next request, encoded, if there is one to send. The first
    /// one on a stream has the node.
    pub(crate) fn poll_request(&mut self) -> Option<Bytes> {
        if self.requests.is_empty() {
            self.queue_requests();
        }
        let mut request = self.requests.pop_front()?;
        if !std::mem::replace(&mut self.introduced, true) {
            let node = Some(self.node.clone());
            match &mut request {
                Request::Delta(request) => request.node = node,
                Request::Sotw(request) => request.node = node,
            }
        }
        Some(self.writer.write(request))
    }

    /// Queues a request for each type with names that no request had yet, or
    /// with a wildcard that was not requested.
    fn queue_requests(&mut self) {
        for place in 0..self.types.len() {
            let state = &self.types[place];
            let first = !state.asked && state.want == Want::All;
            if first || !state.news.is_empty() {
                let request = match self.mode {
                    Mode::Delta => Request::Delta(self.delta_request(place)),
                    Mode::Sotw => Request::Sotw(self.sotw_request(place)),
                };
                self.requests.push_back(request);
                let state = &mut self.types[place];
                state.asked = true;
                state.news.clear();
            }
        }
    }

    /// Returns a delta request for the type at an index, with its new names.
    /// The first one on a stream also has the versions of what the client
    /// holds.
    fn delta_request(&self, place: usize) -> DeltaRequest {
        let state = &self.types[place];
        let kind = state.kind;
        let held = (!state.asked)
            .then(|| self.ledger.held_revisions(kind))
            .into_iter()
            .flatten();
        let named = held.filter_map(|(index, revision)| {
            let version = self
                .shared
                .version(self.ledger.place(kind, index), revision)?;
            Some((Name::new(&self.shared.truth.recipe.name(index)), version))
        });
        DeltaRequest {
            type_url: Some(kind.url().into()),
            subscribe: self.locators(place, &state.news),
            initial_versions: named.collect(),
            ..DeltaRequest::default()
        }
    }

    /// Returns a state-of-the-world request for the type at an index, which
    /// lists all its names.
    fn sotw_request(&self, place: usize) -> SotwRequest {
        let state = &self.types[place];
        let all: &[usize] = match &state.want {
            Want::Names(names) => names,
            _ => &[],
        };
        SotwRequest {
            type_url: Some(state.kind.url().into()),
            names: self.locators(place, all).into(),
            version: state.version.clone(),
            nonce: state.nonce.clone(),
            ..SotwRequest::default()
        }
    }

    /// Returns the names at these places as the client subscribes to them, with
    /// its parameters; for a wildcard, what stands for that.
    fn locators(&self, place: usize, names: &[usize]) -> Vec<Locator> {
        let state = &self.types[place];
        let bare = Rules::of(&state.kind.url().into()).legacy_wildcard;
        let located = |name: String| Locator {
            name,
            params: self.params.clone(),
        };
        // An empty list has no parameters.
        if state.want == Want::All && (self.params.is_some() || !bare) {
            return vec![located("*".to_owned())];
        }
        let recipe = &self.shared.truth.recipe;
        let names = names.iter().map(|index| recipe.name(*index));
        names.map(located).collect()
    }

    /// Takes a response, and queues its ACK. Returns false if the bytes are no
    /// response.
    pub(crate) fn handle_response(&mut self, raw: &[u8]) -> bool {
        let glance = match self.mode {
            Mode::Delta => Glance::delta(raw),
            Mode::Sotw => Glance::sotw(raw),
        };
        let place = Kind::of(glance.type_url)
            .and_then(|kind| self.types.iter().position(|state| state.kind == kind));
        let Some(place) = place.filter(|_| !glance.nonce.is_empty()) else {
            return false;
        };
        let kind = self.types[place].kind;
        let leads_to = |state: &Type| {
            (state.kind.led_to_by() == Some(kind) && state.want != Want::All).then_some(state.kind)
        };
        let leads_to = self.types.iter().find_map(leads_to);
        let count = fields(raw).filter(|(field, _)| *field == RESOURCES).count();
        self.ledger.count_response(count, raw.len());
        for entry in glance.entries() {
            let body = entry.body.unwrap_or_default();
            if let Some(index) = self.ledger.note_accepted(kind, entry.name, body)
                && let Some(to) = leads_to
            {
                self.subscribe_name(to, index);
            }
            self.note_version(kind, entry.name, entry.version);
        }
        for name in glance.removed().chain(removed_variants(self.mode, raw)) {
            self.ledger.note_removed(kind, name);
        }
        if self.mode == Mode::Sotw && count < self.ledger.held {
            self.remove_absent(kind, &glance);
        }
        self.ledger.finish_response(kind);
        self.acknowledge(place, &glance);
        true
    }

    /// Notes the version by which the server calls the revision of a resource
    /// that the client holds. Does nothing without a version, or if the
    /// resource is not the tool's.
    fn note_version(&self, kind: Kind, name: &str, version: &str) {
        let index = self.shared.truth.recipe.index(name);
        let Some(index) = index.filter(|_| !version.is_empty()) else {
            return;
        };
        let known = self.ledger.known(kind, index);
        if known.is_held() {
            let place = self.ledger.place(kind, index);
            self.shared.note_version(place, known.revision(), version);
        }
    }

    /// Notes what a whole set leaves out as removed (C29). Does nothing for
    /// other types.
    fn remove_absent(&mut self, kind: Kind, glance: &Glance<'_>) {
        if !Rules::of(&kind.url().into()).whole_set {
            return;
        }
        let recipe = &self.shared.truth.recipe;
        let mut there = vec![false; self.shared.truth.count];
        for entry in glance.entries() {
            if let Some(index) = recipe.index(entry.name).filter(|i| *i < there.len()) {
                there[index] = true;
            }
        }
        let held = self.ledger.held_revisions(kind).map(|(index, _)| index);
        let absent: Vec<usize> = held.filter(|index| !there[*index]).collect();
        for index in absent {
            let name = self.shared.truth.recipe.name(index);
            self.ledger.note_removed(kind, &name);
        }
    }

    /// Counts an ACK, and queues it.
    fn acknowledge(&mut self, place: usize, glance: &Glance<'_>) {
        Counters::add(&self.shared.counters.acks, 1);
        let state = &mut self.types[place];
        state.nonce = Some(Nonce::new(glance.nonce));
        let request = match self.mode {
            Mode::Delta => Request::Delta(DeltaRequest {
                type_url: Some(state.kind.url().into()),
                nonce: state.nonce.clone(),
                ..DeltaRequest::default()
            }),
            Mode::Sotw => {
                state.version = Some(Version::new(glance.version));
                // It lists all names, and so the new ones as well.
                state.news.clear();
                Request::Sotw(self.sotw_request(place))
            }
        };
        self.requests.push_back(request);
    }
}
