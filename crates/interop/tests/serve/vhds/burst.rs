//! Many new hosts at once. Each response costs Envoy work for every host that
//! it holds, so there are few of them.

use interop::bootstrap::ADS;
use interop::{Envoy, Gate, http};
use trunkline::kind;

use super::{SOON, World, listener, on_demand, read, say_together, short_requests, vhost};
use crate::site::Site;
use crate::way::DELTA;

const HELD: usize = 2_000;
const NEW: usize = 100;

fn name(number: usize) -> String {
    format!("h{number}.com")
}

#[test]
fn s77_a_burst_of_hosts_is_answered_at_once_though_many_are_held() {
    let host = |number| vhost(&name(number), &[&name(number)], &name(number));
    let hosts: Vec<_> = (0..HELD + NEW).map(host).collect();
    let site = Site::new(&[
        ("http.yaml", &[listener("http", "r1"), on_demand("r1", ADS)]),
        ("hosts.yaml", &hosts),
    ]);
    let serving = site.serve();
    let gate = Gate::before(serving.port);
    let envoy = Envoy::start(&short_requests(&DELTA.bootstrap(gate.port)));
    let world = World::with(site, serving, envoy);
    let held: Vec<_> = (0..HELD).map(name).collect();
    let before = world.serving.journal.place();
    for part in held.chunks(500) {
        assert_eq!(say_together(world.http, part), part);
    }
    // However busy the machine is, hosts come faster than one response each.
    let answers = world.serving.journal.sent(before, kind::VHDS).len();
    assert!(answers < HELD / 4, "{answers} answers");

    // The first comes alone, and the others behind it together.
    gate.hold();
    let before = world.serving.journal.place();
    let asked = (HELD..HELD + NEW).map(|number| {
        let asked = http::ask_as(world.http, &name(number), "/").expect("a connection");
        (number, asked)
    });
    let asked: Vec<_> = asked.collect();
    world.envoy.wait_for("all to be asked for", SOON, |_| {
        (world.status().subscriptions > HELD + NEW).then_some(())
    });
    gate.release();
    for (number, asked) in asked {
        assert_eq!(read(&name(number), asked.answer()), name(number));
    }
    let sent = world.serving.journal.sent(before, kind::VHDS);
    let told: Vec<_> = sent.iter().map(|sent| sent.resources.len()).collect();
    assert_eq!(told.iter().sum::<usize>(), NEW, "nothing twice: {told:?}");
    assert!(told.len() <= 2, "{told:?}");
    world.is_sound();
}
