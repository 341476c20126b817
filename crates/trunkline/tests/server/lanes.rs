//! Two runtimes: clients that ask for much wait for the others.

use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use trunkline::Server;
use trunkline::listen::Lanes;

use crate::support::{Delta, bodies, build, put};

/// An address of this host that asks for much.
const GREEDY: [u8; 4] = [127, 0, 0, 2];

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_asks_for_much_is_served_behind_the_others() {
    let mut back = Builder::new_multi_thread();
    let back = back.worker_threads(1).enable_all().build().unwrap();
    let lanes = Lanes {
        front: Handle::current(),
        back: back.handle().clone(),
    };
    let options = |options: &mut trunkline::Options| options.lanes = Some(lanes);
    let fixture = build(Server::builder().options(options)).await;
    fixture.server.apply(vec![put("a", b"0")]).unwrap();
    let mut modest = Delta::open(&fixture).await;
    modest.ask(&["a"]).await;
    assert_eq!(bodies(&modest.next().await), [("a", &b"0"[..])]);

    // Whoever is served behind has to wait from now on.
    let (go_on, waits) = mpsc::channel::<()>();
    back.spawn(async move {
        let _ = waits.recv();
    });
    let mut greedy = Delta::open_on(fixture.connect_from(GREEDY).await).await;
    let long = "x".repeat(4000);
    let names: Vec<String> = (0..1000).map(|n| format!("{long}{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["a"]).collect();
    greedy.ask(&names).await;
    for body in [&b"1"[..], b"2", b"3"] {
        fixture.server.apply(vec![put("a", body)]).unwrap();
        assert_eq!(bodies(&modest.next().await), [("a", body)]);
    }
    {
        let answer = std::pin::pin!(greedy.next());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(answer.poll(&mut cx).is_pending());
    }

    drop(go_on);
    let answer = greedy.next().await;
    assert!(!answer.resources.is_empty() || !answer.removed_resources.is_empty());
    back.shutdown_background();
}
