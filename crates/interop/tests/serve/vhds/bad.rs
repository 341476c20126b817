//! A virtual host that Envoy cannot make: Envoy takes nothing of the response
//! that has it, and yet no other host waits for it.

use interop::{Entry, Envoy, Flow, Gate, http};
use trunkline::kind;
use trunkline::status::Sync;

use super::{SOON, World, on_demand, read, short_requests, vhost, vhost_with};
use crate::rejection::shows_the_rejected;
use crate::site::Site;
use crate::texts::other;
use crate::way::DELTA;

const BAD: usize = 5;

/// Every rule of its fields is kept, and yet RE2 has no such escape.
fn bad(name: &str, domains: &[&str]) -> String {
    let name = format!("r1/{name}");
    other(
        "envoy.config.route.v3.VirtualHost",
        &format!(
            r#"name: {name:?}, domains: {domains:?}, routes: [{{match: {{safe_regex: {{regex: "\\y"}}}}, direct_response: {{status: 200}}}}]"#
        ),
    )
}

fn name(number: usize) -> String {
    format!("h{number}.com")
}

fn ten(odd: String) -> Vec<String> {
    let good = |n| vhost(&name(n), &[&name(n)], &name(n));
    let mut all: Vec<_> = (0..10).map(good).collect();
    all[BAD] = odd;
    all.push(vhost("first", &["first.com"], "first"));
    all
}

#[test]
fn s12_one_bad_virtual_host_in_an_answer_costs_nobody_else() {
    let site = Site::new(&[
        (
            "http.yaml",
            &[
                super::listener("http", "r1"),
                on_demand("r1", interop::bootstrap::ADS),
            ],
        ),
        ("hosts.yaml", &ten(bad("h5.com", &["h5.com"]))),
    ]);
    let serving = site.serve();
    let gate = Gate::before(serving.port);
    let envoy = Envoy::start(&short_requests(&DELTA.bootstrap(gate.port)));
    let world = World::with(site, serving, envoy);
    // The wildcard counts as one more. Envoy subscribes to all ten while an ACK
    // is pending, so they come in one response.
    gate.hold();
    let ask = |host: &str| http::ask_as(world.http, host, "/").expect("a connection");
    let first = ask("first.com");
    let brings = |entry: &Entry| matches!(entry, Entry::Sent(sent) if sent.brings("r1/first"));
    let sends = |entry: &Entry| brings(entry).then_some(());
    world.serving.journal.wait("the first answer", 0, sends);
    let asked: Vec<_> = (0..10).map(|n| ask(&name(n))).collect();
    world.envoy.wait_for("all to be asked for", SOON, |_| {
        (world.status().subscriptions > 11).then_some(())
    });
    let before = world.serving.journal.place();
    gate.release();
    assert_eq!(read("first.com", first.answer()), "first");
    for (number, asked) in asked.into_iter().enumerate() {
        let right = if number == BAD {
            "404".to_owned()
        } else {
            name(number)
        };
        assert_eq!(read(&name(number), asked.answer()), right);
    }
    let together = &world.serving.journal.sent(before, kind::VHDS)[0];
    assert_eq!(together.resources.len(), 10, "{together:?}");
    let (parked, _, _) = world.serving.journal.wait_parked(before);
    assert_eq!(parked.as_str(), "r1/h5.com");
    shows_the_rejected(&world.serving, kind::VHDS, "r1/h5.com", "invalid escape");

    world.put(&ten(vhost("h5.com", &["h5.com"], "mended")));
    world.wait("h5.com", "mended");
    world.envoy.wait_for("the rejection to be over", SOON, |_| {
        (world.status().sync == Sync::Synced).then_some(())
    });
}

/// What Envoy holds goes on being served.
#[test]
fn s12_a_bad_update_of_a_virtual_host_changes_nothing() {
    let world = World::new(&ten(vhost("h5.com", &["h5.com"], "good")));
    assert_eq!(
        (world.says("h5.com"), world.says("h0.com")),
        ("good".into(), name(0))
    );
    let flow = Flow::start_as(world.http, "h5.com");
    let mut changed = ten(bad("h5.com", &["h5.com"]));
    changed[0] = vhost(&name(0), &[&name(0)], "changed");
    world.put(&changed);
    world.wait("h0.com", "changed");
    world.serving.journal.wait_parked(0);
    assert_eq!(world.says("h5.com"), "good");
    shows_the_rejected(&world.serving, kind::VHDS, "r1/h5.com", "invalid escape");
    world.put(&ten(vhost("h5.com", &["h5.com"], "mended")));
    world.wait("h5.com", "mended");
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
}

/// Each copy for one host is NACKed by itself; none is waited for.
#[test]
fn s12_hosts_under_a_bad_wildcard_do_not_hang() {
    let exact = vhost("exact", &["x.wild.com"], "exact");
    let world = World::new(&[bad("wild", &["*.wild.com"]), exact.clone()]);
    let hosts = ["a.wild.com", "b.wild.com", "x.wild.com"];
    let answers = super::say_together(world.http, &hosts);
    assert_eq!(answers, ["404", "404", "exact"]);
    assert_eq!(world.says("a.wild.com"), "404");
    world.put(&[vhost("wild", &["*.wild.com"], "mended"), exact]);
    for host in ["a.wild.com", "b.wild.com", "new.wild.com"] {
        world.wait(host, "mended");
    }
    // Bad as a whole.
    let whole = World::new(&[bad("wild", &["*.wild.com"])]);
    assert_eq!(super::say_together(whole.http, &hosts), ["404"; 3]);
    whole.put(&[vhost_with(
        "r1",
        "wild",
        &["*.wild.com"],
        "direct_response: {status: 200}",
    )]);
    for host in hosts {
        whole.wait(host, "");
    }
}
