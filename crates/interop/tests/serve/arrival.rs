//! A change has arrived at a real Envoy when all is there that it needs: what
//! the change lists, and what Envoy asked for because of it.

use std::thread;
use std::time::{Duration, Instant};

use interop::{Backend, Envoy, Serving, http};
use trunkline::status::{Clients as _, ResourceState};
use trunkline::{Arrival, ArrivalState, Awaited, ClientArrival, kind};

use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route, routes, virtual_host};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// Calls `ask` until it returns something.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Makes the file another one, and begins to await that change.
fn change(site: &Site, serving: &Serving, resources: &[String]) -> Arrival {
    let before = serving.server.revision();
    site.write("all.yaml", resources);
    until("the change", || {
        let revision = serving.server.revision();
        let arrival = serving.server.arrival(revision, Awaited::default());
        arrival.filter(|_| revision > before)
    })
}

/// Waits until the only client is no longer awaited.
fn complete(arrival: &mut Arrival) -> ClientArrival {
    until("all answers", || arrival.look().then_some(()));
    let clients = arrival.clients();
    let [client] = &clients[..] else {
        panic!("one client: {clients:?}");
    };
    client.clone()
}

fn arrives(way: Way) {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let first = [
        cluster("one"),
        endpoints("one", one.address()),
        listener("l1", "r1"),
        route("r1", "one"),
    ];
    let second = [
        cluster("two"),
        endpoints("two", two.address()),
        listener("l2", "r2"),
        route("r2", "two"),
    ];
    let site = Site::new(&[("all.yaml", &first)]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let both = [&first[..], &second].concat();
    let mut arrival = change(&site, &serving, &both);
    let client = complete(&mut arrival);
    assert_eq!(client.state, ArrivalState::Answered);
    assert_eq!(client.rejected, []);
    // The routes and the endpoints were asked for after the change.
    let resources = serving.server.resources(client.stream);
    for (type_url, name) in [(kind::RDS, "r2"), (kind::EDS, "two")] {
        let found = resources
            .iter()
            .find(|r| r.type_url.as_str() == type_url && r.name.as_str() == name);
        let state = found.map(|found| found.state);
        assert_eq!(state, Some(ResourceState::Acked), "{name}");
    }
    envoy.wait_for("the new listener", SOON, |envoy| {
        let at = envoy.listener("l2")?;
        (http::get(at, "/").ok()?.body == "two").then_some(())
    });

    // What Envoy rejects.
    let host = virtual_host("one", "*", "one");
    let fields = r#"request_headers_to_add: [{header: {key: h, value: "%NO_SUCH_COMMAND%"}}], "#;
    let bad = routes("r1", &host.replacen('{', &format!("{{{fields}"), 1));
    let with_bad = [&first[..3], &[bad], &second].concat();
    let client = complete(&mut change(&site, &serving, &with_bad));
    assert_eq!(client.state, ArrivalState::Answered);
    let [rejected] = &client.rejected[..] else {
        panic!("one resource: {client:?}");
    };
    assert_eq!(rejected.name.as_str(), "r1");
    let error = rejected.error.as_ref().expect("its words");
    assert!(error.message.contains("NO_SUCH_COMMAND"), "{error:?}");

    // The old listener drains for a while, and its cluster stays so long.
    let client = complete(&mut change(&site, &serving, &second));
    assert_eq!(client.state, ArrivalState::Answered);
    assert_eq!(client.rejected, []);
    let kept = (kind::CDS.into(), "one".into());
    assert!(client.withheld.contains(&kept), "{client:?}");

    // An Envoy that is gone is not awaited.
    let mut arrival = change(&site, &serving, &both);
    until("the client to be known", || {
        arrival.look();
        (!arrival.clients().is_empty()).then_some(())
    });
    drop(envoy);
    let client = complete(&mut arrival);
    assert_ne!(client.state, ArrivalState::Awaited);
}

#[test]
fn a_change_arrives_by_state_of_the_world() {
    arrives(SOTW);
}

#[test]
fn a_change_arrives_by_delta() {
    arrives(DELTA);
}
