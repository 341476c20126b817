//! Envoy becomes ready from files and takes every kind of change in them.

use std::time::Duration;

use interop::{Backend, Envoy, Mode, assert_no_init_fetch_timeout, http};
use trunkline::kind;

use crate::certificates::Authority;
use crate::site::Site;
use crate::status;
use crate::texts::{
    cluster, cluster_from, endpoints, listener, listener_from, route, secret, static_cluster,
    tls_listener,
};
use crate::way::{DELTA, SOTW, Way};

/// Envoy polls ten times a second; after fifteen seconds it would give up.
const SOON: Duration = Duration::from_secs(10);

fn becomes_ready_and_follows_files(way: Way) {
    let source = way.source();
    let [first, second, third] = ["first", "second", "third"].map(Backend::start);
    let authority = Authority::new();
    let (old, new) = (authority.issue(), authority.issue());
    let clusters = |timeout| ["c1", "c2"].map(|name| cluster_from(name, &source, timeout));
    let http = |name: &str| listener_from(name, "r", &source);
    let tls = || tls_listener("tls", "r", "cert", &source);
    let assignments =
        |second: &Backend| [("c1", &first), ("c2", second)].map(|(n, b)| endpoints(n, b.address()));
    let site = Site::new(&[
        ("clusters.yaml", &clusters(1)),
        ("endpoints.yaml", &assignments(&second)),
        ("listeners.yaml", &[http("http"), tls()]),
        ("routes.yaml", &[route("r", "c1")]),
        ("secrets.yaml", &[secret("cert", &old)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_no_init_fetch_timeout(&envoy);
    let listener = envoy.listener("http").expect("the listener");
    let answers = |at, text: &str| {
        envoy.wait_for(&format!("the answer {text}"), SOON, |_| {
            let answer = http::get(at, "/").expect("an answer");
            (answer.body == text).then_some(())
        });
    };
    answers(listener, "first");

    site.write("routes.yaml", &[route("r", "c2")]);
    answers(listener, "second");
    site.write("endpoints.yaml", &assignments(&third));
    answers(listener, "third");

    site.write("clusters.yaml", &clusters(7));
    envoy.wait_for("the changed clusters", SOON, |envoy| {
        let all = envoy.active_clusters();
        all.values().all(|timeout| timeout == "7s").then_some(())
    });
    answers(listener, "third");

    site.write("listeners.yaml", &[http("another"), tls()]);
    let another = envoy.wait_for("another listener", SOON, |envoy| envoy.listener("another"));
    answers(another, "third");
    envoy.wait_for("the listener to go", SOON, |envoy| {
        envoy.listener("http").is_none().then_some(())
    });

    let tls = envoy.listener("tls").expect("the listener");
    assert!(old.is_shown(tls));
    site.write("secrets.yaml", &[secret("cert", &new)]);
    envoy.wait_for("the new certificate", SOON, |_| {
        new.is_shown(tls).then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s52_files_are_followed_by_state_of_the_world() {
    becomes_ready_and_follows_files(SOTW);
}

#[test]
fn s52_files_are_followed_by_delta() {
    becomes_ready_and_follows_files(DELTA);
}

#[test]
fn s67_files_are_followed_by_polling() {
    becomes_ready_and_follows_files(Way::Rest);
}

/// It does not request endpoints again when their cluster changes.
#[test]
fn s53_files_are_followed_by_the_unified_client() {
    becomes_ready_and_follows_files(Way::Unified(Mode::Sotw));
}

#[test]
fn s53_files_are_followed_by_the_unified_delta_client() {
    becomes_ready_and_follows_files(Way::Unified(Mode::Delta));
}

#[test]
fn s3_files_are_followed_by_a_stream_for_each_type() {
    becomes_ready_and_follows_files(Way::Streams(Mode::Sotw));
}

#[test]
fn s3_files_are_followed_by_a_delta_stream_for_each_type() {
    becomes_ready_and_follows_files(Way::Streams(Mode::Delta));
}

/// A client that polls and has the newest version gets a short answer.
#[test]
fn s67_what_has_not_changed_is_not_sent_to_who_polls() {
    let backend = Backend::start("any");
    let site = Site::new(&[("all.yaml", &[static_cluster("c", backend.address())])]);
    let serving = site.serve();
    let envoy = Envoy::start(&Way::Rest.bootstrap(serving.port));
    envoy.wait_for("some more polls", SOON, |envoy| {
        let attempts = envoy.stat("cluster_manager.cds.update_attempt");
        attempts.filter(|attempts| *attempts >= 5)
    });
    assert_eq!(serving.journal.sent(0, kind::CDS).len(), 1);
    assert_eq!(envoy.stat("cluster_manager.cds.update_failure"), Some(0));
}

/// A bad edit changes nothing; the next good one counts.
#[test]
fn s51_a_bad_file_costs_nothing() {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let site = Site::new(&[
        (
            "clusters.yaml",
            &[cluster_from("c", interop::bootstrap::ADS, 1)],
        ),
        ("endpoints.yaml", &[endpoints("c", first.address())]),
        (
            "http.yaml",
            &[
                listener_from("http", "r", interop::bootstrap::ADS),
                route("r", "c"),
            ],
        ),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&Way::Ads(Mode::Delta).bootstrap(serving.port));
    let listener = envoy.listener("http").expect("the listener");
    site.write("http.yaml", &["- nonsense: [".to_owned()]);
    site.write("endpoints.yaml", &[endpoints("c", second.address())]);
    envoy.wait_for("the good file", SOON, |_| {
        let answer = http::get(listener, "/").expect("an answer");
        (answer.body == "second").then_some(())
    });
    assert_no_init_fetch_timeout(&envoy);
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
