//! Envoy becomes ready from the server, serves, and takes changes.

use std::time::{Duration, Instant};

use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};
use trunkline::{Change, kind};

use crate::resources::{cluster, put_cluster, put_endpoints, put_listener, put_route, seconds};

/// Envoy becomes ready in a fraction of a second; it waits for a type for
/// fifteen. Between the two there is room for a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// A listener `http`, the route `r`, the cluster `c` and its endpoints.
fn one_of_each(backend: &Backend) -> Vec<Change> {
    vec![
        put_cluster(&cluster("c")),
        put_endpoints("c", backend.address()),
        put_listener("http", "r"),
        put_route("r", "c"),
    ]
}

fn becomes_ready_and_follows_changes(mode: Mode) {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let serving = Serving::start(one_of_each(&first));
    let start = Instant::now();
    let mut envoy = Envoy::spawn(&bootstrap::ads(serving.port, mode, "n1"));
    envoy.wait_until_ready(SOON);
    println!("{mode:?}: ready after {:?}", start.elapsed());
    let listener = envoy.listener("http").expect("the listener");
    assert_eq!(http::get(listener, "/").expect("an answer").body, "first");
    assert_no_init_fetch_timeout(&envoy);

    serving.apply(vec![put_endpoints("c", second.address())]);
    envoy.wait_for("the new endpoint", SOON, |_| {
        let body = http::get(listener, "/").expect("an answer").body;
        (body == "second").then_some(())
    });

    // Envoy withholds its ACK until the endpoints come again, although they
    // are the same (S53).
    let mut changed = cluster("c");
    changed.connect_timeout = Some(seconds(2));
    let start = Instant::now();
    let place = serving.journal.place();
    serving.apply(vec![put_cluster(&changed)]);
    serving
        .journal
        .wait_accepted("the changed cluster", place, kind::CDS, |_| true);
    println!("{mode:?}: a cluster changed after {:?}", start.elapsed());
    assert_eq!(envoy.active_clusters(), [("c".into(), "2s".into())].into());
    assert_eq!(http::get(listener, "/").expect("an answer").body, "second");
    assert_no_init_fetch_timeout(&envoy);
    assert_eq!(envoy.stop(), Some(0));
}

#[test]
fn s53_envoy_becomes_ready_and_follows_changes_by_state_of_the_world() {
    becomes_ready_and_follows_changes(Mode::Sotw);
}

#[test]
fn s53_envoy_becomes_ready_and_follows_changes_by_delta() {
    becomes_ready_and_follows_changes(Mode::Delta);
}

/// Silence about a name that is missing would cost Envoy fifteen seconds.
#[test]
fn s35_envoy_becomes_ready_although_names_are_missing() {
    for mode in [Mode::Sotw, Mode::Delta] {
        let serving = Serving::start(vec![
            put_cluster(&cluster("without endpoints")),
            put_listener("http", "missing"),
        ]);
        let mut envoy = Envoy::spawn(&bootstrap::ads(serving.port, mode, "n1"));
        envoy.wait_until_ready(SOON);
        let listener = envoy.listener("http").expect("the listener");
        assert_eq!(http::get(listener, "/").expect("an answer").status, 404);
        assert_no_init_fetch_timeout(&envoy);

        let backend = Backend::start("found");
        serving.apply(vec![
            put_cluster(&cluster("c")),
            put_endpoints("c", backend.address()),
            put_route("missing", "c"),
        ]);
        envoy.wait_for("what was missing", SOON, |_| {
            let answer = http::get(listener, "/").expect("an answer");
            (answer.body == "found").then_some(())
        });
    }
}

/// Nor does what comes later wait for what is missing.
#[test]
fn s35_what_comes_later_does_not_wait_for_what_is_missing() {
    for mode in [Mode::Sotw, Mode::Delta] {
        let serving = Serving::start(vec![put_cluster(&cluster("first"))]);
        let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
        serving.apply(vec![
            put_cluster(&cluster("later")),
            put_listener("http", "missing"),
        ]);
        envoy.wait_for("the cluster", SOON, |envoy| {
            envoy.active_clusters().contains_key("later").then_some(())
        });
        let listener = envoy.wait_for("the listener", SOON, |envoy| envoy.listener("http"));
        let answer = envoy.wait_for("an answer", SOON, |_| http::get(listener, "/").ok());
        assert_eq!(answer.status, 404);
        assert_no_init_fetch_timeout(&envoy);
    }
}
