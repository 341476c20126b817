//! A stream for the hosts of each route configuration, beside that of all else.

use interop::{Mode, bootstrap};
use trunkline::kind;
use trunkline::status::Clients as _;

use super::{SOON, World, listener, on_demand, says, vhost_of};
use crate::site::Site;

fn hosts(more: &[String]) -> Vec<String> {
    let of = |route: &str| {
        [
            vhost_of(route, "web", &["a.com", "b.com"], route),
            vhost_of(route, "wild", &["*.n.com"], route),
        ]
    };
    [of("r1"), of("r2")]
        .into_iter()
        .flatten()
        .chain(more.iter().cloned())
        .collect()
}

fn world() -> World {
    let source = bootstrap::stream_source(Mode::Delta);
    let of = |route: &str| on_demand(route, &source);
    let site = Site::new(&[
        ("http.yaml", &[listener("http", "r1"), of("r1")]),
        ("second.yaml", &[listener("second", "r2"), of("r2")]),
        ("hosts.yaml", &hosts(&[])),
    ]);
    let serving = site.serve();
    World::over(site, serving)
}

/// How many streams there are for hosts alone.
fn streams(world: &World) -> usize {
    let clients = world.serving.server.clients();
    let only = clients.iter().filter_map(|client| client.only.as_ref());
    only.filter(|url| url.as_str() == kind::VHDS).count()
}

/// A stream of hosts alone does not say which route configuration it is for.
#[test]
fn s66_route_configurations_have_streams_of_hosts_of_their_own() {
    let world = world();
    let second = world.envoy.listener("second").expect("the listener");
    let both = [(world.http, "r1"), (second, "r2")];
    for (at, route) in both {
        for host in ["a.com", "b.com", "x.n.com", "y.n.com"] {
            assert_eq!(says(at, host), route, "{host}");
        }
        assert_eq!(says(at, "none.com"), "404");
    }
    assert_eq!(streams(&world), 2);
    // Each is sent its own.
    world.asked();
    let place = world.serving.journal.place();
    let more = [
        vhost_of("r1", "later", &["none.com"], "later"),
        vhost_of("r2", "x.n.com", &["x.n.com"], "under"),
    ];
    world.put(&hosts(&more));
    world.wait("none.com", "later");
    world.wait_at(second, "x.n.com", "under");
    world.wait_at(second, "y.n.com", "r2");
    assert_eq!(says(second, "none.com"), "404");
    assert_eq!(world.says("x.n.com"), "r1");
    world.asked();
    let sent = world.serving.journal.sent(place, kind::VHDS);
    for sent in &sent {
        let names = sent.names();
        let of = |route: &str| names.iter().filter(|name| name.starts_with(route)).count();
        assert!(of("r1/") == 0 || of("r2/") == 0, "{sent:?}");
    }
    world.is_sound();
}

#[test]
fn s46_streams_of_hosts_come_back_to_what_they_had() {
    let world = world();
    let second = world.envoy.listener("second").expect("the listener");
    for (at, route) in [(world.http, "r1"), (second, "r2")] {
        assert_eq!(says(at, "a.com"), route);
        assert_eq!(says(at, "x.n.com"), route);
        assert_eq!(says(at, "none.com"), "404");
    }
    world.asked();
    let (world, ()) = world.restarted(|site, _| {
        let later = vhost_of("r2", "later", &["none.com"], "later");
        site.write("hosts.yaml", &hosts(&[later]));
    });
    world.wait_at(second, "none.com", "later");
    // The answer proves that the other stream is back as well.
    assert_eq!(world.says("new.com"), "404");
    for (at, route) in [(world.http, "r1"), (second, "r2")] {
        assert_eq!(says(at, "b.com"), route);
        assert_eq!(says(at, "y.n.com"), route);
    }
    world.asked();
    assert_eq!(world.sent(0).0, ["r1/new.com", "r2/later"]);
    world.envoy.wait_for("both streams", SOON, |_| {
        (streams(&world) == 2).then_some(())
    });
    world.is_sound();
}
