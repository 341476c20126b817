//! Counters, what is taken of them, and who shares a stream.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError::{Closed, Empty};
use tokio::time::Instant;
use trunkline_proto::envoy::envoy::config::core::v3::Locality;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterStats;

use super::reporter::Reporting;
use super::store::Wanted;
use super::task::{Instructions, parse_instructions};
use crate::client::control_plane::ControlPlane;

fn zone(zone: &str) -> Locality {
    Locality {
        zone: zone.to_owned(),
        ..Locality::default()
    }
}

fn server(address: &str) -> Arc<ControlPlane> {
    Arc::new(ControlPlane::plaintext(address.parse().unwrap()))
}

/// What a report says of a cluster: issued, succeeded, failed, in progress of
/// each locality.
fn calls(stats: &ClusterStats) -> Vec<(String, [u64; 4])> {
    let localities = stats.upstream_locality_stats.iter();
    let each = localities.map(|of| {
        let numbers = [
            of.total_issued_requests,
            of.total_successful_requests,
            of.total_error_requests,
            of.total_requests_in_progress,
        ];
        (of.locality.clone().unwrap_or_default().zone, numbers)
    });
    each.collect()
}

#[tokio::test(start_paused = true)]
async fn c63_a_report_has_what_was_counted_since_the_last() {
    let reporting = Reporting::default();
    let (reporter, opened) = reporting.reporter(&server("127.0.0.1:1"));
    let store = opened.unwrap().store;
    let cluster = reporter.cluster("c", "service");
    let (a, b) = (
        cluster.locality(&zone("a"), 0),
        cluster.locality(&zone("b"), 1),
    );
    a.begin().succeed();
    a.begin().fail();
    let open = b.begin();
    cluster.drop_call("throttle");
    cluster.drop_call("");
    tokio::time::advance(Duration::from_secs(3)).await;

    let report = store.take(&Wanted::All, Instant::now());
    let [stats] = &report[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        calls(stats),
        [("a".into(), [2, 1, 1, 0]), ("b".into(), [1, 0, 0, 1])]
    );
    assert_eq!(stats.cluster_service_name, "service");
    assert_eq!(stats.total_dropped_requests, 2);
    assert_eq!(stats.dropped_requests.len(), 1);
    assert_eq!(stats.load_report_interval.unwrap().seconds, 3);

    // A call in progress is a level; all else is a difference.
    tokio::time::advance(Duration::from_secs(2)).await;
    let report = store.take(&Wanted::All, Instant::now());
    assert_eq!(calls(&report[0]), [("b".into(), [0, 0, 0, 1])]);
    assert_eq!(report[0].total_dropped_requests, 0);
    assert_eq!(report[0].load_report_interval.unwrap().seconds, 2);
    drop(open);
    let report = store.take(&Wanted::All, Instant::now());
    assert_eq!(calls(&report[0]), [("b".into(), [0, 0, 1, 0])]);
}

#[tokio::test]
async fn c63_a_cluster_that_nobody_counts_for_is_told_of_once_more() {
    let reporting = Reporting::default();
    let (reporter, opened) = reporting.reporter(&server("127.0.0.1:1"));
    let store = opened.unwrap().store;
    let take = || store.take(&Wanted::All, Instant::now());
    let cluster = reporter.cluster("c", "");
    assert_eq!(take().len(), 1, "an idle cluster is listed");
    cluster.locality(&zone("a"), 0).begin().succeed();
    drop(cluster);
    assert_eq!(calls(&take()[0]), [("a".into(), [1, 1, 0, 0])]);
    assert!(take().is_empty());
}

#[tokio::test]
async fn c62_only_the_clusters_that_the_server_names_are_reported() {
    let reporting = Reporting::default();
    let (reporter, opened) = reporting.reporter(&server("127.0.0.1:1"));
    let store = opened.unwrap().store;
    let all = ["a", "b"].map(|name| reporter.cluster(name, "").locality(&zone("z"), 0));
    all.iter().for_each(|locality| locality.begin().succeed());
    let wanted = Wanted::Named(vec!["b".into(), "ghost".into()]);
    let report = store.take(&wanted, Instant::now());
    let names: Vec<_> = report.iter().map(|s| s.cluster_name.as_str()).collect();
    assert_eq!(names, ["b"]);
    // The other one is counted on until it is asked for.
    let report = store.take(&Wanted::All, Instant::now());
    assert_eq!(calls(&report[0]), [("z".into(), [1, 1, 0, 0])]);
}

#[tokio::test]
async fn c62_reporters_of_one_server_share_a_stream_and_the_last_one_ends_it() {
    let reporting = Reporting::default();
    let (one, opened) = reporting.reporter(&server("127.0.0.1:1"));
    let mut opened = opened.unwrap();
    let (two, again) = reporting.reporter(&server("127.0.0.1:1"));
    assert!(again.is_none());
    let (_other, opens) = reporting.reporter(&server("127.0.0.1:2"));
    assert!(opens.is_some(), "each server has counters of its own");

    let call = two.cluster("c", "").locality(&zone("a"), 0).begin();
    drop((one, two));
    assert!(opened.closed.try_recv().is_err_and(|e| e == Empty));
    drop(call);
    assert!(opened.closed.try_recv().is_err_and(|e| e == Closed));
    let (_new, opens) = reporting.reporter(&server("127.0.0.1:1"));
    assert!(opens.is_some());
}

#[tokio::test]
async fn c64_named_metrics_are_sums_and_their_names_are_bounded() {
    let reporting = Reporting::default();
    let (reporter, opened) = reporting.reporter(&server("127.0.0.1:1"));
    let store = opened.unwrap().store;
    let locality = reporter.cluster("c", "").locality(&zone("a"), 0);
    locality.add_metric("named_metrics.queue", 1.5);
    locality.add_metric("named_metrics.queue", 2.0);
    for n in 0..1000 {
        locality.add_metric(&format!("named_metrics.{n}"), 1.0);
    }
    let report = store.take(&Wanted::All, Instant::now());
    let metrics = &report[0].upstream_locality_stats[0].load_metric_stats;
    let queue = metrics.iter().find(|m| m.metric_name.ends_with("queue"));
    let queue = queue.unwrap();
    assert_eq!(queue.num_requests_finished_with_metric, 2);
    assert_eq!(queue.total_metric_value, 3.5);
    assert_eq!(metrics.len(), 256);
}

#[test]
fn c62_an_answer_says_which_clusters_and_how_often() {
    // clusters: ["c"], load_reporting_interval: 2 s
    let named = parse_instructions(b"\x0a\x01c\x12\x02\x08\x02").unwrap();
    let wanted = Wanted::Named(vec!["c".into()]);
    let interval = Duration::from_secs(2);
    assert_eq!(named, Instructions { wanted, interval });
    // send_all_clusters, and no interval
    let all = parse_instructions(b"\x20\x01").unwrap();
    assert_eq!(all.wanted, Wanted::All);
    assert!(!all.interval.is_zero());
    assert!(parse_instructions(b"\xff").is_err());
}
