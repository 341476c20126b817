//! Each way to answer for a host, and what Envoy makes of it.

use super::{World, vhost};
use crate::texts::other;

/// One virtual host is the answer for all the hosts that it names, whichever
/// Envoy subscribes to.
#[test]
fn s36_a_virtual_host_is_found_by_each_of_its_domains() {
    let web = |domains: &[&str], says: &str| vhost("web", domains, says);
    let foo = vhost("foo.com", &["foo.com"], "foo");
    let world = World::new(&[foo.clone(), web(&["a.com", "b.com"], "web")]);
    let before = world.asked();
    assert_eq!(world.says("foo.com"), "foo");
    assert_eq!(world.says("a.com"), "web");
    assert_eq!(world.asked(), before + 2);
    assert_eq!(world.says("b.com"), "web");
    assert_eq!(world.asked(), before + 2, "it is held already");

    world.put(&[foo.clone(), web(&["a.com", "b.com"], "changed")]);
    world.wait("b.com", "changed");
    assert_eq!(world.says("a.com"), "changed");
    world.put(&[foo, web(&["a.com"], "less")]);
    world.wait("a.com", "less");
    assert_eq!(world.says("b.com"), "404");
    assert_eq!(world.says("foo.com"), "foo");
    assert_eq!(world.asked(), before + 3, "b.com by itself");
    world.is_sound();
}

/// The aliases of a virtual host are hosts that it answers to.
#[test]
fn s36_a_virtual_host_is_found_by_its_alias() {
    let wild = r#"name: r1/wild, aliases: [r1/a.wild.com], resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: r1/wild, domains: ["*.wild.com"], routes: [{match: {prefix: ""}, direct_response: {status: 200, body: {inline_string: wild}}}]}"#;
    let wild = other("envoy.service.discovery.v3.Resource", wild);
    let world = World::new(&[wild, vhost("under", &["c.wild.com"], "under")]);
    for (host, says) in [
        ("a.wild.com", "wild"),
        ("b.wild.com", "wild"),
        ("c.wild.com", "under"),
    ] {
        assert_eq!(world.says(host), says, "{host}");
    }
    world.is_sound();
}

#[test]
fn s66_hosts_under_a_wildcard_that_is_held_are_not_asked_for() {
    let world = World::new(&[
        vhost("wild", &["*.wild.com"], "wild"),
        vhost("other", &["wild.com", "own.net", "*.own.net"], "other"),
    ]);
    let before = world.asked();
    for host in ["a.wild.com", "b.wild.com", "x.y.wild.com"] {
        assert_eq!(world.says(host), "wild", "{host}");
    }
    assert_eq!(world.asked(), before + 1);
    // Its own domains under its own wildcard hide nothing.
    for host in ["c.own.net", "own.net", "d.own.net", "wild.com"] {
        assert_eq!(world.says(host), "other", "{host}");
    }
    assert_eq!(world.asked(), before + 2);
    world.is_sound();
}

#[test]
fn s66_a_star_that_is_alone_is_asked_for_once() {
    let world = World::new(&[vhost("star", &["*"], "star")]);
    let before = world.asked();
    for host in ["a.com", "b.com", "c.com:8080", "d"] {
        assert_eq!(world.says(host), "star", "{host}");
    }
    assert_eq!(world.asked(), before + 1);
    world.is_sound();
}

/// Envoy subscribes once for ever, so every change of the host is pushed.
#[test]
fn s34_a_host_that_does_not_exist_is_asked_for_once_and_pushed_when_it_comes() {
    let later = |says| vhost("later", &["later.com"], says);
    let world = World::new(&[]);
    let before = world.asked();
    assert_eq!(world.says("later.com"), "404");
    assert_eq!(world.says("later.com"), "404");
    assert_eq!(world.asked(), before + 1);
    for says in ["first", "second"] {
        world.put(&[later(says)]);
        world.wait("later.com", says);
        world.put(&[]);
        world.wait("later.com", "404");
    }
    assert_eq!(world.asked(), before + 1);
    world.is_sound();
}

/// A negative answer for a host cannot have a name by which something else is
/// held.
#[test]
fn s35_a_host_does_not_exist_although_a_virtual_host_is_called_like_it() {
    let called = |domains: &[&str]| vhost("x.com", domains, "called");
    let wild = |more: &[&str]| vhost("z.com", &[more, &["*.foo.com"]].concat(), "wild");
    let under = vhost("under", &["a.foo.com"], "under");
    let world = World::new(&[called(&["y.com"]), wild(&[]), under.clone()]);
    let before = world.asked();
    // Each gets an answer, or it would hang.
    assert_eq!(world.says("x.com"), "404");
    assert_eq!(world.says("z.com"), "404");
    assert_eq!(world.says("b.foo.com"), "wild");
    assert_eq!(world.says("a.foo.com"), "under");
    assert_eq!(world.says("y.com"), "called");
    assert_eq!(
        (world.says("x.com"), world.says("z.com")),
        ("404".into(), "404".into())
    );
    let asked = world.asked();
    assert!(asked <= before + 5, "{asked} requests");
    let (brought, _) = world.sent(0);
    let negative = |name: &String| name == "r1/z.com*";
    assert!(brought.iter().any(negative), "{brought:?}");

    world.put(&[called(&["y.com", "x.com"]), wild(&["z.com"]), under.clone()]);
    world.wait("x.com", "called");
    world.wait("z.com", "wild");
    world.put(&[called(&["y.com"]), wild(&[]), under]);
    world.wait("x.com", "404");
    world.wait("z.com", "404");
    assert_eq!(world.says("y.com"), "called");
    assert_eq!(world.says("b.foo.com"), "wild");
    assert_eq!(world.asked(), asked);
    world.is_sound();
}

#[test]
fn s36_the_port_is_a_part_of_the_host() {
    let world = World::new(&[
        vhost("port", &["p.com:8080"], "port"),
        vhost("plain", &["p.com"], "plain"),
        vhost("any", &["q.com", "q.com:*"], "any"),
        vhost("wild", &["*.w.com:81"], "wild"),
    ]);
    let hosts = [
        ("p.com:8080", "port"),
        ("p.com", "plain"),
        ("p.com:8081", "404"),
        ("q.com:1", "any"),
        ("q.com", "any"),
        ("q.com:65535", "any"),
        ("a.w.com:81", "wild"),
        ("a.w.com", "404"),
    ];
    for (host, says) in hosts.iter().chain(&hosts) {
        assert_eq!(world.says(host), *says, "{host}");
    }
    world.is_sound();
}

#[test]
fn s36_hosts_are_the_same_in_upper_and_in_lower_case() {
    let world = World::new(&[
        vhost("foo", &["foo.com", "foo.com:8080"], "foo"),
        vhost("Up", &["UP.com"], "up"),
        vhost("Wild", &["*.WILD.com"], "wild"),
        vhost("under", &["a.wild.COM"], "under"),
    ]);
    let hosts = [
        ("FOO.com", "foo"),
        ("foo.COM:8080", "foo"),
        ("up.com", "up"),
        ("UP.COM", "up"),
        ("B.Wild.com", "wild"),
        ("A.Wild.com", "under"),
        ("a.wild.com", "under"),
        ("NONE.com", "404"),
    ];
    for (host, says) in hosts.iter().chain(&hosts) {
        assert_eq!(world.says(host), *says, "{host}");
    }
    world.is_sound();
}
