//! The state of clients: a real stream, and the program's output about it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{CLUSTER, Server, bad, good, until};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use trunkline_proto::envoy::google::rpc::Status;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A client on a delta stream.
struct Client {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Client {
    async fn connect(server: &Server) -> Self {
        let url = format!("http://{}", server.listen);
        let mut ads = AggregatedDiscoveryServiceClient::connect(url)
            .await
            .unwrap();
        let (requests, stream) = mpsc::channel(8);
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: "node-1".into(),
                ..Node::default()
            }),
            type_url: CDS.into(),
            resource_names_subscribe: vec!["*".into()],
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).await.unwrap();
        let stream = ReceiverStream::new(stream);
        let responses = ads.delta_aggregated_resources(stream).await.unwrap();
        Self {
            requests,
            responses: responses.into_inner(),
        }
    }

    async fn answer(&mut self, error: Option<&str>) {
        let response = self.responses.message().await.unwrap().unwrap();
        let answer = DeltaDiscoveryRequest {
            type_url: CDS.into(),
            response_nonce: response.nonce,
            error_detail: error.map(|message| Status {
                code: 3,
                message: message.into(),
                ..Status::default()
            }),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).await.unwrap();
    }
}

fn row(server: &Server, word: &str) -> String {
    until(word, || {
        let table = good(&server.ask(&["status"]));
        table
            .lines()
            .find(|line| line.contains(word))
            .map(str::to_owned)
    })
}

fn metric(server: &Server, line: &str) {
    until(line, || {
        let (_, text) = server.get("/metrics");
        text.lines().any(|other| other == line).then_some(())
    });
}

/// The first resource of a node, with its contents.
fn with_contents(server: &Server, node: &str) -> Value {
    let (_, body) = server.get(&format!("/debug/clients?node={node}&contents=true"));
    let body: Value = serde_json::from_str(&body).unwrap();
    body["clients"][0]["resources"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_stale_then_synced_then_nacked_with_its_reason() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let mut client = Client::connect(&server).await;
    let stale = row(&server, "STALE");
    assert!(stale.starts_with("node-1"), "{stale}");
    client.answer(None).await;
    let synced = row(&server, "SYNCED");
    assert!(
        synced.contains(" cds ") && synced.contains(" * "),
        "{synced}"
    );
    metric(&server, "trunkline_connected_clients 1");
    metric(&server, "trunkline_acks_total{type=\"cds\"} 1");
    metric(&server, "trunkline_subscriptions{type=\"cds\"} 1");
    metric(&server, "trunkline_first_config_seconds_count 1");

    good(&server.ask_with(&["apply", "-f", "-"], &CLUSTER.replace("1s", "2s")));
    client.answer(Some("too\nslow")).await;
    let nacked = row(&server, "NACKED");
    assert!(nacked.ends_with("backend: too slow"), "{nacked}");
    metric(&server, "trunkline_nacks_total{type=\"cds\"} 1");
    metric(&server, "trunkline_parked_resources{type=\"cds\"} 1");
    let line = server.running.logged("a client rejects a resource");
    assert_eq!(
        (&line["name"], &line["node"]),
        (&"backend".into(), &"node-1".into())
    );
    assert_eq!(line["reason"], "too\nslow");

    // Another client that rejects the same is not another line.
    let mut other = Client::connect(&server).await;
    other.answer(Some("too slow for me too")).await;
    metric(&server, "trunkline_parked_resources{type=\"cds\"} 2");
    let log = server.running.log();
    let warned = log.iter().filter(|line| line["level"] == "WARN");
    assert_eq!(warned.count(), 1);
    drop(other);
    metric(&server, "trunkline_streams 1");

    let (_, debug) = server.get("/debug/clients");
    let debug: Value = serde_json::from_str(&debug).unwrap();
    let resource = &debug["clients"][0]["resources"][0];
    assert_eq!(
        (&resource["name"], &resource["status"]),
        (&"backend".into(), &"NACKED".into())
    );
    assert_eq!(resource["error"], "too\nslow");
    assert!(resource.get("resource").is_none());
    let contents = with_contents(&server, "node-1");
    assert_eq!(contents["rejected_resource"]["connect_timeout"], "2s");
    assert_eq!(with_contents(&server, "node-2"), Value::Null);

    good(&server.ask_with(&["apply", "-f", "-"], &CLUSTER.replace("1s", "3s")));
    client.answer(None).await;
    row(&server, "SYNCED");
    let contents = with_contents(&server, "node-1");
    assert_eq!(contents["resource"]["connect_timeout"], "3s");
    assert!(contents.get("rejected_resource").is_none());
    metric(&server, "trunkline_parked_resources{type=\"cds\"} 0");
    drop(client);
    metric(&server, "trunkline_connected_clients 0");
    metric(&server, "trunkline_streams 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_counts_picks_and_checks() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    good(&server.ask(&["status", "--check"]));
    let mut client = Client::connect(&server).await;
    row(&server, "STALE");
    let error = bad(&server.ask(&["status", "--check"]), 1);
    assert!(error.contains("1 client is not in sync"), "{error}");
    client.answer(None).await;
    row(&server, "SYNCED");
    let table = good(&server.ask(&["status", "--check"]));
    assert!(table.starts_with("1 client: 1 in sync\n\nNODE"), "{table}");

    good(&server.ask_with(&["apply", "-f", "-"], &CLUSTER.replace("1s", "2s")));
    client.answer(Some("too slow")).await;
    row(&server, "NACKED");
    let table = good(&server.ask(&["status"]));
    assert!(table.starts_with("1 client: 1 nacked\n"), "{table}");
    bad(&server.ask(&["status", "--check", "--node", "node-1"]), 1);
    let other_type = ["status", "--check", "--type", "listeners"];
    let none = good(&server.ask(&other_type));
    assert_eq!(none, "no such clients are connected\n");
    let error = bad(&server.ask(&["status", "--check", "--node", "node-2"]), 1);
    assert!(error.contains("1 node is not connected"), "{error}");
    let one = good(&server.ask(&["status", "-o", "json", "--type", "clusters"]));
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["clients"][0]["types"][0]["status"], "NACKED");
    bad(&server.ask(&["status", "--type", "bananas"]), 2);
}

#[test]
fn a_check_of_the_status_finds_bad_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    std::fs::write(&file, CLUSTER).unwrap();
    let server = Server::start(&["--config", dir.path().to_str().unwrap()]);
    good(&server.ask(&["status", "--check"]));
    support::put(&file, "resources: 1\n");
    let error = until("the bad file", || {
        let output = server.ask(&["status", "--check"]);
        (output.status.code() == Some(1)).then(|| support::said(&output))
    });
    assert!(error.contains("1 file is bad"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_tells_who_connects_and_what_is_requested() {
    let server = Server::start(&["--log-level", "debug"]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let mut client = Client::connect(&server).await;
    let line = server.running.logged("a client connects");
    assert_eq!(line["level"], "INFO");
    assert_eq!(
        (&line["node"], &line["protocol"]),
        (&"node-1".into(), &"delta".into())
    );
    assert!(line["address"].as_str().unwrap().starts_with("127.0.0.1:"));

    let requests = || {
        let log = server.running.log().into_iter();
        let requests = log.filter(|line| line["message"] == "a request arrives");
        requests.collect::<Vec<Value>>()
    };
    let first = until("the first request", || requests().into_iter().next());
    assert_eq!(
        (&first["level"], &first["type"]),
        (&"DEBUG".into(), &"cds".into())
    );
    assert_eq!(first["names"], "[\"*\"]");
    assert!(
        first["nonce"].is_null() && first["error"].is_null(),
        "{first}"
    );
    client
        .answer(Some("bad field inline_string: \"swordfish\""))
        .await;
    let nack = until("the NACK", || requests().into_iter().nth(1));
    assert!(nack["nonce"].is_string(), "{nack}");
    let error = nack["error"].as_str().unwrap();
    assert!(
        error.contains("bad field") && !error.contains("swordfish"),
        "{error}"
    );
}

/// The client here is as others on gRPC are: it accepts no more than 4 MiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s80_what_grpc_does_not_take_is_told_counted_and_shown() {
    let server = Server::start(&[]);
    let weight = "x".repeat(5 << 20);
    let heavy =
        format!("{CLUSTER}  metadata: {{filter_metadata: {{weight: {{text: {weight}}}}}}}\n");
    good(&server.ask_with(&["apply", "-f", "-"], &heavy));
    for _ in 0..2 {
        let mut client = Client::connect(&server).await;
        let stale = row(&server, "STALE");
        let reason = stale.split("a response of ").nth(1).expect("a reason");
        assert!(reason.starts_with("52"), "{stale}");
        assert!(reason.ends_with("gRPC clients take 4194304 by default"));
        client.responses.message().await.unwrap_err();
    }
    metric(
        &server,
        "trunkline_oversized_responses_total{type=\"cds\"} 2",
    );
    let line = server.running.logged("larger than what gRPC clients take");
    assert_eq!(
        (&line["type"], &line["largest"], &line["resources"]),
        (&"cds".into(), &"backend".into(), &1.into())
    );
    assert!(line["bytes"].as_u64() > line["limit"].as_u64());
    let log = server.running.log();
    let warned = log.iter().filter(|line| line["level"] == "WARN");
    assert_eq!(warned.count(), 1, "a fleet is one line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s79_a_drain_ends_streams_and_the_program_ends_when_they_have() {
    let mut server = Server::start(&["--drain-time", "200ms"]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let mut client = Client::connect(&server).await;
    client.answer(None).await;
    row(&server, "SYNCED");
    server.running.signal(rustix::process::Signal::TERM);
    // The server ends the stream; the client does not have to.
    assert!(!matches!(client.responses.message().await, Ok(Some(_))));
    assert_eq!(server.running.wait().code(), Some(0));
}

#[test]
fn the_demo_works_without_an_envoy_and_cleans_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .args(["demo", "--duration", "1m"])
        .current_dir(dir.path())
        .env("PATH", dir.path())
        .env("TMPDIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wanted = vec![
        "No Envoy is installed",
        "+ cds v1",
        "+ cds v2",
        "+ eds v1",
        "+ lds ingress",
        "+ rds routes",
        "? vhds on-demand/shop.example",
        "+ vhds on-demand/shop",
    ];
    while !wanted.is_empty() {
        let line = lines.next().expect("the demo ended early").unwrap();
        wanted.retain(|part| !line.contains(part));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "the folder of the demo is gone");
}
