//! The server ends and starts again. Envoy lists every host that it ever
//! subscribed to and what it holds, and is sent what changed.

use interop::http;
use trunkline::kind;

use super::{World, read, vhost};

fn narrowed(more: &[String]) -> Vec<String> {
    let all = [
        vhost("web", &["a.com", "b.com"], "web"),
        vhost("wild", &["*.n.com"], "wild"),
        vhost("under", &["x.n.com"], "under"),
        vhost("x.com", &["y.com"], "called like another"),
    ];
    [&all, more].concat()
}

#[test]
fn s45_only_what_changed_is_sent_to_an_envoy_that_comes_back() {
    let world = World::new(&narrowed(&[
        vhost("gone", &["gone.com"], "gone"),
        vhost("changes", &["changes.com"], "old"),
        vhost("whole", &["*.w.com"], "whole"),
        vhost("alone", &["v.com", "*.v.com"], "alone"),
    ]));
    let held = [
        ("b.com", "web"),
        ("c.n.com", "wild"),
        ("d.n.com", "wild"),
        ("x.n.com", "under"),
        ("x.com", "404"),
        ("y.com", "called like another"),
        ("none.com", "404"),
        ("later.com", "404"),
        ("gone.com", "gone"),
        ("changes.com", "old"),
        ("a.w.com", "whole"),
        ("a.v.com", "alone"),
    ];
    for (host, says) in held {
        assert_eq!(world.says(host), says, "{host}");
    }
    // The responses are ACKed: Envoy holds what it says it holds.
    world.asked();
    let (world, waiting) = world.restarted(|site, at| {
        for (host, says) in held {
            assert_eq!(super::says(at, host), says, "{host} without a server");
        }
        let waiting = ["waits.com", "never.com"]
            .map(|host| (host, http::ask_as(at, host, "/").expect("a connection")));
        site.write(
            "hosts.yaml",
            &narrowed(&[
                vhost("changes", &["changes.com"], "new"),
                vhost("later", &["later.com"], "later"),
                vhost("waits", &["waits.com"], "waited"),
                // One that was narrowed is now named.
                vhost("named", &["c.n.com"], "named"),
                // One that was whole has something under it.
                vhost("whole", &["*.w.com"], "whole"),
                vhost("b.w.com", &["b.w.com"], "under whole"),
                vhost("alone", &["v.com", "*.v.com"], "alone"),
            ]),
        );
        waiting
    });
    for ((host, waiting), says) in waiting.into_iter().zip(["waited", "404"]) {
        assert_eq!(read(host, waiting.answer()), says, "{host}");
    }
    let after = [
        ("b.com", "web"),
        ("a.com", "web"),
        ("c.n.com", "named"),
        ("d.n.com", "wild"),
        ("x.n.com", "under"),
        ("x.com", "404"),
        ("y.com", "called like another"),
        ("none.com", "404"),
        ("later.com", "later"),
        ("gone.com", "404"),
        ("changes.com", "new"),
        ("a.w.com", "whole"),
        ("a.v.com", "alone"),
    ];
    for (host, says) in after {
        world.wait(host, says);
    }
    let asked = world.asked();
    assert_eq!(asked, 1, "all of it was in the first request");
    let (brought, removed) = world.sent(0);
    let expected = [
        "r1/a.w.com",
        "r1/changes",
        // Somebody may wait for it.
        "r1/gone.com",
        "r1/later",
        "r1/named",
        "r1/never.com",
        "r1/waits",
        // A virtual host with the name of a host that Envoy does not have may
        // have come for another host, and a request may wait for this one.
        "r1/x.com",
    ];
    assert_eq!(brought, expected);
    assert_eq!(removed, ["r1/.none", "r1/c.n.com", "r1/gone", "r1/whole"]);
    // A host that Envoy did not hold is subscribed to as ever.
    assert_eq!(world.says("b.w.com"), "under whole");
    assert_eq!(world.says("e.n.com"), "wild");
    world.is_sound();
}

/// The same contents have the same versions in every process.
#[test]
fn s46_nothing_is_sent_when_nothing_changed() {
    let world = World::new(&narrowed(&[]));
    let held = [
        ("a.com", "web"),
        ("c.n.com", "wild"),
        ("x.n.com", "under"),
        ("y.com", "called like another"),
        ("none.com", "404"),
    ];
    for (host, says) in held {
        assert_eq!(world.says(host), says, "{host}");
    }
    world.asked();
    let (world, ()) = world.restarted(|_, _| ());
    // The answer to this proves that the rest was sent.
    assert_eq!(world.says("new.com"), "404");
    assert_eq!(
        world.sent(0),
        (vec!["r1/new.com".to_owned()], vec!["r1/.none".to_owned()])
    );
    for (host, says) in held {
        assert_eq!(world.says(host), says, "{host}");
    }
    let held = world.serving.journal.sent(0, kind::VHDS).len();
    assert!(held <= 2, "{held} responses");
    world.is_sound();
}
