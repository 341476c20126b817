//! `--wait`: a change that clients accept, reject, do not answer, or that does
//! not concern them.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::process::Output;

use rustix::process::Signal;
use support::peer::{CDS, Peer, RDS};
use support::{CLUSTER, ROUTES, Server, bad, good, until};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::DiscoveryRequest;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;

/// A server with the cluster `backend`, and a client that has it.
async fn server_with_client() -> (Server, Peer) {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let mut peer = Peer::connect(&server, "node-1", CDS, &["*"]).await;
    peer.accept().await;
    synced(&server);
    (server, peer)
}

/// Waits until all clients are in sync.
fn synced(server: &Server) {
    until("SYNCED", || {
        let output = server.ask(&["status", "--check"]);
        (output.status.code() == Some(0)).then_some(())
    });
}

/// The cluster with another timeout.
fn cluster(seconds: u32) -> String {
    CLUSTER.replace("1s", &format!("{seconds}s"))
}

/// Applies a text with these flags, while the test goes on.
fn apply(server: &Server, flags: &[&str], text: &str) -> JoinHandle<Output> {
    let admin = server.admin.to_string();
    let mut args: Vec<String> = ["apply", "-f", "-", "--admin", &admin]
        .map(Into::into)
        .into();
    args.extend(flags.iter().map(|&flag| flag.to_owned()));
    let text = text.to_owned();
    tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        support::run_with(&args, &text)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_the_client_accepts_is_there() {
    let (server, mut peer) = server_with_client().await;
    let applied = apply(&server, &["--wait"], &cluster(2));
    peer.accept().await;
    let said = good(&applied.await.unwrap());
    assert!(said.ends_with("revision 2\n1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_the_client_rejects_is_shown_with_its_words() {
    let (server, mut peer) = server_with_client().await;
    let applied = apply(&server, &["--wait"], &cluster(2));
    let response = peer.next().await;
    peer.answer(&response, Some("too\nslow")).await;
    let error = bad(&applied.await.unwrap(), 1);
    assert_eq!(
        error,
        "error: rejected; the clients keep what they had:\n  \
         node-1 (stream 0) cds/backend: too slow\n"
    );

    // What it rejects is not of another change.
    let other = CLUSTER.replace("backend", "other");
    let applied = apply(&server, &["--wait"], &other);
    peer.accept().await;
    let said = good(&applied.await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_of_two_that_is_rejected_is_found_first() {
    let (server, mut peer) = server_with_client().await;
    let both = format!(
        "{}{}",
        cluster(2),
        cluster(3)
            .replace("backend", "bad")
            .replace("resources:\n", "")
    );
    let applied = apply(&server, &["--wait"], &both);
    // The response with both is rejected, and then that with the bad one.
    for _ in 0..3 {
        let response = peer.next().await;
        let mut names = response.resources.iter().map(|resource| &resource.name);
        let has_bad = names.any(|name| name == "bad");
        peer.answer(&response, has_bad.then_some("no")).await;
    }
    let error = bad(&applied.await.unwrap(), 1);
    assert_eq!(
        error,
        "error: rejected; the clients keep what they had:\n  node-1 (stream 0) cds/bad: no\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_silent_is_named_when_the_time_is_over() {
    let (server, mut peer) = server_with_client().await;
    let flags = ["--wait", "--timeout", "200ms"];
    let error = bad(&apply(&server, &flags, &cluster(2)).await.unwrap(), 3);
    let expected = "error: 1 of 1 clients has not answered in 0.2s; the change stays:\n  \
                    node-1 (stream 0): cds backend sent ";
    assert!(error.starts_with(expected), "{error}");

    // The same again has nothing to change, and the client still does not have
    // it.
    let error = bad(&apply(&server, &flags, &cluster(2)).await.unwrap(), 3);
    assert!(error.starts_with(expected), "{error}");
    let applied = apply(&server, &["--wait"], &cluster(2));
    peer.accept().await;
    assert_eq!(
        good(&applied.await.unwrap()),
        "1 unchanged\n1 client has it\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_the_change_does_not_concern_is_not_waited_for() {
    let server = Server::start(&[]);
    let mut silent = Peer::connect(&server, "silent", CDS, &["other"]).await;
    silent.next().await;
    let said = good(&apply(&server, &["--wait"], CLUSTER).await.unwrap());
    let expected = "no client is connected that it concerns\n";
    assert!(said.ends_with(expected), "{said}");

    let mut other = Peer::connect(&server, "other", CDS, &["backend"]).await;
    other.accept().await;
    let applied = apply(&server, &["--wait"], &cluster(2));
    other.accept().await;
    let said = good(&applied.await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_is_withheld_is_reported_and_not_waited_for() {
    let (server, mut peer) = server_with_client().await;
    good(&server.ask_with(&["apply", "-f", "-"], ROUTES));
    peer.subscribe(RDS, &["routes"]).await;
    peer.accept().await;
    synced(&server);

    // The new routes lead elsewhere, and the old ones are in use for a while.
    let next = format!(
        "{}{}",
        CLUSTER.replace("backend", "next"),
        ROUTES
            .replace("backend", "next")
            .replace("resources:\n", "")
    );
    let applied = apply(&server, &["--wait", "--replace", "--yes"], &next);
    assert_eq!(peer.accept().await.type_url, CDS);
    assert_eq!(peer.accept().await.type_url, RDS);
    let said = good(&applied.await.unwrap());
    let expected = "node-1 (stream 0) keeps cds/backend as long as it may use it: its removal is \
                    withheld\n1 client has it\n";
    assert!(said.ends_with(expected), "{said}");

    let flags = ["--wait=removals", "--timeout", "100ms"];
    let error = bad(&apply(&server, &flags, &next).await.unwrap(), 3);
    assert_eq!(
        error,
        "error: 1 of 1 clients has not answered in 0.1s; the change stays:\n  \
         node-1 (stream 0): the removal of cds/backend is withheld\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_has_arrived_although_newer_ones_never_end() {
    let (server, mut peer) = server_with_client().await;
    let applied = apply(&server, &["--wait"], &cluster(2));
    // Whenever the client answers, there is something that it was not sent.
    for seconds in 3.. {
        let response = peer.next().await;
        good(&server.ask_with(&["apply", "-f", "-"], &cluster(seconds)));
        peer.answer(&response, None).await;
        if applied.is_finished() {
            break;
        }
    }
    let said = good(&applied.await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_change_has_arrived_with_the_last_of_its_responses() {
    let (server, mut peer) = server_with_client().await;
    let one = CLUSTER.replace("resources:\n", "");
    let many = (0..5000).map(|nth| one.replace("backend", &format!("cluster-{nth}")));
    let many = format!("resources:\n{}", many.collect::<String>());
    let applied = apply(&server, &["--wait"], &many);
    let mut count = 0;
    while count < 5000 {
        assert!(!applied.is_finished());
        count += peer.accept().await.resources.len();
    }
    let said = good(&applied.await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_state_of_the_world_is_waited_for() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let url = format!("http://{}", server.listen);
    let mut ads = AggregatedDiscoveryServiceClient::connect(url)
        .await
        .unwrap();
    let (requests, stream) = mpsc::channel(8);
    let request = DiscoveryRequest {
        node: Some(Node {
            id: "world".into(),
            ..Node::default()
        }),
        type_url: CDS.into(),
        ..DiscoveryRequest::default()
    };
    requests.send(request.clone()).await.unwrap();
    let responses = ads
        .stream_aggregated_resources(ReceiverStream::new(stream))
        .await;
    let mut responses = responses.unwrap().into_inner();
    let mut applied = None;
    for _ in 0..2 {
        let response = responses.message().await.unwrap().unwrap();
        let answer = DiscoveryRequest {
            response_nonce: response.nonce,
            version_info: response.version_info,
            ..request.clone()
        };
        requests.send(answer).await.unwrap();
        applied.get_or_insert_with(|| {
            synced(&server);
            apply(&server, &["--wait"], &cluster(2))
        });
    }
    let said = good(&applied.unwrap().await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_is_waited_for_and_a_server_that_stops_is_said() {
    let (server, mut peer) = server_with_client().await;
    let admin = server.admin.to_string();
    let args = ["delete", "cds", "backend", "--wait", "--admin"];
    let args: Vec<String> = args.into_iter().map(Into::into).chain([admin]).collect();
    let deleted = tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        support::run(&args)
    });
    assert_eq!(peer.accept().await.removed_resources, ["backend"]);
    let said = good(&deleted.await.unwrap());
    assert!(said.ends_with("1 client has it\n"), "{said}");

    let applied = apply(&server, &["--wait"], &cluster(2));
    peer.next().await;
    server.running.signal(Signal::TERM);
    let error = bad(&applied.await.unwrap(), 3);
    // The server may be gone before it is asked.
    let unknown = "error: the change was made (revision 3), but whether clients have it is not \
                   known: ";
    let why = error.strip_prefix(unknown).unwrap_or_default();
    let is_said = why == "the server is about to stop, and its clients leave it\n"
        || why.starts_with("cannot reach the server at ");
    assert!(is_said, "{error}");
}

#[test]
fn what_cannot_be_waited_for_is_refused() {
    let server = Server::start(&[]);
    let refused = |query: &str| {
        let (status, body) = server.get(&format!("/api/v1/wait?{query}"));
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        (
            status,
            body["error"]["message"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        refused("revision=9"),
        (
            410,
            "the contents are at revision 0, and have not been at 9: was the server started again?"
                .to_owned()
        )
    );
    assert_eq!(
        refused("timeout=1s"),
        (
            400,
            "revision: expected the number that a change responds with, found \"\"".to_owned()
        )
    );
    assert_eq!(refused("revision=0&timeout=soon").0, 400);

    for flags in [
        &["--wait", "--dry-run"][..],
        &["--timeout", "1s"],
        &["--wait=all"],
        &["--wait", "--lease", "5s", "--origin", "a"],
    ] {
        let args = [&["apply", "-f", "-"], flags].concat();
        bad(&server.ask_with(&args, CLUSTER), 2);
    }
    // A change that is held is not waited for, and neither is one that is refused.
    let one = CLUSTER.replace("resources:\n", "");
    let many = (0..10).map(|nth| one.replace("backend", &format!("cluster-{nth}")));
    let many = format!("resources:\n{}", many.collect::<String>());
    good(&server.ask_with(&["apply", "-f", "-", "--wait"], &many));
    let held = ["apply", "-f", "-", "--wait", "--replace"];
    let error = bad(&server.ask_with(&held, CLUSTER), 1);
    assert!(error.contains("nothing was changed"), "{error}");
    let wrong = CLUSTER.replace("1s", "no");
    bad(&server.ask_with(&["apply", "-f", "-", "--wait"], &wrong), 1);
}
