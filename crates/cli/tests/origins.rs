//! Contents of several origins, and changes that depend on what was seen.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::process::Output;

use serde_json::Value;
use support::{CLUSTER, Server, bad, good, until};

fn apply(server: &Server, flags: &[&str], text: &str) -> Output {
    let args = [&["apply", "-f", "-"], flags].concat();
    server.ask_with(&args, text)
}

/// A cluster of another name.
fn cluster(name: &str) -> String {
    CLUSTER.replace("name: backend", &format!("name: {name}"))
}

#[test]
fn a_name_belongs_to_the_origin_that_wrote_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("clusters.yaml"), CLUSTER).unwrap();
    let server = Server::start(&["--config", dir.path().to_str().unwrap()]);
    let other = cluster("other");

    // Beside files, but not in their place.
    assert!(good(&apply(&server, &[], &other)).contains("cds/other created "));
    let error = bad(&apply(&server, &[], CLUSTER), 1);
    let owner = "cluster \"backend\" belongs to origin \"files\", at ";
    assert!(error.contains(owner), "{error}");
    let error = bad(&server.ask(&["delete", "cds", "backend"]), 1);
    assert!(error.contains(owner), "{error}");
    let error = bad(&apply(&server, &["--origin", "team"], &other), 1);
    assert!(error.contains("belongs to origin \"api\""), "{error}");
    let error = bad(&apply(&server, &["--origin", "files"], &other), 1);
    assert!(error.contains("choose another"), "{error}");
    let same = apply(&server, &["--origin", "team", "--take-over"], &other);
    assert_eq!(good(&same), "1 unchanged\n");
    let error = bad(&server.ask(&["delete", "cds", "other"]), 1);
    assert!(error.contains("belongs to origin \"team\""), "{error}");

    // An origin's resources can be replaced as a whole.
    let flags = ["--origin", "team", "--replace"];
    let replaced = good(&apply(&server, &flags, &cluster("third")));
    assert!(replaced.contains("cds/other deleted "), "{replaced}");
    assert!(replaced.contains("cds/third created "), "{replaced}");
    assert_eq!(server.names("cds"), ["backend", "third"]);
}

#[test]
fn a_change_may_depend_on_what_was_seen() {
    let server = Server::start(&[]);
    let first = good(&apply(&server, &[], CLUSTER));
    let revision = first.lines().last().unwrap().strip_prefix("revision ");
    let revision = revision.unwrap();
    let other = cluster("other");
    good(&apply(&server, &["--if-revision", revision], &other));
    let error = bad(&apply(&server, &["--if-revision", revision], CLUSTER), 1);
    assert!(error.contains(&format!("not at {revision}")), "{error}");
    let change = "cds/other was changed in revision ";
    assert!(error.contains(change), "{error}");

    good(&server.ask(&["delete", "cds", "no-such", "other", "--missing-ok"]));
    bad(&server.ask(&["delete", "cds", "other"]), 1);
    assert_eq!(server.names("cds"), ["backend"]);
}

#[test]
fn one_request_may_add_and_delete_and_depend_on_a_version() {
    let server = Server::start(&[]);
    good(&apply(&server, &[], CLUSTER));
    let other = cluster("other");
    let post =
        |path: &str, headers: &[(&str, &str)], body: &str| server.http("POST", path, headers, body);

    let (_, all) = server.get("/api/v1/resources?summary=true");
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["revision"], 1);
    let version = format!("\"{}\"", all["resources"][0]["version"].as_str().unwrap());
    let missing = post("/api/v1/resources?delete=cds/no-such", &[], &other);
    assert_eq!(missing.0, 404, "{}", missing.1);
    let both = "/api/v1/resources?delete=cds/backend";
    let stale = post(both, &[("if-match", "\"0\"")], "resources: []");
    assert_eq!(stale.0, 412, "{}", stale.1);
    assert_eq!(server.names("cds"), ["backend"]);
    let made = post(both, &[("if-match", &version)], "resources: []");
    assert_eq!(made.0, 200, "{}", made.1);
    let made = post("/api/v1/resources", &[], CLUSTER);
    assert_eq!(made.0, 200, "{}", made.1);
    let made = post(both, &[], &other);
    assert_eq!(made.0, 200, "{}", made.1);
    assert_eq!(server.names("cds"), ["other"]);
    let gone = post("/api/v1/resources", &[("if-match", &version)], CLUSTER);
    assert_eq!(gone.0, 412, "it does not exist any more: {}", gone.1);
}

#[test]
fn a_change_that_removes_most_of_a_type_needs_a_yes() {
    let server = Server::start(&[]);
    let all: String = (0..12)
        .map(|n| cluster(&format!("c{n}")).replace("resources:\n", ""))
        .collect();
    good(&apply(&server, &[], &format!("resources:\n{all}")));
    let error = bad(&apply(&server, &["--replace"], CLUSTER), 1);
    assert!(error.contains("would remove 12 of 12 clusters"), "{error}");
    assert_eq!(server.names("cds").len(), 12);
    good(&apply(&server, &["--replace", "--yes"], CLUSTER));
    assert_eq!(server.names("cds"), ["backend"]);
    // A confirmation of another change changes nothing.
    good(&server.ask(&["confirm", "0123456789abcdef"]));
    assert_eq!(server.names("cds"), ["backend"]);
    let error = bad(&server.ask(&["confirm", "all"]), 1);
    assert!(error.contains("expected the 16 digits"), "{error}");
}

#[test]
fn to_delete_by_name_is_a_confirmation() {
    let server = Server::start(&[]);
    let names: Vec<String> = (0..12).map(|n| format!("c{n}")).collect();
    let all: String = names
        .iter()
        .map(|name| cluster(name).replace("resources:\n", ""))
        .collect();
    good(&apply(&server, &[], &format!("resources:\n{all}")));
    let mut args = vec!["delete", "cds"];
    args.extend(names.iter().map(String::as_str));
    good(&server.ask(&args));
    assert_eq!(server.names("cds"), [""; 0]);
}

#[test]
fn a_held_change_of_files_is_shown_until_it_is_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    std::fs::write(&file, CLUSTER).unwrap();
    let server = Server::start(&["--config", dir.path().to_str().unwrap()]);
    server.running.logged("no earlier state is known");
    std::fs::write(&file, "").unwrap();
    let hash = until("the held change", || {
        let (_, files) = server.get("/api/v1/files");
        let files: Value = serde_json::from_str(&files).unwrap();
        let held = files["files"][0]["held"].as_str();
        held.map(str::to_owned)
    });
    server.running.logged(&hash);
    let text = good(&server.ask(&["status"]));
    assert!(text.contains("held until it is confirmed"), "{text}");
    assert!(text.contains(&hash), "{text}");
    let gauge = |value| format!("\ntrunkline_config_held {value}\n");
    assert!(server.get("/metrics").1.contains(&gauge(1)));
    assert_eq!(server.get("/ready").0, 200);
    assert_eq!(server.names("cds"), ["backend"]);
    good(&server.ask(&["confirm", &hash]));
    until("the removal", || {
        server.names("cds").is_empty().then_some(())
    });
    // The state of files is told after their change.
    until("the gauge", || {
        let (_, metrics) = server.get("/metrics");
        metrics.contains(&gauge(0)).then_some(())
    });
}

#[test]
fn nothing_is_held_where_the_settings_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    std::fs::write(&file, CLUSTER).unwrap();
    let config = dir.path().to_str().unwrap();
    let server = Server::start(&["--config", config, "--hold-removals=false"]);
    std::fs::write(&file, "").unwrap();
    until("the removal", || {
        server.names("cds").is_empty().then_some(())
    });
}
