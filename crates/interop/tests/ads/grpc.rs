//! A gRPC client, without any proxy, finds its servers by this server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use interop::{Script, Serving};
use trunkline::kind;

use crate::resources::{cluster, put_api_listener, put_cluster, put_endpoints, put_route, remove};

const ROUNDS: usize = 10;
const SOON: Duration = Duration::from_secs(15);

fn script(name: &str) -> PathBuf {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py");
    PathBuf::from(tests).join(name)
}

/// A gRPC server that answers with a text.
fn backend(text: &str) -> (Script, SocketAddr) {
    let mut script = Script::start(&script("backend.py"), &[text], &[]);
    let port = script.wait_for_line("port ", SOON).parse().expect("a port");
    (script, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn bootstrap(port: u16) -> String {
    format!(
        r#"{{"xds_servers": [{{"server_uri": "127.0.0.1:{port}",
            "channel_creds": [{{"type": "insecure"}}], "server_features": ["xds_v3"]}}],
            "node": {{"id": "g1", "cluster": "interop"}}}}"#
    )
}

/// A client that calls until it is answered with a text.
fn client(serving: &Serving, awaited: &str) -> Script {
    Script::start(
        &script("client.py"),
        &["xds:///svc", awaited],
        &[("GRPC_XDS_BOOTSTRAP_CONFIG", &bootstrap(serving.port))],
    )
}

#[test]
fn grpc_finds_its_servers_and_follows_them() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let serving = Serving::start(vec![
        put_api_listener("svc", "r"),
        put_route("r", "c"),
        put_cluster(&cluster("c")),
        put_endpoints("c", first),
        // It is not subscribed to this one, and does not get it.
        put_cluster(&cluster("other")),
    ]);
    let mut client = client(&serving, "second");
    assert_eq!(client.wait_for_line("answer ", SOON), "first");

    serving.apply(vec![put_endpoints("c", second)]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
    let clusters = serving.journal.sent(0, kind::CDS);
    assert!(clusters.iter().all(|sent| !sent.brings("other")));
}

/// It subscribes to the new cluster only after it has the route to it, so the
/// old one cannot be removed before.
#[test]
fn s73_a_cluster_of_grpc_is_replaced_under_load() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let serving = Serving::start(vec![
        put_api_listener("svc", "r"),
        put_route("r", "c0"),
        put_cluster(&cluster("c0")),
        put_endpoints("c0", first),
    ]);
    let mut client = client(&serving, "second");
    assert_eq!(client.wait_for_line("answer ", SOON), "first");
    for round in 1..=ROUNDS {
        let (old, new) = (format!("c{}", round - 1), format!("c{round}"));
        let at = if round == ROUNDS { second } else { first };
        let place = serving.journal.place();
        serving.apply(vec![
            remove(kind::CDS, &old),
            remove(kind::EDS, &old),
            put_route("r", &new),
            put_endpoints(&new, at),
            put_cluster(&cluster(&new)),
        ]);
        serving
            .journal
            .wait_accepted("the new endpoints", place, kind::EDS, |sent| {
                sent.brings(&new)
            });
    }
    // It ends with a failure as soon as a call fails.
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}
