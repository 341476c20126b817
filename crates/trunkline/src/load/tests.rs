//! The service, called as a client calls it, and the store by itself.

use std::time::Duration;

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
        bytes: 3000,
        node_bytes: 2000,
        ..LoadLimits::default()
    };
    let reports = LoadReports::new(limits);
    let many = || (0..100).map(|n| locality(&n.to_string(), n)).collect();
    reports.store("a", "", vec![stats("c", many())]);
    let kept = reports.snapshot()[0].localities.len();
    assert!((1..100).contains(&kept), "{kept}");
    assert_eq!(reports.refused(), 100 - kept as u64);
    // The next client has what is left; an equal report costs nothing.
    reports.store("b", "", vec![stats("c", many())]);
    let left = reports.snapshot()[1].localities.len();
    assert!((1..kept).contains(&left), "{left}");
    let before = reports.refused();
    reports.store("a", "", vec![stats("c", vec![locality("0", 9)])]);
    assert_eq!(reports.refused(), before);
    assert_eq!(reports.snapshot()[0].localities[0].requests.issued, 9);
    // A name that is too long is refused with its figures.
    let long = "x".repeat(4000);
    reports.store("a", "", vec![stats(&long, vec![locality("z", 1)])]);
    assert_eq!(reports.refused(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_reported_again_is_forgotten_and_makes_room() {
    let reports = LoadReports::new(LoadLimits {
        keep: Duration::from_secs(60),
        bytes: 3000,
        node_bytes: 3000,
    });
    let zones = |from: u64, to| (from..to).map(|n| locality(&n.to_string(), n)).collect();
    reports.store("gone", "", vec![stats("c", zones(0, 100))]);
    tokio::time::advance(Duration::from_secs(40)).await;
    reports.store("a", "", vec![stats("c", zones(0, 1))]);
    assert_eq!(reports.snapshot().len(), 1, "the store is full");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(reports.snapshot().len(), 0);
    reports.store("a", "", vec![stats("c", zones(0, 2))]);
    tokio::time::advance(Duration::from_secs(40)).await;
    reports.store("a", "", vec![stats("c", zones(1, 2))]);
    tokio::time::advance(Duration::from_secs(40)).await;
    let left = reports.snapshot();
    let [zone] = &left[0].localities[..] else {
        panic!("one zone: {left:?}")
    };
    assert_eq!(zone.place.zone, "1");
}
