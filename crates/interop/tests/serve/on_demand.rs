//! Resources that Envoy subscribes to only when a request needs them: clusters
//! (S65), and the routes of a scope.

use std::net::SocketAddr;
use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, assert_no_init_fetch_timeout, http};
use trunkline::kind;

use crate::site::Site;
use crate::texts::{ON_DEMAND, listener_of, other, rds, route, routes, static_cluster};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// The filter that subscribes to clusters. A request that has to wait for it
/// takes longer than any that is sent here.
pub(crate) fn asks_for_clusters() -> String {
    format!(
        r#"{{name: on_demand, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand, odcds: {{source: {ADS}, timeout: 60s}}}}}}"#
    )
}

/// A route configuration that sends each host to the cluster of its name.
fn by_host(name: &str) -> String {
    routes(
        name,
        r#"{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster_header: ":authority"}}]}"#,
    )
}

fn ask(envoy: &Envoy, host: &str) -> (u16, String) {
    let listener: SocketAddr = envoy.listener("http").expect("the listener");
    let response = http::get_as(listener, host, "/").expect("an answer in time");
    (response.status, response.body)
}

fn clusters_come_when_they_are_needed(with_wildcard: bool) {
    let backend = Backend::start("served");
    let http = listener_of("http", &rds("r", ADS), &asks_for_clusters());
    let clusters = |names: &[&str]| -> Vec<String> {
        let one = |name: &&str| static_cluster(name, backend.address());
        names.iter().map(one).collect()
    };
    let site = Site::new(&[
        ("clusters.yaml", &clusters(&["wanted", "unwanted"])),
        ("http.yaml", &[http, by_host("r")]),
    ]);
    let serving = site.serve();
    let mut bootstrap = DELTA.bootstrap(serving.port);
    if !with_wildcard {
        let line = format!("  cds_config: {ADS}\n");
        assert!(bootstrap.contains(&line));
        bootstrap = bootstrap.replace(&line, "");
    }
    let envoy = Envoy::start(&bootstrap);
    assert_eq!(ask(&envoy, "wanted"), (200, "served".to_owned()));
    let held: Vec<_> = envoy.active_clusters().into_keys().collect();
    match with_wildcard {
        true => assert_eq!(held, ["unwanted", "wanted"]),
        false => assert_eq!(held, ["wanted"]),
    }

    // The negative answer comes at once.
    assert_eq!(ask(&envoy, "later").0, 503);
    site.write("clusters.yaml", &clusters(&["wanted", "later"]));
    envoy.wait_for("the cluster that was asked for", SOON, |envoy| {
        envoy.active_clusters().contains_key("later").then_some(())
    });
    assert_eq!(ask(&envoy, "later"), (200, "served".to_owned()));

    let port = serving.port;
    serving.stop();
    site.write("clusters.yaml", &clusters(&["later", "unwanted"]));
    let serving = site.serve_on(port);
    envoy.wait_for("the removed cluster to go", SOON, |envoy| {
        let held = envoy.active_clusters();
        (!held.contains_key("wanted") && held.contains_key("later")).then_some(())
    });
    assert_eq!(ask(&envoy, "later"), (200, "served".to_owned()));
    assert_no_init_fetch_timeout(&envoy);
    drop(serving);
}

#[test]
fn s65_clusters_come_on_demand() {
    clusters_come_when_they_are_needed(false);
}

#[test]
fn s65_clusters_come_on_demand_beside_all_others() {
    clusters_come_when_they_are_needed(true);
}

pub(crate) fn scope(key: &str, fields: &str) -> String {
    other(
        "envoy.config.route.v3.ScopedRouteConfiguration",
        &format!("name: {key:?}, key: {{fragments: [{{string_key: {key:?}}}]}}, {fields}"),
    )
}

/// Scopes by a header.
pub(crate) fn scoped_by(header: &str) -> String {
    format!(
        r#"scoped_routes: {{name: scopes, scope_key_builder: {{fragments: [{{header_value_extractor: {{name: {header:?}, index: 0}}}}]}}, rds_config_source: {ADS}, scoped_rds: {{scoped_rds_config_source: {ADS}}}}}"#
    )
}

fn routes_of_scopes(way: Way) {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let inline = r#"route_configuration: {name: inline, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster: first}}]}]}"#;
    let scopes = [
        scope("named", "route_configuration_name: ra"),
        scope("late", "route_configuration_name: rb, on_demand: true"),
        scope("inline", inline),
    ];
    let site = Site::new(&[
        (
            "clusters.yaml",
            &[
                static_cluster("first", first.address()),
                static_cluster("second", second.address()),
            ],
        ),
        (
            "http.yaml",
            &[
                listener_of("http", &scoped_by(":authority"), ON_DEMAND),
                route("ra", "first"),
                route("rb", "second"),
            ],
        ),
        ("scopes.yaml", &scopes),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(ask(&envoy, "named"), (200, "first".to_owned()));
    assert_eq!(ask(&envoy, "inline"), (200, "first".to_owned()));
    let sent = serving.journal.sent(0, kind::RDS);
    assert!(sent.iter().all(|sent| !sent.brings("rb")), "{sent:?}");
    assert_eq!(ask(&envoy, "late"), (200, "second".to_owned()));
    assert_eq!(ask(&envoy, "unknown").0, 404);

    let more = [
        scopes.as_slice(),
        &[scope("unknown", "route_configuration_name: rb")],
    ]
    .concat();
    site.write("scopes.yaml", &more[1..]);
    envoy.wait_for("the scopes to change", SOON, |envoy| {
        let (gone, new) = (ask(envoy, "named").0, ask(envoy, "unknown").0);
        ((gone, new) == (404, 200)).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s38_scoped_routes_by_state_of_the_world() {
    routes_of_scopes(SOTW);
}

#[test]
fn s42_scoped_routes_by_delta() {
    routes_of_scopes(DELTA);
}
