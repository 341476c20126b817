//! Clients that may not connect, types that a client may not see, and that no
//! response is sent without need.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Entry, Envoy, Flow, Serving, assert_no_init_fetch_timeout, of_files};
use tonic::Status;
use trunkline::status::{Clients as _, Sync};
use trunkline::{BoxFuture, Call, Hooks, Peer, TypeUrl, kind};

use crate::certificates::Authority;
use crate::site::Site;
use crate::status;
use crate::texts::{cluster, endpoints, listener, route, secret, tls_listener};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(10);

fn site(backend: &Backend) -> Site {
    Site::new(&[(
        "all.yaml",
        &[
            cluster("c"),
            endpoints("c", backend.address()),
            listener("http", "r"),
            route("r", "c"),
        ],
    )])
}

/// Lets nobody in until it is told to.
#[derive(Default)]
struct Door {
    open: AtomicBool,
    refused: AtomicUsize,
}

struct Guard(Arc<Door>);

impl Hooks for Guard {
    fn authenticate<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, Result<Option<String>, Status>> {
        let open = self.0.open.load(Ordering::SeqCst);
        Box::pin(async move {
            if open {
                return Ok(None);
            }
            self.0.refused.fetch_add(1, Ordering::SeqCst);
            Err(Status::permission_denied("not yet"))
        })
    }
}

#[test]
fn s78_who_is_refused_comes_back_and_may_be_let_in() {
    let backend = Backend::start("any");
    let site = site(&backend);
    let door = Arc::new(Door::default());
    let builder = of_files(site.folder())
        .hooks(Guard(Arc::clone(&door)))
        .options(|options| options.refusal_delay = Duration::from_millis(100));
    let serving = Serving::over(builder, 0, None);
    let mut envoy = Envoy::spawn(&DELTA.bootstrap(serving.port));
    envoy.wait_for("two refusals", SOON, |_| {
        (door.refused.load(Ordering::SeqCst) >= 2).then_some(())
    });
    assert_eq!(envoy.get("/ready").status, 503);
    assert_eq!(serving.journal.place(), 0, "nothing was said");
    door.open.store(true, Ordering::SeqCst);
    envoy.wait_until_ready(SOON);
    assert_eq!(status(&envoy, "http"), 200);
}

struct NoSecrets;

impl Hooks for NoSecrets {
    fn authorise(&self, _: Peer<'_>, type_url: &TypeUrl) -> bool {
        type_url.as_str() != kind::SDS
    }
}

#[test]
fn s72_a_type_that_may_not_be_seen_costs_only_what_needs_it() {
    let backend = Backend::start("any");
    let site = site(&backend);
    let certificate = Authority::new().issue();
    site.write(
        "tls.yaml",
        &[
            tls_listener("tls", "r", "cert", ADS),
            secret("cert", &certificate),
        ],
    );
    let serving = Serving::over(of_files(site.folder()).hooks(NoSecrets), 0, None);
    let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    let tls = envoy.listener("tls").expect("the listener");
    assert!(!certificate.is_shown(tls));
    assert_no_init_fetch_timeout(&envoy);
}

/// Envoy ACKs every response, also an empty one, so an answer to each ACK would
/// never end.
fn nothing_is_said_without_need(way: Way) {
    let backend = Backend::start("any");
    let site = site(&backend);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    envoy.wait_for("all to be accepted", SOON, |_| {
        let clients = serving.server.clients();
        let types: Vec<_> = clients.iter().flat_map(|client| &client.types).collect();
        let synced = types.iter().all(|state| state.sync == Sync::Synced);
        (types.len() == 4 && synced).then_some(())
    });
    let responses = || {
        let sent = |entry: &Entry| matches!(entry, Entry::Sent(_));
        serving.journal.count(sent)
    };
    assert_eq!(responses(), 4, "one of each type");
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    flow.go_on_for(300);
    assert_eq!(responses(), 4);
}

#[test]
fn s9_nothing_is_said_without_need_by_state_of_the_world() {
    nothing_is_said_without_need(SOTW);
}

#[test]
fn s9_nothing_is_said_without_need_by_delta() {
    nothing_is_said_without_need(DELTA);
}
