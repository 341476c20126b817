//! What real Envoy does in corners where a wrong word costs more than none.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, Flow, Mode, assert_no_init_fetch_timeout, http};
use trunkline::kind;

use crate::certificates::Authority;
use crate::site::Site;
use crate::texts::{
    cluster, endpoints, listener, listener_of, other, rds, route, secret, static_cluster,
    tls_listener,
};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// A resource that lasts only for as long as it is spoken of.
fn lasting(name: &str, ttl: &str, resource: &str) -> String {
    let resource = resource.strip_prefix("- ").expect("an item");
    other(
        "envoy.service.discovery.v3.Resource",
        &format!("name: {name:?}, ttl: {ttl}, resource: {resource}"),
    )
}

fn status(envoy: &Envoy, listener: &str) -> u16 {
    let at = envoy.listener(listener).expect("the listener");
    http::get(at, "/").expect("an answer").status
}

fn wait_for_status(envoy: &Envoy, what: &str, expected: u16) {
    envoy.wait_for(what, SOON, |envoy| {
        (status(envoy, "http") == expected).then_some(())
    });
}

/// A word in time keeps a cluster; without it, the cluster goes. The endpoints
/// have a ttl, too, of which a state-of-the-world stream says nothing: Envoy
/// would crash when it runs out.
fn what_has_a_ttl_is_kept_alive(way: Way) {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            cluster("c"),
            lasting("c", "0.5s", &endpoints("c", backend.address())),
            lasting("short", "1s", &static_cluster("short", backend.address())),
            listener("http", "r"),
            route("r", "short"),
        ],
    )]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    serving
        .journal
        .wait_times("the cluster again and again", 6, |sent| {
            sent.type_url == kind::CDS && sent.brings("short")
        });
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert_eq!(envoy.active_clusters().len(), 2);
    serving.stop();
    envoy.wait_for("the cluster to run out", SOON, |envoy| {
        let held: Vec<_> = envoy.active_clusters().into_keys().collect();
        (held == ["c"]).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
    assert_eq!(envoy.stop(), Some(0), "it did not crash");
}

#[test]
fn s59_a_cluster_with_a_ttl_is_kept_alive_by_state_of_the_world() {
    what_has_a_ttl_is_kept_alive(SOTW);
}

#[test]
fn s59_a_cluster_with_a_ttl_is_kept_alive_by_delta() {
    what_has_a_ttl_is_kept_alive(DELTA);
}

fn runtime(value: u32) -> String {
    other(
        "envoy.service.runtime.v3.Runtime",
        &format!("name: rt, layer: {{some.key: {value}}}"),
    )
}

/// Envoy asks for this before anything else, and for nothing before it has it.
fn with_runtime(way: Way, port: u16) -> String {
    let layer = format!("{{name: rt, rtds_layer: {{name: rt, rtds_config: {ADS}}}}}");
    format!(
        "{}layered_runtime: {{layers: [{layer}]}}\n",
        way.bootstrap(port)
    )
}

fn wait_for_runtime(envoy: &Envoy, value: &str) {
    envoy.wait_for(&format!("the value {value}"), SOON, |envoy| {
        let shown = envoy.get("/runtime").body;
        shown
            .contains(&format!("\"final_value\": \"{value}\""))
            .then_some(())
    });
}

fn runtime_is_followed(way: Way) {
    let site = Site::new(&[("runtime.yaml", &[runtime(1)])]);
    let serving = site.serve();
    let envoy = Envoy::start(&with_runtime(way, serving.port));
    wait_for_runtime(&envoy, "1");
    site.write("runtime.yaml", &[runtime(2)]);
    wait_for_runtime(&envoy, "2");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn runtime_is_followed_by_state_of_the_world() {
    runtime_is_followed(SOTW);
}

#[test]
fn runtime_is_followed_by_delta() {
    runtime_is_followed(DELTA);
}

#[test]
fn s35_a_missing_runtime_holds_nothing_up_by_delta() {
    let site = Site::new(&[("none.yaml", &[])]);
    let serving = site.serve();
    let envoy = Envoy::start(&with_runtime(DELTA, serving.port));
    assert_no_init_fetch_timeout(&envoy);
    site.write("runtime.yaml", &[runtime(3)]);
    wait_for_runtime(&envoy, "3");
}

/// A filter that ends every request with a status.
fn filter(status: u16) -> String {
    other(
        "envoy.config.core.v3.TypedExtensionConfig",
        &format!(
            r#"name: ends, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {{http_status: {status}, percentage: {{numerator: 100}}}}}}"#
        ),
    )
}

/// Were a filter that Envoy uses said to be removed, every request would fail.
fn filters_are_followed_and_never_removed(way: Way) {
    let by_name = format!(
        "{{name: ends, config_discovery: {{config_source: {ADS}, \
         type_urls: [type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault]}}}}"
    );
    let backend = Backend::start("any");
    let http = listener_of("http", &rds("r", ADS), &by_name);
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[http, route("r", "c")]),
        ("filter.yaml", &[filter(418)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 418);
    site.write("filter.yaml", &[filter(419)]);
    wait_for_status(&envoy, "the changed filter", 419);

    site.remove("filter.yaml");
    let more = ["c", "d"].map(|name| static_cluster(name, backend.address()));
    site.write("clusters.yaml", &more);
    envoy.wait_for("another change", SOON, |envoy| {
        (envoy.active_clusters().len() == 2).then_some(())
    });
    site.write("filter.yaml", &[filter(420)]);
    wait_for_status(&envoy, "the filter that is back", 420);
    let sent = serving.journal.sent(0, kind::ECDS);
    assert!(sent.iter().all(|sent| sent.removed.is_empty()), "{sent:?}");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s57_filters_are_followed_by_state_of_the_world() {
    filters_are_followed_and_never_removed(SOTW);
}

#[test]
fn s57_filters_are_followed_by_delta() {
    filters_are_followed_and_never_removed(DELTA);
}

/// All listeners wait for it, those without TLS too.
#[test]
fn s35_a_missing_secret_holds_nothing_up_by_delta() {
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
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    assert_no_init_fetch_timeout(&envoy);
    let certificate = Authority::new().issue();
    site.write("secret.yaml", &[secret("cert", &certificate)]);
    let tls = envoy.listener("tls").expect("the listener");
    envoy.wait_for("the certificate", SOON, |_| {
        certificate.is_shown(tls).then_some(())
    });
}

/// The key of another certificate: Envoy finds out, and keeps the old one.
#[test]
fn s12_a_bad_secret_leaves_the_old_one() {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let (old, mut new) = (authority.issue(), authority.issue());
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[route("r", "c"), tls_listener("tls", "r", "cert", ADS)],
        ),
        ("secret.yaml", &[secret("cert", &old)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    let tls = envoy.listener("tls").expect("the listener");
    let right = std::mem::replace(&mut new.key, old.key.clone());
    site.write("secret.yaml", &[secret("cert", &new)]);
    let (name, _, _) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "cert");
    assert!(old.is_shown(tls));
    new.key = right;
    site.write("secret.yaml", &[secret("cert", &new)]);
    envoy.wait_for("the mended secret", SOON, |_| {
        new.is_shown(tls).then_some(())
    });
}

/// Were they only said to be removed, Envoy would go on using them.
fn deleted_endpoints_and_routes_are_really_gone(way: Way) {
    let backend = Backend::start("any");
    let site = Site::new(&[
        ("all.yaml", &[cluster("c"), listener("http", "r")]),
        ("endpoints.yaml", &[endpoints("c", backend.address())]),
        ("route.yaml", &[route("r", "c")]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    site.remove("endpoints.yaml");
    wait_for_status(&envoy, "the endpoints to go", 503);
    site.remove("route.yaml");
    wait_for_status(&envoy, "the routes to go", 404);
    site.write("endpoints.yaml", &[endpoints("c", backend.address())]);
    site.write("route.yaml", &[route("r", "c")]);
    wait_for_status(&envoy, "all to be back", 200);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s74_deleted_endpoints_and_routes_go_by_state_of_the_world() {
    deleted_endpoints_and_routes_are_really_gone(SOTW);
}

#[test]
fn s74_deleted_endpoints_and_routes_go_by_delta() {
    deleted_endpoints_and_routes_are_really_gone(DELTA);
}

/// Envoy can be told to say who it is once for each stream.
#[test]
fn s1_a_node_may_be_said_once() {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            cluster("c"),
            endpoints("c", backend.address()),
            listener("http", "r"),
            route("r", "c"),
        ],
    )]);
    let serving = site.serve();
    for mode in [Mode::Sotw, Mode::Delta] {
        let plain = Way::Ads(mode).bootstrap(serving.port);
        let (place, once) = (
            "  ads_config:\n",
            "    set_node_on_first_message_only: true\n",
        );
        let bootstrap = plain.replace(place, &format!("{place}{once}"));
        assert_ne!(bootstrap, plain);
        let envoy = Envoy::start(&bootstrap);
        assert_eq!(status(&envoy, "http"), 200);
        assert_no_init_fetch_timeout(&envoy);
    }
}

/// Envoy counts what it sends, and says so when it is asked.
#[test]
fn envoy_reports_its_load() {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            static_cluster("c", backend.address()),
            listener("http", "r"),
            route("r", "c"),
        ],
    )]);
    let serving = site.serve_with(0, |options| {
        options.load.interval = Duration::from_millis(200);
    });
    let reports = "cluster_manager: {load_stats_config: {api_type: GRPC, \
                   transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}}\n";
    let envoy = Envoy::start(&(DELTA.bootstrap(serving.port) + reports));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    envoy.wait_for("a report", SOON, |_| {
        let all = serving.server.load().reports().snapshot();
        let of_c = all
            .iter()
            .find(|load| load.cluster == "c" && load.node == "n1")?;
        of_c.localities
            .iter()
            .find(|l| l.requests.successful > 0)
            .map(drop)
    });
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
}
