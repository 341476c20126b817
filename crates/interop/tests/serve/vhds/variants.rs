//! Virtual hosts of which a proxy sees what is for it: chosen by its
//! parameters before domains are compared (TP2).

use interop::{Envoy, Mode, Serving, bootstrap};

use super::{ADS, SOON, listener, on_demand, says, vhost};
use crate::site::Site;
use crate::texts::variant;
use crate::variants::{NOT_PROD, PROD, by_id};

fn hosts(exact: &str) -> Vec<String> {
    let of = |name: &str, whose: &str, host: &str| variant(&format!("r1/{name}"), whose, host);
    vec![
        vhost("wild", &["*.wild.com"], "wild"),
        of("exact", PROD, &vhost("exact", &["x.wild.com"], exact)),
        // One name in two variants, and one domain of two names.
        of("web", PROD, &vhost("web", &["web.com"], "web of prod")),
        of("web", NOT_PROD, &vhost("web", &["web.com"], "web of test")),
        of("p", PROD, &vhost("p", &["d.com"], "p")),
        of("t", NOT_PROD, &vhost("t", &["d.com"], "t")),
    ]
}

fn start(serving: &Serving, id: &str) -> Envoy {
    Envoy::start(&bootstrap::ads(serving.port, Mode::Delta, id))
}

#[test]
fn tp2_a_proxy_sees_the_virtual_hosts_that_are_for_it() {
    let site = Site::new(&[
        ("http.yaml", &[listener("http", "r1"), on_demand("r1", ADS)]),
        ("hosts.yaml", &hosts("exact")),
    ]);
    let serving = site.serve_with(0, by_id);
    let proxies = [
        (
            "prod",
            ["exact", "wild", "web of prod", "p"],
            start(&serving, "prod"),
        ),
        (
            "test",
            ["wild", "wild", "web of test", "t"],
            start(&serving, "test"),
        ),
    ];
    let asked = ["x.wild.com", "y.wild.com", "web.com", "d.com"];
    for (id, expected, envoy) in &proxies {
        let at = envoy.listener("http").expect("the listener");
        assert_eq!(asked.map(|host| says(at, host)), *expected, "{id}");
    }

    site.write("hosts.yaml", &hosts("changed"));
    let [(_, _, prod), (_, _, test)] = &proxies;
    let at = prod.listener("http").expect("the listener");
    prod.wait_for("the change", SOON, |_| {
        (says(at, "x.wild.com") == "changed").then_some(())
    });
    let at = test.listener("http").expect("the listener");
    assert_eq!(says(at, "x.wild.com"), "wild");
}
