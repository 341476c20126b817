//! Envoy that still starts while the server restarts. It keeps what it was sent
//! before, and its fifteen seconds run on over a reconnect: it must be sent all
//! that it waits for (S82).

use std::thread;
use std::time::Duration;

use interop::{Backend, Entry, Envoy, Gate, assert_no_init_fetch_timeout};
use trunkline::kind;

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route};
use crate::wait_for_status;
use crate::way::{DELTA, SOTW, Way};

/// Long enough that a server has ended before its response arrives.
const LATENCY: Duration = Duration::from_millis(60);
/// A response is on its way this long after the server reports it.
const SENT: Duration = Duration::from_millis(15);
/// A reconnect, and four types that follow each other.
const READY: Duration = Duration::from_secs(6);

/// The contents before the restart.
fn site(backend: &Backend) -> Site {
    Site::new(&[
        ("listener.yaml", &[listener("http", "r0")]),
        ("route.yaml", &[route("r0", "k0")]),
        (
            "cluster.yaml",
            &[cluster("k0"), endpoints("k0", backend.address())],
        ),
    ])
}

/// Everything has another name afterwards.
fn rename(site: &Site, backend: &Backend) {
    site.write("listener.yaml", &[listener("http", "r1")]);
    site.write("route.yaml", &[route("r1", "k1")]);
    site.write(
        "cluster.yaml",
        &[cluster("k1"), endpoints("k1", backend.address())],
    );
}

/// Nothing is left but a listener whose routes do not exist.
fn lose(site: &Site, _: &Backend) {
    site.remove("route.yaml");
    site.remove("cluster.yaml");
}

/// The server restarts right after its first response of a type, before that
/// has arrived. With its routes Envoy would be ready.
fn becomes_ready(way: Way, change: fn(&Site, &Backend), status: u16) {
    for type_url in [kind::CDS, kind::EDS, kind::LDS] {
        let backend = Backend::start("any");
        let site = site(&backend);
        let serving = site.serve();
        let port = serving.port;
        let gate = Gate::far_from(port, LATENCY);
        let mut envoy = Envoy::spawn(&way.bootstrap(gate.port));
        serving.journal.wait("a response", 0, |entry| match entry {
            Entry::Sent(sent) => (sent.type_url == type_url).then_some(()),
            _ => None,
        });
        thread::sleep(SENT);
        serving.stop();
        change(&site, &backend);
        let _serving = site.serve_on(port);
        let took = envoy.wait_until_ready(READY);
        println!("{way:?}, restart after {type_url}: ready in {took:?}");
        wait_for_status(&envoy, "the new contents", status);
        assert_no_init_fetch_timeout(&envoy);
    }
}

#[test]
fn s82_envoy_starts_over_a_restart_with_other_names_by_state_of_the_world() {
    becomes_ready(SOTW, rename, 200);
}

#[test]
fn s82_envoy_starts_over_a_restart_with_other_names_by_delta() {
    becomes_ready(DELTA, rename, 200);
}

#[test]
fn s82_envoy_starts_over_a_restart_without_its_routes_by_state_of_the_world() {
    becomes_ready(SOTW, lose, 404);
}

#[test]
fn s82_envoy_starts_over_a_restart_without_its_routes_by_delta() {
    becomes_ready(DELTA, lose, 404);
}
