//! The audit log: what is in it, and what happens if it cannot be written.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::Value;
use support::{CLUSTER, Server, bad, good, put, until};

/// Waits until the file has so many lines, and returns them.
fn lines(path: &Path, count: usize) -> Vec<Value> {
    until("lines of the audit log", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<Value> = text
            .lines()
            .map_while(|line| serde_json::from_str(line).ok())
            .collect();
        (lines.len() >= count).then_some(lines)
    })
}

fn count(server: &Server, metric: &str) -> u64 {
    let (_, text) = server.get("/metrics");
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

#[test]
fn refusals_are_recorded_with_who_what_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, token) = (dir.path().join("audit.log"), dir.path().join("token"));
    put(&token, "sesame\n");
    let token = token.to_str().unwrap();
    let path = audit.to_str().unwrap();
    let server = Server::start(&["--audit-log", path, "--admin-token-file", token]);
    bad(&server.ask_with(&["apply", "-f", "-"], CLUSTER), 1);
    let with = ["apply", "-f", "-", "--token-file", token];
    bad(
        &server.ask_with(&with, &CLUSTER.replace("name:", "nam:")),
        1,
    );
    good(&server.ask_with(&with, CLUSTER));
    // Reading is nobody's business.
    good(&server.ask(&["get"]));
    assert_eq!(server.get("/no/such/page").0, 404);

    let lines = lines(&audit, 3);
    let shown = |nth: usize, key: &str| lines[nth][key].as_str().unwrap_or_default().to_owned();
    let events: Vec<String> = (0..lines.len()).map(|nth| shown(nth, "event")).collect();
    assert_eq!(events, ["refused", "refused", "change"]);
    assert_eq!(shown(0, "who"), "api 127.0.0.1");
    assert!(shown(0, "request").starts_with("POST /api/v1/resources"));
    assert_eq!(lines[0]["status"], 401);
    assert!(shown(0, "reason").contains("needs the token"));
    assert_eq!(shown(1, "who"), "api token from 127.0.0.1");
    assert_eq!(lines[1]["status"], 422);
    assert!(shown(1, "reason").contains("1 mistake"), "{lines:?}");
    assert_eq!(shown(2, "name"), "backend");
    let refusals = "trunkline_admin_refusals_total{recorded=\"yes\"}";
    assert_eq!(count(&server, refusals), 2);
}

#[test]
fn the_file_is_private_and_rotated_as_logrotate_does() {
    let dir = tempfile::tempdir().unwrap();
    let audit = dir.path().join("audit.log");
    let server = Server::start(&["--audit-log", audit.to_str().unwrap()]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&audit), 0o600);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    lines(&audit, 1);
    let old = dir.path().join("audit.log.1");
    fs::rename(&audit, &old).unwrap();
    good(&server.ask(&["delete", "cds", "backend"]));
    assert_eq!(lines(&audit, 1)[0]["to"], Value::Null);
    assert_eq!(lines(&old, 1).len(), 1);
    assert_eq!(mode(&audit), 0o600);
}

#[test]
fn a_file_that_everybody_can_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let audit = dir.path().join("audit.log");
    fs::write(&audit, "").unwrap();
    fs::set_permissions(&audit, fs::Permissions::from_mode(0o644)).unwrap();
    let server = Server::start(&["--audit-log", audit.to_str().unwrap()]);
    server
        .running
        .logged("everybody on this machine can read the audit log");
}

#[cfg(target_os = "linux")]
#[test]
fn a_change_that_cannot_be_recorded_is_refused_where_that_is_required() {
    let full = ["--audit-log", "/dev/full"];
    let server = Server::start(&full);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    server.running.logged("the audit log cannot be written");
    assert_eq!(count(&server, "trunkline_audit_failures_total"), 1);

    let server = Server::start(&[&full[..], &["--audit-required"]].concat());
    let (status, body) = server.http("POST", "/api/v1/resources", &[], CLUSTER);
    assert_eq!(status, 503, "{body}");
    assert!(
        body.contains("/dev/full: No space left on device"),
        "{body}"
    );
    assert!(server.names("cds").is_empty());
    assert!(count(&server, "trunkline_audit_failures_total") >= 1);
}

/// A disk that is full at first.
#[cfg(target_os = "linux")]
#[test]
fn a_change_of_files_waits_until_it_can_be_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, config) = (dir.path().join("audit.log"), dir.path().join("a.yaml"));
    symlink("/dev/full", &audit).unwrap();
    put(&config, CLUSTER);
    let server = Server::start_until(
        &[
            "--audit-log",
            audit.to_str().unwrap(),
            "--audit-required",
            "--config",
            config.to_str().unwrap(),
            "--config-rescan",
            "100ms",
        ],
        "waiting for the first contents",
    );
    until("the reason", || {
        let (status, body) = server.get("/ready");
        (status == 503 && body.contains("cannot be recorded")).then_some(())
    });
    let file = dir.path().join("file");
    let link = dir.path().join("link");
    symlink(&file, &link).unwrap();
    fs::rename(&link, &audit).unwrap();
    until("the first contents", || {
        (server.get("/ready").0 == 200).then_some(())
    });
    assert_eq!(lines(&file, 1)[0]["name"], "backend");
    assert_eq!(server.names("cds"), ["backend"]);
}

/// Clusters, each of which is a line with every change.
fn clusters(timeout: u32) -> String {
    let mut text = String::from("resources:\n");
    for n in 0..100 {
        let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        text.push_str(&format!(
            "- {{\"@type\": {url}, name: c{n}, connect_timeout: {timeout}s}}\n"
        ));
    }
    text
}

/// A disk that hangs: a pipe that nobody reads.
#[test]
fn a_disk_that_hangs_refuses_changes_and_holds_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut options = fs::OpenOptions::new();
    let reader = options.read(true).write(true).open(&pipe).unwrap();
    let audit = ["--audit-log", pipe.to_str().unwrap(), "--audit-required"];
    let mut server = Server::start(&[&audit[..], &["--drain-time", "100ms"]].concat());
    let mut timeout = 0;
    let refused = until("a change that is refused", || {
        timeout += 1;
        let (status, body) = server.http("POST", "/api/v1/resources", &[], &clusters(timeout));
        (status != 200).then_some((status, body))
    });
    assert_eq!(refused.0, 503, "{}", refused.1);
    assert!(
        refused.1.contains("takes longer than 5 seconds"),
        "{}",
        refused.1
    );
    // The next one does not wait.
    let again = server.http("POST", "/api/v1/resources", &[], &clusters(timeout + 1));
    assert_eq!(again.0, 503);
    let served = server.get("/api/v1/resources/cds?name=c0").1;
    assert!(served.contains(&format!("{}s", timeout - 1)), "{served}");
    assert_eq!(server.get("/ready").0, 200);

    // Once it goes on, the change that was being written is withdrawn.
    let mut lines = BufReader::new(reader).lines();
    let withdrawn = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (line["event"] == "withdrawn").then_some(line)
    });
    assert!(
        withdrawn.unwrap()["reason"]
            .as_str()
            .unwrap()
            .contains("in time")
    );
    server.running.signal(rustix::process::Signal::TERM);
    assert_eq!(server.running.wait().code(), Some(0));
}
