//! From a source to the contents of a server.

use prost::Message as _;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::core::v3::Metadata;
use trunkline::listen::Listening;
use trunkline::mcp::{
    CONSTRAINTS, McpResource, McpSink, McpSource, ServerOwner, SinkOptions, resource,
};
use trunkline::{Change, Server, kind};
use trunkline_proto::envoy::google::protobuf::value::Kind;
use trunkline_proto::envoy::google::protobuf::{Struct, Value};

use crate::support::{listening, peer, spawn};

const COLLECTION: &str = "envoy/clusters";

/// A resource `ns/<name>` whose body is a cluster.
fn cluster(name: &str, cluster: &str) -> McpResource {
    let body = Cluster {
        name: cluster.to_owned(),
        ..Cluster::default()
    };
    resource(name, kind::CDS, body.encode_to_vec())
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

fn clusters(server: &Server) -> Vec<String> {
    let all = server.all(&kind::CDS.into());
    let mut names: Vec<_> = all.iter().map(|cluster| cluster.name.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn m11_a_bad_edit_is_stopped_at_the_control_plane_and_seen_at_the_source() {
    for incremental in [false, true] {
        let (source, server) = (McpSource::default(), Server::default());
        source.set(COLLECTION, [cluster("ns/a", "a")]).unwrap();
        let served = source.clone();
        let (address, _serving) =
            listening(|listener| served.listen(listener, Listening::default())).await;
        let options = SinkOptions {
            incremental,
            ..SinkOptions::of("control-plane", [COLLECTION])
        };
        let sink = McpSink::new(options, ServerOwner::new(server.clone()));
        let _dialling = spawn(sink.clone().dial(peer(address)));
        until(|| clusters(&server) == ["a"]).await;

        source.upsert(COLLECTION, cluster("ns/b", "b")).unwrap();
        until(|| clusters(&server) == ["a", "b"]).await;

        // A cluster needs a name.
        source.upsert(COLLECTION, cluster("ns/c", "")).unwrap();
        until(|| source.status().nacks == 1).await;
        let status = sink.status();
        let [fault] = &status.collections[&COLLECTION.into()].faults[..] else {
            panic!("{status:?}");
        };
        assert!(fault.starts_with("ns/c: name: "), "{fault}");
        assert_eq!(clusters(&server), ["a", "b"]);

        source.set(COLLECTION, [cluster("ns/c", "c")]).unwrap();
        until(|| clusters(&server) == ["c"]).await;
        assert_eq!(source.status().nacks, 1);
    }
}

/// A cluster for the clients of production that a condition inside it leaves to
/// some of them.
fn conditional(when: &str) -> McpResource {
    let text = |value: &str| Value {
        kind: Some(Kind::StringValue(value.to_owned())),
    };
    let mark = Struct {
        fields: [("when".to_owned(), text(when))].into(),
    };
    let metadata = Metadata {
        filter_metadata: [("trunkline".to_owned(), mark)].into(),
        ..Metadata::default()
    };
    let body = Cluster {
        name: "a".to_owned(),
        metadata: Some(metadata).filter(|_| !when.is_empty()),
        ..Cluster::default()
    };
    let mut made = resource("ns/a", kind::CDS, body.encode_to_vec());
    let annotations = &mut made.metadata.get_or_insert_default().annotations;
    annotations.insert(CONSTRAINTS.to_owned(), "env=prod".to_owned());
    made
}

#[tokio::test]
async fn tp2_a_change_leaves_no_variant_that_conditions_inside_made_before() {
    let (source, server) = (McpSource::default(), Server::default());
    source.set(COLLECTION, [cluster("ns/z", "z")]).unwrap();
    let served = source.clone();
    let (address, _serving) =
        listening(|listener| served.listen(listener, Listening::default())).await;
    let options = SinkOptions::of("control-plane", [COLLECTION]);
    let sink = McpSink::new(options, ServerOwner::new(server.clone()));
    let _dialling = spawn(sink.clone().dial(peer(address)));
    until(|| clusters(&server) == ["z"]).await;
    let variants = || -> Vec<String> {
        let all = server.all(&kind::CDS.into());
        let constraints = all.iter().filter_map(|one| one.constraints.as_ref());
        constraints.map(ToString::to_string).collect()
    };
    for (when, expected) in [
        ("version=v1", "env=prod AND version=v1"),
        ("", "env=prod"),
        ("version=v2", "env=prod AND version=v2"),
    ] {
        source.upsert(COLLECTION, conditional(when)).unwrap();
        until(|| variants() == [expected]).await;
    }
    let removal = Change::Remove(COLLECTION.into(), "ns/a".into());
    source.apply(vec![removal]).unwrap();
    until(|| clusters(&server) == ["z"]).await;
    assert_eq!(source.status().nacks, 0);
}
