//! The service, called as a client calls it, and the store by itself.

use std::time::Duration;

use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};
use trunkline_proto::envoy::envoy::config::core::v3::{Locality, Node};
use trunkline_proto::envoy::envoy::config::endpoint::v3::cluster_stats::DroppedRequests;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{ClusterStats, UpstreamLocalityStats};
use trunkline_proto::envoy::envoy::service::load_stats::v3::load_reporting_service_client::LoadReportingServiceClient;
use trunkline_proto::envoy::envoy::service::load_stats::v3::{LoadStatsRequest, LoadStatsResponse};

use super::settings::SENDS_ALL;
use super::*;
use trunkline_proto::load_stats;

struct Client {
    send: mpsc::Sender<LoadStatsRequest>,
    receive: Streaming<LoadStatsResponse>,
}

impl Client {
    async fn open(load: &Load, first: LoadStatsRequest) -> Self {
        let service = load.service();
        let mut client = LoadReportingServiceClient::new(service);
        let (send, requests) = mpsc::channel(8);
        send.send(first).await.unwrap();
        let answer = client.stream_load_stats(ReceiverStream::new(requests));
        let receive = answer.await.unwrap().into_inner();
        Self { send, receive }
    }

    async fn told(&mut self) -> LoadStatsResponse {
        self.receive.message().await.unwrap().unwrap()
    }

    async fn report(&self, stats: Vec<ClusterStats>) {
        let cluster_stats = stats;
        let node = None;
        let report = LoadStatsRequest {
            node,
            cluster_stats,
        };
        self.send.send(report).await.unwrap();
    }
}

fn node(features: &[&str]) -> LoadStatsRequest {
    LoadStatsRequest {
        node: Some(Node {
            id: "n".into(),
            cluster: "group".into(),
            client_features: features.iter().map(|&f| f.to_owned()).collect(),
            ..Node::default()
        }),
        ..LoadStatsRequest::default()
    }
}

fn locality(zone: &str, issued: u64) -> UpstreamLocalityStats {
    UpstreamLocalityStats {
        locality: Some(Locality {
            zone: zone.into(),
            ..Locality::default()
        }),
        total_issued_requests: issued,
        ..UpstreamLocalityStats::default()
    }
}

fn stats(cluster: &str, localities: Vec<UpstreamLocalityStats>) -> ClusterStats {
    ClusterStats {
        cluster_name: cluster.into(),
        upstream_locality_stats: localities,
        ..ClusterStats::default()
    }
}

fn load(clusters: LoadClusters) -> Load {
    let settings = LoadSettings {
        clusters,
        ..LoadSettings::default()
    };
    let known = || vec!["held".to_owned()];
    Load::new(settings, LoadLimits::default(), known)
}

fn named(names: &[&str]) -> LoadClusters {
    LoadClusters::Named(names.iter().map(|&n| n.to_owned()).collect())
}

/// Stores a report of Envoy's own type.
fn store(reports: &LoadReports, node: &str, stats: ClusterStats) {
    let message = LoadStatsRequest {
        node: None,
        cluster_stats: vec![stats],
    };
    let bytes = message.encode_to_vec();
    let each = |stats| reports.store(&node.into(), "", stats);
    let read = load_stats::read(&bytes, &Default::default(), each);
    reports.add_refused(read.unwrap().refused);
}

/// Waits until the reports satisfy `done`.
async fn until(load: &Load, done: impl Fn(&[ClusterLoad]) -> bool) -> Vec<ClusterLoad> {
    loop {
        let reports = load.reports().snapshot();
        if done(&reports) {
            return reports;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_is_asked_for_all_clusters_only_if_it_understands_that() {
    let load = load(LoadClusters::All);
    let told = Client::open(&load, node(&[SENDS_ALL])).await.told().await;
    assert!(told.send_all_clusters && told.clusters.is_empty());
    assert_eq!(told.load_reporting_interval.unwrap().seconds, 10);

    let told = Client::open(&load, node(&[])).await.told().await;
    assert!(!told.send_all_clusters);
    assert_eq!(told.clusters, ["held"]);
}

#[tokio::test]
async fn a_change_of_settings_reaches_open_streams() {
    let load = load(named(&["a"]));
    let mut client = Client::open(&load, node(&[SENDS_ALL])).await;
    let told = client.told().await;
    assert!(!told.send_all_clusters);
    assert_eq!(told.clusters, ["a"]);
    // An equal list is not sent again.
    load.clusters_changed();
    load.set(LoadSettings {
        clusters: named(&["b"]),
        endpoint_granularity: true,
        interval: Duration::ZERO,
    });
    let told = client.told().await;
    assert_eq!(told.clusters, ["b"]);
    assert!(told.report_endpoint_granularity);
    assert!(told.load_reporting_interval.unwrap().nanos > 0);
}

#[tokio::test]
async fn reports_are_kept_by_node_cluster_and_locality() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, node(&[SENDS_ALL])).await;
    client.told().await;
    let mut first = stats("c", vec![locality("z1", 1), locality("z2", 2)]);
    first.total_dropped_requests = 7;
    first.dropped_requests = vec![DroppedRequests {
        category: "lb".into(),
        dropped_count: 7,
    }];
    client.report(vec![first]).await;
    until(&load, |all| !all.is_empty()).await;
    // Without its node, as gRPC does, and without the zone that had no
    // requests.
    client
        .report(vec![stats("c", vec![locality("z1", 5)])])
        .await;
    let reports = until(&load, |all| all[0].latest.dropped == 0).await;
    let [cluster] = &reports[..] else {
        panic!("one cluster: {reports:?}")
    };
    assert_eq!((&*cluster.node, &*cluster.node_cluster), ("n", "group"));
    let zones = cluster.localities.iter();
    let zones: Vec<_> = zones.map(|l| (&*l.place.zone, l.requests.issued)).collect();
    assert_eq!(zones, [("z1", 5), ("z2", 2)]);
    assert!(cluster.localities[1].received <= cluster.latest.received);

    let json = serde_json::to_value(cluster).unwrap();
    assert_eq!(json["localities"][0]["issued"], 5);
    assert!(json["received"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_stream_without_a_node_is_refused() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, LoadStatsRequest::default()).await;
    let status = client.receive.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_stream_ends_with_its_client() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, node(&[])).await;
    client.told().await;
    assert_eq!(load.streams(), 1);
    drop(client);
    while load.streams() > 0 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn what_does_not_fit_is_refused_and_counted() {
    let limits = LoadLimits {
        bytes: 30_000,
        node_bytes: 20_000,
        ..LoadLimits::default()
    };
    let reports = LoadReports::new(limits);
    let store = |node: &str, stats| store(&reports, node, stats);
    let many = || (0..100).map(|n| locality(&n.to_string(), n)).collect();
    store("a", stats("c", many()));
    let kept = reports.snapshot()[0].localities.len();
    assert!((1..100).contains(&kept), "{kept}");
    assert_eq!(reports.refused(), 100 - kept as u64);
    // The next client has what is left; an equal report costs nothing.
    store("b", stats("c", many()));
    let left = reports.snapshot()[1].localities.len();
    assert!((1..kept).contains(&left), "{left}");
    let before = reports.refused();
    store("a", stats("c", vec![locality("0", 9)]));
    assert_eq!(reports.refused(), before);
    assert_eq!(reports.snapshot()[0].localities[0].requests.issued, 9);
    // A name that is too long is refused with its figures.
    let long = "x".repeat(40_000);
    store("a", stats(&long, vec![locality("z", 1)]));
    assert_eq!(reports.refused(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_reported_again_is_forgotten_and_makes_room() {
    let reports = LoadReports::new(LoadLimits {
        keep: Duration::from_secs(60),
        bytes: 20_000,
        node_bytes: 20_000,
        ..LoadLimits::default()
    });
    let store = |node: &str, stats| store(&reports, node, stats);
    let zones = |from: u64, to| (from..to).map(|n| locality(&n.to_string(), n)).collect();
    store("gone", stats("c", zones(0, 100)));
    tokio::time::advance(Duration::from_secs(40)).await;
    store("a", stats("c", zones(0, 1)));
    assert_eq!(reports.snapshot().len(), 1, "the store is full");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(reports.snapshot().len(), 0);
    store("a", stats("c", zones(0, 2)));
    tokio::time::advance(Duration::from_secs(40)).await;
    store("a", stats("c", zones(1, 2)));
    tokio::time::advance(Duration::from_secs(40)).await;
    let left = reports.snapshot();
    let [zone] = &left[0].localities[..] else {
        panic!("one zone: {left:?}")
    };
    assert_eq!(zone.place.zone, "1");
}

#[tokio::test]
async fn a_message_of_a_million_empty_reports_costs_what_its_limit_allows() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, node(&[SENDS_ALL])).await;
    client.told().await;
    client.report(vec![ClusterStats::default(); 1 << 20]).await;
    let reports = until(&load, |all| !all.is_empty()).await;
    assert_eq!(reports.len(), 1, "all have the same name");
    let beyond = (1 << 20) - load_stats::ReportLimits::default().clusters;
    while load.reports().refused() < beyond as u64 {
        tokio::task::yield_now().await;
    }
    // The stream goes on.
    client.report(vec![stats("c", Vec::new())]).await;
    until(&load, |all| all.len() == 2).await;
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, node(&[SENDS_ALL])).await;
    client.told().await;
    let long = "x".repeat(5 << 20);
    client.report(vec![stats(&long, Vec::new())]).await;
    let status = client.receive.message().await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert_eq!(load.reports().bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_say_whose_it_is_ends() {
    let load = load(LoadClusters::All);
    let mut client = LoadReportingServiceClient::new(load.service());
    let (_open, requests) = mpsc::channel::<LoadStatsRequest>(1);
    let answer = client.stream_load_stats(ReceiverStream::new(requests));
    let mut receive = answer.await.unwrap().into_inner();
    let status = receive.message().await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn reports_of_clients_that_left_are_dropped_although_nobody_asks() {
    let load = load(LoadClusters::All);
    let mut client = Client::open(&load, node(&[SENDS_ALL])).await;
    client.told().await;
    client.report(vec![stats("c", Vec::new())]).await;
    until(&load, |all| !all.is_empty()).await;
    drop(client);
    let keep = LoadLimits::default().keep;
    tokio::time::sleep(keep / 2).await;
    assert!(load.reports().bytes() > 0);
    tokio::time::sleep(2 * keep).await;
    assert_eq!((load.streams(), load.reports().bytes()), (0, 0));
}

#[tokio::test]
async fn one_stream_too_many_is_refused() {
    let limits = LoadLimits {
        streams: 1,
        ..LoadLimits::default()
    };
    let load = Load::new(LoadSettings::default(), limits, Vec::new);
    let mut first = Client::open(&load, node(&[])).await;
    first.told().await;
    let mut client = LoadReportingServiceClient::new(load.service());
    let answer = client.stream_load_stats(tokio_stream::pending()).await;
    assert_eq!(answer.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(load.streams(), 1);
}

#[test]
fn a_cluster_has_so_many_localities() {
    let limits = LoadLimits {
        localities: 10,
        ..LoadLimits::default()
    };
    let reports = LoadReports::new(limits);
    let zones = (0..30).map(|n| locality(&format!("{n:02}"), n)).collect();
    store(&reports, "n", stats("c", zones));
    assert_eq!(reports.snapshot()[0].localities.len(), 10);
    assert_eq!(reports.refused(), 20);
}

#[test]
fn random_names_take_no_more_than_they_may() {
    let reports = LoadReports::new(LoadLimits {
        bytes: 1 << 20,
        node_bytes: 1 << 16,
        ..LoadLimits::default()
    });
    for n in 0..10_000 {
        let zones = vec![locality(&n.to_string(), 1)];
        store(&reports, &format!("n{n}"), stats(&format!("c{n}"), zones));
    }
    assert!(reports.bytes() <= 1 << 20);
    assert!(reports.refused() > 0);
    // One client takes no more than its share.
    let reports = LoadReports::new(LoadLimits {
        node_bytes: 1 << 16,
        ..LoadLimits::default()
    });
    for n in 0..1000 {
        store(&reports, "n", stats(&format!("c{n}"), Vec::new()));
    }
    assert!(reports.bytes() <= 1 << 16);
}
