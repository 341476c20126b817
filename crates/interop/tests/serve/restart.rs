//! A server that is started again on the same files sends nothing twice.

use std::time::Duration;

use interop::{Backend, Envoy, Flow, Sent, Serving, assert_no_init_fetch_timeout, http};
use trunkline::kind;
use trunkline::status::Clients as _;

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

fn site(backend: &Backend) -> Site {
    let clusters = ["c0", "c1", "c2"];
    Site::new(&[
        ("clusters.yaml", &clusters.map(cluster)),
        (
            "endpoints.yaml",
            &clusters.map(|name| endpoints(name, backend.address())),
        ),
        ("http.yaml", &[listener("http", "r"), route("r", "c0")]),
    ])
}

/// Stops a server, changes files, and starts another in its place.
fn restarted(way: Way, change: impl FnOnce(&Site)) -> (Site, Serving, Envoy, Backend) {
    let backend = Backend::start("first");
    let site = site(&backend);
    let serving = site.serve();
    let port = serving.port;
    let envoy = Envoy::start(&way.bootstrap(port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    serving.stop();
    change(&site);
    let serving = site.serve_on(port);
    serving.journal.wait("Envoy to come back", 0, |entry| {
        matches!(entry, interop::Entry::Opened(_)).then_some(())
    });
    flow.go_on_for(5);
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    (site, serving, envoy, backend)
}

/// The names that a server sent of a type.
fn sent(serving: &Serving, type_url: &str) -> Vec<String> {
    let sent = serving.journal.sent(0, type_url);
    let names = sent.iter().flat_map(Sent::names);
    names.map(str::to_owned).collect()
}

#[test]
fn s46_s48_delta_gets_only_what_changed_in_files_meanwhile() {
    let another = Backend::start("another");
    let (site, serving, envoy, _first) = restarted(DELTA, |site| {
        let changed = ["c0", "c1", "c2"].map(|name| endpoints(name, another.address()));
        site.write("endpoints.yaml", &changed[..1]);
        site.write("more.yaml", &changed[1..2]);
    });
    let listener = envoy.listener("http").expect("the listener");
    envoy.wait_for("the new endpoint", SOON, |_| {
        let body = http::get(listener, "/").expect("an answer").body;
        (body == "another").then_some(())
    });
    // The ACK of this proves that the last type has been resumed, too.
    site.write(
        "http.yaml",
        &[crate::texts::listener("http", "r"), route("r", "c1")],
    );
    let brings = |sent: &Sent| sent.brings("r");
    serving
        .journal
        .wait_accepted("the route", 0, kind::RDS, brings);
    assert_eq!(sent(&serving, kind::CDS), [""; 0]);
    assert_eq!(sent(&serving, kind::LDS), [""; 0]);
    assert_eq!(sent(&serving, kind::RDS), ["r"]);
    // The third was deleted from the files: its negative answer is the empty
    // form (S74).
    let empties = |sent: &Sent| sent.brings("c2");
    serving
        .journal
        .wait_accepted("the empty assignment", 0, kind::EDS, empties);
    let mut assignments = sent(&serving, kind::EDS);
    assignments.sort();
    assert_eq!(assignments, ["c0", "c1", "c2"]);
    assert_no_init_fetch_timeout(&envoy);
}

/// The version of a whole set is the same in every process, and is no proof: a
/// client that took a part of a set that it NACKed names the one before.
#[test]
fn s50_state_of_the_world_gets_a_set_that_is_the_same_once() {
    let (site, serving, envoy, backend) = restarted(SOTW, |_| {});
    envoy.wait_for("all types to be resumed", SOON, |_| {
        let clients = serving.server.clients();
        clients
            .iter()
            .any(|client| client.types.len() == 4)
            .then_some(())
    });
    // The ACK of this proves that no other response is on its way.
    site.write("clusters.yaml", &["c0", "c1", "c2", "c3"].map(cluster));
    site.write("more.yaml", &[endpoints("c3", backend.address())]);
    envoy.wait_for("the new cluster", SOON, |envoy| {
        (envoy.active_clusters().len() == 4).then_some(())
    });
    let sets = serving.journal.sent(0, kind::CDS);
    let same = sets.iter().filter(|sent| !sent.brings("c3")).count();
    assert_eq!(same, 1, "{sets:?}");
    assert_eq!(serving.journal.sent(0, kind::LDS).len(), 1);
    assert_no_init_fetch_timeout(&envoy);
}

/// Resources that were removed while no server ran are removed all the same.
fn what_went_meanwhile_goes(way: Way) {
    let (_site, _serving, envoy, _backend) = restarted(way, |site| {
        site.write("clusters.yaml", &["c0", "c2"].map(cluster));
    });
    envoy.wait_for("the cluster to go", SOON, |envoy| {
        let held: Vec<_> = envoy.active_clusters().into_keys().collect();
        (held == ["c0", "c2"]).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s38_a_cluster_that_went_meanwhile_goes_by_state_of_the_world() {
    what_went_meanwhile_goes(SOTW);
}

#[test]
fn s45_a_cluster_that_went_meanwhile_goes_by_delta() {
    what_went_meanwhile_goes(DELTA);
}

/// A server that cannot read its files is silent, rather than saying that names
/// do not exist.
#[test]
fn s51_a_server_without_good_files_takes_nothing_away() {
    let backend = Backend::start("first");
    let site = site(&backend);
    let serving = site.serve();
    let port = serving.port;
    let envoy = Envoy::start(&SOTW.bootstrap(port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    serving.stop();
    site.write("clusters.yaml", &["- nonsense: [".to_owned()]);
    let serving = site.serve_unready(port, |options| {
        options.ready_patience = Duration::from_millis(50);
        options.refusal_delay = Duration::from_millis(50);
    });
    let failed = || {
        envoy
            .stat("cluster_manager.cds.update_failure")
            .unwrap_or(0)
    };
    let before = failed();
    envoy.wait_for("Envoy to be refused twice", SOON, |_| {
        (failed() >= before + 2).then_some(())
    });
    assert!(!serving.server.is_ready());
    assert_eq!(envoy.active_clusters().len(), 3);

    let clusters = ["c0", "c1", "c2", "c3"].map(cluster);
    site.write("clusters.yaml", &clusters);
    envoy.wait_for("the mended file", SOON, |envoy| {
        (envoy.active_clusters().len() == 4).then_some(())
    });
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
}
