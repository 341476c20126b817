//! From a source to the contents of a server.

use prost::Message as _;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::listen::Listening;
use trunkline::mcp::{McpResource, McpSink, McpSource, ServerOwner, SinkOptions, resource};
use trunkline::{Server, kind};

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
