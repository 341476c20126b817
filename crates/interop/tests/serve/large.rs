//! Much for gRPC, which takes messages of no more than 4 MiB (S80).

use std::net::SocketAddr;

use interop::bootstrap::ADS;
use interop::{Entry, Sent};
use trunkline::kind;
use trunkline::status::Clients as _;

use crate::grpc::{SOON, api_listener, backend, client};
use crate::site::Site;
use crate::texts::{cluster, cluster_with, endpoints, route, routes};

const TAKEN: usize = 4 << 20;

/// A field that makes whatever has it so large.
fn metadata(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!("metadata: {{filter_metadata: {{weight: {{text: {text}}}}}}}")
}

fn heavy_cluster(name: &str, bytes: usize) -> String {
    let metadata = metadata(bytes);
    cluster_with(
        name,
        &format!("type: EDS, eds_cluster_config: {{eds_config: {ADS}}}, {metadata}"),
    )
}

fn heavy_endpoints(name: &str, at: SocketAddr, bytes: usize) -> String {
    let light = endpoints(name, at);
    let place = "lb_endpoints: [{";
    let heavy = light.replace(place, &format!("{place}{}, ", metadata(bytes)));
    assert_ne!(heavy, light);
    heavy
}

fn opened(entry: &Entry) -> bool {
    matches!(entry, Entry::Opened(_))
}

fn oversized(entry: &Entry) -> bool {
    matches!(entry, Entry::Oversized(_))
}

#[test]
fn s40_grpc_is_sent_nothing_that_it_does_not_name() {
    let (_backend, at) = backend("found");
    let others: Vec<_> = (0..6)
        .map(|n| heavy_cluster(&format!("other{n}"), 1 << 20))
        .collect();
    let site = Site::new(&[
        ("others.yaml", &others),
        (
            "svc.yaml",
            &[
                api_listener("svc", "r"),
                route("r", "c"),
                cluster("c"),
                endpoints("c", at),
            ],
        ),
    ]);
    let serving = site.serve();
    let mut client = client(&serving, &["found"]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
    let sent = serving.journal.sent(0, kind::CDS);
    assert!(sent.iter().all(|sent| sent.names() == ["c"]), "{sent:?}");
}

/// A call is answered once the endpoints of all clusters of its route are
/// there.
#[test]
fn s80_endpoints_come_to_grpc_in_parts() {
    let (_backend, at) = backend("found");
    let names: Vec<_> = (0..6).map(|n| format!("c{n}")).collect();
    let weights: Vec<_> = names
        .iter()
        .map(|name| format!("{{name: {name}, weight: 1}}"))
        .collect();
    let host = format!(
        r#"{{name: all, domains: ["*"], routes: [{{match: {{prefix: ""}}, route: {{weighted_clusters: {{clusters: [{}]}}}}}}]}}"#,
        weights.join(", ")
    );
    let clusters: Vec<_> = names.iter().map(|name| cluster(name)).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| heavy_endpoints(name, at, 1 << 20))
        .collect();
    let site = Site::new(&[
        ("clusters.yaml", &clusters),
        ("endpoints.yaml", &all),
        ("svc.yaml", &[api_listener("svc", "r"), routes("r", &host)]),
    ]);
    let serving = site.serve();
    let mut client = client(&serving, &["found"]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
    let sent = serving.journal.sent(0, kind::EDS);
    assert!(sent.iter().map(|sent| sent.bytes).sum::<usize>() > TAKEN);
    let fits = |sent: &Sent| sent.bytes <= TAKEN;
    assert!(sent.iter().all(fits), "{sent:?}");
    assert_eq!(serving.journal.count(oversized), 0);
    assert_eq!(serving.journal.count(opened), 1);
}

/// A response that cannot be split is reported to the operator, since gRPC goes
/// on requesting it without a word to anybody.
#[test]
fn s80_what_grpc_does_not_take_is_told_of() {
    let (_backend, at) = backend("found");
    let site = Site::new(&[
        ("cluster.yaml", &[heavy_cluster("c", 5 << 20)]),
        (
            "svc.yaml",
            &[
                api_listener("svc", "r"),
                route("r", "c"),
                endpoints("c", at),
            ],
        ),
    ]);
    let serving = site.serve();
    let mut client = client(&serving, &["found", "patient"]);
    let bytes = serving
        .journal
        .wait("what is too large", 0, |entry| match entry {
            Entry::Oversized(bytes) => Some(*bytes),
            _ => None,
        });
    assert!(bytes > 5 << 20);
    // It reconnects, and is sent the same.
    let again = serving.journal.place();
    serving.journal.wait("it to come back", again, |entry| {
        opened(entry).then_some(())
    });
    serving.journal.wait("the same again", again, |entry| {
        oversized(entry).then_some(())
    });
    site.write("cluster.yaml", &[heavy_cluster("c", 1 << 20)]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
    let states = serving.server.clients();
    let mut types = states.iter().flat_map(|client| &client.types);
    assert!(types.all(|state| state.oversized.is_none()));
}
