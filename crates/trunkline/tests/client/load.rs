//! Load reports of a client, at the library's own server.

use std::time::Duration;

use trunkline::client::{Client, Loaded, SourceError};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::core::v3::Locality;
use trunkline::load::{ClusterLoad, LoadClusters, LoadSettings};

use super::backend::{Backend, call};
use super::channel_world::World;
use super::server::Serving;
use super::{PATIENCE, next};

/// Waits until the server's reports are as they should be.
async fn until(serving: &Serving, done: impl Fn(&[ClusterLoad]) -> bool) -> Vec<ClusterLoad> {
    let wait = async {
        loop {
            let reports = serving.server.load().reports().snapshot();
            if done(&reports) {
                return reports;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap()
}

async fn streams(serving: &Serving, count: usize) {
    let wait = async {
        while serving.server.load().streams() != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
}

async fn scene(interval: Duration) -> (Serving, Client, Loaded<Cluster>) {
    let serving = Serving::start();
    serving.server.load().set(LoadSettings {
        clusters: LoadClusters::All,
        interval,
        ..LoadSettings::default()
    });
    serving.set(&[("backend", 1)]);
    let builder = Client::builder().server(&serving.address.to_string());
    let client = builder.unwrap().node_id("me").build();
    let mut watch = client.subscribe::<Cluster>("backend").unwrap().watch();
    let cluster = next(&mut watch).await.value().unwrap().clone();
    (serving, client, cluster)
}

#[tokio::test]
async fn c15_c62_c63_load_goes_to_the_server_of_the_cluster() {
    let (serving, client, cluster) = scene(Duration::from_millis(100)).await;
    assert_eq!(serving.server.load().streams(), 0, "nobody reports yet");
    let reporter = client.load_reporter(&cluster).unwrap();
    let backend = reporter.cluster("backend", "");
    let zone = Locality {
        zone: "zone-a".into(),
        ..Locality::default()
    };
    let zone = backend.locality(&zone, 0);
    for _ in 0..3 {
        zone.begin().succeed();
    }
    zone.begin().fail();

    let total = |reports: &[ClusterLoad]| {
        let localities = reports.iter().flat_map(|cluster| &cluster.localities);
        localities.map(|of| of.requests.issued).sum::<u64>()
    };
    let reports = until(&serving, |reports| total(reports) == 4).await;
    let [report] = &reports[..] else {
        panic!("{reports:?}");
    };
    assert_eq!(
        (report.cluster.as_str(), report.node.as_str()),
        ("backend", "me")
    );

    drop((reporter, backend, zone));
    streams(&serving, 0).await;
}

#[tokio::test]
async fn c62_the_last_reporter_leaves_a_last_report() {
    let (serving, client, cluster) = scene(Duration::from_secs(3600)).await;
    let backend = client
        .load_reporter(&cluster)
        .unwrap()
        .cluster("backend", "");
    streams(&serving, 1).await;
    backend.drop_call("throttle");
    drop(backend);
    let reports = until(&serving, |reports| !reports.is_empty()).await;
    assert_eq!(reports[0].latest.dropped, 1);
    streams(&serving, 0).await;
}

#[tokio::test]
async fn c15_a_static_resource_has_no_server_to_report_to() {
    let yaml = "static_resources: {clusters: [{name: here}]}";
    let bootstrap = trunkline::client::Bootstrap::from_envoy("b.yaml", yaml).unwrap();
    let client = Client::builder().bootstrap(bootstrap).build();
    let mut watch = client.watch::<Cluster>("here");
    let cluster = next(&mut watch).await.value().unwrap().clone();
    let refused = client.load_reporter(&cluster);
    assert!(matches!(refused, Err(SourceError::NoParent)), "{refused:?}");
}

#[tokio::test]
async fn c63_the_calls_of_a_channel_are_reported() {
    let backend = Backend::start().await;
    let mut world = World::with("lrs_server: {self: {}}", &[(0, 1, vec![&backend])]);
    world.serving.server.load().set(LoadSettings {
        clusters: LoadClusters::All,
        interval: Duration::from_millis(100),
        ..LoadSettings::default()
    });
    for _ in 0..3 {
        call(&world.channel).await.unwrap();
    }
    let policy = "{drop_overloads: [{category: busy, drop_percentage: {numerator: 100}}]}";
    world.endpoints("c", &[(0, 1, vec![&backend])], policy);
    world.serve();
    world.failure().await;
    let succeeded = |reports: &[ClusterLoad]| {
        let localities = reports.iter().flat_map(|cluster| &cluster.localities);
        localities.map(|of| of.requests.successful).sum::<u64>()
    };
    let issued = u64::try_from(backend.calls()).unwrap();
    let reports = until(&world.serving, |reports| succeeded(reports) == issued).await;
    assert_eq!(reports[0].cluster, "c");
    assert_eq!(reports[0].localities[0].place.zone, "z0");
}
