//! Envoy subscribes to collections by the names of `xdstp`.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Entry, Envoy, Gate, Sent, Serving, assert_no_init_fetch_timeout};
use trunkline::{Name, kind};

use crate::site::Site;
use crate::status;
use crate::texts::{listener, route, static_cluster};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

fn clusters(name: &str) -> String {
    format!("xdstp://auth.example/envoy.config.cluster.v3.Cluster/{name}")
}

fn listeners(name: &str) -> String {
    format!("xdstp://auth.example/envoy.config.listener.v3.Listener/{name}")
}

/// Asks for what is in a fleet, and for nothing else.
fn bootstrap(way: Way, port: u16) -> String {
    let plain = way.bootstrap(port);
    let (place, more) = (
        format!("  cds_config: {ADS}\n"),
        format!(
            "  cds_resources_locator: {:?}\n  lds_resources_locator: {:?}\n",
            clusters("fleet/*"),
            listeners("fleet/*")
        ),
    );
    let with = plain.replace(&place, &format!("{place}{more}"));
    assert_ne!(with, plain);
    with
}

/// Clusters by their paths.
fn all(backend: &Backend, names: &[&str]) -> Vec<String> {
    let one = |name: &&str| static_cluster(&clusters(name), backend.address());
    names.iter().map(one).collect()
}

/// A listener of the fleet, and clusters.
fn site(backend: &Backend, names: &[&str]) -> Site {
    let http = listeners("fleet/http");
    Site::new(&[
        ("clusters.yaml", &all(backend, names)),
        (
            "http.yaml",
            &[listener(&http, "r"), route("r", &clusters("fleet/b"))],
        ),
    ])
}

fn held(envoy: &Envoy) -> Vec<String> {
    envoy.active_clusters().into_keys().collect()
}

fn wait_to_hold(envoy: &Envoy, names: &[&str]) {
    let names: Vec<_> = names.iter().map(|name| clusters(name)).collect();
    envoy.wait_for(&format!("{names:?}"), SOON, |envoy| {
        (held(envoy) == names).then_some(())
    });
}

fn a_collection_is_followed(way: Way) {
    let backend = Backend::start("any");
    let http = listeners("fleet/http");
    let site = site(&backend, &["fleet/a", "fleet/b", "other/c"]);
    let serving = site.serve();
    let envoy = Envoy::start(&bootstrap(way, serving.port));
    assert_eq!(status(&envoy, &http), 200);
    assert_eq!(held(&envoy), ["fleet/a", "fleet/b"].map(clusters));

    let changed = all(&backend, &["fleet/b", "fleet/d", "other/c"]);
    site.write("clusters.yaml", &changed);
    wait_to_hold(&envoy, &["fleet/b", "fleet/d"]);
    assert_eq!(status(&envoy, &http), 200);
    let sent = serving.journal.sent(0, kind::CDS);
    let other = |sent: &Sent| sent.brings(&clusters("other/c"));
    assert!(!sent.iter().any(other), "{sent:?}");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s63_a_collection_is_followed_by_state_of_the_world() {
    a_collection_is_followed(SOTW);
}

#[test]
fn s63_a_collection_is_followed_by_delta() {
    a_collection_is_followed(DELTA);
}

/// Envoy does not say which members it holds, so a server that deletes one
/// remembers it.
fn a_member_goes_while_envoy_is_away(way: Way) {
    let backend = Backend::start("any");
    let site = site(&backend, &["fleet/a", "fleet/b"]);
    let serving = site.serve();
    let gate = Gate::before(serving.port);
    let envoy = Envoy::start(&bootstrap(way, gate.port));
    assert_eq!(held(&envoy), ["fleet/a", "fleet/b"].map(clusters));
    gate.shut();
    wait_until_alone(&serving);
    site.write("clusters.yaml", &all(&backend, &["fleet/b", "fleet/d"]));
    wait_until_served(&envoy, &serving, &clusters("fleet/d"));
    gate.open();
    wait_to_hold(&envoy, &["fleet/b", "fleet/d"]);
    assert_eq!(status(&envoy, &listeners("fleet/http")), 200);
}

fn wait_until_alone(serving: &Serving) {
    serving.journal.wait("Envoy to be gone", 0, |entry| {
        matches!(entry, Entry::Closed(_)).then_some(())
    });
}

fn wait_until_served(envoy: &Envoy, serving: &Serving, cluster: &str) {
    let name = Name::new(cluster);
    envoy.wait_for("a file to be read", SOON, |_| {
        let served = serving.server.read(|db| {
            let clusters = db.find_type(&kind::CDS.into());
            clusters.is_some_and(|id| !db.variants(id, &name).is_empty())
        });
        served.then_some(())
    });
}

#[test]
fn s75_a_member_goes_while_envoy_is_away_by_delta() {
    a_member_goes_while_envoy_is_away(DELTA);
}

#[test]
fn s75_a_member_goes_while_envoy_is_away_by_state_of_the_world() {
    a_member_goes_while_envoy_is_away(SOTW);
}

/// A member is deleted between one server and the next.
fn a_member_goes_with_the_server(way: Way) -> (Backend, Site, Serving, Envoy) {
    let backend = Backend::start("any");
    let site = site(&backend, &["fleet/a", "fleet/b"]);
    let serving = site.serve();
    let envoy = Envoy::start(&bootstrap(way, serving.port));
    assert_eq!(held(&envoy), ["fleet/a", "fleet/b"].map(clusters));
    let port = serving.port;
    serving.stop();
    site.write("clusters.yaml", &all(&backend, &["fleet/b", "fleet/d"]));
    let serving = site.serve_on(port);
    (backend, site, serving, envoy)
}

/// Each response is the whole collection.
#[test]
fn s38_a_member_that_went_with_the_server_goes_by_state_of_the_world() {
    let (_backend, _site, _serving, envoy) = a_member_goes_with_the_server(SOTW);
    wait_to_hold(&envoy, &["fleet/b", "fleet/d"]);
}

/// No server is left that knows of it. The documented way out is to add the
/// member again, and to delete it again.
#[test]
fn s75_a_member_that_went_with_the_server_goes_by_delta_when_it_is_deleted_again() {
    let (backend, site, serving, envoy) = a_member_goes_with_the_server(DELTA);
    let again = all(&backend, &["fleet/a", "fleet/b", "fleet/d"]);
    site.write("clusters.yaml", &again);
    wait_until_served(&envoy, &serving, &clusters("fleet/a"));
    wait_to_hold(&envoy, &["fleet/a", "fleet/b", "fleet/d"]);
    site.write("clusters.yaml", &all(&backend, &["fleet/b", "fleet/d"]));
    wait_to_hold(&envoy, &["fleet/b", "fleet/d"]);
}

/// Envoy says in the name of the collection who it is, and takes only members
/// whose names say the same.
#[test]
fn s63_a_collection_is_another_for_each_node() {
    let backend = Backend::start("any");
    let of = |node: &str, name: &str| format!("{name}?xds.node.cluster=interop&xds.node.id={node}");
    let [mine, other] = ["n1", "n2"].map(|node| clusters(&of(node, "fleet/a")));
    let http = listeners(&of("n1", "fleet/http"));
    let names = [&mine, &other, &clusters("fleet/a")];
    let all = names.map(|name| static_cluster(name, backend.address()));
    let site = Site::new(&[
        ("clusters.yaml", &all),
        ("http.yaml", &[listener(&http, "r"), route("r", &mine)]),
    ]);
    let serving = site.serve();
    for way in [SOTW, DELTA] {
        let plain = bootstrap(way, serving.port);
        let envoy = Envoy::start(&(plain + "node_context_params: [id, cluster]\n"));
        assert_eq!(held(&envoy), [mine.as_str()]);
        assert_eq!(status(&envoy, &http), 200);
        assert_no_init_fetch_timeout(&envoy);
    }
}

/// A single resource by a name of this kind is subscribed to and resumed as any
/// other is.
#[test]
fn s46_a_route_by_its_full_name() {
    let backend = Backend::start("any");
    let name = "xdstp://auth.example/envoy.config.route.v3.RouteConfiguration/r?az=1&env=prod";
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[listener("http", name), route(name, "c")]),
    ]);
    let serving = site.serve();
    let port = serving.port;
    let envoy = Envoy::start(&DELTA.bootstrap(port));
    assert_eq!(status(&envoy, "http"), 200);
    serving.stop();
    let serving = site.serve_on(port);
    serving.journal.wait("Envoy to come back", 0, |entry| {
        matches!(entry, Entry::Opened(_)).then_some(())
    });
    site.write("http.yaml", &[listener("http", name), route(name, "none")]);
    envoy.wait_for("the changed route", SOON, |envoy| {
        (status(envoy, "http") == 503).then_some(())
    });
    let sent = serving.journal.sent(0, kind::RDS);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_no_init_fetch_timeout(&envoy);
}
