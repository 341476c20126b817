//! Much at once: responses and requests beyond what gRPC takes by default.

use std::time::Duration;

use interop::{Backend, Entry, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap};
use trunkline::{Change, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::Metadata;
use trunkline_proto::envoy::google::protobuf::{Struct, Value, value::Kind};

use crate::resources::{cluster, cluster_of_service, put_cluster, put_endpoints};

/// What gRPC takes by default.
const USUAL: usize = 4 << 20;
/// Less than the fifteen seconds after which Envoy would give up.
const SOON: Duration = Duration::from_secs(14);

/// A cluster of one mebibyte.
fn heavy(name: &str) -> Cluster {
    let text = Value {
        kind: Some(Kind::StringValue("x".repeat(1 << 20))),
    };
    let weight = Struct {
        fields: [("text".to_owned(), text)].into(),
    };
    Cluster {
        metadata: Some(Metadata {
            filter_metadata: [("weight".to_owned(), weight)].into(),
            ..Default::default()
        }),
        ..cluster(name)
    }
}

fn eight(backend: &Backend) -> Vec<Change> {
    let names = (0..8).map(|number| format!("c{number}"));
    names
        .flat_map(|name| {
            let endpoints = put_endpoints(&name, backend.address());
            [put_cluster(&heavy(&name)), endpoints]
        })
        .collect()
}

/// gRPC's own client takes no larger message, and Envoy can be built on it.
#[test]
fn s80_delta_is_split_into_messages_that_grpc_takes() {
    let backend = Backend::start("any");
    let serving = Serving::start(eight(&backend));
    let port = serving.port;
    let plain = bootstrap::ads(port, Mode::Delta, "n1");
    let bootstrap = plain.replace(
        bootstrap::CLIENT,
        &format!("google_grpc: {{target_uri: \"127.0.0.1:{port}\", stat_prefix: ads}}"),
    );
    assert_ne!(bootstrap, plain);
    let envoy = Envoy::start(&bootstrap);
    // It is ready when the first part is there.
    envoy.wait_for("the other parts", SOON, |envoy| {
        (envoy.active_clusters().len() == 8).then_some(())
    });
    let sent = serving.journal.sent(0, kind::CDS);
    assert!(sent.len() > 1 && sent.iter().all(|sent| sent.bytes < USUAL));
    let streams = |entry: &Entry| matches!(entry, Entry::Opened(_));
    assert_eq!(serving.journal.count(streams), 1);
    assert_no_init_fetch_timeout(&envoy);
}

/// A whole set cannot be split, and Envoy takes it.
#[test]
fn s80_a_whole_set_may_be_large() {
    let backend = Backend::start("any");
    let serving = Serving::start(eight(&backend));
    let envoy = Envoy::start(&bootstrap::ads(serving.port, Mode::Sotw, "n1"));
    assert_eq!(envoy.active_clusters().len(), 8);
    let sent = serving.journal.sent(0, kind::CDS);
    assert!(sent.iter().any(|sent| sent.bytes > 2 * USUAL));
    assert_no_init_fetch_timeout(&envoy);
}

/// Envoy names all that it asks for in one request.
fn a_large_request_is_taken(mode: Mode) {
    let service = |number: usize| format!("{number:0>4000}");
    let clusters =
        (0..1100).map(|number| cluster_of_service(&format!("c{number}"), &service(number)));
    let serving = Serving::start(clusters.map(|cluster| put_cluster(&cluster)).collect());
    let port = serving.port;
    let mut envoy = Envoy::spawn(&bootstrap::ads(port, mode, "n1"));
    println!("{mode:?}: ready after {:?}", envoy.wait_until_ready(SOON));
    assert_no_init_fetch_timeout(&envoy);
    serving.stop();

    let contents =
        (0..1101).map(|number| cluster_of_service(&format!("c{number}"), &service(number)));
    let contents = contents.map(|cluster| put_cluster(&cluster)).collect();
    let serving = Serving::start_on(port, contents);
    envoy.wait_for("one more cluster", SOON, |envoy| {
        let active = envoy.stat("cluster_manager.active_clusters");
        (active == Some(1 + 1101)).then_some(())
    });
    let large = |entry: &Entry| matches!(entry, Entry::Requested { bytes, .. } if *bytes > USUAL);
    assert!(serving.journal.count(large) > 0, "no large request");
    let streams = |entry: &Entry| matches!(entry, Entry::Opened(_));
    assert_eq!(serving.journal.count(streams), 1);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s80_a_large_request_is_taken_by_state_of_the_world() {
    a_large_request_is_taken(Mode::Sotw);
}

#[test]
fn s80_a_large_request_is_taken_by_delta() {
    a_large_request_is_taken(Mode::Delta);
}
