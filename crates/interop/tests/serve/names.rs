//! Envoy asks for collections by the names of `xdstp`.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, Sent, assert_no_init_fetch_timeout};
use trunkline::kind;

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

fn a_collection_is_followed(way: Way) {
    let backend = Backend::start("any");
    let all = |names: &[&str]| -> Vec<String> {
        let one = |name: &&str| static_cluster(&clusters(name), backend.address());
        names.iter().map(one).collect()
    };
    let http = listeners("fleet/http");
    let site = Site::new(&[
        ("clusters.yaml", &all(&["fleet/a", "fleet/b", "other/c"])),
        (
            "http.yaml",
            &[listener(&http, "r"), route("r", &clusters("fleet/b"))],
        ),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&bootstrap(way, serving.port));
    assert_eq!(status(&envoy, &http), 200);
    let held = |envoy: &Envoy| -> Vec<_> { envoy.active_clusters().into_keys().collect() };
    assert_eq!(held(&envoy), ["fleet/a", "fleet/b"].map(clusters));

    site.write("clusters.yaml", &all(&["fleet/b", "fleet/d", "other/c"]));
    envoy.wait_for("one to come and one to go", SOON, |envoy| {
        (held(envoy) == ["fleet/b", "fleet/d"].map(clusters)).then_some(())
    });
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
