//! A wildcard that Envoy holds, and a domain that is added under it later:
//! Envoy would never subscribe to that, so it is sent.

use interop::Flow;

use super::{World, vhost};

#[test]
fn s36_what_comes_under_a_wildcard_takes_its_hosts_and_gives_them_back() {
    let wild = |says| vhost("wild", &["*.wild.com"], says);
    let exact = vhost("exact", &["b.wild.com"], "exact");
    let world = World::new(&[wild("wild")]);
    for host in ["a.wild.com", "b.wild.com", "c.wild.com"] {
        assert_eq!(world.says(host), "wild", "{host}");
    }
    // One that Envoy subscribed to, and one that the wildcard brought.
    let flows = ["a.wild.com", "c.wild.com"].map(|host| Flow::start_as(world.http, host));
    for round in 0..3 {
        world.put(&[wild("wild"), exact.clone()]);
        world.wait("b.wild.com", "exact");
        for host in ["a.wild.com", "c.wild.com", &format!("new{round}.wild.com")] {
            assert_eq!(world.says(host), "wild", "{host}");
        }
        // Copies for one host each change with their original.
        world.put(&[wild("changed"), exact.clone()]);
        for host in ["a.wild.com", "c.wild.com"] {
            world.wait(host, "changed");
        }
        assert_eq!(world.says("b.wild.com"), "exact");

        world.put(&[wild("wild")]);
        world.wait("b.wild.com", "wild");
        world.wait("a.wild.com", "wild");
        let asked = world.asked();
        assert_eq!(world.says(&format!("late{round}.wild.com")), "wild");
        assert_eq!(
            world.asked(),
            asked,
            "the wildcard is held as a whole again"
        );
    }
    for flow in flows {
        let flowed = flow.stop();
        assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    }
    world.is_sound();
}

/// Each is under the one before, and all are found as the whole would find
/// them, also those that are not on the border of a label.
#[test]
fn s36_wildcards_under_wildcards() {
    let all = [
        (vhost("star", &["*"], "star"), "any.net", "star"),
        (vhost("com", &["*.com"], "com"), "other.com", "com"),
        (vhost("foo", &["*.foo.com"], "foo"), "a.foo.com", "foo"),
        (
            vhost("bar", &["*-bar.foo.com"], "bar"),
            "a-bar.foo.com",
            "bar",
        ),
        (
            vhost("exact", &["x-bar.foo.com"], "exact"),
            "x-bar.foo.com",
            "exact",
        ),
        // Before the star, and behind every suffix.
        (
            vhost("prefix", &["x-bar.*"], "prefix"),
            "x-bar.net",
            "prefix",
        ),
    ];
    let texts: Vec<_> = all.iter().map(|(text, ..)| text.clone()).collect();
    let world = World::new(&texts[..1]);
    for (_, host, _) in &all {
        assert_eq!(world.says(host), "star", "{host}");
    }
    for count in (1..=all.len()).chain((1..all.len()).rev()) {
        world.put(&texts[..count]);
        // The host of what is there, and of what is not: it is given to the
        // last that matches it.
        let expected = |at: usize| match at {
            5 if count > 5 => "prefix",
            5 => "star",
            at => all[at.min(count - 1)].2,
        };
        for (at, (_, host, _)) in all.iter().enumerate() {
            world.wait(host, expected(at));
        }
        for (at, (_, host, _)) in all.iter().enumerate() {
            assert_eq!(world.says(host), expected(at), "{host} of {count}");
        }
    }
    world.is_sound();
}

/// Envoy would NACK a domain that it holds twice: it moves in one response.
#[test]
fn s41_a_domain_moves_from_one_virtual_host_to_another() {
    let all = |one: &[&str], two: &[&str]| [vhost("one", one, "one"), vhost("two", two, "two")];
    let world = World::new(&all(&["a.com", "b.com"], &["c.com"]));
    for (host, says) in [("a.com", "one"), ("b.com", "one"), ("c.com", "two")] {
        assert_eq!(world.says(host), says, "{host}");
    }
    let flow = Flow::start_as(world.http, "b.com");
    for _ in 0..3 {
        world.put(&all(&["a.com"], &["c.com", "b.com"]));
        world.wait("b.com", "two");
        assert_eq!(
            (world.says("a.com"), world.says("c.com")),
            ("one".into(), "two".into())
        );
        world.put(&all(&["b.com", "a.com", "*.com"], &["c.com"]));
        world.wait("b.com", "one");
        assert_eq!(
            (world.says("c.com"), world.says("d.com")),
            ("two".into(), "one".into())
        );
    }
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    world.is_sound();
}
