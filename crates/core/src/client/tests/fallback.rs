//! Several servers of one source.

use super::*;

#[test]
fn c46_c47_the_next_server_is_asked_for_everything_that_is_watched() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    rig.subscribe(source, "b");
    let watch = rig.watch(Some(source), "a");
    assert_eq!(rig.actions(), [Action::Connect(servers[0])]);
    rig.fail(servers[0]);
    assert_eq!(rig.state(watch), "-", "C49: another server is left");

    rig.connect(servers[1]);
    rig.send(servers[1], &["a@1", "b@1"]);
    assert_eq!(rig.state(watch), "a@1");
    rig.wait(60_000);
    let again = rig.actions();
    assert!(
        again.contains(&Action::Connect(servers[0])),
        "C47: it is tried again"
    );
}

#[test]
fn c46_what_is_cached_is_no_reason_to_fall_back() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    rig.fail(servers[0]);
    rig.wait(60_000);
    assert_eq!(rig.actions(), [Action::Connect(servers[0])]);
    rig.fail(servers[0]);
    assert_eq!(rig.actions(), [], "everything is cached");

    rig.subscribe(source, "b");
    assert_eq!(rig.actions(), [Action::Connect(servers[1])], "b is not");
}

#[test]
fn c48_the_first_resource_of_a_better_server_ends_the_fallback() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "*");
    let all = rig.watch(Some(source), "*");
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@old", "b@old"]);
    rig.wait(30_000);
    assert_eq!(rig.changes(all), ["a@old", "b@old"]);

    rig.connect(servers[0]);
    assert_eq!(rig.actions(), [], "a stream alone is not enough");
    rig.send(servers[0], &["a@new"]);
    assert_eq!(rig.actions(), [Action::Close(servers[1])]);
    assert_eq!(rig.changes(all)[0], "a@new");
    rig.wait(30_000);
    let gone = rig.changes(all);
    let statuses = rig.client.statuses();
    let names: Vec<_> = statuses
        .iter()
        .filter(|s| !s.held.is_empty())
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["a"], "the better server has no b: {gone:?}");
}

#[test]
fn c48_so_does_one_that_a_better_server_has_sent_to_another_source() {
    for shared_name in ["a", "*"] {
        let mut rig = Rig::new();
        let (source, servers) = rig.source(2);
        let other = rig
            .client
            .add_source(vec![servers[0]], FallbackPolicy::Grpc);
        rig.subscribe(other, shared_name);
        rig.subscribe(source, "b");
        let watches = ["a", "b"].map(|name| rig.watch(Some(source), name));
        rig.actions();
        rig.fail(servers[0]);
        rig.connect(servers[1]);
        rig.send(servers[1], &["b@other"]);
        rig.wait(60_000);
        rig.connect(servers[0]);
        rig.send_all(servers[0], &["a@best"], &["b"]);
        let states = watches.map(|watch| rig.state(watch));
        assert_eq!(states, ["-", "b@other"], "the best has nothing for it");

        rig.subscribe(source, shared_name);
        let states = watches.map(|watch| rig.state(watch));
        assert_eq!(states, ["a@best", "! Deleted"], "{shared_name}");
        assert_eq!(rig.actions(), [Action::Close(servers[1])]);
    }
}

#[test]
fn c49_watches_hear_of_connections_when_no_server_is_left() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.actions();
    rig.fail(servers[0]);
    assert_eq!(rig.news(), []);
    rig.actions();
    rig.fail(servers[1]);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "! Unreachable");

    rig.wait(60_000);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@1"]);
    assert_eq!(rig.state(watch), "a@1");
}

#[test]
fn c40_what_is_cached_stays_while_nobody_can_be_reached() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    rig.fail(servers[0]);
    assert_eq!(
        rig.state(watch),
        "a@1",
        "C36: a stream that answered may end"
    );
    rig.wait(60_000);
    rig.actions();
    rig.fail(servers[0]);
    assert_eq!(rig.state(watch), "a@1 ~ Unreachable");
    rig.wait(60_000);
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    assert_eq!(rig.state(watch), "a@1");
}

#[test]
fn c12_two_sources_with_one_server_share_its_stream() {
    let mut rig = Rig::new();
    let shared = rig.server(Mode::Delta);
    let other = rig.server(Mode::Delta);
    let one = rig
        .client
        .add_source(vec![shared, other], FallbackPolicy::Grpc);
    let two = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    rig.subscribe(one, "a");
    rig.subscribe(two, "b");
    let (a, b) = (rig.watch(Some(one), "a"), rig.watch(Some(two), "b"));
    let none = rig.watch(Some(two), "a");
    assert_eq!(rig.actions(), [Action::Connect(shared)]);
    rig.client.handle_connected(shared, rig.now);
    assert_eq!(rig.requests(shared), 1, "one request for both");
    rig.send(shared, &["a@1", "b@1"]);
    assert_eq!((rig.state(a), rig.state(b)), ("a@1".into(), "b@1".into()));
    assert_eq!(rig.state(none), "-", "it is not the source's");

    rig.unsubscribe(one, "a");
    assert_eq!(rig.actions(), []);
    rig.unsubscribe(two, "b");
    assert_eq!(rig.actions(), [Action::Close(shared)]);
}

#[test]
fn e9_a_server_that_was_replaced_sends_everything_again() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    rig.fail(servers[0]);
    rig.subscribe(source, "b");
    rig.wait(60_000);
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@other", "b@other"]);

    rig.wait(60_000);
    assert!(rig.actions().contains(&Action::Connect(servers[0])));
    rig.client.handle_connected(servers[0], rig.now);
    let request = rig.client.poll_request(servers[0], rig.now);
    let Some(Request::Delta(request)) = request else {
        panic!("a request");
    };
    assert!(
        request.initial_versions.is_empty(),
        "its versions mean nothing any more"
    );
}

#[test]
fn c12_what_one_source_has_from_a_server_another_need_not_ask_for() {
    let mut rig = Rig::new();
    let shared = rig.server(Mode::Delta);
    let one = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    let two = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    rig.subscribe(one, "*");
    rig.connect(shared);
    rig.send(shared, &["a@1", "b@1"]);

    let watch = rig.watch(Some(two), "a");
    rig.subscribe(two, "a");
    assert_eq!(rig.state(watch), "a@1");
    rig.send(shared, &["a@2"]);
    assert_eq!(rig.state(watch), "a@2");
}

#[test]
fn c48_what_a_better_server_denied_before_it_is_used_again_is_gone_then() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    rig.subscribe(source, "b");
    let (a, b) = (rig.watch(Some(source), "a"), rig.watch(Some(source), "b"));
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@other", "b@other"]);
    rig.wait(30_000);

    rig.connect(servers[0]);
    rig.send_all(servers[0], &[], &["b"]);
    assert_eq!(rig.state(b), "b@other", "the other server is still used");
    rig.send(servers[0], &["a@best"]);
    assert_eq!(rig.state(a), "a@best");
    assert_eq!(rig.state(b), "! Deleted");
}

#[test]
fn c48_what_a_source_has_stays_until_the_server_in_use_has_spoken_of_it() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    for name in ["a", "b", "c"] {
        rig.subscribe(source, name);
    }
    let watches = ["a", "b", "c"].map(|name| rig.watch(Some(source), name));
    let states = |rig: &Rig| watches.map(|watch| rig.state(watch));
    rig.actions();
    rig.fail(servers[0]);
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@other", "b@other", "c@other"]);

    rig.wait(60_000);
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@best"]);
    assert_eq!(states(&rig), ["a@best", "b@other", "c@other"]);
    rig.send_all(servers[0], &[], &["b"]);
    assert_eq!(states(&rig), ["a@best", "! Deleted", "c@other"]);
    rig.wait(15_000);
    assert_eq!(states(&rig), ["a@best", "! Deleted", "! Silent"]);
}

#[test]
fn c33_a_server_that_says_nothing_takes_nothing_away() {
    let mut rig = Rig::new();
    let (shared, other) = (rig.server(Mode::Delta), rig.server(Mode::Delta));
    let one = rig
        .client
        .add_source(vec![shared, other], FallbackPolicy::Grpc);
    let two = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    rig.subscribe(two, "a");
    let watch = rig.watch(Some(two), "a");
    rig.connect(shared);
    rig.send(shared, &["a@1"]);
    rig.fail(shared);
    rig.wait(60_000);
    rig.actions();
    rig.fail(shared);
    rig.subscribe(one, "b");
    rig.wait(60_000);

    // The server starts anew for the first source, and is asked for all.
    rig.connect(shared);
    rig.wait(60_000);
    assert_eq!(rig.state(watch), "a@1 ~ Unreachable");
    rig.send(shared, &["b@1"]);
    assert_eq!(rig.state(watch), "a@1");
    rig.send(shared, &["a@2"]);
    assert_eq!(rig.state(watch), "a@2");
}

#[test]
fn c25_what_one_source_ends_another_keeps() {
    let mut rig = Rig::new();
    let shared = rig.server(Mode::Delta);
    let one = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    let two = rig.client.add_source(vec![shared], FallbackPolicy::Grpc);
    let watches = [one, two].map(|source| {
        rig.subscribe(source, "a");
        rig.watch(Some(source), "a")
    });
    rig.connect(shared);
    rig.send(shared, &["a@1"]);
    rig.unsubscribe(one, "a");
    assert_eq!(watches.map(|watch| rig.state(watch)), ["-", "a@1"]);
}

#[test]
fn e10_a_ttl_runs_out_whichever_server_is_used() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(2);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    let mut mortal = Arc::unwrap_or_clone(resource("a@1"));
    mortal.ttl = Some(std::time::Duration::from_secs(74));
    let response = DeltaResponse {
        type_url: cds(),
        nonce: "n".into(),
        resources: vec![WireResource::full(Arc::new(mortal))].into(),
        removed: Vec::new(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    };
    rig.judge(servers[0], response, Verdict::accept());
    rig.fail(servers[0]);
    rig.wait(60_000);
    rig.actions();
    rig.fail(servers[0]);
    rig.subscribe(source, "b");
    rig.connect(servers[1]);
    rig.send(servers[1], &["b@1"]);
    assert_eq!(rig.state(watch), "a@1");
    rig.wait(13_000);
    assert_eq!(rig.state(watch), "a@1", "the other server may be slow");
    rig.wait(1_000);
    assert_eq!(rig.state(watch), "! Expired");
}

#[test]
fn e11_envoy_uses_the_second_server_in_place_of_the_first() {
    let mut rig = Rig::new();
    let servers = [rig.server(Mode::Delta), rig.server(Mode::Delta)];
    let source = rig
        .client
        .add_source(servers.to_vec(), FallbackPolicy::Envoy);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    for _ in 0..2 {
        rig.wait(60_000);
        assert_eq!(rig.actions(), [Action::Connect(servers[0])]);
        rig.fail(servers[0]);
    }
    rig.connect(servers[1]);
    rig.send(servers[1], &["a@second"]);
    rig.fail(servers[1]);
    rig.wait(60_000);
    assert_eq!(rig.actions(), [Action::Connect(servers[1])]);
    rig.fail(servers[1]);
    rig.wait(60_000);
    rig.connect(servers[0]);
    assert_eq!(rig.state(watch), "a@second ~ Unreachable");
    rig.send(servers[0], &["a@first"]);
    assert_eq!(rig.state(watch), "a@first");
}
