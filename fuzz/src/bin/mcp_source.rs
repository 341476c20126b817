//! Any sinks on the streams of one source of the Mesh Configuration Protocol:
//! each is told what a naive reading of the rules says, and nothing is left of
//! one that disconnected.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::mcp::{
    Handled, McpSource, RequestResources, Resources, ResourcesUpdate, Served, SinkNode,
};
use trunkline_core::message::InitialVersions;
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_fuzz::mcp::{
    Collection, Entry, Read, State, read_request, read_resources, state, updated, version,
    write_request, write_resources,
};
use trunkline_fuzz::{NAMES, Named, rejection};

/// Rejected states that a source remembers.
const MAX_REJECTED: usize = 64;

/// Bytes of the name of a collection, and of a node, that a source takes.
const MAX_NAME: usize = 1024;
const MAX_NODE: usize = 64 << 10;

#[derive(Arbitrary, Debug)]
struct Input {
    only: Option<Collection>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Apply(Vec<Edit>),
    Open,
    Request(u8, Request),
    /// Any bytes as a request.
    Bytes(u8, Vec<u8>),
    /// A correct sink's ACK or NACK of the newest response.
    Answer {
        stream: u8,
        rejects: bool,
        incremental: bool,
    },
    /// One response, if there is one.
    Poll(u8),
    /// All responses.
    Drain(u8),
    Close(u8),
    EndSlice,
}

#[derive(Arbitrary, Debug)]
enum Edit {
    Upsert(Collection, Entry),
    Remove(Collection, Named),
    ReplaceAll(Collection, Vec<Entry>),
}

#[derive(Arbitrary, Debug)]
struct Request {
    node: Option<u8>,
    of: Collection,
    has_long_name: bool,
    held: Vec<(Named, u8)>,
    /// Of the responses that were sent, counted from the newest; or any text.
    nonce: Option<Result<u8, u8>>,
    rejects: bool,
    incremental: bool,
}

struct World {
    db: Database,
    served: Served,
    streams: Vec<Stream>,
}

/// A stream, and what is known of it from its messages alone.
struct Stream {
    source: McpSource,
    sent: Vec<(TypeUrl, Nonce)>,
    conversations: BTreeMap<TypeUrl, Conversation>,
    nonces: BTreeSet<Nonce>,
    stale: u64,
    nacks: u64,
    /// Whether it was woken, or asked, after it had nothing to say.
    may_have_news: bool,
}

/// What was said of one collection.
struct Conversation {
    incremental: bool,
    held: State,
    /// Whether the sink holds it because of an ACK.
    is_acked: bool,
    pending: Option<State>,
    latest: Option<Nonce>,
    rejected: VecDeque<State>,
}

fuzz_target!(|input: Input| {
    let mut world = World {
        db: Database::new(),
        served: match input.only {
            Some(only) => Served::Only(only.url()),
            None => Served::Any,
        },
        streams: Vec::new(),
    };
    world.step(&Step::Open);
    for step in &input.steps {
        world.step(step);
        world.check();
    }
    world.end();
});

impl World {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply(edits) => {
                let _ = self.db.apply(edits.iter().map(Edit::change).collect());
            }
            Step::Open if self.streams.len() < 4 => {
                let source = McpSource::new(&mut self.db, self.served.clone());
                self.streams.push(Stream::new(source));
            }
            Step::Open => {}
            Step::Request(number, request) => {
                self.request(*number, |stream| Some(request.message(&stream.sent)));
            }
            Step::Bytes(number, bytes) => {
                self.request(*number, |_| read_request(Bytes::copy_from_slice(bytes)));
            }
            Step::Answer {
                stream,
                rejects,
                incremental,
            } => self.request(*stream, |stream| stream.answer(*rejects, *incremental)),
            Step::Poll(number) => {
                self.wake();
                if let Some(index) = self.index(*number) {
                    self.streams[index].poll(&mut self.db);
                }
            }
            Step::Drain(number) => {
                self.wake();
                if let Some(index) = self.index(*number) {
                    self.streams[index].drain(&mut self.db);
                }
            }
            Step::Close(number) => {
                if let Some(index) = self.index(*number) {
                    self.streams.remove(index).source.close(&mut self.db);
                }
            }
            Step::EndSlice => self.db.end_slice(),
        }
    }

    fn index(&self, number: u8) -> Option<usize> {
        usize::from(number).checked_rem(self.streams.len())
    }

    /// A stream takes a request, and ends if the request broke the protocol.
    fn request(&mut self, number: u8, make: impl FnOnce(&Stream) -> Option<RequestResources>) {
        let Some(index) = self.index(number) else {
            return;
        };
        let Some(request) = make(&self.streams[index]) else {
            return;
        };
        let stream = &mut self.streams[index];
        if !stream.request(&mut self.db, &self.served, request) {
            self.streams.remove(index).source.close(&mut self.db);
        }
    }

    /// Only what was woken may have news.
    fn wake(&mut self) {
        for id in self.db.take_woken_streams() {
            let mut streams = self.streams.iter_mut();
            let stream = streams.find(|stream| stream.source.stream() == id);
            stream.expect("it is open").may_have_news = true;
        }
    }

    fn check(&mut self) {
        self.db.check().expect("the invariants hold");
        for stream in &self.streams {
            stream.check(&self.db);
        }
    }

    /// All streams end, then all contents: nothing is kept any more.
    fn end(mut self) {
        self.wake();
        for stream in &mut self.streams {
            stream.drain(&mut self.db);
        }
        self.check();
        for stream in self.streams.drain(..) {
            stream.source.close(&mut self.db);
            self.db.check().expect("the invariants hold");
        }
        assert!(self.db.take_woken_streams().is_empty());
        let types: Vec<_> = self.db.types().map(|(id, url)| (id, url.clone())).collect();
        for (id, url) in types {
            let kept = self.db.memory_counts(id);
            assert_eq!((kept.views, kept.items, kept.retired), (0, 0, 0));
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
            Self::Upsert(of, entry) => Change::Upsert(of.url(), entry.resource()),
            Self::Remove(of, name) => Change::Remove(of.url(), name.name()),
            Self::ReplaceAll(of, all) => {
                Change::ReplaceAll(of.url(), all.iter().map(|entry| entry.resource()).collect())
            }
        }
    }
}

impl Request {
    fn message(&self, sent: &[(TypeUrl, Nonce)]) -> RequestResources {
        let nonce = self.nonce.map(|which| match which {
            Ok(back) => {
                let sent = sent.iter().rev().nth(back.into());
                sent.map_or("none".into(), |(_, nonce)| nonce.clone())
            }
            Err(text) => Nonce::new(format!("{text:x}")),
        });
        let held = self.held.iter();
        RequestResources {
            node: self.node.map(|number| SinkNode {
                id: "n".repeat(if number == 255 { MAX_NODE + 1 } else { 1 }),
                annotations: [("env".to_owned(), number.to_string())].into(),
            }),
            collection: match self.has_long_name {
                true => TypeUrl::new("c".repeat(MAX_NAME + 1)),
                false => self.of.url(),
            },
            initial_versions: held
                .map(|(name, number)| (name.name(), version(*number)))
                .collect::<InitialVersions>(),
            nonce,
            error: self.rejects.then(rejection),
            incremental: self.incremental,
        }
    }
}

impl Stream {
    fn new(source: McpSource) -> Self {
        Self {
            source,
            sent: Vec::new(),
            conversations: BTreeMap::new(),
            nonces: BTreeSet::new(),
            stale: 0,
            nacks: 0,
            may_have_news: false,
        }
    }

    fn answer(&self, rejects: bool, incremental: bool) -> Option<RequestResources> {
        let (collection, nonce) = self.sent.last()?.clone();
        Some(RequestResources {
            node: None,
            collection,
            initial_versions: InitialVersions::default(),
            nonce: Some(nonce),
            error: rejects.then(rejection),
            incremental,
        })
    }

    /// Whether the stream goes on.
    fn request(&mut self, db: &mut Database, served: &Served, sent: RequestResources) -> bool {
        let raw = write_request(&sent);
        let Some(request) = read_request(raw.clone()) else {
            // A name is longer than what is read.
            return true;
        };
        assert_eq!(write_request(&request), raw, "what is written reads back");

        let expected = self.expected(served, &request);
        let handled = self.source.handle_request(db, request.clone());
        assert_eq!(handled.as_ref().ok(), expected.as_ref());
        let Ok(handled) = handled else { return false };
        drop(self.source.take_outdated());
        self.may_have_news = true;
        self.note(request, handled);
        true
    }

    /// `None` if the stream ends.
    fn expected(&self, served: &Served, request: &RequestResources) -> Option<Handled> {
        if matches!(served, Served::Only(only) if *only != request.collection) {
            return None;
        }
        let node = request.node.as_ref();
        if node.is_some_and(|node| node.id.len() > MAX_NODE) {
            return None;
        }
        let conversation = self.conversations.get(&request.collection);
        Some(match (&request.nonce, conversation) {
            (None, Some(_)) => Handled::Restarted,
            (None, None) if request.collection.as_str().len() > MAX_NAME => Handled::Refused,
            (None, None) => Handled::First,
            (nonce, Some(conversation)) if conversation.latest == *nonce => match &request.error {
                None => Handled::Ack,
                Some(error) => Handled::Nack(error.clone()),
            },
            (Some(_), _) => Handled::Stale,
        })
    }

    fn note(&mut self, request: RequestResources, handled: Handled) {
        if matches!(handled, Handled::First | Handled::Restarted) {
            let held = request.initial_versions.iter().cloned().collect();
            let begun = Conversation {
                incremental: request.incremental,
                held,
                is_acked: false,
                pending: None,
                latest: None,
                rejected: VecDeque::new(),
            };
            self.conversations.insert(request.collection, begun);
            return;
        }
        self.stale += u64::from(handled == Handled::Stale);
        let conversation = self.conversations.get_mut(&request.collection);
        let (Handled::Ack | Handled::Nack(_), Some(conversation)) = (handled, conversation) else {
            return;
        };
        conversation.incremental = request.incremental;
        let Some(answered) = conversation.pending.take() else {
            return;
        };
        if request.error.is_some() {
            self.nacks += 1;
            conversation.rejected.push_back(answered);
            if conversation.rejected.len() > MAX_REJECTED {
                conversation.rejected.pop_front();
            }
        } else {
            conversation.held = answered;
            conversation.is_acked = true;
        }
    }

    /// Whether something was said.
    fn poll(&mut self, db: &mut Database) -> bool {
        let response = loop {
            match self.source.poll_resources(db) {
                None if self.source.is_comparing() => {}
                response => break response,
            }
        };
        db.check().expect("the invariants hold");
        let Some(response) = response else {
            self.may_have_news = false;
            return false;
        };
        assert!(self.may_have_news, "nothing woke it: {response:?}");
        let Some(Read::Whole(read)) = read_resources(write_resources(&response)) else {
            // A source does not look at names; a sink needs one.
            let mut resources = response.update.resources().iter();
            assert!(resources.any(|resource| resource.name.as_str().is_empty()));
            self.take(db, &response);
            return true;
        };
        assert_eq!(read, response, "what is written reads back");
        self.take(db, &response);
        true
    }

    /// Takes all there is to say: it comes to an end, and nothing is left out.
    fn drain(&mut self, db: &mut Database) {
        let mut responses = 0;
        while self.poll(db) {
            responses += 1;
            assert!(responses < 100, "it does not come to an end");
        }
        for (collection, conversation) in &self.conversations {
            let newest = state(db, collection);
            let is_silent = conversation.pending.is_some()
                || conversation.rejected.contains(&newest)
                || conversation.holds(&newest);
            assert!(is_silent, "nothing was said of {collection}");
        }
    }

    fn take(&mut self, db: &Database, response: &Resources) {
        let collection = &response.collection;
        let newest = state(db, collection);
        let conversation = self.conversations.get_mut(collection);
        let conversation = conversation.expect("it was asked for");
        assert!(conversation.pending.is_none(), "M2: {response:?}");
        assert!(!conversation.rejected.contains(&newest), "M5: {response:?}");
        assert!(!conversation.holds(&newest), "it is held: {response:?}");
        let may_be_incremental = conversation.incremental;
        assert!(
            may_be_incremental || !response.update.is_incremental(),
            "M6: {response:?}"
        );
        if let ResourcesUpdate::Incremental { resources, removed } = &response.update {
            let held = &conversation.held;
            let is_news = |name, version| held.get(name) != Some(version);
            assert!(resources.iter().all(|r| is_news(&r.name, &r.version)));
            assert!(removed.iter().all(|name| held.contains_key(name)));
        }
        let held = updated(conversation.held.clone(), &response.update);
        assert_eq!(held, newest, "M7, M8");

        assert!(self.nonces.insert(response.nonce.clone()), "used once");
        conversation.pending = Some(newest);
        conversation.latest = Some(response.nonce.clone());
        self.sent.push((collection.clone(), response.nonce.clone()));
    }

    fn check(&self, db: &Database) {
        assert_eq!(self.source.stale(), self.stale, "M4");
        assert_eq!(self.source.nacks(), self.nacks, "M11");
        let named = |is: &dyn Fn(&Conversation, &State) -> bool| -> Vec<&TypeUrl> {
            let conversations = self.conversations.iter();
            let named = conversations.filter(|(name, it)| is(it, &state(db, name)));
            named.map(|(name, _)| name).collect()
        };
        let pending: Vec<_> = self.source.pending().collect();
        assert_eq!(pending, named(&|it, _| it.pending.is_some()));
        let rejected = self.source.rejected(db).map(|(name, _)| name);
        let rejected: Vec<_> = rejected.collect();
        assert_eq!(rejected, named(&|it, newest| it.rejected.contains(newest)));
        let is_current = named(&|it, newest| !it.holds(newest)).is_empty();
        assert_eq!(self.source.is_current(db), is_current);
        let claimed = named(&|it, _| !it.is_acked && !it.held.is_empty());
        assert_eq!(self.source.claimed() > 0, !claimed.is_empty());
    }
}

impl Conversation {
    fn holds(&self, newest: &State) -> bool {
        self.is_acked && self.held == *newest
    }
}
