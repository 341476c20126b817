//! What a server has said before its present stream, and a source that begins
//! to use it.

use super::*;

#[test]
fn c47_the_old_word_of_a_server_that_cannot_be_reached_takes_nothing_away() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let one = rig
        .client
        .add_source(servers.to_vec(), FallbackPolicy::Grpc);
    let two = rig
        .client
        .add_source(vec![servers[1]], FallbackPolicy::Grpc);
    for (source, name) in [(one, "a"), (one, "b"), (two, "a"), (two, "c")] {
        rig.subscribe(source, name);
    }
    let watches = [(one, "a"), (two, "a"), (two, "c")];
    let watches = watches.map(|(source, name)| rig.watch(Some(source), name));
    let states = |rig: &Rig| watches.map(|watch| rig.state(watch));
    rig.connect(servers[1]);
    rig.send_all(servers[1], &["c@old"], &["a"]);
    for _ in 0..2 {
        rig.fail(servers[1]);
        rig.wait(60_000);
        rig.actions();
    }
    rig.client.handle_connected(servers[0], rig.now);
    rig.requests(servers[0]);
    rig.send(servers[0], &["a@1"]);
    rig.fail(servers[0]);
    rig.wait(60_000);
    rig.actions();
    rig.fail(servers[0]);
    let unreached = ["a@1 ~ Unreachable", "! Unreachable", "c@old ~ Unreachable"];
    assert_eq!(states(&rig), unreached);

    rig.fail(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[1]);
    rig.send(servers[1], &["c@new"]);
    assert_eq!(states(&rig), ["a@1", "! Deleted", "c@new"]);
    rig.send_all(servers[1], &[], &["a"]);
    assert_eq!(states(&rig), ["! Deleted", "! Deleted", "c@new"]);
}

#[test]
fn c47_so_does_that_of_one_that_has_not_answered_since_it_is_back() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let [one, two] = [servers.to_vec(), vec![servers[1]]].map(|servers| {
        let source = rig.client.add_source(servers, FallbackPolicy::Grpc);
        rig.subscribe(source, "a");
        source
    });
    let watch = rig.watch(Some(one), "a");
    rig.subscribe(two, "c");
    let other = rig.watch(Some(two), "c");
    rig.connect(servers[1]);
    rig.send_all(servers[1], &["c@1"], &["a"]);
    rig.client.handle_connected(servers[0], rig.now);
    rig.requests(servers[0]);
    rig.send(servers[0], &["a@1"]);
    for _ in 0..2 {
        rig.fail(servers[1]);
        rig.wait(60_000);
        rig.actions();
    }
    rig.client.handle_connected(servers[1], rig.now);
    rig.requests(servers[1]);

    // Something is missing when the better server fails.
    rig.subscribe(one, "b");
    rig.fail(servers[0]);
    rig.wait(60_000);
    rig.actions();
    rig.fail(servers[0]);
    let states = [watch, other].map(|watch| rig.state(watch));
    assert_eq!(states, ["a@1 ~ Unreachable", "c@1 ~ Unreachable"]);
    rig.connect(servers[1]);
    rig.send_all(servers[1], &["b@2"], &["a"]);
    let states = [watch, other].map(|watch| rig.state(watch));
    assert_eq!(states, ["! Deleted", "c@1"]);
}

#[test]
fn c47_a_stream_that_was_told_of_what_is_forgotten_is_opened_anew() {
    let mut rig = Rig::new();
    let (one, servers) = rig.source(2);
    let two = rig
        .client
        .add_source(vec![servers[1]], FallbackPolicy::Grpc);
    rig.subscribe(one, "a");
    rig.subscribe(two, "b");
    rig.connect(servers[1]);
    rig.send(servers[1], &["b@1"]);
    rig.fail(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[1]);
    rig.fail(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[1]);
    rig.fail(servers[0]);

    let anew = [servers[1]].map(|id| [Action::Close(id), Action::Connect(id)]);
    assert_eq!(rig.actions(), anew.concat());
    let late = rig
        .client
        .handle_response(servers[1], sotw("n", &["b@2"]), rig.now);
    assert_eq!(late, Err(SinkError::NotConnected));
    rig.client.handle_connected(servers[1], rig.now);
    let request = rig.client.poll_request(servers[1], rig.now);
    let Some(Request::Delta(request)) = request else {
        panic!("{request:?}");
    };
    assert_eq!(request.initial_versions.iter().count(), 0);
    assert_eq!(request.subscribe.len(), 2);
}

/// Two sources of which the first falls back to the server of the second. That
/// has denied `a`, which the first source has, on a stream that has ended.
struct Outdated {
    rig: Rig,
    one: SourceId,
    servers: [ServerId; 2],
    /// Of `a` at the first source, and of `c` at the second.
    watches: [WatchId; 2],
}

impl Outdated {
    fn new() -> Self {
        let mut rig = Rig::new();
        let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
        let [one, two] = [servers.to_vec(), vec![servers[1]]].map(|servers| {
            let source = rig.client.add_source(servers, FallbackPolicy::Grpc);
            rig.subscribe(source, "a");
            source
        });
        rig.subscribe(two, "c");
        let watches = [(one, "a"), (two, "c")];
        let watches = watches.map(|(source, name)| rig.watch(Some(source), name));
        rig.connect(servers[1]);
        rig.send_all(servers[1], &["c@1"], &["a"]);
        rig.client.handle_connected(servers[0], rig.now);
        rig.requests(servers[0]);
        rig.send(servers[0], &["a@1"]);
        rig.fail(servers[1]);
        Self {
            rig,
            one,
            servers,
            watches,
        }
    }

    /// Something is missing when the better server fails.
    fn fall_back(&mut self) {
        self.rig.subscribe(self.one, "b");
        self.rig.fail(self.servers[0]);
        self.rig.wait(60_000);
        self.rig.actions();
        self.rig.fail(self.servers[0]);
    }

    fn states(&self) -> [String; 2] {
        self.watches.map(|watch| self.rig.state(watch))
    }
}

#[test]
fn c47_what_a_server_said_on_a_stream_that_has_ended_takes_nothing_away() {
    for is_connected in [false, true] {
        let mut world = Outdated::new();
        if is_connected {
            world.rig.wait(60_000);
            world.rig.connect(world.servers[1]);
        }
        world.fall_back();
        assert_eq!(world.states(), ["a@1", "c@1"], "{is_connected}");

        // The wait before the better server failed let the other one connect.
        let id = world.servers[1];
        if is_connected {
            let anew = [Action::Close(id), Action::Connect(id)];
            assert_eq!(world.rig.actions(), anew);
        }
        world.rig.client.handle_connected(id, world.rig.now);
        let request = world.rig.client.poll_request(id, world.rig.now);
        let Some(Request::Delta(request)) = request else {
            panic!("{request:?}");
        };
        assert!(request.initial_versions.is_empty(), "{is_connected}");
        world.rig.send(id, &["b@2"]);
        assert_eq!(world.states(), ["a@1", "c@1"], "{is_connected}");
        world.rig.send_all(id, &["c@2"], &["a"]);
        assert_eq!(world.states(), ["! Deleted", "c@2"], "{is_connected}");
    }
}

#[test]
fn c47_what_a_server_says_on_its_present_stream_counts_at_once() {
    let mut world = Outdated::new();
    world.rig.wait(60_000);
    world.rig.connect(world.servers[1]);
    world.rig.send_all(world.servers[1], &["c@2"], &["a"]);
    world.fall_back();
    assert_eq!(world.states(), ["! Deleted", "c@2"]);
    assert_eq!(world.rig.actions(), [], "nothing is opened anew");
}

#[test]
fn c47_the_first_stream_of_a_server_is_not_opened_anew() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let [one, two] = [servers.to_vec(), vec![servers[1]]]
        .map(|servers| rig.client.add_source(servers, FallbackPolicy::Grpc));
    rig.subscribe(one, "a");
    rig.subscribe(two, "c");
    rig.connect(servers[1]);
    rig.fail(servers[0]);
    assert_eq!(rig.actions(), [], "nothing was said on another one");
    rig.send(servers[1], &["c@1"]);
}

#[test]
fn c48_what_a_better_server_said_on_a_stream_that_has_ended_is_no_return() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let [one, two] = [servers.to_vec(), vec![servers[0]]].map(|servers| {
        let source = rig.client.add_source(servers, FallbackPolicy::Grpc);
        rig.subscribe(source, "a");
        source
    });
    let watch = rig.watch(Some(one), "a");
    rig.subscribe(two, "c");
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@other"]);
    rig.wait(60_000);
    rig.connect(servers[0]);
    rig.send_all(servers[0], &["c@1"], &["a"]);
    rig.fail(servers[0]);
    rig.wait(60_000);
    rig.connect(servers[0]);

    // The source wants what the server had, and the server is silent.
    rig.subscribe(one, "c");
    rig.subscribe(one, "d");
    rig.requests(servers[0]);
    rig.wait(60_000);
    assert_eq!(rig.state(watch), "a@other");
    rig.send(servers[0], &["c@1"]);
    assert_eq!(rig.state(watch), "a@other", "of a it has said nothing yet");
    rig.send_all(servers[0], &[], &["a"]);
    assert_eq!(rig.state(watch), "! Deleted");
}

#[test]
fn c47_a_better_server_that_is_silent_is_asked_for_more_on_its_stream() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[0]);
    rig.subscribe(source, "b");
    assert_eq!(rig.actions(), [], "it is not opened anew");
    assert_eq!(rig.requests(servers[0]), 1);
}

#[test]
fn c48_what_another_source_has_from_a_better_server_is_a_reason_to_return() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let [one, two] = [servers.to_vec(), vec![servers[0]]]
        .map(|servers| rig.client.add_source(servers, FallbackPolicy::Grpc));
    rig.subscribe(one, "a");
    rig.subscribe(two, "c");
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[0]);
    rig.send(servers[0], &["c@1"]);
    let watch = rig.watch(Some(one), "c");
    rig.subscribe(one, "c");
    assert_eq!(rig.state(watch), "c@1");
    assert_eq!(rig.actions(), [Action::Close(servers[1])]);
}
