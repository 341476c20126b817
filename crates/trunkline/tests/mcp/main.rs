//! Sources and sinks over sockets, in both directions of dialling.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this is a test"
)]

mod chain;
mod support;
mod tls;

use support::{Owner, Peers, held, thing};
use trunkline::mcp::{McpSource, Rejected, Served, SinkOptions, SourceOptions, Verdict, Wire};

/// The exchange that is the same whoever dials: two collections on one stream,
/// changes, a removal.
async fn exchange(mut peers: Peers, incremental: bool) {
    let first = [peers.owner.next().await, peers.owner.next().await];
    let mut lists = first.map(|(changes, _)| held(&changes));
    lists.sort();
    let expected = match incremental {
        true => ["A: +ns/bar +ns/foo", "B: +ns/b"],
        false => ["A: ns/bar ns/foo", "B: ns/b"],
    };
    assert_eq!(lists, expected);

    peers.source.upsert("A", thing("ns/baz", "0")).unwrap();
    let (changes, _) = peers.owner.next().await;
    let expected = match incremental {
        true => "A: +ns/baz",
        false => "A: ns/bar ns/baz ns/foo",
    };
    assert_eq!(held(&changes), expected);

    let left = [thing("ns/bar", "1"), thing("ns/baz", "0")];
    peers.source.set("A", left).unwrap();
    let (changes, _) = peers.owner.next().await;
    let expected = match incremental {
        true => "A: +ns/bar -ns/foo",
        false => "A: ns/bar ns/baz",
    };
    assert_eq!(held(&changes), expected);
    peers.source_is_current().await;
    let status = peers.sink.status();
    assert_eq!(status.collections[&"A".into()].held, 2);
    assert_eq!(status.collections[&"B".into()].accepted, 1);
}

#[tokio::test]
async fn m12_a_sink_dials_a_source() {
    for incremental in [false, true] {
        exchange(Peers::sink_dials(incremental).await, incremental).await;
    }
}

#[tokio::test]
async fn m12_a_source_dials_a_sink() {
    for incremental in [false, true] {
        exchange(Peers::source_dials(incremental).await, incremental).await;
    }
}

#[tokio::test]
async fn m11_a_rejection_is_an_alarm_on_both_sides() {
    let mut peers = Peers::sink_dials(true).await;
    peers.owner.next().await;
    peers.owner.next().await;
    peers.owner.reject_next(Rejected {
        name: Some("ns/bad".into()),
        reason: "spec.hosts: needed".to_owned(),
    });
    peers.source.upsert("A", thing("ns/bad", "0")).unwrap();
    let (_, verdict) = peers.owner.next().await;
    assert_ne!(verdict, Verdict::Accept);
    peers.until(|peers| peers.source.status().nacks == 1).await;
    let status = peers.source.status();
    let reason = "ns/bad: spec.hosts: needed".to_owned();
    assert_eq!(status.streams[0].rejected, [("A".into(), reason)]);
    assert_eq!(status.streams[0].node.id, "sink");
    let status = peers.sink.status();
    let status = &status.collections[&"A".into()];
    assert_eq!(status.faults, ["ns/bad: spec.hosts: needed"]);
    // Its last good state stays.
    assert_eq!(status.held, 2);
    // A changed set is sent at once (M5).
    peers.source.upsert("A", thing("ns/bad", "1")).unwrap();
    let (changes, verdict) = peers.owner.next().await;
    assert_eq!(held(&changes), "A: +ns/bad");
    assert_eq!(verdict, Verdict::Accept);
}

#[tokio::test]
async fn m12_a_sink_that_lost_its_source_resumes() {
    let mut peers = Peers::sink_dials(true).await;
    peers.owner.next().await;
    peers.owner.next().await;
    peers.source_is_current().await;
    let other = McpSource::default();
    let changed = [thing("ns/foo", "0"), thing("ns/new", "0")];
    other.set("A", changed).unwrap();
    other.set("B", [thing("ns/b", "0")]).unwrap();
    peers.replace_source(other).await;
    let again = [peers.owner.next().await, peers.owner.next().await];
    let mut lists = again.map(|(changes, _)| held(&changes));
    lists.sort();
    // Only the difference, which is none for one of them.
    assert_eq!(lists, ["", "A: +ns/new -ns/bar"]);
}

#[tokio::test]
async fn s85_a_sink_with_very_many_resources_resumes_with_what_it_lacks() {
    // Their versions are read aside and compared in slices.
    const MANY: usize = 20_000;
    let many = || (0..MANY).map(|n| thing(&format!("ns/many-{n}"), "0"));
    let mut peers = Peers::sink_dials(true).await;
    peers.owner.next().await;
    peers.owner.next().await;
    peers.source.set("A", many()).unwrap();
    peers.owner.next().await;
    peers.source_is_current().await;
    let other = McpSource::default();
    let changed = [thing("ns/new", "0"), thing("ns/many-7", "1")];
    let kept = many().skip(1).filter(|one| *one != thing("ns/many-7", "0"));
    other.set("A", kept.chain(changed)).unwrap();
    other.set("B", [thing("ns/b", "0")]).unwrap();
    peers.replace_source(other).await;
    let again = [peers.owner.next().await, peers.owner.next().await];
    let mut lists = again.map(|(changes, _)| held(&changes));
    lists.sort();
    assert_eq!(lists, ["", "A: +ns/many-7 +ns/new -ns/many-0"]);
    peers.source_is_current().await;
}

#[tokio::test]
async fn m10_a_source_of_one_collection_refuses_another_with_a_status() {
    let options = SourceOptions {
        served: Served::Only("A".into()),
        ..SourceOptions::default()
    };
    let status = support::ask(McpSource::new(options), "B").await;
    assert_eq!(status.code(), tonic::Code::NotFound);
    let expected = "the collection B is not served here; ask for A";
    assert_eq!(status.message(), expected);
}

#[tokio::test]
async fn a_sink_has_one_source_at_a_time() {
    let (owner, handle) = Owner::new();
    let sink = trunkline::mcp::McpSink::new(SinkOptions::of("sink", ["A"]), handle);
    let (address, _serving) = support::listening(|listener| {
        let sink = sink.clone();
        sink.listen(listener, Default::default())
    })
    .await;
    let first = McpSource::default();
    let _first = tokio::spawn(first.clone().dial(support::peer(address)));
    let mut owner = owner;
    owner.next().await;
    let status = support::dial_sink(address).await;
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(status.message(), "another source is connected to this sink");
}

#[tokio::test]
async fn m12_over_delta_xds_a_sink_has_changes_and_resumes() {
    let mut peers = Peers::sink_dials_over(Wire::DeltaXds).await;
    let first = [peers.owner.next().await, peers.owner.next().await];
    let mut lists = first.map(|(changes, _)| held(&changes));
    lists.sort();
    // A sink that holds nothing gets a list of all there is.
    assert_eq!(lists, ["A: ns/bar ns/foo", "B: ns/b"]);

    let left = [thing("ns/bar", "1"), thing("ns/baz", "0")];
    peers.source.set("A", left).unwrap();
    let (changes, _) = peers.owner.next().await;
    assert_eq!(held(&changes), "A: +ns/bar +ns/baz -ns/foo");
    peers.source_is_current().await;

    // Another source, which lacks what the sink holds of one collection, and all
    // of the other.
    let other = McpSource::default();
    other.set("A", [thing("ns/baz", "0")]).unwrap();
    peers.replace_source(other).await;
    let again = [peers.owner.next().await, peers.owner.next().await];
    let mut lists = again.map(|(changes, _)| held(&changes));
    lists.sort();
    assert_eq!(lists, ["A: -ns/bar", "B: -ns/b"]);
    peers.source_is_current().await;
    let status = peers.sink.status();
    assert_eq!(status.collections[&"A".into()].held, 1);
}

#[tokio::test]
async fn m5_over_delta_xds_a_rejected_change_is_stopped_and_another_taken() {
    let mut peers = Peers::sink_dials_over(Wire::DeltaXds).await;
    peers.owner.reject_next(Rejected {
        name: Some("ns/bad".into()),
        reason: "spec.hosts: needed".to_owned(),
    });
    let mut first = [peers.owner.next().await, peers.owner.next().await];
    first.sort_by_key(|(_, verdict)| *verdict == Verdict::Accept);
    let [(rejected, _), (_, accepted)] = first;
    assert_eq!(accepted, Verdict::Accept);
    let collection = rejected[0].type_url().clone();
    // What was rejected is asked for again once another was taken, and is still
    // all there is.
    let (again, verdict) = peers.owner.next().await;
    assert_eq!(held(&again), held(&rejected));
    assert_eq!(verdict, Verdict::Accept);
    peers.source_is_current().await;
    peers
        .source
        .upsert(collection.as_str(), thing("ns/new", "0"))
        .unwrap();
    let (changes, _) = peers.owner.next().await;
    assert_eq!(held(&changes), format!("{collection}: +ns/new"));
    assert_eq!(peers.source.status().nacks, 1);
}
