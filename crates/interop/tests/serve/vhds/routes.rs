//! Route configurations that leave hosts to VHDS come, change and go, and no
//! listener waits for anything in vain (S76).

use interop::bootstrap::ADS;
use interop::{Flow, http};

use super::{OTHER_ADS, SOON, World, listener, on_demand, on_demand_with, vhost, vhost_of};
use crate::site::Site;
use crate::texts::{ON_DEMAND, listener_of};

fn hosts() -> Vec<String> {
    vec![
        vhost("web", &["a.com", "b.com"], "web"),
        vhost("wild", &["*.n.com"], "wild"),
        vhost("under", &["x.n.com"], "under"),
    ]
}

fn ask_all(world: &World) {
    let all = [
        ("a.com", "web"),
        ("b.com", "web"),
        ("c.n.com", "wild"),
        ("x.n.com", "under"),
        ("none.com", "404"),
    ];
    for (host, says) in all {
        world.wait(host, says);
    }
}

fn write(world: &World, route: String) {
    world
        .site
        .write("http.yaml", &[listener("http", "r1"), route]);
}

/// Waits until Envoy has taken as many updates of a route configuration.
fn wait_for_update(world: &World, change: impl FnOnce()) {
    let before = world.serving.journal.place();
    change();
    let brings = |sent: &interop::Sent| sent.brings("r1");
    let journal = &world.serving.journal;
    journal.wait_accepted("the routes", before, trunkline::kind::RDS, brings);
}

#[test]
fn s76_other_fields_of_a_route_configuration_leave_its_hosts_alone() {
    let world = World::new(&hosts());
    ask_all(&world);
    let asked = world.asked();
    let flow = Flow::start_as(world.http, "b.com");
    let place = world.serving.journal.place();
    for number in 0..3 {
        let header = format!("{{header: {{key: x-round, value: \"{number}\"}}}}");
        let fields = format!("response_headers_to_add: [{header}], vhds: {{config_source: {ADS}}}");
        wait_for_update(&world, || write(&world, on_demand_with("r1", &fields)));
        world.envoy.wait_for("the header", SOON, |_| {
            let answer = http::get_as(world.http, "a.com", "/").expect("an answer");
            (answer.header("x-round") == Some(&number.to_string())).then_some(())
        });
        ask_all(&world);
    }
    assert_eq!(world.sent(place), (vec![], vec![]), "nothing is said again");
    assert_eq!(world.asked(), asked);
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    world.is_sound();
}

/// Envoy begins with an empty table, and does not subscribe again to the hosts
/// of before.
#[test]
fn s76_another_source_of_hosts_brings_them_again() {
    let world = World::new(&hosts());
    ask_all(&world);
    for source in [OTHER_ADS, ADS, OTHER_ADS] {
        wait_for_update(&world, || write(&world, on_demand("r1", source)));
        ask_all(&world);
        assert_eq!(world.says("new.n.com"), "wild");
    }
    world.put(&[vhost("web", &["a.com"], "changed")]);
    world.wait("a.com", "changed");
    for host in ["b.com", "c.n.com", "x.n.com", "none.com"] {
        world.wait(host, "404");
    }
    world.is_sound();
}

/// Envoy keeps its hosts and takes them up again, whatever became of them.
#[test]
fn s76_a_route_configuration_has_hosts_itself_for_a_while() {
    let web = |says: &str| vhost("web", &["a.com", "b.com"], says);
    let gone = vhost("gone", &["gone.com"], "gone");
    let world = World::new(&[web("web"), gone.clone()]);
    let own = r#"{name: own, domains: [a.com], routes: [{match: {prefix: ""}, direct_response: {status: 200, body: {inline_string: own}}}]}"#;
    for round in 0..3 {
        world.wait("a.com", "web");
        world.wait("gone.com", "gone");
        assert_eq!(world.says("none.com"), "404");
        let itself = on_demand_with("r1", &format!("virtual_hosts: [{own}]"));
        wait_for_update(&world, || write(&world, itself));
        world.wait("a.com", "own");
        for host in ["b.com", "gone.com", "none.com"] {
            assert_eq!(world.says(host), "404", "{host}");
        }
        let says = format!("changed {round}");
        world.put(&[web(&says)]);
        wait_for_update(&world, || write(&world, on_demand("r1", ADS)));
        for (host, says) in [("a.com", &*says), ("b.com", &says), ("gone.com", "404")] {
            world.wait(host, says);
        }
        assert_eq!(world.says("none.com"), "404");
        world.put(&[web("web"), gone.clone()]);
    }
    world.put(&[vhost("web", &["none.com"], "last")]);
    world.wait("none.com", "last");
    world.wait("a.com", "404");
    world.is_sound();
}

/// A route configuration may stand in its listener.
fn inside(name: &str, route: &str, prefix: &str) -> String {
    let routes = format!("route_config: {{name: {route:?}, vhds: {{config_source: {ADS}}}}}");
    listener_of(name, &routes, ON_DEMAND).replace(
        &format!("stat_prefix: {name:?}"),
        &format!("stat_prefix: {prefix:?}"),
    )
}

#[test]
fn s76_routes_inside_a_listener_leave_their_hosts_to_vhds() {
    let site = Site::new(&[
        ("http.yaml", &[inside("http", "r1", "one")]),
        ("hosts.yaml", &hosts()),
    ]);
    let serving = site.serve();
    let world = World::over(site, serving);
    ask_all(&world);
    // Another comes later, and one begins anew.
    let all = [
        inside("second", "r2", "one"),
        vhost_of("r2", "web", &["a.com"], "second"),
    ];
    world.site.write("second.yaml", &all);
    let second = world.envoy.wait_for("the listener", SOON, |envoy| {
        let at = envoy.listener("second")?;
        http::get_as(at, "a.com", "/").ok().map(|_| at)
    });
    assert_eq!(super::says(second, "a.com"), "second");
    assert_eq!(super::says(second, "none.com"), "404");
    world
        .site
        .write("http.yaml", &[inside("http", "r1", "two")]);
    let begun = "http.two.downstream_rq_total";
    let http = world.envoy.wait_for("the new listener", SOON, |envoy| {
        let at = envoy.listener("http")?;
        http::get_as(at, "a.com", "/").ok()?;
        envoy.stat(begun).filter(|count| *count > 0).map(|_| at)
    });
    let world = World { http, ..world };
    // The new listener waits in vain for hosts that the one before subscribed
    // to, where they do not exist or are removed: Envoy neither subscribes
    // again nor passes on what it knows. Routes that are not inside a listener
    // are free of that.
    for (host, says) in [
        ("b.com", "web"),
        ("c.n.com", "wild"),
        ("d.n.com", "wild"),
        ("x.n.com", "under"),
        ("never.com", "404"),
    ] {
        world.wait(host, says);
    }
    world.put(&[vhost("web", &["a.com", "b.com"], "changed")]);
    world.wait("b.com", "changed");
    world.is_sound();
}

/// Listeners and their routes come one after another; hosts are found at once.
#[test]
fn s76_route_configurations_that_come_later() {
    let world = World::new(&hosts());
    ask_all(&world);
    for number in 2..5 {
        let route = format!("r{number}");
        let all = [
            listener(&route, &route),
            on_demand(&route, ADS),
            vhost_of(&route, "web", &["a.com", "*.n.com"], &route),
        ];
        world.site.write(&format!("{route}.yaml"), &all);
        let at = world.envoy.wait_for("the listener", SOON, |envoy| {
            let at = envoy.listener(&route)?;
            http::get_as(at, "a.com", "/").ok().map(|_| at)
        });
        for (host, says) in [("a.com", &*route), ("c.n.com", &route), ("b.com", "404")] {
            assert_eq!(super::says(at, host), says, "{host} of {route}");
        }
        ask_all(&world);
    }
    // A listener that is removed and added again.
    let all = [
        on_demand("r2", ADS),
        vhost_of("r2", "web", &["a.com"], "r2 again"),
    ];
    world.site.write("r2.yaml", &all);
    world.envoy.wait_for("the listener to go", SOON, |envoy| {
        envoy.listener("r2").is_none().then_some(())
    });
    world
        .site
        .write("r2.yaml", &[&[listener("r2", "r2")], &all[..]].concat());
    let at = world.envoy.wait_for("the listener", SOON, |envoy| {
        let at = envoy.listener("r2")?;
        http::get_as(at, "a.com", "/").ok().map(|_| at)
    });
    world.wait_at(at, "a.com", "r2 again");
    world.wait_at(at, "c.n.com", "404");
    ask_all(&world);
    world.is_sound();
}
