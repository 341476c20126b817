//! `watch --record` and `replay`: what was recorded is served again.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message as _;
use serde_json::{Value, json};
use support::program::Program;
use support::{CLUSTER, Running, SECRET, Server, bad, good, run, said};
use trunkline_proto::discovery::{Any, DiscoveryResponse};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const SOTW: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

fn apply(server: &Server, text: &str) {
    good(&server.ask_with(&["apply", "-f", "-"], text));
}

/// Serves a recording; returns where.
fn replay(path: &Path, flags: &[&str]) -> (Running, String) {
    let file = path.to_str().unwrap();
    let running = Running::start(&[&["replay", file, "--listen", "127.0.0.1:0"], flags].concat());
    let listen = running.logged("replaying")["listen"]
        .as_str()
        .unwrap()
        .to_owned();
    (running, listen)
}

/// The documents of an output. Types are told as they come, in any order.
fn documents(yaml: &str) -> Vec<&str> {
    let mut documents: Vec<&str> = yaml.split("---\n").collect();
    documents.sort_unstable();
    documents
}

/// The lines of a recording.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_recording_gives_the_same_output_again() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    apply(&server, &CLUSTER.replace("backend", "other"));
    apply(&server, SECRET);
    let dir = tempfile::tempdir().unwrap();
    for protocol in ["--delta", "--sotw"] {
        let path = dir.path().join(protocol);
        let file = path.to_str().unwrap();
        let ask = |server: &str, more: &[&str]| {
            let words = [
                "watch", "cds/*", "sds/cert", "--once", "-o", "yaml", protocol,
            ];
            run(&[&words[..], &["--server", server], more].concat())
        };
        let listen = server.listen.to_string();
        let recorded = ask(&listen, &["--record", file]);
        assert!(said(&recorded).contains("will hold secrets as they are received"));
        let recorded = good(&recorded);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = bad(&ask(&listen, &["--record", file]), 2);
        assert!(again.contains("not overwritten"), "{again}");

        let (running, listen) = replay(&path, &[]);
        let replayed = good(&ask(&listen, &[]));
        assert_eq!(documents(&replayed), documents(&recorded));
        assert!(replayed.contains("cds/backend") && replayed.contains("cds/other"));
        assert_eq!(running.logged("ACK")["kind"], "cds");

        // The other protocol has no responses.
        let other = match protocol {
            "--delta" => "--sotw",
            _ => "--delta",
        };
        let error = bad(
            &run(&["watch", "cds", other, "--once", "--server", &listen]),
            3,
        );
        assert!(error.contains("use the other protocol"), "{error}");
    }
}

#[test]
fn a_recording_has_all_that_happened() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.jsonl");
    let (file, listen) = (path.to_str().unwrap(), server.listen.to_string());
    let args = ["watch", "cds", "--server", &listen, "--record", file];
    let mut program = Program::start(&args);
    program.line();
    apply(&server, &CLUSTER.replace("1s", "2s"));
    program.line();
    drop(server);
    program.said("the connection is lost");
    drop(program);

    let lines = lines(&path);
    assert_eq!(lines[0]["recording"], "xds");
    let first = |dir: &str| {
        let of = |line: &&Value| line["dir"] == dir;
        lines
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{dir}: {lines:#?}"))
    };
    assert_eq!(first("CONNECT")["server"], listen);
    let path_of = first("CONNECT")["path"].as_str().unwrap();
    assert!(path_of.ends_with("/DeltaAggregatedResources"));
    assert_eq!(first("OPEN")["stream"], 1);
    let request = &first("C>S")["msg"];
    assert_eq!(request["type"], CDS);
    assert_eq!(request["node"], "trunkline-watch");
    let response = first("S>C");
    assert_eq!(response["msg"]["resources"][0]["name"], "backend");
    let bytes = STANDARD
        .decode(response["bytes"].as_str().unwrap())
        .unwrap();
    assert!(bytes.windows(7).any(|window| window == b"backend"));
    assert_eq!(first("VERDICT")["msg"]["answer"], "ACK");
    assert_eq!(first("VERDICT")["msg"]["nonce"], response["msg"]["nonce"]);
    assert!(first("CLOSE")["msg"].is_string());
    let times: Vec<f64> = lines[1..]
        .iter()
        .map(|line| line["t"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// Writes a recording of one SotW stream with these clusters, each response a
/// body.
fn write_recording(path: &Path, bodies: &[&[u8]]) {
    let mut text = json!({"recording": "xds", "format": 1}).to_string() + "\n";
    text += &(json!({"t": 0, "dir": "CONNECT", "stream": 4, "path": SOTW}).to_string() + "\n");
    for (number, body) in bodies.iter().enumerate() {
        let response = DiscoveryResponse {
            version_info: number.to_string(),
            resources: vec![Any {
                type_url: CDS.into(),
                value: body.to_vec().into(),
            }],
            type_url: CDS.into(),
            nonce: "same".into(),
            ..DiscoveryResponse::default()
        };
        let bytes = STANDARD.encode(response.encode_to_vec());
        let line = json!({"t": number, "dir": "S>C", "stream": 4, "bytes": bytes});
        text += &(line.to_string() + "\n");
    }
    std::fs::write(path, text).unwrap();
}

/// A cluster with a name, and with a timeout that no client takes if it is
/// negative.
fn cluster(seconds: i64) -> Vec<u8> {
    use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
    use trunkline_proto::envoy::google::protobuf::Duration;
    let cluster = Cluster {
        name: "a".into(),
        connect_timeout: Some(Duration { seconds, nanos: 0 }),
        ..Cluster::default()
    };
    cluster.encode_to_vec()
}

#[test]
fn what_a_client_rejects_is_told_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.jsonl");
    let bodies = [cluster(1), cluster(-1)];
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    write_recording(&path, &bodies);
    let (running, listen) = replay(&path, &[]);
    let mut program =
        Program::start(&["watch", "cds", "--sotw", "--server", &listen, "-o", "json"]);
    let mut next = || serde_json::from_str::<Value>(&program.line()).unwrap();
    assert_eq!(next()["event"], "added");
    let rejected = next();
    assert_eq!(rejected["event"], "rejected");
    let reason = rejected["error"].as_str().unwrap();
    assert!(reason.contains("connect_timeout"), "{reason}");
    // The last good one stays in use.
    assert!(rejected["version"].is_string());
    let nack = running.logged("NACK");
    assert!(nack["reason"].as_str().unwrap().contains("connect_timeout"));
}

#[test]
fn a_stream_of_a_recording_can_be_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.jsonl");
    write_recording(&path, &[&cluster(1)]);
    let file = path.to_str().unwrap();
    let error = bad(&run(&["replay", file, "--stream", "1"]), 2);
    assert!(error.contains("has responses of streams 4"), "{error}");
    let (_running, listen) = replay(&path, &["--stream", "4", "--speed", "1000"]);
    good(&run(&[
        "watch", "cds", "--sotw", "--once", "--server", &listen,
    ]));
}

#[test]
fn what_is_no_recording_is_refused_with_line_and_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.yaml");
    let file = path.to_str().unwrap();
    let fails = |text: &str, reason: &str| {
        std::fs::write(&path, text).unwrap();
        let error = bad(&run(&["replay", file]), 1);
        assert!(error.contains(&format!("{file}{reason}")), "{error}");
    };
    let head = "{\"recording\":\"xds\",\"format\":1}\n";
    fails(CLUSTER, ":1: no recording begins like this");
    fails(&format!("{head}{{\"t\":1}}\n"), ":2: missing field `dir`");
    fails(&format!("{head}{{\"t\":1"), ":2: the line has no end");
    fails(head, ": the recording has no response");
    bad(&run(&["replay", "none.jsonl"]), 2);
    bad(&run(&["replay", file, "--speed", "0"]), 2);
}
