//! Secrets that are missing or bad.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, assert_no_init_fetch_timeout};

use crate::certificates::Authority;
use crate::site::Site;
use crate::status;
use crate::texts::{listener, route, secret, static_cluster, tls_listener};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);

/// All listeners wait for it, those without TLS too.
#[test]
fn s35_a_missing_secret_holds_nothing_up_by_delta() {
    let backend = Backend::start("any");
    let site = Site::new(&[(
        "all.yaml",
        &[
            static_cluster("c", backend.address()),
            route("r", "c"),
            listener("http", "r"),
            tls_listener("tls", "r", "cert", ADS),
        ],
    )]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    assert_no_init_fetch_timeout(&envoy);
    let certificate = Authority::new().issue();
    site.write("secret.yaml", &[secret("cert", &certificate)]);
    let tls = envoy.listener("tls").expect("the listener");
    envoy.wait_for("the certificate", SOON, |_| {
        certificate.is_shown(tls).then_some(())
    });
}

/// The key of another certificate: Envoy finds out, and keeps the old one.
#[test]
fn s12_a_bad_secret_leaves_the_old_one() {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let (old, mut new) = (authority.issue(), authority.issue());
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[route("r", "c"), tls_listener("tls", "r", "cert", ADS)],
        ),
        ("secret.yaml", &[secret("cert", &old)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    let tls = envoy.listener("tls").expect("the listener");
    let right = std::mem::replace(&mut new.key, old.key.clone());
    site.write("secret.yaml", &[secret("cert", &new)]);
    let (name, _, _) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "cert");
    assert!(old.is_shown(tls));
    new.key = right;
    site.write("secret.yaml", &[secret("cert", &new)]);
    envoy.wait_for("the mended secret", SOON, |_| {
        new.is_shown(tls).then_some(())
    });
}
