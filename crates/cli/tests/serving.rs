//! A server and its clients, over sockets.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::Value;
use support::{CLUSTER, ROUTES, SECRET, Server, bad, good, put, said, until};

const URL: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

#[test]
fn apply_get_delete_and_status() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/ready"), (200, "LIVE\n".to_owned()));
    let applied = good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    assert!(applied.starts_with("cds/backend created "), "{applied}");
    let again = good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    assert_eq!(again, "1 unchanged\n");

    let table = good(&server.ask(&["get", "cds"]));
    assert!(table.starts_with("NAME     VERSION\nbackend  "), "{table}");
    let yaml = good(&server.ask(&["get", "cds", "backend", "-o", "yaml"]));
    assert!(yaml.contains("connect_timeout: \"1s\""), "{yaml}");
    let same = good(&server.ask_with(&["apply", "-f", "-"], &yaml));
    assert_eq!(same, "1 unchanged\n", "what get prints is what apply takes");

    let json: Value =
        serde_json::from_str(&good(&server.ask(&["get", URL, "-o", "json"]))).unwrap();
    assert_eq!(json["resources"][0]["@type"], URL);

    let changed = CLUSTER.replace("1s", "2s");
    let dry = good(&server.ask_with(&["apply", "-f", "-", "--dry-run"], &changed));
    assert!(
        dry.starts_with("cds/backend changed ") && dry.contains("dry run"),
        "{dry}"
    );
    let yaml = good(&server.ask(&["get", "cds", "backend", "-o", "yaml"]));
    assert!(
        yaml.contains("connect_timeout: \"1s\""),
        "a dry run changes nothing"
    );
    let real = good(&server.ask_with(&["apply", "-f", "-"], &changed));
    assert!(real.starts_with("cds/backend changed "), "{real}");

    let error = bad(&server.ask(&["get", "cds", "bakend"]), 1);
    assert!(
        error.contains("there is no cds \"bakend\"; did you mean \"backend\"?"),
        "{error}"
    );
    let error = bad(&server.ask(&["delete", "cds", "backend", "nothing"]), 1);
    assert!(error.contains("there is no cds \"nothing\""), "{error}");
    good(&server.ask(&["get", "cds", "backend"]));
    let gone = good(&server.ask(&["delete", "cds", "backend"]));
    assert!(gone.starts_with("cds/backend deleted "), "{gone}");
    bad(&server.ask(&["get", "cds", "backend"]), 1);

    assert_eq!(good(&server.ask(&["status"])), "no clients are connected\n");
    let json: Value = serde_json::from_str(&good(&server.ask(&["status", "-o", "json"]))).unwrap();
    assert_eq!(json["clients"], Value::Array(vec![]));
}

#[test]
fn a_bad_file_changes_nothing_and_says_where_it_is_bad() {
    let server = Server::start(&[]);
    let two = format!(
        "{CLUSTER}- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  nam: x\n"
    );
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &two), 1);
    assert!(error.contains("1 mistake; nothing was changed"), "{error}");
    assert!(
        error.contains("standard input:6:3: resources[1]: unknown field \"nam\" in Cluster"),
        "{error}"
    );
    bad(&server.ask(&["get", "cds", "backend"]), 1);
    let twice = format!("{CLUSTER}{}", CLUSTER.replace("resources:\n", ""));
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &twice), 1);
    assert!(
        error.contains("cluster \"backend\" is there already, at 2:"),
        "{error}"
    );
    // Envoy's own rules on fields.
    let nameless = CLUSTER.replace("name: backend", "alt_stat_name: x");
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &nameless), 1);
    assert!(error.contains("resources[0]"), "{error}");
}

#[test]
fn secrets_are_not_shown_and_what_is_shown_is_not_taken_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let audit = dir.path().join("audit.log");
    let server = Server::start(&["--audit-log", audit.to_str().unwrap()]);
    good(&server.ask_with(&["apply", "-f", "-"], SECRET));
    let yaml = good(&server.ask(&["get", "sds", "-o", "yaml"]));
    assert!(yaml.contains("[redacted]"), "{yaml}");
    for path in [
        "/api/v1/resources/sds",
        "/config_dump",
        "/debug/clients",
        "/metrics",
    ] {
        let (status, body) = server.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(!body.contains("swordfish"), "{path}: {body}");
    }
    assert!(server.get("/config_dump").1.contains("SecretsConfigDump"));
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &yaml), 1);
    assert!(error.contains("put the secret in"), "{error}");
    let lines = until("both lines of the audit log", || {
        let lines = std::fs::read_to_string(&audit).unwrap();
        (lines.lines().count() == 2).then_some(lines)
    });
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["name"], &line["who"]),
        (&"cert".into(), &"api 127.0.0.1".into())
    );
    assert!(!lines.contains("swordfish"));
}

#[test]
fn files_are_watched_and_their_names_are_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    put(&file, CLUSTER);
    let server = Server::start(&["--config", dir.path().to_str().unwrap()]);
    assert_eq!(server.running.logged("ready")["resources"], 1);
    let refusal = "cluster \"backend\" belongs to origin \"files\"";
    let error = bad(&server.ask_with(&["apply", "-f", "-"], CLUSTER), 1);
    assert!(error.contains(refusal), "{error}");
    let error = bad(&server.ask(&["delete", "cds", "backend"]), 1);
    assert!(error.contains(refusal), "{error}");

    put(&file, &CLUSTER.replace("backend", "other"));
    until("the edit to be served", || {
        (server.get("/api/v1/resources/cds?name=other").0 == 200).then_some(())
    });
    assert_eq!(server.get("/api/v1/resources/cds?name=backend").0, 404);

    put(&file, "nonsense");
    let line = server.running.logged("clusters.yaml:1:1");
    assert_eq!(line["level"], "ERROR");
    let status = until("the status to know", || {
        let status = good(&server.ask(&["status"]));
        status.contains("1 file is bad").then_some(status)
    });
    assert!(status.contains("clusters.yaml:1:1: "), "{status}");
    assert!(
        server
            .get("/metrics")
            .1
            .contains("\ntrunkline_config_bad_files 1\n")
    );
    good(&server.ask(&["get", "cds", "other"]));
    put(&file, CLUSTER);
    server.running.logged("the file is good again");
    assert!(
        server
            .get("/metrics")
            .1
            .contains("\ntrunkline_config_errors 0\n")
    );
}

#[test]
fn s51_not_ready_while_the_first_file_is_bad() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    put(&file, "nonsense");
    let flags = ["--config", dir.path().to_str().unwrap()];
    let server = Server::start_until(&flags, "waiting for the first contents");
    let reason = until("the reason", || {
        let (status, body) = server.get("/ready");
        assert_eq!(status, 503);
        body.contains("clusters.yaml:1:1").then_some(body)
    });
    assert!(reason.starts_with("INITIALIZING"), "{reason}");
    put(&file, CLUSTER);
    server.running.logged("ready");
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn s51_not_ready_while_there_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--config", dir.path().to_str().unwrap()];
    let server = Server::start_until(&flags, "waiting for the first contents");
    until("the reason", || {
        let (status, body) = server.get("/ready");
        assert_eq!(status, 503);
        body.contains("has no resources").then_some(())
    });
    put(&dir.path().join("clusters.yaml"), CLUSTER);
    server.running.logged("ready");

    let flags = ["--config", dir.path().to_str().unwrap(), "--allow-empty"];
    std::fs::remove_file(dir.path().join("clusters.yaml")).unwrap();
    let server = Server::start(&flags);
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn s51_not_ready_before_the_first_apply_is_complete() {
    let server = Server::start_until(&[], "waiting for the first contents");
    let (status, reason) = server.get("/ready");
    assert_eq!(status, 503);
    assert!(reason.contains("trunkline apply"), "{reason}");

    let apply = |query: &str, body: &str| {
        let path = format!("/api/v1/resources?{query}");
        let headers = [("content-length", &*body.len().to_string())];
        server.http("POST", &path, &headers, body).0
    };
    assert_eq!(apply("", "nonsense"), 422);
    assert_eq!(apply("dry_run=true", CLUSTER), 200);
    assert_eq!(apply("bulk=a&part=0", CLUSTER), 200);
    assert_eq!(server.get("/ready").0, 503);
    assert_eq!(apply("bulk=a&part=1&last=true", "resources: []"), 200);
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn s51_not_ready_before_every_awaited_origin_has_applied() {
    let flags = ["--await-origins", "a", "--await-origins", "b"];
    let server = Server::start_until(&flags, "waiting for the first contents");
    let apply = |origin: &str| {
        let text = CLUSTER.replace("name: backend", &format!("name: {origin}"));
        good(&server.ask_with(&["apply", "-f", "-", "--origin", origin], &text));
        server.get("/ready")
    };
    assert_eq!(apply("a").0, 503);
    let (status, reason) = apply("c");
    assert_eq!(status, 503);
    assert!(reason.contains("origin \"b\" has not"), "{reason}");
    assert!(!reason.contains("origin \"a\""), "{reason}");
    assert_eq!(apply("b").0, 200);
}

#[test]
fn a_signal_drains_and_ends_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&["--drain-time", "100ms"]);
        server.running.signal(Signal::HUP);
        assert_eq!(server.get("/ready").0, 200);
        server.running.signal(signal);
        assert_eq!(server.running.wait().code(), Some(0));
        server.running.logged("stopped");
        let ready = server.running.log();
        let ready = ready.iter().filter(|line| line["message"] == "ready");
        assert_eq!(ready.count(), 1, "one line when it is ready");
    }
}

#[test]
fn a_second_signal_ends_the_drain() {
    // A client that stays: a connection of HTTP/2 that is told to go and does
    // not.
    let mut server = Server::start(&["--drain-time", "1h"]);
    let mut socket = TcpStream::connect(server.listen).unwrap();
    std::io::Write::write_all(
        &mut socket,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    )
    .unwrap();
    std::io::Read::read_exact(&mut socket, &mut [0; 9]).unwrap();
    server.running.signal(Signal::TERM);
    server.running.logged("draining");
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.wait().code(), Some(0));
}

#[test]
fn metrics_have_the_promised_names() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let (status, text) = server.get("/metrics");
    assert_eq!(status, 200);
    for name in [
        "trunkline_connected_clients 0",
        "trunkline_streams 0",
        "trunkline_ready 1",
        "trunkline_requests_total{type=\"cds\"} 0",
        "trunkline_pushes_total{type=\"cds\"} 0",
        "trunkline_acks_total{type=\"cds\"} 0",
        "trunkline_nacks_total{type=\"other\"} 0",
        "trunkline_parked_resources{type=\"cds\"} 0",
        "trunkline_convergence_seconds_bucket",
        "trunkline_push_seconds_bucket",
        "trunkline_first_config_seconds_bucket",
        "trunkline_received_bytes_total 0",
        "trunkline_sent_bytes_total 0",
        "trunkline_subscriptions{type=\"eds\"} 0",
        "trunkline_config_errors 0",
        "trunkline_limits_total{limit=\"streams\"} 0",
        "trunkline_refused_names_total{by=\"request\"} 0",
        "trunkline_resources{type=\"cds\"} 1",
        "trunkline_changes_total{type=\"cds\"} 1",
        "trunkline_build_info{version=",
        "process_start_time_seconds ",
    ] {
        let found = text.lines().any(|line| line.starts_with(name));
        assert!(found, "{name}: {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_api_answers_in_json_and_describes_itself() {
    let server = Server::start(&[]);
    let (status, body) = server.get("/api/v1/openapi.json");
    assert_eq!(status, 200);
    let described: Value = serde_json::from_str(&body).unwrap();
    assert!(described["paths"]["/api/v1/resources"]["post"].is_object());
    for (path, expected) in [
        ("/api/v1/status", 200),
        ("/api/v1/files", 200),
        ("/api/v1/loads", 200),
        ("/debug/clients", 200),
        ("/debug/clients?node=n&contents=true", 200),
        ("/debug/clients?contents=true", 400),
        ("/config_dump", 200),
        (
            "/api/v1/resources/type.googleapis.com%2Fenvoy.config.cluster.v3.Cluster",
            200,
        ),
        ("/api/v1/resources/clusters", 200),
        ("/api/v1/types", 200),
        ("/api/v1/resources/bananas", 400),
        ("/api/v1/resources/cds?nam=x", 400),
        ("/api/v1/resources/cds?name=x", 404),
        ("/no/such/path", 404),
    ] {
        let (status, body) = server.get(path);
        assert_eq!(status, expected, "{path}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            body["error"]["message"].is_string(),
            status != 200,
            "{path}"
        );
    }
    let (status, _) = server.http("DELETE", "/api/v1/resources/cds", &[], "");
    assert_eq!(status, 400, "a delete of nothing is a slip");
    assert!(server.get("/").1.contains("/config_dump"));
}

#[test]
fn a_body_has_a_limit_and_a_path_its_methods() {
    let server = Server::start(&["--max-admin-body", "100"]);
    let long = format!("{CLUSTER}# {}", "x".repeat(100));
    let (status, body) = server.http("POST", "/api/v1/resources", &[], &long);
    assert_eq!(status, 413);
    assert!(body.contains("raise --max-admin-body"), "{body}");
    let (status, body) = server.http("PUT", "/api/v1/resources", &[], "");
    assert_eq!(status, 405);
    assert!(body.contains("no such method"), "{body}");
}

#[test]
fn dangling_references_are_warned_of_or_refused() {
    let server = Server::start(&[]);
    let output = server.ask_with(&["apply", "-f", "-"], ROUTES);
    good(&output);
    let warning = "standard input:7:52: resources[0].virtual_hosts[0].routes[0].route.cluster: \
                   refers to cluster \"backend\", which is not there; add it or correct the name\n";
    assert!(said(&output).contains(warning), "{}", said(&output));
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let output = server.ask_with(&["apply", "-f", "-"], ROUTES);
    assert_eq!(said(&output), "");

    let strict = Server::start(&["--dangling", "error"]);
    let error = bad(&strict.ask_with(&["apply", "-f", "-"], ROUTES), 1);
    assert!(error.contains(warning), "{error}");
    let both = format!("{CLUSTER}{}", ROUTES.replace("resources:\n", ""));
    good(&strict.ask_with(&["apply", "-f", "-"], &both));
    let error = bad(&strict.ask(&["delete", "cds", "backend"]), 1);
    let needed = "no longer has cluster \"backend\", to which route configuration \"routes\", at \
                  origin api, refers";
    assert!(error.contains(needed), "{error}");
    // A collection may be empty, also where there are others of its type.
    let collection = r#"resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: xdstp://a/envoy.config.endpoint.v3.LbEndpoint/others/1
  resource: {"@type": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
  endpoints:
  - leds_cluster_locality_config:
      leds_config: {ads: {}}
      leds_collection_name: xdstp://a/envoy.config.endpoint.v3.LbEndpoint/some/*
"#;
    good(&strict.ask_with(&["apply", "-f", "-"], collection));
}

/// Sends the head of a request to the admin API, and nothing else.
fn begin_request(server: &Server, head: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.admin).unwrap();
    let host = server.admin;
    let text = format!("{head}\r\nhost: {host}\r\nconnection: close\r\n");
    socket.write_all(text.as_bytes()).unwrap();
    socket
}

#[test]
fn a_question_is_small_and_is_read_in_little_memory() {
    let server = Server::start(&[]);
    let path = "/api/v1/explain?type=cds&name=backend";
    let mut socket = begin_request(&server, &format!("POST {path} HTTP/1.1"));
    socket
        .write_all(b"content-length: 60000000\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

    for bomb in ["0,", "{},", "[[]],", "{a: 0},"] {
        let items = bomb.repeat((1 << 20) / bomb.len() - 20);
        let node = format!("metadata: {{a: [{items}]}}");
        let (status, body) = server.http("POST", path, &[], &node);
        assert_eq!(status, 422, "{body}");
        assert!(body.contains("bytes of memory; split it"), "{body}");
    }
}

#[test]
fn answers_that_nobody_reads_keep_nobody_waiting() {
    let server = Server::start(&[]);
    let many: String = (0..2000)
        .map(|n| format!("- {{\"@type\": {URL}, name: c{n}, alt_stat_name: x{n:0200}}}\n"))
        .collect();
    let many = format!("resources:\n{many}");
    let (status, body) = server.http("POST", "/api/v1/resources", &[], &many);
    assert_eq!(status, 200, "{body}");

    let paths = ["/config_dump", "/api/v1/resources", "/api/v1/resources/cds"];
    let ask = |path: &&str| {
        let mut socket = begin_request(&server, &format!("GET {path} HTTP/1.1"));
        socket.write_all(b"\r\n").unwrap();
        socket
    };
    let unread: Vec<TcpStream> = paths.iter().cycle().take(60).map(ask).collect();
    assert_eq!(server.get("/ready").0, 200);
    assert_eq!(server.get("/api/v1/status").0, 200);
    assert_eq!(server.names("cds").len(), 2000);
    assert!(good(&server.ask(&["get", "cds", "c7", "-o", "yaml"])).contains("c7"));

    // One that is read at last is whole.
    let mut late = unread.into_iter().next().unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"c1999\""), "{} bytes", answer.len());
    assert!(answer.ends_with("0\r\n\r\n"), "the end of a body in chunks");
}
