//! A source and a sink under random changes, rejections and lost streams: after
//! quiet the sink holds what the source has.

use std::collections::BTreeMap;

use super::*;

/// Draws numbers from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    /// A collection of up to five names, and maybe one that the owner rejects.
    fn contents(&mut self, may_be_bad: bool) -> String {
        let mut words: Vec<String> = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            if self.below(2) == 0 {
                words.push(format!("{name}@{}", self.below(3)));
            }
        }
        if may_be_bad && self.below(3) == 0 {
            words.push(format!("bad@{}", self.below(3)));
        }
        words.join(" ")
    }
}

/// The messages on their way, and both ends.
struct World {
    source: Source,
    sink: Sink,
    to_source: Vec<RequestResources>,
    to_sink: Vec<Resources>,
    /// A delivery whose verdict is not given.
    judged: Option<Delivery>,
    /// The newest set that was sent of each collection, in words.
    in_flight: BTreeMap<TypeUrl, String>,
    /// Sets that the owner rejected on this stream.
    rejected: Vec<String>,
}

impl World {
    fn new(incremental: bool) -> Self {
        Self {
            source: Source::with(&[]),
            sink: Sink::new(&["A", "B"], incremental),
            to_source: Vec::new(),
            to_sink: Vec::new(),
            judged: None,
            in_flight: BTreeMap::new(),
            rejected: Vec::new(),
        }
    }

    /// One message or verdict moves, if there is one. Returns whether.
    fn step(&mut self) -> bool {
        if let Some(delivery) = self.judged.take() {
            self.judge(delivery);
            return true;
        }
        if let Some(request) = self.sink.machine.poll_request() {
            self.to_source.push(request);
            return true;
        }
        if !self.to_source.is_empty() {
            let request = self.to_source.remove(0);
            let collection = request.collection.clone();
            let handled = self.source.handle(request);
            if matches!(handled, Handled::Nack(_)) {
                self.rejected.extend(self.in_flight.remove(&collection));
            }
            return true;
        }
        if !self.to_sink.is_empty() {
            let response = self.to_sink.remove(0);
            let received = self.sink.machine.handle_resources(response).unwrap();
            let Received::Delivered(delivery) = received else {
                panic!("{received:?}");
            };
            self.judged = Some(delivery);
            return true;
        }
        match self.source.poll() {
            Some(response) => {
                // No set is sent twice after it was rejected (M5).
                let state = self.source_state(response.collection.as_str());
                assert!(!self.rejected.contains(&state), "{state}");
                self.in_flight.insert(response.collection.clone(), state);
                self.to_sink.push(response);
                true
            }
            None => false,
        }
    }

    fn judge(&mut self, delivery: Delivery) {
        let is_bad = |change: &Change| match change {
            Change::ReplaceAll(_, all) => all.iter().any(|r| r.name.as_str() == "bad"),
            Change::Upsert(_, resource) => resource.name.as_str() == "bad",
            _ => false,
        };
        let verdict = match delivery.changes.iter().any(is_bad) {
            true => Verdict::Reject(Vec::new()),
            false => {
                self.sink.db.apply(delivery.changes).unwrap();
                Verdict::Accept
            }
        };
        self.sink
            .machine
            .handle_verdict(&delivery.collection, &verdict);
    }

    /// The stream is lost, with all messages and maybe a verdict on their way.
    fn lose_stream(&mut self, applies: bool) {
        self.to_source.clear();
        self.to_sink.clear();
        self.rejected.clear();
        self.sink.machine.end_stream();
        if let Some(delivery) = self.judged.take()
            && applies
        {
            // The owner is done, and its verdict is lost.
            self.judge(delivery);
        }
        let machine = McpSource::new(&mut self.source.db, Served::Any);
        let lost = std::mem::replace(&mut self.source.machine, machine);
        lost.close(&mut self.source.db);
        self.sink.machine.begin_stream();
    }

    fn source_state(&mut self, collection: &str) -> String {
        let type_id = self.source.db.type_id(&collection.into());
        let all = self.source.db.resources(type_id);
        let mut all: Vec<_> = all.map(|resource| format!("{resource:?}")).collect();
        all.sort();
        format!("{collection}: {}", all.join(" "))
    }
}

fn run_seed(seed: u64) {
    let mut draw = Draw(seed);
    let mut world = World::new(draw.below(2) == 0);
    for _ in 0..60 {
        match draw.below(12) {
            0 | 1 => {
                let collection = ["A", "B"][draw.below(2) as usize];
                let contents = draw.contents(true);
                world.source.set(collection, &contents);
            }
            2 => {
                let applies = draw.below(2) == 0;
                world.lose_stream(applies);
            }
            _ => {
                world.step();
            }
        }
    }
    for collection in ["A", "B"] {
        let contents = draw.contents(false);
        world.source.set(collection, &contents);
    }
    let mut steps = 0;
    while world.step() {
        steps += 1;
        assert!(steps < 100, "seed {seed}: it does not end");
    }
    for collection in ["A", "B"] {
        let held = format!("{collection}: {}", world.sink.holds(collection));
        assert_eq!(held, world.source_state(collection), "seed {seed}");
    }
    assert!(world.source.machine.is_current(&world.source.db));
}

#[test]
fn m12_after_quiet_a_sink_holds_what_its_source_has() {
    for seed in 0..1_000 {
        run_seed(seed);
    }
}
