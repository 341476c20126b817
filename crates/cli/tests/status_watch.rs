//! `trunkline status`: its numbers, and `--watch` into a pipe.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::peer::{CDS, Peer};
use support::{CLUSTER, Server, bad, good, until};

/// The state of the only type of the only client.
fn state(server: &Server) -> Value {
    until("a client", || {
        let (_, body) = server.get("/api/v1/status");
        let body: Value = serde_json::from_str(&body).unwrap();
        let state = &body["clients"][0]["types"][0];
        state.is_object().then(|| state.clone())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_has_and_should_have_is_counted() {
    let server = Server::start(&[]);
    let other = CLUSTER
        .replace("resources:\n", "")
        .replace("backend", "other");
    let both = format!("{CLUSTER}{other}");
    good(&server.ask_with(&["apply", "-f", "-"], &both));
    let mut peer = Peer::connect(&server, "node-1", CDS, &["*"]).await;
    let response = peer.next().await;
    let waiting = state(&server);
    assert_eq!(
        (&waiting["current"], &waiting["desired"]),
        (&0.into(), &2.into())
    );
    assert!(waiting["unanswered_ms"].is_u64() && waiting["last_sent_ms"].is_u64());

    peer.answer(&response, None).await;
    until("the answer", || {
        (state(&server)["current"] == 2).then_some(())
    });
    let synced = state(&server);
    assert!(synced["unanswered_ms"].is_null() && synced["last_sent_ms"].is_u64());
    let table = good(&server.ask(&["status"]));
    let heading = "NODE    STREAM  TYPE  STATUS  RESOURCES  LAST SENT  WAITING  SUBS  REASON";
    assert!(table.contains(heading), "{table}");
    assert!(
        table.contains("node-1  0       cds   SYNCED  2/2  "),
        "{table}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_is_printed_whenever_something_has_changed() {
    let server = Server::start(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .args(["status", "--watch", "--admin", &server.admin.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |text: &str| while !lines.next().unwrap().unwrap().contains(text) {};
    wait_for("no clients are connected");

    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let mut peer = Peer::connect(&server, "node-1", CDS, &["*"]).await;
    let response = peer.next().await;
    wait_for("1 client: 1 stale");
    wait_for(" STALE   0/1 ");
    peer.answer(&response, None).await;
    wait_for("1 client: 1 in sync");
    wait_for(" SYNCED  1/1 ");
    child.kill().unwrap();
    child.wait().unwrap();

    bad(&server.ask(&["status", "--watch", "--check"]), 2);
}
