//! Virtual hosts that Envoy asks for when a request needs them (VHDS).

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};

use crate::site::Site;
use crate::texts::{ON_DEMAND, host, listener_of, other, rds, static_cluster, virtual_host};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);
pub(crate) fn listener(name: &str, route: &str) -> String {
    listener_of(name, &rds(route, ADS), ON_DEMAND)
}

/// Has one host itself and leaves the others to VHDS.
pub(crate) fn leaves_hosts(name: &str) -> String {
    leaves_hosts_to(name, ADS)
}

fn leaves_hosts_to(name: &str, source: &str) -> String {
    let own = virtual_host("own", "own.com", "c");
    other(
        "envoy.config.route.v3.RouteConfiguration",
        &format!("name: {name:?}, virtual_hosts: [{own}], vhds: {{config_source: {source}}}"),
    )
}

/// A host under a route configuration, called as Envoy asks for it.
pub(crate) fn host_of(route: &str, domain: &str) -> String {
    host(&format!("{route}/{domain}"), domain, "c")
}

fn start(hosts: &[String]) -> (Site, Serving, Envoy, Backend) {
    let backend = Backend::start("served");
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[listener("http", "r1"), leaves_hosts("r1")]),
        ("hosts.yaml", hosts),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    assert_no_init_fetch_timeout(&envoy);
    (site, serving, envoy, backend)
}

/// The status of a request; one that hangs is an error.
fn status(envoy: &Envoy, listener: &str, host: &str) -> u16 {
    let at = envoy.listener(listener).expect("the listener");
    let answer = http::get_as(at, host, "/");
    answer
        .unwrap_or_else(|error| panic!("{host}: {error}"))
        .status
}

fn wait_for(envoy: &Envoy, host: &str, expected: u16) {
    envoy.wait_for(&format!("{host} to be {expected}"), SOON, |envoy| {
        (status(envoy, "http", host) == expected).then_some(())
    });
}

#[test]
fn s66_a_host_is_found_when_it_is_asked_for() {
    let hosts = ["foo.com", "bar.com"].map(|domain| host_of("r1", domain));
    let (site, _serving, envoy, _backend) = start(&hosts);
    for host in ["own.com", "foo.com", "bar.com"] {
        assert_eq!(status(&envoy, "http", host), 200, "{host}");
    }
    // That there is none is said at once, and it is remembered that it was
    // asked for (S34, S35).
    assert_eq!(status(&envoy, "http", "later.com"), 404);
    let hosts = ["bar.com", "later.com"].map(|domain| host_of("r1", domain));
    site.write("hosts.yaml", &hosts);
    wait_for(&envoy, "later.com", 200);
    wait_for(&envoy, "foo.com", 404);
    assert_eq!(status(&envoy, "http", "bar.com"), 200);
    assert_no_init_fetch_timeout(&envoy);
}

/// Envoy asks for the hosts of all route configurations once, so the second is
/// spoken of unasked.
#[test]
fn s76_a_route_configuration_that_comes_later_has_hosts_as_well() {
    let hosts = ["r1", "r2"].map(|route| host_of(route, "foo.com"));
    let (site, _serving, envoy, _backend) = start(&hosts);
    assert_eq!(status(&envoy, "http", "foo.com"), 200);
    site.write("more.yaml", &[listener("second", "r2"), leaves_hosts("r2")]);
    envoy.wait_for("the second listener", SOON, |envoy| {
        let at = envoy.listener("second")?;
        http::get_as(at, "own.com", "/").ok()
    });
    assert_eq!(status(&envoy, "second", "foo.com"), 200);
    assert_eq!(status(&envoy, "second", "none.com"), 404);
    assert_no_init_fetch_timeout(&envoy);
}

/// A stream of hosts alone does not say which route configuration it is for.
#[test]
fn s66_route_configurations_have_streams_of_hosts_of_their_own() {
    let backend = Backend::start("served");
    let source = bootstrap::stream_source(Mode::Delta);
    let of = |route: &str| [listener(route, route), leaves_hosts_to(route, &source)];
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("one.yaml", &of("r1")),
        ("two.yaml", &of("r2")),
        (
            "hosts.yaml",
            &["r1", "r2"].map(|route| host_of(route, "foo.com")),
        ),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    for route in ["r1", "r2"] {
        assert_eq!(status(&envoy, route, "foo.com"), 200);
        assert_eq!(status(&envoy, route, "none.com"), 404);
    }
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s36_a_host_is_found_by_its_alias() {
    let wild = r#"name: r1/wild, aliases: [r1/a.wild.com, r1/b.wild.com], resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: r1/wild, domains: ["*.wild.com"], routes: [{match: {prefix: ""}, route: {cluster: c}}]}"#;
    let wild = other("envoy.service.discovery.v3.Resource", wild);
    let (_site, _serving, envoy, _backend) = start(&[wild]);
    assert_eq!(status(&envoy, "http", "a.wild.com"), 200);
    assert_eq!(status(&envoy, "http", "b.wild.com"), 200);
}

#[test]
fn s46_hosts_stay_when_the_server_is_started_again() {
    let hosts = ["foo.com", "bar.com", "new.com"].map(|domain| host_of("r1", domain));
    let (site, serving, envoy, _backend) = start(&hosts[..2]);
    assert_eq!(status(&envoy, "http", "foo.com"), 200);
    assert_eq!(status(&envoy, "http", "new.com"), 404);
    let port = serving.port;
    serving.stop();
    assert_eq!(status(&envoy, "http", "foo.com"), 200);
    // Asked for while there is nobody to answer: it waits.
    let waiting = std::thread::spawn({
        let at = envoy.listener("http").expect("the listener");
        move || http::get_as(at, "bar.com", "/")
    });
    site.write("hosts.yaml", &hosts);
    let _serving = site.serve_on(port);
    wait_for(&envoy, "new.com", 200);
    let waited = waiting.join().expect("no panic").expect("an answer");
    assert_eq!(waited.status, 200);
    assert_eq!(status(&envoy, "http", "foo.com"), 200);
    assert_no_init_fetch_timeout(&envoy);
}

/// Envoy takes nothing of a response with a bad host, so without being sent
/// again in parts the others would hang, and the bad one without a word on it.
#[test]
fn s12_a_bad_host_hangs_nobody() {
    let name = |n: usize| format!("h{n}.com");
    let mut hosts: Vec<_> = (0..10).map(|n| host_of("r1", &name(n))).collect();
    // The domain of a host that is in the route configuration.
    hosts[5] = hosts[5].replace(
        r#"domains: ["h5.com"]"#,
        r#"domains: ["h5.com", "own.com"]"#,
    );
    let (site, serving, envoy, _backend) = start(&hosts);
    let at = envoy.listener("http").expect("the listener");
    let asked: Vec<_> = (0..10)
        .map(|n| std::thread::spawn(move || http::get_as(at, &format!("h{n}.com"), "/")))
        .collect();
    let answered: Vec<_> = asked
        .into_iter()
        .map(|asked| asked.join().expect("no panic").expect("an answer").status)
        .collect();
    let expected: Vec<u16> = (0..10).map(|n| if n == 5 { 404 } else { 200 }).collect();
    assert_eq!(answered, expected);
    let (bad, _, _) = serving.journal.wait_parked(0);
    assert_eq!(bad.as_str(), "r1/h5.com");

    hosts[5] = host_of("r1", &name(5));
    site.write("hosts.yaml", &hosts);
    wait_for(&envoy, "h5.com", 200);
    assert_no_init_fetch_timeout(&envoy);
}
