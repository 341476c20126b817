//! Names that do not exist, of types for which Envoy ACKs no negative answer:
//! it waits for nothing, and no fault is reported (S35).

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Entry, Envoy, Mode, Serving, assert_no_init_fetch_timeout};
use trunkline::Event;
use trunkline::status::{Clients, Sync};

use crate::certificates::Authority;
use crate::extensions::{filter_by_name, filter_of, runtime, wait_for_runtime, with_runtime};
use crate::site::Site;
use crate::status;
use crate::texts::{
    cluster_with, listener, listener_from, listener_of, rds, route, secret, static_cluster,
    tls_listener, trust,
};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// No negative answer is reported as a NACK.
fn assert_nothing_is_rejected(serving: &Serving) {
    let rejected = |entry: &Entry| match entry {
        Entry::Event(event) => matches!(event, Event::Nacked { .. } | Event::Quarantined { .. }),
        _ => false,
    };
    assert_eq!(serving.journal.count(rejected), 0, "{:?}", serving.journal);
    for client in serving.server.clients() {
        for state in client.types {
            assert_ne!(state.sync, Sync::Nacked, "{state:?}");
            assert_eq!(state.error, None, "{state:?}");
        }
    }
}

/// All listeners would wait for it, those without TLS too.
fn a_missing_secret_holds_nothing_up(way: Way) {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let (there, later) = (authority.issue(), authority.issue());
    let source = &way.source();
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[
                route("r", "c"),
                listener_from("http", "r", source),
                tls_listener("first", "r", "there", source),
                tls_listener("second", "r", "later", source),
            ],
        ),
        ("secret.yaml", &[secret("there", &there)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    let [first, second] = ["first", "second"].map(|name| envoy.listener(name).expect(name));
    envoy.wait_for("the certificate that is there", SOON, |_| {
        there.is_shown(first).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
    site.write("later.yaml", &[secret("later", &later)]);
    envoy.wait_for("the certificate that came later", SOON, |_| {
        later.is_shown(second).then_some(())
    });
    assert!(there.is_shown(first));
    assert_no_init_fetch_timeout(&envoy);
    assert_nothing_is_rejected(&serving);
}

#[test]
fn s35_a_missing_secret_by_delta() {
    a_missing_secret_holds_nothing_up(DELTA);
}

#[test]
fn s35_a_missing_secret_by_state_of_the_world() {
    a_missing_secret_holds_nothing_up(SOTW);
}

/// This client takes a secret that a response does not have for a removed one,
/// so there is only one here.
#[test]
fn s35_a_missing_secret_by_the_unified_client() {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            static_cluster("c", backend.address()),
            route("r", "c"),
            listener("http", "r"),
            tls_listener("tls", "r", "cert", ADS),
        ],
    )]);
    let serving = site.serve();
    let envoy = Envoy::start(&Way::Unified(Mode::Sotw).bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    let certificate = Authority::new().issue();
    site.write("secret.yaml", &[secret("cert", &certificate)]);
    let tls = envoy.listener("tls").expect("the listener");
    envoy.wait_for("the certificate", SOON, |_| {
        certificate.is_shown(tls).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
    assert_nothing_is_rejected(&serving);
}

#[test]
fn s35_a_missing_secret_by_streams_of_its_type() {
    a_missing_secret_holds_nothing_up(Way::Streams(Mode::Sotw));
}

#[test]
fn s35_a_missing_secret_by_rest() {
    a_missing_secret_holds_nothing_up(Way::Rest);
}

/// An empty secret in its place would be accepted, and trust everyone.
fn who_to_trust_is_missing_and_no_one_is_trusted(way: Way) {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[
                route("r", "c"),
                listener("http", "r"),
                tls_listener("tls", "r", "cert", ADS),
            ],
        ),
        ("secret.yaml", &[secret("cert", &authority.issue())]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let tls = envoy.listener("tls").expect("the listener");
    let (ip, port) = (tls.ip(), tls.port());
    let up = cluster_with(
        "up",
        &format!(
            r#"type: STATIC, connect_timeout: 1s, load_assignment: {{cluster_name: up, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}]}}]}}, transport_socket: {{name: tls, typed_config: {{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {{validation_context_sds_secret_config: {{name: whom, sds_config: {ADS}}}}}}}}}"#
        ),
    );
    let through = [up, route("through", "up"), listener("outer", "through")];
    site.write("through.yaml", &through);
    envoy.wait_for("the cluster", SOON, |envoy| {
        let up = envoy.active_clusters().contains_key("up");
        (up && envoy.listener("outer").is_some()).then_some(())
    });
    for _ in 0..10 {
        assert_eq!(status(&envoy, "outer"), 503);
    }
    let stranger = Authority::new().pem();
    site.write("trust.yaml", &[trust("whom", &stranger)]);
    let held = "sds.whom.update_success";
    envoy.wait_for("trust in another", SOON, |envoy| {
        envoy.stat(held).filter(|count| *count > 0)
    });
    assert_eq!(status(&envoy, "outer"), 503);
    site.write("trust.yaml", &[trust("whom", &authority.pem())]);
    envoy.wait_for("trust", SOON, |envoy| {
        (status(envoy, "outer") == 200).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
    assert_nothing_is_rejected(&serving);
}

#[test]
fn s35_who_to_trust_is_missing_by_delta() {
    who_to_trust_is_missing_and_no_one_is_trusted(DELTA);
}

#[test]
fn s35_who_to_trust_is_missing_by_state_of_the_world() {
    who_to_trust_is_missing_and_no_one_is_trusted(SOTW);
}

fn a_missing_filter_holds_nothing_up(way: Way) {
    let backend = Backend::start("any");
    let of = |name: &str, filter: &str| listener_of(name, &rds("r", ADS), &filter_by_name(filter));
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[
                route("r", "c"),
                listener("http", "r"),
                of("first", "there"),
                of("second", "later"),
            ],
        ),
        ("filter.yaml", &[filter_of("there", 418)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    envoy.wait_for("the filter that is there", SOON, |envoy| {
        (status(envoy, "first") == 418).then_some(())
    });
    // Without the filter that it should pass, no request passes.
    assert_eq!(status(&envoy, "second"), 500);
    assert_no_init_fetch_timeout(&envoy);
    site.write("later.yaml", &[filter_of("later", 419)]);
    envoy.wait_for("the filter that came later", SOON, |envoy| {
        (status(envoy, "second") == 419).then_some(())
    });
    assert_eq!(status(&envoy, "first"), 418);
    assert_no_init_fetch_timeout(&envoy);
    assert_nothing_is_rejected(&serving);
}

#[test]
fn s35_a_missing_filter_by_delta() {
    a_missing_filter_holds_nothing_up(DELTA);
}

#[test]
fn s35_a_missing_filter_by_state_of_the_world() {
    a_missing_filter_holds_nothing_up(SOTW);
}

#[test]
fn s35_a_missing_filter_by_the_unified_client() {
    a_missing_filter_holds_nothing_up(Way::Unified(Mode::Delta));
}

/// Envoy requests nothing else before it has this.
fn a_missing_runtime_holds_nothing_up(way: Way) {
    let site = Site::new(&[("none.yaml", &[])]);
    let serving = site.serve();
    let envoy = Envoy::start(&with_runtime(way, serving.port));
    assert_no_init_fetch_timeout(&envoy);
    site.write("runtime.yaml", &[runtime(3)]);
    wait_for_runtime(&envoy, "3");
    site.remove("runtime.yaml");
    envoy.wait_for("the value to go", SOON, |envoy| {
        let gone = !envoy.get("/runtime").body.contains("some.key");
        gone.then_some(())
    });
    assert_nothing_is_rejected(&serving);
}

#[test]
fn s35_missing_runtime_by_delta() {
    a_missing_runtime_holds_nothing_up(DELTA);
}

#[test]
fn s35_missing_runtime_by_state_of_the_world() {
    a_missing_runtime_holds_nothing_up(SOTW);
}
