//! The weight of load reports, by the allocator's own count.
#![allow(clippy::unwrap_used, reason = "a test")]

use peak_alloc::PeakAlloc;
use tokio_stream::StreamExt as _;
use trunkline::load::{Load, LoadLimits, LoadSettings};
use trunkline_proto::envoy::envoy::config::core::v3::{Locality, Node};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterStats, EndpointLoadMetricStats, UpstreamLocalityStats,
};
use trunkline_proto::envoy::envoy::service::load_stats::v3::LoadStatsRequest;
use trunkline_proto::envoy::envoy::service::load_stats::v3::load_reporting_service_client::LoadReportingServiceClient;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The numbers of clients, of clusters of each, and of localities and metrics of
/// those.
const SHAPES: [(usize, usize, usize, usize); 5] = [
    (4000, 1, 0, 0),
    (2000, 1, 1, 0),
    (50, 100, 1, 1),
    (1, 4000, 3, 0),
    (10, 10, 100, 2),
];

fn name() -> String {
    (0..12).map(|_| fastrand::alphanumeric()).collect()
}

fn report(clusters: usize, localities: usize, metrics: usize) -> LoadStatsRequest {
    let metric = |_| EndpointLoadMetricStats {
        metric_name: name(),
        ..Default::default()
    };
    let locality = |_| UpstreamLocalityStats {
        locality: Some(Locality {
            region: name(),
            zone: name(),
            ..Default::default()
        }),
        load_metric_stats: (0..metrics).map(metric).collect(),
        ..Default::default()
    };
    let cluster = |_| ClusterStats {
        cluster_name: name(),
        upstream_locality_stats: (0..localities).map(locality).collect(),
        ..Default::default()
    };
    LoadStatsRequest {
        node: Some(Node {
            id: name(),
            cluster: name(),
            ..Default::default()
        }),
        cluster_stats: (0..clusters).map(cluster).collect(),
    }
}

/// Sends one report on a stream of its own, and waits until it is stored.
async fn send(load: &Load, report: LoadStatsRequest) {
    let mut client = LoadReportingServiceClient::new(load.service());
    let requests = tokio_stream::iter([report]).chain(tokio_stream::pending());
    let mut told = client
        .stream_load_stats(requests)
        .await
        .unwrap()
        .into_inner();
    // The settings come when the first report is stored.
    told.message().await.unwrap();
    drop(told);
    while load.streams() > 0 {
        tokio::task::yield_now().await;
    }
}

/// The only test here, because the allocator counts for the whole process.
#[tokio::test]
async fn reports_weigh_what_they_take() {
    for (nodes, clusters, localities, metrics) in SHAPES {
        let load = Load::new(LoadSettings::default(), LoadLimits::default(), Vec::new);
        send(&load, report(1, 1, 1)).await;
        let before = ALLOCATOR.current_usage();
        let weight_before = load.reports().bytes();
        for _ in 0..nodes {
            send(&load, report(clusters, localities, metrics)).await;
        }
        let taken = ALLOCATOR.current_usage().saturating_sub(before);
        let weight = load.reports().bytes() - weight_before;
        assert_eq!(load.reports().refused(), 0);
        let shape = (nodes, clusters, localities, metrics);
        assert!(
            weight * 13 / 10 >= taken,
            "{shape:?}: {taken} bytes weigh {weight}"
        );
        assert!(weight <= taken * 3, "{shape:?}: {taken} weigh {weight}");
    }
}
