//! Envoy and the server prove to each other who they are.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use interop::{
    Backend, Entry, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, folder, http,
    of_files,
};
use trunkline::tls::{Tls, TlsFiles};

use crate::certificates::Authority;
use crate::site::{Site, replace};
use crate::texts::{listener, route, static_cluster};

const SOON: Duration = Duration::from_secs(10);

/// Keys and certificates in files, and a server with them.
struct Secured {
    authority: Authority,
    folder: PathBuf,
    serving: Serving,
}

impl Secured {
    fn start(site: &Site) -> Self {
        let (authority, folder) = (Authority::new(), folder("tls"));
        let trusted = folder.join("authority.pem");
        replace(&trusted, &authority.pem());
        let (cert, key) = authority.issue().write(&folder, "server");
        authority.issue().write(&folder, "client");
        let client_ca = Some(trusted);
        let tls = Tls::load(TlsFiles {
            cert,
            key,
            client_ca,
        });
        let tls = tls.expect("good files");
        let serving = Serving::over(of_files(site.folder()), 0, Some(tls.clone()));
        serving.spawn(async move { tls.watch(|_| ()).await });
        Self {
            authority,
            folder,
            serving,
        }
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.serving.port).into()
    }

    fn bootstrap(&self, mode: Mode, with_own: bool) -> String {
        let at = |name: &str| self.folder.join(name);
        let (chain, key) = (at("client.crt"), at("client.key"));
        let own = with_own.then_some((&*chain, &*key));
        bootstrap::ads_tls(self.serving.port, mode, "n1", &at("authority.pem"), own)
    }

    fn streams(&self) -> usize {
        self.serving
            .journal
            .count(|entry| matches!(entry, Entry::Opened(_)))
    }
}

fn site(backend: &Backend) -> Site {
    Site::new(&[(
        "all.yaml",
        &[
            static_cluster("c", backend.address()),
            listener("http", "r"),
            route("r", "c"),
        ],
    )])
}

fn serves(envoy: &Envoy) {
    let listener = envoy.listener("http").expect("the listener");
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");
    assert_no_init_fetch_timeout(envoy);
}

#[test]
fn envoy_is_served_by_mutual_tls_and_follows_a_new_certificate() {
    let backend = Backend::start("served");
    let site = site(&backend);
    let secured = Secured::start(&site);
    let before = Envoy::start(&secured.bootstrap(Mode::Sotw, true));
    serves(&before);

    let new = secured.authority.issue();
    assert!(!new.is_shown(secured.address()));
    new.write(&secured.folder, "server");
    before.wait_for("the new certificate", SOON, |_| {
        new.is_shown(secured.address()).then_some(())
    });
    let after = Envoy::start(&secured.bootstrap(Mode::Delta, true));
    serves(&after);
    // Who was connected before still is, on the connection it had.
    assert_eq!(before.stat("control_plane.connected_state"), Some(1));
    assert_eq!(before.stat("cluster.xds.upstream_cx_total"), Some(1));
    assert_eq!(secured.streams(), 2);
}

#[test]
fn a_client_that_shows_no_certificate_gets_nothing() {
    let backend = Backend::start("served");
    let site = site(&backend);
    let secured = Secured::start(&site);
    let plain = bootstrap::ads(secured.serving.port, Mode::Delta, "n1");
    for bootstrap in [plain, secured.bootstrap(Mode::Delta, false)] {
        let envoy = Envoy::spawn(&bootstrap);
        envoy.wait_for("more than one attempt", SOON, |envoy| {
            let tried = envoy.stat("cluster.xds.upstream_cx_total");
            tried.filter(|count| *count >= 2)
        });
        assert_eq!(envoy.get("/ready").status, 503);
    }
    assert!(http::get(secured.address(), "/").is_err(), "no HTTP either");
    assert_eq!(secured.streams(), 0);
}
