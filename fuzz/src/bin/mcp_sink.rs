//! Any source of the Mesh Configuration Protocol and any owner around one sink:
//! it answers each response once, claims what its owner holds and nothing else,
//! and gets everything of a correct source afterwards.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::mcp::{
    Delivery, McpSink, McpSource, Received, Rejected, RequestResources, Resources, ResourcesUpdate,
    Served, SinkError, SinkNode, Verdict,
};
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_fuzz::Named;
use trunkline_fuzz::mcp::{
    COLLECTIONS, Collection, Entry, Read, State, read_request, read_resources, state, updated,
    version, write_request, write_resources,
};

#[derive(Arbitrary, Debug)]
struct Input {
    incremental: bool,
    /// It asks for the others.
    not_asked: Option<Collection>,
    steps: Vec<Step>,
    /// What the correct source has at the end.
    contents: Vec<(Collection, Vec<Entry>)>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    BeginStream,
    /// The owner may apply what it was asked about, and its verdict is lost.
    EndStream {
        applies: bool,
    },
    Respond(Answer),
    /// Any bytes as a response.
    Bytes(Vec<u8>),
    /// A verdict, which is that of the owner where there is a delivery.
    Judge(Collection, Vec<Option<Named>>),
    AskAgain,
}

#[derive(Arbitrary, Debug)]
struct Answer {
    of: Collection,
    nonce: u8,
    version: u8,
    incremental: bool,
    entries: Vec<Entry>,
    removed: Vec<Named>,
}

struct World {
    sink: McpSink,
    /// The owner's contents.
    owner: Database,
    asked: BTreeMap<TypeUrl, Asked>,
}

/// What is known of a collection from its messages alone.
#[derive(Default)]
struct Asked {
    /// What was accepted.
    held: State,
    /// Whether the owner may have more than was accepted.
    is_uncertain: bool,
    /// Whether the newest response was rejected.
    is_rejected: bool,
    delivery: Option<Awaited>,
}

/// A delivery without a verdict.
struct Awaited {
    nonce: Nonce,
    delivery: Delivery,
    is_full: bool,
    /// What is held if it is accepted.
    accepted: State,
}

fuzz_target!(|input: Input| {
    let not_asked = input.not_asked.map(Collection::url);
    let all = COLLECTIONS.map(TypeUrl::new).into_iter();
    let asked: BTreeSet<TypeUrl> = all.filter(|url| Some(url) != not_asked.as_ref()).collect();
    let node = SinkNode {
        id: "sink".to_owned(),
        ..SinkNode::default()
    };
    let mut world = World {
        sink: McpSink::new(node, asked.clone(), input.incremental),
        owner: Database::new(),
        asked: asked
            .into_iter()
            .map(|url| (url, Asked::default()))
            .collect(),
    };
    for step in &input.steps {
        world.step(step, input.incremental);
        world.check();
    }
    world.end_stream(false);
    world.settle(&input);
});

impl World {
    fn step(&mut self, step: &Step, incremental: bool) {
        match step {
            Step::BeginStream => self.begin_stream(incremental),
            Step::EndStream { applies } => self.end_stream(*applies),
            Step::Respond(answer) => self.respond(answer.response(), incremental),
            Step::Bytes(bytes) => match read_resources(Bytes::copy_from_slice(bytes)) {
                Some(Read::Whole(response)) => self.respond(response, incremental),
                Some(Read::Malformed(collection, nonce)) => self.malformed(&collection, nonce),
                None => {}
            },
            Step::Judge(of, faults) => self.judge(&of.url(), faults),
            Step::AskAgain => {
                self.sink.ask_again();
                let asked = self.asked.iter();
                let again =
                    asked.filter(|(_, asked)| asked.is_rejected && asked.delivery.is_none());
                let again: Vec<_> = again.map(|(url, _)| url.clone()).collect();
                self.expect_first_requests(&again, incremental);
            }
        }
    }

    fn begin_stream(&mut self, incremental: bool) {
        self.end_stream(false);
        self.sink.begin_stream();
        let all: Vec<_> = self.asked.keys().cloned().collect();
        self.expect_first_requests(&all, incremental);
    }

    fn end_stream(&mut self, applies: bool) {
        self.sink.end_stream();
        assert!(self.request().is_none());
        for (url, asked) in &mut self.asked {
            let Some(awaited) = asked.delivery.take() else {
                continue;
            };
            asked.is_uncertain = true;
            if applies {
                let applied = self.owner.apply(awaited.delivery.changes);
                applied.expect("a name is there once");
                // Nobody waits for it any more.
                self.sink.handle_verdict(url, &Verdict::Accept);
            }
        }
        assert!(self.request().is_none());
    }

    fn expect_first_requests(&mut self, of: &[TypeUrl], incremental: bool) {
        for url in of {
            let request = self.request().expect("it is asked for");
            let asked = &self.asked[url];
            assert_eq!(request.collection, *url);
            assert_eq!((request.nonce, request.error), (None, None));
            assert_eq!(request.incremental, incremental && !asked.is_uncertain);
            let claimed: State = request.initial_versions.iter().cloned().collect();
            match request.incremental {
                true => assert_eq!(claimed, state(&self.owner, url), "M7, M12"),
                false => assert!(claimed.is_empty()),
            }
        }
        assert!(self.request().is_none());
    }

    /// The next request, as a source reads it.
    fn request(&mut self) -> Option<RequestResources> {
        let request = self.sink.poll_request()?;
        let raw = write_request(&request);
        let read = read_request(raw.clone()).expect("a source reads what a sink writes");
        assert_eq!(write_request(&read), raw, "what is written reads back");
        Some(request)
    }

    fn respond(&mut self, response: Resources, incremental: bool) {
        let (collection, nonce) = (response.collection.clone(), response.nonce.clone());
        let expected_error = self.expected_error(&collection);
        let is_faulty = |asked: &Asked| {
            let may_be_incremental = incremental && !asked.is_uncertain;
            response.update.is_incremental() && !may_be_incremental || has_twice(&response.update)
        };
        let is_faulty = self.asked.get(&collection).is_some_and(is_faulty);
        let is_full = !response.update.is_incremental();
        let held = self.asked.get(&collection).map(|asked| asked.held.clone());
        let accepted = updated(held.unwrap_or_default(), &response.update);
        match self.sink.handle_resources(response) {
            Err(error) => {
                assert_eq!(Some(error), expected_error);
                assert!(self.request().is_none());
            }
            Ok(received) => {
                assert_eq!(None, expected_error);
                match received {
                    Received::Rejected(_) => {
                        assert!(is_faulty);
                        self.expect_answer(&collection, &nonce, true);
                    }
                    Received::Delivered(delivery) => {
                        assert!(!is_faulty);
                        assert!(self.request().is_none(), "M11: nothing is said yet");
                        self.asked(&collection).delivery = Some(Awaited {
                            nonce,
                            delivery,
                            is_full,
                            accepted,
                        });
                    }
                }
            }
        }
    }

    fn malformed(&mut self, collection: &TypeUrl, nonce: Nonce) {
        let fault = Rejected {
            name: None,
            reason: "ünfit".to_owned(),
        };
        let expected_error = self.expected_error(collection);
        let handled = self
            .sink
            .handle_malformed(collection, nonce.clone(), &fault);
        assert_eq!(handled.err(), expected_error);
        match expected_error {
            Some(_) => assert!(self.request().is_none()),
            None => self.expect_answer(collection, &nonce, true),
        }
    }

    fn expected_error(&self, collection: &TypeUrl) -> Option<SinkError> {
        match self.asked.get(collection) {
            None => Some(SinkError::NotAskedFor(collection.clone())),
            Some(asked) if asked.delivery.is_some() => {
                Some(SinkError::NotAcknowledged(collection.clone()))
            }
            Some(_) => None,
        }
    }

    /// One request answers a response, and says whether it was rejected.
    fn expect_answer(&mut self, collection: &TypeUrl, nonce: &Nonce, is_rejected: bool) {
        let request = self.request().expect("each response has an answer");
        assert_eq!(request.collection, *collection);
        // An empty nonce is none on the wire, and no source sends one.
        assert_eq!(request.nonce.as_ref(), Some(nonce));
        assert_eq!(request.error.is_some(), is_rejected, "M3");
        assert!(request.initial_versions.is_empty(), "M7");
        self.asked(collection).is_rejected = is_rejected;
        assert!(self.request().is_none());
    }

    fn asked(&mut self, collection: &TypeUrl) -> &mut Asked {
        self.asked.get_mut(collection).expect("it was asked for")
    }

    fn judge(&mut self, collection: &TypeUrl, faults: &[Option<Named>]) {
        let Some(asked) = self.asked.get_mut(collection) else {
            self.sink.handle_verdict(collection, &Verdict::Accept);
            return;
        };
        let Some(awaited) = asked.delivery.take() else {
            self.sink.handle_verdict(collection, &Verdict::Accept);
            assert!(self.request().is_none());
            return;
        };
        let faults = faults.iter().map(|name| Rejected {
            name: name.map(Named::name),
            reason: "ünfit".to_owned(),
        });
        let faults: Vec<_> = faults.collect();
        let is_rejected = !faults.is_empty();
        let verdict = match is_rejected {
            true => Verdict::Reject(faults),
            false => {
                let applied = self.owner.apply(awaited.delivery.changes);
                applied.expect("a name is there once");
                asked.is_uncertain &= !awaited.is_full;
                asked.held = awaited.accepted;
                Verdict::Accept
            }
        };
        self.sink.handle_verdict(collection, &verdict);
        self.expect_answer(collection, &awaited.nonce, is_rejected);
    }

    /// The sink knows what was accepted, and the owner has no less.
    fn check(&mut self) {
        self.owner.check().expect("the invariants hold");
        for (url, asked) in &self.asked {
            let versions = self.sink.versions(url);
            let versions: State = versions.map(|(n, v)| (n.clone(), v.clone())).collect();
            assert_eq!(versions, asked.held);
            if !asked.is_uncertain {
                assert_eq!(versions, state(&self.owner, url), "M11");
            }
        }
    }

    /// A correct source brings the sink to what it has (M12).
    fn settle(&mut self, input: &Input) {
        let mut contents = Database::new();
        for (of, entries) in &input.contents {
            let entries = entries.iter().filter(|entry| entry.has_name());
            let all = entries.map(|entry| entry.resource()).collect();
            let _ = contents.apply(vec![Change::ReplaceAll(of.url(), all)]);
        }
        let mut source = McpSource::new(&mut contents, Served::Any);
        self.sink.begin_stream();
        let mut responses = 0;
        loop {
            while let Some(request) = self.request() {
                source.handle_request(&mut contents, request).expect("M10");
            }
            let Some(response) = source.poll_resources(&mut contents) else {
                break;
            };
            responses += 1;
            assert!(responses <= COLLECTIONS.len(), "it does not come to an end");
            let raw = write_resources(&response);
            let Some(Read::Whole(response)) = read_resources(raw) else {
                panic!("a sink reads what a source writes: {response:?}");
            };
            let received = self.sink.handle_resources(response).expect("it was asked");
            let Received::Delivered(delivery) = received else {
                panic!("{received:?}");
            };
            self.owner
                .apply(delivery.changes)
                .expect("names are there once");
            self.sink
                .handle_verdict(&delivery.collection, &Verdict::Accept);
        }
        for url in self.asked.keys() {
            assert_eq!(state(&self.owner, url), state(&contents, url), "M12");
        }
        assert!(source.is_current(&contents));
    }
}

impl Answer {
    fn response(&self) -> Resources {
        let resources = self.entries.iter().map(|entry| entry.resource()).collect();
        Resources {
            collection: self.of.url(),
            version: version(self.version),
            nonce: Nonce::new(self.nonce.to_string()),
            update: match self.incremental {
                false => ResourcesUpdate::FullState(resources),
                true => ResourcesUpdate::Incremental {
                    resources,
                    removed: self.removed.iter().map(|name| name.name()).collect(),
                },
            },
        }
    }
}

/// Whether no source may send it, whatever was asked for.
fn has_twice(update: &ResourcesUpdate) -> bool {
    let mut seen = BTreeSet::new();
    let mut names = update.resources().iter().map(|resource| &resource.name);
    let is_repeated = !names.all(|name| seen.insert(name));
    let is_removed = match update {
        ResourcesUpdate::FullState(_) => false,
        ResourcesUpdate::Incremental { removed, .. } => removed.iter().any(|n| seen.contains(n)),
    };
    is_repeated || is_removed
}
