//! Contents that last: what was acknowledged is there after a crash.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::path::Path;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::Value;

use support::{Server, bad, good, run_with, until};

fn cluster(name: &str, text: &str) -> String {
    format!(
        "resources:\n- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n  \
         name: {name}\n  alt_stat_name: {text}\n"
    )
}

fn data(dir: &Path) -> String {
    dir.join("data").to_str().unwrap().to_owned()
}

#[test]
fn what_was_applied_is_there_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let flags = ["--data", &data];
    let waiting = "waiting for the first contents, from files or by `trunkline apply`; until then \
                   clients are told UNAVAILABLE, unless --allow-empty is given";
    let server = Server::start_until(&flags, waiting);
    assert_eq!(server.get("/ready").0, 503);
    let apply = ["apply", "-f", "-"];
    good(&server.ask_with(&apply, &cluster("a", "one")));
    let made = good(&server.ask_with(&apply, &cluster("a", "two")));
    assert!(made.contains("revision 2"), "{made}");
    assert_eq!(server.get("/ready").0, 200);
    let before = server.get("/api/v1/resources/cds").1;
    kill_process(server.running.pid(), Signal::KILL).unwrap();
    drop(server);

    let server = Server::start_until(&flags, "ready");
    assert_eq!(server.get("/api/v1/resources/cds").1, before);
    let made = good(&server.ask_with(&apply, &cluster("b", "")));
    assert!(made.contains("revision 3"), "{made}");
    good(&server.ask(&["delete", "cds/a", "cds/b"]));
    drop(server);
    // It is known that there is nothing, so nothing is awaited.
    let server = Server::start_until(&flags, "ready");
    assert!(good(&server.ask(&["get", "cds", "-o", "name"])).is_empty());
}

#[test]
fn files_and_kept_contents_are_checked_together() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let file = dir.path().join("a.yaml");
    std::fs::write(&file, cluster("of-file", "")).unwrap();
    let flags = ["--data", &data, "--config", file.to_str().unwrap()];
    let server = Server::start_until(&flags, "ready");
    let apply = ["apply", "-f", "-"];
    let refused = bad(&server.ask_with(&apply, &cluster("of-file", "x")), 1);
    assert!(refused.contains("of-file"), "{refused}");
    good(&server.ask_with(&apply, &cluster("of-api", "")));
    drop(server);
    let server = Server::start_until(&flags, "ready");
    let names = good(&server.ask(&["get", "cds", "-o", "name"]));
    assert_eq!(names, "cds/of-api\ncds/of-file\n");
}

#[test]
fn a_place_that_cannot_be_used_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    std::fs::write(&data, "a file").unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let start = |data: &str| bad(&run_with(&[&args[..], &["--data", data]].concat(), ""), 1);
    let error = start(&data);
    assert!(
        error.contains("--data DIR") && error.contains("--data memory"),
        "{error}"
    );

    std::fs::remove_file(&data).unwrap();
    let server = Server::start(&["--data", &data]);
    let error = start(&data);
    assert!(error.contains("is in use by another process"), "{error}");
    drop(server);
    let file = Path::new(&data).join("contents.redb");
    std::fs::write(&file, [7; 9000]).unwrap();
    let error = start(&data);
    assert!(
        error.contains("is damaged") && error.contains("trunkline restore"),
        "{error}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), [7; 9000]);
}

#[test]
fn revisions_are_shown_compared_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let server = Server::start(&["--data", &data]);
    let apply = |text: &str| good(&server.ask_with(&["apply", "-f", "-"], text));
    apply(&cluster("a", "one"));
    apply(&cluster("a", "two"));
    apply(&cluster("b", ""));

    let history = good(&server.ask(&["history"]));
    let lines: Vec<&str> = history.lines().collect();
    assert_eq!(lines.len(), 4, "{history}");
    assert!(
        lines[1].starts_with("3 ") && lines[1].contains("api 127.0.0.1"),
        "{history}"
    );
    assert!(
        lines[1].ends_with("1 created") && lines[2].ends_with("1 changed"),
        "{history}"
    );
    let of_name = good(&server.ask(&["history", "cds", "a", "--limit", "1"]));
    assert!(
        of_name.lines().nth(1).unwrap().starts_with("2 "),
        "{of_name}"
    );

    let diff = server.ask(&["diff", "--revision", "1"]);
    let shown = String::from_utf8(diff.stdout).unwrap();
    assert_eq!(diff.status.code(), Some(1));
    assert!(
        shown.contains("- alt_stat_name: one") && shown.contains("+ alt_stat_name: two"),
        "{shown}"
    );
    assert!(shown.contains("cds/b created"), "{shown}");
    assert_eq!(
        server.ask(&["diff", "--revision", "3..3"]).status.code(),
        Some(0)
    );

    let rehearsed = good(&server.ask(&["rollback", "1", "--dry-run"]));
    assert!(rehearsed.contains("nothing was changed"), "{rehearsed}");
    let made = good(&server.ask(&["rollback", "1"]));
    assert!(
        made.contains("cds/b deleted") && made.contains("revision 4"),
        "{made}"
    );
    let now = good(&server.ask(&["get", "cds", "-o", "yaml"]));
    assert!(now.contains("one") && !now.contains("name: b"), "{now}");
    let history = good(&server.ask(&["history", "--limit", "1"]));
    assert!(history.contains("as of revision 1"), "{history}");
    // It can be taken back, also after a restart.
    drop(server);
    let server = Server::start(&["--data", &data]);
    good(&server.ask(&["rollback", "3"]));
    let now = good(&server.ask(&["get", "cds", "-o", "yaml"]));
    assert!(now.contains("two") && now.contains("name: b"), "{now}");
    let unknown = bad(&server.ask(&["rollback", "77"]), 1);
    assert!(unknown.contains("those from 1 to 5 are kept"), "{unknown}");
    let stale = bad(&server.ask(&["rollback", "1", "--if-revision", "3"]), 1);
    assert!(
        stale.contains("the contents are at revision 5, not at 3"),
        "{stale}"
    );
}

#[test]
fn a_rollback_that_removes_much_is_held() {
    let server = Server::start(&[]);
    let apply = |text: &str| good(&server.ask_with(&["apply", "-f", "-"], text));
    apply(&cluster("first", ""));
    for n in 0..12 {
        apply(&cluster(&format!("more-{n}"), ""));
    }
    let held = bad(&server.ask(&["rollback", "1"]), 1);
    assert!(held.contains("would remove 12 of 13"), "{held}");
    good(&server.ask(&["rollback", "1", "--yes"]));
    assert_eq!(
        good(&server.ask(&["get", "cds", "-o", "name"])),
        "cds/first\n"
    );
}

#[test]
fn a_backup_of_a_running_server_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, other) = (path("backup"), path("other"));
    let server = Server::start(&["--data", &data(dir.path())]);
    good(&server.ask_with(&["apply", "-f", "-"], &cluster("a", "one")));
    let said = good(&server.ask(&["backup", &file]));
    assert!(said.contains("bytes written to"), "{said}");
    bad(&server.ask(&["backup", &file]), 1);
    good(&server.ask_with(&["apply", "-f", "-"], &cluster("a", "two")));

    let restore = ["restore", &file, "--data", &other];
    assert!(good(&support::run(&restore)).starts_with("revision 1 is restored"));
    bad(&support::run(&restore), 1);
    let server = Server::start(&["--data", &other]);
    let now = good(&server.ask(&["get", "cds", "-o", "yaml"]));
    assert!(now.contains("one"), "{now}");
    let memory = Server::start(&[]);
    let refused = bad(&memory.ask(&["backup", &path("none")]), 1);
    assert!(refused.contains("--data DIR"), "{refused}");
    assert!(!Path::new(&path("none")).exists());
}

#[test]
fn a_request_that_is_repeated_changes_nothing_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let server = Server::start(&["--data", &data]);
    let post = |server: &Server, body: &str| {
        let headers = [("idempotency-key", "k-1")];
        server.http("POST", "/api/v1/resources", &headers, body)
    };
    let (status, body) = post(&server, &cluster("a", "one"));
    assert!(status == 200 && !body.contains("repeated"), "{body}");
    good(&server.ask_with(&["apply", "-f", "-"], &cluster("a", "two")));
    kill_process(server.running.pid(), Signal::KILL).unwrap();
    drop(server);
    let server = Server::start(&["--data", &data]);
    let (status, body) = post(&server, &cluster("a", "one"));
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&answer["revision"], &answer["repeated"]),
        (&1.into(), &true.into())
    );
    let (status, body) = post(&server, &cluster("a", "three"));
    assert!(status == 409 && body.contains("Idempotency-Key"), "{body}");
    let now = good(&server.ask(&["get", "cds", "-o", "yaml"]));
    assert!(now.contains("two"), "{now}");
}

#[test]
fn a_lease_outlives_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let server = Server::start(&["--data", &data]);
    let path = "/api/v1/resources?origin=pod-7&lease=600s";
    let (status, body) = server.http("POST", path, &[], &cluster("a", ""));
    assert_eq!(status, 200, "{body}");
    drop(server);
    let server = Server::start(&["--data", &data]);
    let leases = server.get("/api/v1/leases").1;
    assert!(
        leases.contains("pod-7") && leases.contains("ACTIVE"),
        "{leases}"
    );
    assert_eq!(server.http("POST", "/api/v1/leases/pod-7", &[], "").0, 204);
    assert_eq!(
        server.http("DELETE", "/api/v1/leases/pod-7", &[], "").0,
        200
    );
    drop(server);
    let server = Server::start(&["--data", &data]);
    assert!(!server.get("/api/v1/leases").1.contains("pod-7"));
    assert!(good(&server.ask(&["get", "cds", "-o", "name"])).is_empty());
}

/// A file that may not grow is like a full disk.
#[test]
fn a_full_disk_refuses_changes_and_serving_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let server = Server::start(&["--data", &data]);
    let text = "x".repeat(4000);
    let post = |n: usize| {
        let body = cluster(&format!("c{n}"), &format!("{n}-{text}"));
        server.http("POST", "/api/v1/resources?summary=true", &[], &body)
    };
    assert_eq!(post(0).0, 200);
    let limit = |most: Option<u64>| {
        let new = Rlimit {
            current: most,
            maximum: getrlimit(Resource::Fsize).maximum,
        };
        prlimit(Some(server.running.pid()), Resource::Fsize, new).unwrap()
    };
    let file = Path::new(&data).join("contents.redb");
    let before = limit(Some(std::fs::metadata(&file).unwrap().len()));
    let mut made = 1;
    let refused = loop {
        match post(made) {
            (200, _) => made += 1,
            refused => break refused,
        }
        assert!(made < 5000, "the file has room for all of this");
    };
    assert_eq!(refused.0, 503, "{}", refused.1);
    assert!(refused.1.contains("cannot be kept"), "{}", refused.1);
    assert_eq!(server.names("cds").len(), made);
    assert_eq!(server.get("/ready").0, 200);

    // With room again the next change is kept, and nothing was restarted.
    limit(before.current);
    assert_eq!(post(made).0, 200);
    drop(server);
    let server = Server::start(&["--data", &data]);
    assert_eq!(server.names("cds").len(), made + 1);
}

#[test]
fn a_removal_that_is_held_is_held_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let server = Server::start(&["--data", &data]);
    let many: String = (0..12)
        .map(|n| cluster(&format!("c{n}"), "").replace("resources:\n", ""))
        .collect();
    let path = "/api/v1/resources?origin=pod-7&lease=1s";
    let (status, body) = server.http("POST", path, &[], &format!("resources:\n{many}"));
    assert_eq!(status, 200, "{body}");
    let held = |server: &Server| {
        until("the removal to be held", || {
            let leases: Value = serde_json::from_str(&server.get("/api/v1/leases").1).unwrap();
            let hash = leases["leases"][0]["held"]["hash"].as_str()?;
            Some(hash.to_owned())
        })
    };
    let hash = held(&server);
    kill_process(server.running.pid(), Signal::KILL).unwrap();
    drop(server);
    let server = Server::start(&["--data", &data]);
    assert_eq!(held(&server), hash);
    assert_eq!(server.names("cds").len(), 12);
    good(&server.ask(&["confirm", &hash]));
    until("the confirmed removal", || {
        server.names("cds").is_empty().then_some(())
    });
    kill_process(server.running.pid(), Signal::KILL).unwrap();
    drop(server);
    assert!(Server::start(&["--data", &data]).names("cds").is_empty());
}
