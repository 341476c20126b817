//! What sinks can cost a source.

use super::*;
use crate::mcp::{Publisher, SourceError};
use crate::moment::Moment;

/// A first request that says so many resources are held, whose names have a
/// MiB.
fn claim(collection: &str, count: usize) -> RequestResources {
    let filler = "x".repeat(1 << 20);
    let version = |n: usize| (format!("{n}{filler}").as_str().into(), "1".into());
    let versions: Vec<_> = (0..count).map(version).collect();
    RequestResources {
        initial_versions: versions.into(),
        ..first(collection, true)
    }
}

#[test]
fn m7_versions_beyond_the_bound_of_a_stream_are_answered_by_a_full_state() {
    let mut source = Source::with(&[("A", "a@1"), ("B", "b@1")]);
    assert_eq!(source.handle(claim("A", 24)), Handled::First);
    assert_eq!(source.handle(claim("B", 24)), Handled::VersionsIgnored);
    let a = source.poll().unwrap();
    assert!(a.update.is_incremental());
    source.sends("B 2 full: b@1");
    // They count until the sink holds what was sent.
    source.handle(ack(&a, true));
    assert_eq!(source.machine.claimed(), 0);
    assert_eq!(source.handle(claim("B", 24)), Handled::Restarted);
}

#[test]
fn m7_versions_of_all_sinks_have_a_bound_and_leave_room_for_the_next() {
    let mut publisher = Publisher::new(Served::Any, None);
    let mut ignored = 0;
    for _ in 0..20 {
        let stream = publisher.open();
        let request = claim("A", 18);
        let handled = publisher.handle_request(stream, request, Moment::START);
        ignored += usize::from(handled == Ok(Handled::VersionsIgnored));
    }
    // Half of what is left is 19 MiB for the sixth sink, and 10 for the seventh.
    assert_eq!(ignored, 20 - 6);
    let stream = publisher.open();
    let small = publisher.handle_request(stream, claim("A", 1), Moment::START);
    assert_eq!(small, Ok(Handled::First));
    let stream = publisher.open();
    let nothing = publisher.handle_request(stream, first("A", true), Moment::START);
    assert_eq!(nothing, Ok(Handled::First));
}

#[test]
fn m10_a_long_name_is_refused_and_a_long_node_ends_the_stream() {
    let mut source = Source::with(&[("A", "a@1")]);
    let long = "c".repeat(1025);
    assert_eq!(source.handle(first(&long, true)), Handled::Refused);
    let annotation = |n: usize| (n.to_string(), "value".to_owned());
    let request = RequestResources {
        node: Some(SinkNode {
            id: "sink".to_owned(),
            annotations: (0..1000).map(annotation).collect(),
        }),
        ..first("A", true)
    };
    let error = source.machine.handle_request(&mut source.db, request);
    assert!(matches!(error, Err(SourceError::Node { .. })), "{error:?}");
    assert_eq!(*source.machine.node(), SinkNode::default());
}

#[test]
fn m10_collections_without_contents_go_with_the_last_stream_that_asks_for_them() {
    let mut publisher = Publisher::new(Served::Any, None);
    let set = Change::ReplaceAll("kept".into(), resources("a@1"));
    publisher.apply(vec![set], Moment::START).unwrap();
    let streams = [(); 3].map(|()| publisher.open());
    for (nth, stream) in streams.into_iter().enumerate() {
        for number in 0..100 {
            let request = first(&format!("invented/{nth}/{number}"), true);
            let handled = publisher.handle_request(stream, request, Moment::START);
            assert_eq!(handled, Ok(Handled::First));
        }
        let shared = publisher.handle_request(stream, first("shared", true), Moment::START);
        assert_eq!(shared, Ok(Handled::First));
    }
    let types = |publisher: &Publisher| publisher.contents().types().count();
    // Beside those that were invented: `kept`, and `shared` until the last leaves.
    for (expected, stream) in [2 + 200, 2 + 100, 1].into_iter().zip(streams) {
        publisher.close(stream, Moment::START);
        assert_eq!(types(&publisher), expected);
    }
}

#[test]
fn m11_of_a_long_reason_the_beginning_is_remembered() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", true));
    let one = source.poll().unwrap();
    let request = RequestResources {
        error: Some(error(&"é".repeat(10_000))),
        ..ack(&one, true)
    };
    source.handle(request);
    let rejected: Vec<_> = source.machine.rejected(&source.db).collect();
    assert_eq!(rejected[0].1, "é".repeat(512));
}

#[test]
fn m6_a_change_of_one_of_100_000_resources_costs_its_subscribers_only() {
    const RESOURCES: usize = 100_000;
    let list = |count: usize| -> Vec<_> {
        let texts = (0..count).map(|n| format!("ns/{n}@1"));
        texts.map(|text| resource(&text)).collect()
    };
    let mut publisher = Publisher::new(Served::Any, None);
    let all = Change::ReplaceAll("A".into(), list(RESOURCES));
    let others = Change::ReplaceAll("B".into(), list(1000));
    publisher.apply(vec![all, others], Moment::START).unwrap();
    let streams: Vec<_> = ["A", "A", "A", "B", "B"]
        .into_iter()
        .map(|collection| {
            let stream = publisher.open();
            let request = first(collection, true);
            publisher
                .handle_request(stream, request, Moment::START)
                .unwrap();
            let full = publisher.poll_resources(stream).unwrap();
            assert!(full.update.resources().len() >= 1000);
            let ack = ack(&full, true);
            publisher
                .handle_request(stream, ack, Moment::START)
                .unwrap();
            stream
        })
        .collect();
    publisher.take_woken();

    let visited = |publisher: &Publisher| publisher.contents().work().entries;
    let before = visited(&publisher);
    let change = Change::Upsert("A".into(), resource("ns/7@2"));
    publisher.apply(vec![change], Moment::START).unwrap();
    let mut woken = publisher.take_woken();
    woken.sort();
    assert_eq!(woken, streams[..3]);
    for stream in &streams[..3] {
        let response = publisher.poll_resources(*stream).unwrap();
        assert_eq!(response.update.resources(), [resource("ns/7@2")]);
    }
    let entries = visited(&publisher) - before;
    assert!(entries < 20, "{entries} names were visited");
    let before = visited(&publisher);
    for stream in &streams[3..] {
        assert_eq!(publisher.poll_resources(*stream), None);
    }
    assert_eq!(visited(&publisher), before);
}
