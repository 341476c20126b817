//! Many requests at once for hosts that Envoy does not hold yet.

use std::thread;
use std::time::Duration;

use interop::{Backend, Envoy, Gate, Serving, assert_no_init_fetch_timeout, http};
use trunkline::kind;
use trunkline::status::Clients as _;

use crate::site::Site;
use crate::texts::static_cluster;
use crate::virtual_hosts::{host_of, leaves_hosts, listener};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);
const HOSTS: usize = 50;

/// Says who it is once, instead of in every request: that is sixty kilobytes,
/// and not many of those pass while the server is not heard.
fn with_short_requests(bootstrap: &str) -> String {
    let place = "    transport_api_version: V3\n    grpc_services";
    let short = place.replace('\n', "\n    set_node_on_first_message_only: true\n");
    let with = bootstrap.replace(place, &short);
    assert_ne!(with, bootstrap);
    with
}

fn hosts_asked_for(serving: &Serving) -> usize {
    let clients = serving.server.clients();
    let types = clients.iter().flat_map(|client| &client.types);
    let of_hosts = types.filter(|state| state.type_url.as_str() == kind::VHDS);
    of_hosts.map(|state| state.subscriptions).sum()
}

/// Each answer costs Envoy work for every host that it holds, and Envoy asks
/// for each host by itself. So the answers behind one that it has not taken
/// yet go together.
#[test]
fn s77_a_burst_of_new_hosts_is_answered_in_a_few_responses() {
    let backend = Backend::start("served");
    let name = |number: usize| format!("h{number}.com");
    let hosts: Vec<_> = (0..HOSTS).map(|n| host_of("r1", &name(n))).collect();
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[listener("http", "r1"), leaves_hosts("r1")]),
        ("hosts.yaml", &hosts),
    ]);
    let serving = site.serve();
    let gate = Gate::before(serving.port);
    let envoy = Envoy::start(&with_short_requests(&DELTA.bootstrap(gate.port)));
    let at = envoy.listener("http").expect("the listener");
    let before = serving.journal.place();
    gate.hold();
    let asked = (0..HOSTS).map(|n| {
        let asked = thread::spawn(move || http::get_as(at, &name(n), "/"));
        envoy.wait_for("the host to be asked for", SOON, |_| {
            (hosts_asked_for(&serving) > n).then_some(())
        });
        asked
    });
    let asked: Vec<_> = asked.collect();
    gate.release();
    for asked in asked {
        let answer = asked.join().expect("no panic").expect("an answer");
        assert_eq!((answer.status, answer.body.as_str()), (200, "served"));
    }
    let sent = serving.journal.sent(before, kind::VHDS);
    let told: usize = sent.iter().map(|sent| sent.resources.len()).sum();
    assert_eq!(told, HOSTS);
    assert!(sent.len() <= HOSTS / 5, "{} responses", sent.len());
    println!("{HOSTS} hosts in {} responses", sent.len());
    assert_no_init_fetch_timeout(&envoy);
}
