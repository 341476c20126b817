//! Bad secrets, removed ones, and those from PEM files.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy};

use crate::certificates::Authority;
use crate::site::{Site, replace};
use crate::texts::{other, route, secret, static_cluster, tls_listener};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

/// A certificate that Envoy cannot read: it keeps the old one.
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
    let right = std::mem::replace(&mut new.chain, "nonsense".to_owned());
    site.write("secret.yaml", &[secret("cert", &new)]);
    let (name, _, _) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "cert");
    assert!(old.is_shown(tls));
    new.chain = right;
    site.write("secret.yaml", &[secret("cert", &new)]);
    envoy.wait_for("the mended secret", SOON, |_| {
        new.is_shown(tls).then_some(())
    });
}

/// A certificate in files beside the resources, replaced before its key is:
/// Envoy has the old pair until the new one is complete.
#[test]
fn s12_a_certificate_in_pem_files_is_rotated() {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let (old, new) = (authority.issue(), authority.issue());
    let secret = other(
        "envoy.extensions.transport_sockets.tls.v3.Secret",
        "name: cert, tls_certificate: {certificate_chain: {filename: server.crt}, \
         private_key: {filename: server.key}}",
    );
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[route("r", "c"), tls_listener("tls", "r", "cert", ADS)],
        ),
        ("secret.yaml", &[secret]),
    ]);
    let (chain, key) = old.write(site.folder(), "server");
    let serving = site.serve();
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    let tls = envoy.listener("tls").expect("the listener");
    assert!(old.is_shown(tls));

    replace(&chain, &new.chain);
    // The ACK of this proves that the file was looked at.
    let more = ["c", "d"].map(|name| static_cluster(name, backend.address()));
    site.write("clusters.yaml", &more);
    envoy.wait_for("another change", SOON, |envoy| {
        (envoy.active_clusters().len() == 2).then_some(())
    });
    assert!(old.is_shown(tls));
    replace(&key, &new.key);
    envoy.wait_for("the new pair", SOON, |_| new.is_shown(tls).then_some(()));
}

/// A certificate that Envoy holds stays in use when its secret is deleted,
/// whatever the server sends. When the secret is back, it counts.
fn a_deleted_secret_stays_in_use(way: Way) {
    let backend = Backend::start("any");
    let authority = Authority::new();
    let (old, new) = (authority.issue(), authority.issue());
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        (
            "http.yaml",
            &[route("r", "c"), tls_listener("tls", "r", "cert", ADS)],
        ),
        ("secret.yaml", &[secret("cert", &old)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    let tls = envoy.listener("tls").expect("the listener");
    assert!(old.is_shown(tls));
    site.remove("secret.yaml");
    // The ACK of this proves that the deletion has been sent, too.
    let more = ["c", "d"].map(|name| static_cluster(name, backend.address()));
    site.write("clusters.yaml", &more);
    envoy.wait_for("another change", SOON, |envoy| {
        (envoy.active_clusters().len() == 2).then_some(())
    });
    assert!(old.is_shown(tls));
    site.write("secret.yaml", &[secret("cert", &new)]);
    envoy.wait_for("the secret that is back", SOON, |_| {
        new.is_shown(tls).then_some(())
    });
}

#[test]
fn s57_a_deleted_secret_stays_in_use_by_state_of_the_world() {
    a_deleted_secret_stays_in_use(SOTW);
}

#[test]
fn s57_a_deleted_secret_stays_in_use_by_delta() {
    a_deleted_secret_stays_in_use(DELTA);
}
