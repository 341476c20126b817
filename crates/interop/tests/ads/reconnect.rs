//! A restarted server sends a reconnecting client only what changed.

use std::time::Duration;

use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};
use trunkline::{Change, kind};

use crate::resources::{cluster, put_cluster, put_endpoints, put_listener, put_route};

fn contents(backend: &Backend) -> Vec<Change> {
    let mut all = vec![put_listener("http", "r"), put_route("r", "c0")];
    for name in ["c0", "c1", "c2"] {
        all.push(put_cluster(&cluster(name)));
        all.push(put_endpoints(name, backend.address()));
    }
    all
}

#[test]
fn s46_only_what_changed_is_sent_to_a_client_that_comes_back() {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let serving = Serving::start(contents(&first));
    let port = serving.port;
    let envoy = Envoy::start(&bootstrap::ads(port, Mode::Delta, "n1"));
    let listener = envoy.listener("http").expect("the listener");
    serving.stop();

    let mut changed = contents(&first);
    changed.push(put_endpoints("c0", second.address()));
    let serving = Serving::start_on(port, changed);
    envoy.wait_for("the new endpoint", Duration::from_secs(10), |_| {
        let body = http::get(listener, "/").expect("an answer").body;
        (body == "second").then_some(())
    });
    // The ACK of this proves that the last type has been resumed, too.
    serving.apply(vec![put_route("r", "c1")]);
    let sent = |url| -> Vec<String> {
        let sent = serving.journal.sent(0, url);
        let names = sent.iter().flat_map(|sent| &sent.resources);
        names.map(|(name, _)| name.to_string()).collect()
    };
    serving
        .journal
        .wait_accepted("the route", 0, kind::RDS, |sent| sent.brings("r"));
    assert_eq!(sent(kind::CDS), [""; 0]);
    assert_eq!(sent(kind::EDS), ["c0"]);
    assert_eq!(sent(kind::LDS), [""; 0]);
    assert_eq!(sent(kind::RDS), ["r"]);
    assert_no_init_fetch_timeout(&envoy);
}
