//! A proxy subscribes to every host that anybody sends it, and lists all of
//! them when it reconnects. The server remembers a bounded number of them
//! (S72).

use interop::Envoy;
use interop::bootstrap::ADS;

use super::{World, listener, on_demand, say_together, short_requests, vhost};
use crate::site::Site;
use crate::way::DELTA;

const LIMIT: usize = 50;
const JUNK: usize = 5_000;

fn junk(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("junk{n}.com")).collect()
}

fn hosts() -> Vec<String> {
    let known = |n| vhost(&format!("v{n}"), &[&format!("known{n}.com")], "known");
    let all = (0..100).map(known);
    let wild = vhost("wild", &["*.wild.com"], "wild");
    let under = vhost("under", &["under.wild.com"], "under");
    all.chain([wild, under]).collect()
}

fn known(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("known{n}.com")).collect()
}

#[test]
fn s72_junk_hosts_are_answered_and_not_remembered() {
    let site = Site::new(&[
        ("http.yaml", &[listener("http", "r1"), on_demand("r1", ADS)]),
        ("hosts.yaml", &hosts()),
    ]);
    let limit = |options: &mut trunkline::Options| options.limits.hosts = LIMIT;
    let serving = site.serve_with(0, limit);
    let port = serving.port;
    let envoy = Envoy::start(&short_requests(&DELTA.bootstrap(port)));
    let world = World::with(site, serving, envoy);
    let ask = |world: &World, hosts: &[String], says: &str| {
        for part in hosts.chunks(500) {
            let answers = say_together(world.http, part);
            assert!(answers.iter().all(|answer| answer == says), "{answers:?}");
        }
    };
    ask(&world, &known(0, 40), "known");
    ask(&world, &junk(0, JUNK), "404");
    assert!(
        world.status().subscriptions <= LIMIT + 40 + 1,
        "{:?}",
        world.status()
    );
    // A host that a virtual host names is known beyond the limit.
    ask(&world, &known(40, 80), "known");
    ask(&world, &known(0, 40), "known");
    // A wildcard brings nothing more to this proxy.
    assert_eq!(world.says("a.wild.com"), "404");
    assert_eq!(world.says("under.wild.com"), "under");
    let asked = world.asked();
    ask(&world, &junk(0, 500), "404");
    assert_eq!(world.asked(), asked, "Envoy remembers them");

    // It lists all of them.
    let World {
        site,
        serving,
        envoy,
        ..
    } = world;
    serving.stop();
    let serving = site.serve_with(port, limit);
    let world = World::with(site, serving, envoy);
    ask(&world, &known(80, 100), "known");
    ask(&world, &known(0, 40), "known");
    ask(&world, &junk(JUNK, JUNK + 100), "404");
    assert!(
        world.status().subscriptions <= LIMIT + 101 + 1,
        "{:?}",
        world.status()
    );
    let (brought, _) = world.sent(0);
    let again: Vec<_> = brought
        .iter()
        .filter(|name| !name.contains("junk"))
        .collect();
    assert!(again.len() <= 20 + 1, "only what is new: {again:?}");
    world.is_sound();
}
