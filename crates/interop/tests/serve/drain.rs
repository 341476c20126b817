//! A server that is about to end, and a connection that is too old, move their
//! clients on, and nobody notices (S79).

use std::time::Duration;

use interop::{Backend, Entry, Envoy, Flow, Sent, assert_no_init_fetch_timeout, http};
use trunkline::kind;

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

fn site(backend: &Backend) -> Site {
    Site::new(&[
        ("endpoints.yaml", &[endpoints("c", backend.address())]),
        (
            "http.yaml",
            &[cluster("c"), listener("http", "r"), route("r", "c")],
        ),
    ])
}

fn opened(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Opened(stream) => Some(*stream),
        _ => None,
    }
}

fn closed(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Closed(stream) => Some(*stream),
        _ => None,
    }
}

fn answers(envoy: &Envoy, text: &str) {
    let listener = envoy.listener("http").expect("the listener");
    envoy.wait_for(&format!("the answer {text}"), SOON, |_| {
        let body = http::get(listener, "/").expect("an answer").body;
        (body == text).then_some(())
    });
}

/// While one stream has ended the other is still served; both come to the next
/// server, which listens on the same port already.
#[test]
fn s79_streams_of_a_draining_server_end_one_by_one() {
    let (first, second, third) = (
        Backend::start("first"),
        Backend::start("second"),
        Backend::start("third"),
    );
    let site = site(&first);
    let draining = site.serve();
    let envoys = [SOTW, DELTA].map(|way| Envoy::start(&way.bootstrap(draining.port)));
    let flows = envoys
        .each_ref()
        .map(|envoy| Flow::start(envoy.listener("http").expect("the listener")));

    let place = draining.journal.place();
    let server = draining.server.clone();
    draining.spawn(async move { server.drain().await });
    let moved = draining.journal.wait("a stream to end", place, closed);
    site.write("endpoints.yaml", &[endpoints("c", second.address())]);
    let next = site.serve_on(draining.port);
    next.journal.wait("a client to come", 0, opened);
    for envoy in &envoys {
        answers(envoy, "second");
    }
    let stays = draining.journal.sent(place, kind::EDS);
    assert!(stays.iter().any(|sent| sent.stream != moved), "{stays:?}");

    let both = |entry: &Entry| closed(entry).filter(|stream| *stream != moved);
    draining
        .journal
        .wait("the other stream to end", place, both);
    site.write("endpoints.yaml", &[endpoints("c", third.address())]);
    for envoy in &envoys {
        answers(envoy, "third");
    }
    assert_eq!(next.journal.count(|entry| opened(entry).is_some()), 2);
    for flow in flows {
        let flowed = flow.stop();
        assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    }
    envoys.iter().for_each(assert_no_init_fetch_timeout);
}

fn old_connections_are_left_for_new_ones(way: Way) {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let site = site(&first);
    let serving = site.serve_with(0, |options| {
        options.max_age = Some(Duration::from_millis(300));
        options.drain = Duration::from_millis(200);
    });
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    let streams = |least: u64| {
        let enough = |entry: &Entry| opened(entry).filter(|stream| *stream >= least);
        serving.journal.wait("another stream", 0, enough)
    };
    streams(3);
    let place = serving.journal.place();
    site.write("endpoints.yaml", &[endpoints("c", second.address())]);
    answers(&envoy, "second");
    let last = serving.journal.place();
    let once = |sent: &Sent| sent.brings("c");
    assert!(serving.journal.sent(place, kind::EDS).iter().any(once));
    serving.journal.wait("yet another stream", last, opened);
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    assert_eq!(envoy.active_clusters().len(), 1);
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s79_connections_that_are_too_old_are_left_by_state_of_the_world() {
    old_connections_are_left_for_new_ones(SOTW);
}

#[test]
fn s79_connections_that_are_too_old_are_left_by_delta() {
    old_connections_are_left_for_new_ones(DELTA);
}
