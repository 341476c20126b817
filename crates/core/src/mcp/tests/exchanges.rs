//! The exchanges of the document's three pictures, and what follows a stream
//! that is lost.

use super::*;

#[test]
fn m8_the_exchange_of_full_state() {
    let mut source = Source::with(&[("A", "foo@v0 bar@v0")]);
    let mut sink = Sink::new(&["A"], false);
    assert_eq!(
        run(&mut source, &mut sink, None),
        ["A 1 full: bar@v0 foo@v0"]
    );
    source.set("A", "foo@v0 bar@v0 baz@v0");
    let seen = run(&mut source, &mut sink, None);
    assert_eq!(seen, ["A 2 full: bar@v0 baz@v0 foo@v0"]);
    source.set("A", "bar@v1 baz@v0");
    assert_eq!(
        run(&mut source, &mut sink, None),
        ["A 3 full: bar@v1 baz@v0"]
    );
    // It is gone because it is not listed.
    assert_eq!(sink.holds("A"), "bar@v1 baz@v0");
    source.set("A", "");
    assert_eq!(run(&mut source, &mut sink, None), ["A 4 full:"]);
    assert_eq!(sink.holds("A"), "");
}

#[test]
fn m6_the_exchange_of_incremental_updates() {
    let mut source = Source::with(&[("A", "foo@v0 bar@v0")]);
    let mut sink = Sink::new(&["A"], true);
    let seen = run(&mut source, &mut sink, None);
    assert_eq!(seen, ["A 1 incremental: bar@v0 foo@v0"]);
    source.set("A", "foo@v0 bar@v0 baz@v0");
    let seen = run(&mut source, &mut sink, None);
    assert_eq!(seen, ["A 2 incremental: baz@v0"]);
    source.set("A", "bar@v1 baz@v0");
    let seen = run(&mut source, &mut sink, None);
    assert_eq!(seen, ["A 3 incremental: bar@v1 -foo"]);
    assert_eq!(sink.holds("A"), "bar@v1 baz@v0");
}

#[test]
fn m5_the_exchange_with_an_error() {
    for incremental in [false, true] {
        let mut source = Source::with(&[("A", "foo@v0 bar@v0")]);
        let mut sink = Sink::new(&["A"], incremental);
        run(&mut source, &mut sink, None);
        source.set("A", "foo@v0 bar@v0 baz@v0");
        assert_eq!(run(&mut source, &mut sink, Some("baz")).len(), 1);
        assert_eq!(sink.holds("A"), "bar@v0 foo@v0");
        assert_eq!(source.machine.nacks(), 1);
        let rejected: Vec<_> = source.machine.rejected(&source.db).collect();
        assert_eq!(rejected, [(&TypeUrl::new("A"), "baz: spec.hosts: needed")]);
        // The same set is not sent again, a different one is.
        assert_eq!(run(&mut source, &mut sink, None), [""; 0]);
        source.set("A", "foo@v0 bar@v0 baz@v1");
        let seen = run(&mut source, &mut sink, None);
        let expected = match incremental {
            true => "A 3 incremental: baz@v1",
            false => "A 3 full: bar@v0 baz@v1 foo@v0",
        };
        assert_eq!(seen, [expected]);
        assert_eq!(sink.holds("A"), "bar@v0 baz@v1 foo@v0");
        assert!(source.machine.is_current(&source.db));
    }
}

#[test]
fn m12_a_sink_resumes_with_the_versions_that_it_holds() {
    let mut source = Source::with(&[("A", "a@1 b@1 c@1")]);
    let mut sink = Sink::new(&["A"], true);
    run(&mut source, &mut sink, None);
    sink.machine.end_stream();
    source.set("A", "a@1 b@2 d@1");
    // Another stream, of another process with the same contents.
    let mut other = Source::with(&[("A", "a@1 b@2 d@1")]);
    sink.machine.begin_stream();
    let seen = run(&mut other, &mut sink, None);
    assert_eq!(seen, ["A 1 incremental: b@2 d@1 -c"]);
    assert_eq!(sink.holds("A"), "a@1 b@2 d@1");
}

#[test]
fn m12_a_delivery_without_a_verdict_is_followed_by_a_full_state() {
    let mut source = Source::with(&[("A", "a@1")]);
    let mut sink = Sink::new(&["A"], true);
    source.handle(sink.machine.poll_request().unwrap());
    let response = source.poll().unwrap();
    let received = sink.machine.handle_resources(response).unwrap();
    let Received::Delivered(delivery) = received else {
        panic!("{received:?}");
    };
    sink.machine.end_stream();
    // The owner applies it, and its verdict comes too late.
    sink.db.apply(delivery.changes).unwrap();
    sink.machine.begin_stream();
    sink.machine.handle_verdict(&"A".into(), &Verdict::Accept);
    // Meanwhile the resource is gone: only a full state says so.
    let mut other = Source::with(&[("A", "b@1")]);
    assert_eq!(run(&mut other, &mut sink, None), ["A 1 full: b@1"]);
    assert_eq!(sink.holds("A"), "b@1");
    other.set("A", "b@1 c@1");
    assert_eq!(run(&mut other, &mut sink, None), ["A 2 incremental: c@1"]);
}

#[test]
fn a_source_that_ends_leaves_nothing_behind() {
    let mut source = Source::with(&[("A", "a@1"), ("B", "b@1")]);
    let mut sink = Sink::new(&["A", "B"], true);
    run(&mut source, &mut sink, None);
    source.set("A", "a@2");
    source.poll().unwrap();
    source.machine.close(&mut source.db);
    assert_eq!(source.db.check(), Ok(()));
    let type_id = source.db.type_id(&"A".into());
    assert_eq!(source.db.memory_counts(type_id).retired, 0);
}
