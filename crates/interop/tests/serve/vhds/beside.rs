//! Hosts on demand together with other things that come on demand.

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, http};
use trunkline::node::{BaseRule, NodeMatch};

use super::{SOON, World, listener, on_demand, vhost_of, vhost_with};
use crate::on_demand::{asks_for_clusters, scope, scoped_by};
use crate::site::Site;
use crate::texts::{ON_DEMAND, listener_of, rds, static_cluster};
use crate::way::DELTA;

/// A request for a new host whose cluster is new as well.
#[test]
fn s65_a_host_and_its_cluster_come_on_demand_in_one_request() {
    let backend = Backend::start("served");
    let clusters = |names: &[&str]| -> Vec<String> {
        let one = |name: &&str| static_cluster(name, backend.address());
        names.iter().map(one).collect()
    };
    let per_host = format!(
        r#"route: {{cluster: c2}}, typed_per_filter_config: {{on_demand: {{"@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.PerRouteConfig, odcds: {{source: {ADS}, timeout: 60s}}}}}}"#
    );
    let hosts = [
        vhost_with("r1", "web", &["a.com"], "route: {cluster: c1}"),
        vhost_with("r1", "wild", &["*.n.com"], "route: {cluster: c3}"),
        vhost_with("r1", "under", &["x.n.com"], "route: {cluster: later}"),
        vhost_with("r2", "web", &["a.com"], &per_host),
    ];
    let site = Site::new(&[
        ("clusters.yaml", &clusters(&["c1", "c2", "c3", "unwanted"])),
        (
            "http.yaml",
            &[
                listener_of("http", &rds("r1", ADS), &asks_for_clusters()),
                on_demand("r1", ADS),
                listener("second", "r2"),
                on_demand("r2", ADS),
            ],
        ),
        ("hosts.yaml", &hosts),
    ]);
    let serving = site.serve();
    let bootstrap = DELTA.bootstrap(serving.port);
    let line = format!("  cds_config: {ADS}\n");
    assert!(bootstrap.contains(&line));
    let envoy = Envoy::start(&bootstrap.replace(&line, ""));
    let world = World::with(site, serving, envoy);
    let second = world.envoy.listener("second").expect("the listener");
    assert_eq!(world.says("a.com"), "served");
    assert_eq!(super::says(second, "a.com"), "served");
    assert_eq!(world.says("b.n.com"), "served");
    assert_eq!(world.says("none.com"), "404");
    // The host is there, and its cluster is not.
    assert_eq!(world.says("x.n.com"), "503");
    let held: Vec<_> = world.envoy.active_clusters().into_keys().collect();
    assert_eq!(held, ["c1", "c2", "c3"]);
    world
        .site
        .write("clusters.yaml", &clusters(&["c1", "c2", "c3", "later"]));
    world.wait("x.n.com", "served");
    world.is_sound();
}

/// Envoy subscribes to no hosts where scopes choose the routes. So it has those
/// of its base subscriptions; nothing waits for others.
#[test]
fn s76_hosts_under_scopes_are_those_that_come_unasked() {
    let scopes = [
        scope("/a", "route_configuration_name: ra"),
        scope("/b", "route_configuration_name: rb, on_demand: true"),
        scope(
            "/c",
            &format!("route_configuration: {{name: rc, vhds: {{config_source: {ADS}}}}}"),
        ),
    ];
    let hosts = |says: &str| {
        let of = |route: &str| {
            [
                vhost_of(route, "web", &["a.com", "b.com"], says),
                vhost_of(route, "other", &["c.com"], says),
            ]
        };
        [of("ra"), of("rb"), of("rc")].concat()
    };
    let site = Site::new(&[
        (
            "http.yaml",
            &[
                listener_of("http", &scoped_by(":path"), ON_DEMAND),
                on_demand("ra", ADS),
                on_demand("rb", ADS),
            ],
        ),
        ("scopes.yaml", &scopes),
        ("hosts.yaml", &hosts("web")),
    ]);
    let serving = site.serve_with(0, |options| {
        let all = ["ra/a.com", "rb/a.com"].map(|host| host.parse().expect("a host"));
        let node = NodeMatch::new([]);
        let rule = BaseRule::new(node, Vec::new(), all.into()).expect("a rule");
        options.base_sets = vec![rule];
    });
    let world = World::over(site, serving);
    let says = |host: &str, path: &str| super::read(host, http::get_as(world.http, host, path));
    let wait = |host: &str, path: &str, expected: &str| {
        let what = format!("{host}{path} to say {expected}");
        world.envoy.wait_for(&what, SOON, |_| {
            (says(host, path) == expected).then_some(())
        });
    };
    for path in ["/a", "/b"] {
        wait("a.com", path, "web");
        assert_eq!(says("b.com", path), "web");
        assert_eq!(says("c.com", path), "404", "it is not asked for");
    }
    assert_eq!(says("a.com", "/c"), "404");
    assert_eq!(says("a.com", "/unknown"), "404");
    assert_eq!(world.asked(), 1, "for all that it may have");
    world.put(&hosts("changed"));
    for path in ["/a", "/b"] {
        wait("b.com", path, "changed");
    }
    world.is_sound();
}
