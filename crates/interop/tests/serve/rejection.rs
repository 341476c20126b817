//! One bad resource among ten costs the others nothing, and the status says
//! whose fault it is (S12, S16).

use std::time::Duration;

use interop::{Backend, Envoy, Serving, assert_no_init_fetch_timeout, http};
use trunkline::kind;
use trunkline::status::{Clients as _, ResourceState, Sync};

use crate::script;
use crate::site::Site;
use crate::texts::{
    cluster_with, endpoints, listener, listener_with, route, routes, static_cluster, virtual_host,
};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);
const BAD: usize = 5;

fn numbered(start: &str, number: usize) -> String {
    format!("{start}{number}")
}

/// Ten of something, of which one is bad.
fn ten(good: impl Fn(usize) -> String, bad: &str) -> Vec<String> {
    let one = |number| match number {
        BAD => bad.to_owned(),
        _ => good(number),
    };
    (0..10).map(one).collect()
}

/// A route configuration with a header whose command nobody knows: Envoy finds
/// out when it builds its table.
fn bad_route(name: &str, cluster: &str) -> String {
    let host = virtual_host("one", "*", cluster);
    let fields = r#"request_headers_to_add: [{header: {key: h, value: "%NO_SUCH_COMMAND%"}}], "#;
    routes(name, &host.replacen('{', &format!("{{{fields}"), 1))
}

/// The status of the only client says what is wrong, in its words.
pub(crate) fn shows_the_rejected(serving: &Serving, type_url: &str, name: &str, reason: &str) {
    let clients = serving.server.clients();
    let [client] = &clients[..] else {
        panic!("one client in {clients:?}");
    };
    let of_type = |t: &&trunkline::status::TypeState| t.type_url.as_str() == type_url;
    let state = client.types.iter().find(of_type).expect("the type");
    assert_eq!(state.sync, Sync::Nacked, "{state:?}");
    let error = state.error.as_ref().expect("a reason");
    assert!(error.message.contains(reason), "{}", error.message);
    let resources = serving.server.resources(client.stream);
    let rejected: Vec<_> = resources
        .iter()
        .filter(|r| r.state == ResourceState::Nacked)
        .map(|r| (r.type_url.as_str(), r.name.as_str()))
        .collect();
    assert_eq!(rejected, [(type_url, name)]);
}

/// A quarantined resource is not sent again when something else changes.
fn is_not_sent_again(serving: &Serving, type_url: &str, name: &str, change: impl FnOnce()) {
    let place = serving.journal.place();
    let (_, rejected, _) = serving.journal.wait_parked(0);
    change();
    let accepted = |_: &interop::Sent| true;
    serving
        .journal
        .wait_accepted("another change", place, type_url, accepted);
    let again = serving.journal.sent(place, type_url);
    let again = again.iter().flat_map(|sent| &sent.resources);
    assert!(
        again
            .clone()
            .all(|(own, version)| own.as_str() != name || *version != rejected),
        "{:?}",
        again.collect::<Vec<_>>()
    );
}

fn one_bad_route_among_ten(way: Way) {
    let (old, new) = (Backend::start("old"), Backend::start("new"));
    let listeners: Vec<_> = (0..10)
        .map(|n| listener(&numbered("l", n), &numbered("r", n)))
        .collect();
    let all_to = |cluster: &str| {
        let to = |n| route(&numbered("r", n), cluster);
        ten(to, &to(BAD))
    };
    let site = Site::new(&[
        (
            "clusters.yaml",
            &[
                static_cluster("old", old.address()),
                static_cluster("new", new.address()),
            ],
        ),
        ("listeners.yaml", &listeners),
        ("routes.yaml", &all_to("old")),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let changed = |odd: &dyn Fn(&str, &str) -> String| {
        ten(|n| route(&numbered("r", n), "new"), &odd("r5", "new"))
    };
    site.write("routes.yaml", &changed(&bad_route));
    let (name, _, _) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "r5");
    let answers = |what: &str, odd: &str| {
        envoy.wait_for(what, SOON, |envoy| {
            let right = |n| {
                let at = envoy.listener(&numbered("l", n)).expect("the listener");
                let expected = if n == BAD { odd } else { "new" };
                http::get(at, "/").expect("an answer").body == expected
            };
            (0..10).all(right).then_some(())
        });
    };
    answers("nine new routes and one old", "old");
    shows_the_rejected(&serving, kind::RDS, "r5", "NO_SUCH_COMMAND");
    is_not_sent_again(&serving, kind::RDS, "r5", || {
        let mut other = changed(&bad_route);
        other[0] = route("r0", "old");
        site.write("routes.yaml", &other);
    });
    site.write(
        "routes.yaml",
        &changed(&|name, cluster| route(name, cluster)),
    );
    answers("the bad one to be mended", "new");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s12_a_bad_route_by_state_of_the_world() {
    one_bad_route_among_ten(SOTW);
}

#[test]
fn s12_a_bad_route_by_delta() {
    one_bad_route_among_ten(DELTA);
}

/// A listener that nothing can be done with: it has no filter chain.
fn bad_listener(name: &str) -> String {
    listener_with(name, "per_connection_buffer_limit_bytes: 4096")
}

fn one_bad_listener_among_ten(way: Way) {
    let (old, new) = (Backend::start("old"), Backend::start("new"));
    let all_on = |route: &str| {
        let on = |n| listener(&numbered("l", n), route);
        ten(on, &on(BAD))
    };
    let clusters = [
        static_cluster("old", old.address()),
        static_cluster("new", new.address()),
    ];
    let site = Site::new(&[
        ("clusters.yaml", &clusters),
        ("listeners.yaml", &all_on("old")),
        ("routes.yaml", &["old", "new"].map(|name| route(name, name))),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let changed = ten(|n| listener(&numbered("l", n), "new"), &bad_listener("l5"));
    site.write("listeners.yaml", &changed);
    let (name, _, _) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "l5");
    envoy.wait_for("nine new listeners and one old", SOON, |envoy| {
        let right = |n| {
            let at = envoy.listener(&numbered("l", n)).expect("the listener");
            let expected = if n == BAD { "old" } else { "new" };
            http::get(at, "/").is_ok_and(|answer| answer.body == expected)
        };
        (0..10).all(right).then_some(())
    });
    shows_the_rejected(&serving, kind::LDS, "l5", "filter chain");
    is_not_sent_again(&serving, kind::LDS, "l5", || {
        let mut other = changed.clone();
        other[0] = listener("l0", "old");
        site.write("listeners.yaml", &other);
    });
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s12_a_bad_listener_by_state_of_the_world() {
    one_bad_listener_among_ten(SOTW);
}

#[test]
fn s12_a_bad_listener_by_delta() {
    one_bad_listener_among_ten(DELTA);
}

/// A cluster that passes every rule of its fields and yet cannot be made.
fn bad_cluster(name: &str) -> String {
    cluster_with(
        name,
        "type: STATIC, connect_timeout: 2s, lb_policy: CLUSTER_PROVIDED",
    )
}

/// A client that polls cannot NACK. Envoy keeps what it has.
#[test]
fn s67_a_bad_cluster_by_polling_leaves_envoy_as_it_was() {
    let backend = Backend::start("served");
    let source = Way::Rest.source();
    let all = |n: usize| static_cluster(&numbered("c", n), backend.address());
    let site = Site::new(&[
        ("clusters.yaml", &ten(all, &all(BAD))),
        (
            "http.yaml",
            &[
                crate::texts::listener_from("http", "r", &source),
                route("r", "c5"),
            ],
        ),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&Way::Rest.bootstrap(serving.port));
    let listener = envoy.listener("http").expect("the listener");
    site.write("clusters.yaml", &ten(all, &bad_cluster("c5")));
    envoy.wait_for("the rejection", SOON, |envoy| {
        envoy
            .stat("cluster_manager.cds.update_rejected")
            .filter(|count| *count > 0)
    });
    assert_eq!(envoy.active_clusters().len(), 10);
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");

    let mended = [all(0), all(BAD)];
    site.write("clusters.yaml", &mended);
    envoy.wait_for("the good file", SOON, |envoy| {
        (envoy.active_clusters().len() == 2).then_some(())
    });
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");
    assert_no_init_fetch_timeout(&envoy);
}

/// An operator asks by the service that is made for it.
#[test]
fn s16_a_rejection_is_shown_by_csds() {
    let backend = Backend::start("served");
    let site = Site::new(&[
        (
            "clusters.yaml",
            &[crate::texts::cluster("good"), bad_cluster("bad")],
        ),
        ("endpoints.yaml", &[endpoints("good", backend.address())]),
    ]);
    let serving = site.serve();
    let _envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    serving.journal.wait_parked(0);
    let mut csds = script("csds.py", &[&serving.port.to_string(), "n1"], &[]);
    assert_eq!(csds.finish(SOON), Some(0), "{}", csds.text());
    let lines = csds.text();
    assert!(lines.contains("Cluster good ACKED\n"), "{lines}");
    assert!(lines.contains("Cluster bad NACKED "), "{lines}");
    assert!(lines.contains("cluster provided LB"), "{lines}");
}
