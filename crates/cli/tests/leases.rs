//! Resources that stay only as long as the program that applied them.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::net::SocketAddr;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use support::{CLUSTER, ROUTES, Running, Server, bad, good, run, until};
use tempfile::TempDir;

/// A file of clusters with these names, in a directory of its own.
struct Clusters {
    _dir: TempDir,
    path: PathBuf,
}

impl Clusters {
    fn new(names: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clusters.yaml");
        let clusters = names.iter().map(|name| {
            let cluster = CLUSTER.replace("name: backend", &format!("name: {name}"));
            cluster.replace("resources:\n", "")
        });
        let clusters: String = clusters.collect();
        std::fs::write(&path, format!("resources:\n{clusters}")).unwrap();
        Self { _dir: dir, path }
    }

    /// Starts `apply --lease`, and waits until it keeps the lease.
    fn keep(&self, admin: SocketAddr, lease: &str) -> Running {
        let running = Running::start(&[
            "apply",
            "-f",
            self.path.to_str().unwrap(),
            "--origin",
            "pod-7",
            "--lease",
            lease,
            "--admin",
            &admin.to_string(),
        ]);
        running.said("keeping the lease of pod-7");
        running
    }
}

/// The only lease of a server; `None` if there is none.
fn lease(server: &Server) -> Option<Value> {
    let (status, body) = server.get("/api/v1/leases");
    assert_eq!(status, 200, "{body}");
    let mut body: Value = serde_json::from_str(&body).unwrap();
    let leases = body["leases"].as_array_mut().unwrap();
    assert!(leases.len() <= 1, "{leases:?}");
    leases.pop()
}

fn post(server: &Server, query: &str, names: &[String]) -> (u16, String) {
    let text = std::fs::read_to_string(Clusters::new(names).path).unwrap();
    server.http("POST", &format!("/api/v1/resources?{query}"), &[], &text)
}

fn two() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}

/// So many names that their removal is held.
fn many() -> Vec<String> {
    (0..12).map(|n| format!("c{n}")).collect()
}

#[test]
fn resources_go_with_a_writer_that_is_killed() {
    let server = Server::start(&[]);
    let clusters = Clusters::new(&two());
    let mut writer = clusters.keep(server.admin, "3s");
    assert_eq!(server.names("cds"), two());
    let shown = lease(&server).unwrap();
    assert_eq!(shown["origin"], "pod-7");
    assert_eq!(shown["ttl_seconds"], 3.0);
    assert_eq!(shown["status"], "ACTIVE");
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains("trunkline_leases 1\n"), "{metrics}");

    writer.signal(Signal::KILL);
    writer.wait();
    until("the end of the lease", || {
        server.names("cds").is_empty().then_some(())
    });
    until("the lease to be gone", || {
        lease(&server).is_none().then_some(())
    });
    let line = server.running.logged("a lease was not renewed in time");
    assert_eq!(line["origin"], "pod-7");
    assert_eq!(line["resources"], 2);
    let audit = server.running.log();
    let mut audit = audit.iter().filter(|line| line["who"] == "lease of pod-7");
    assert!(audit.next().is_some());
    let metrics = server.get("/metrics").1;
    let expiries = "trunkline_lease_expiries_total{outcome=\"removed\"} 1\n";
    assert!(metrics.contains(expiries), "{metrics}");
}

#[test]
fn resources_go_with_a_writer_that_is_told_to_end() {
    let server = Server::start(&[]);
    for signal in [Signal::TERM, Signal::INT] {
        let mut writer = Clusters::new(&two()).keep(server.admin, "1h");
        writer.signal(signal);
        assert!(writer.wait().success());
        writer.said("the lease of pod-7 has ended");
        assert!(server.names("cds").is_empty());
        assert!(lease(&server).is_none());
    }

    // If they are many, that is held, and the writer says so.
    let mut writer = Clusters::new(&many()).keep(server.admin, "1h");
    writer.signal(Signal::TERM);
    assert_eq!(writer.wait().code(), Some(1));
    writer.said("would remove 12 of 12 clusters");
    let shown = lease(&server).unwrap();
    assert_eq!(shown["status"], "HELD");
    assert_eq!(server.names("cds").len(), 12);
    let hash = shown["held"]["hash"].as_str().unwrap();
    good(&server.ask(&["confirm", hash]));
    until("the confirmed removal", || {
        server.names("cds").is_empty().then_some(())
    });
}

#[test]
fn a_server_that_was_started_again_gets_the_resources_again() {
    let mut server = Server::start(&[]);
    let clusters = Clusters::new(&two());
    let mut writer = clusters.keep(server.admin, "2s");
    server.running.signal(Signal::KILL);
    server.running.wait();
    writer.said("the lease is not renewed since ");

    let admin = server.admin.to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", &admin];
    server.running = Running::start(&args);
    server.running.logged("ready");
    until("the resources", || {
        (server.names("cds") == two()).then_some(())
    });
    writer.said("applying again");
    writer.said("the lease is renewed again");
    assert!(lease(&server).is_some());

    // A writer that cannot end its lease says when it ends.
    server.running.signal(Signal::KILL);
    server.running.wait();
    writer.signal(Signal::TERM);
    assert_eq!(writer.wait().code(), Some(3));
    writer.said("ends by itself, within 2s");
}

#[test]
fn a_server_that_was_stopped_takes_no_writer_for_dead() {
    let server = Server::start(&[]);
    let made = post(&server, "origin=pod-7&lease=2s", &two());
    assert_eq!(made.0, 200, "{}", made.1);
    let renewed = server.http("POST", "/api/v1/leases/pod-7", &[], "");
    assert_eq!(renewed.0, 204, "{}", renewed.1);
    server.running.signal(Signal::STOP);
    // Longer than the lease: the server is asked and does not answer.
    std::thread::sleep(std::time::Duration::from_secs(3));
    server.running.signal(Signal::CONT);
    // Only then does the time of the lease count again.
    server.running.logged("a lease was not renewed in time");
    let log = server.running.log();
    let mut lines = log.iter().filter_map(|line| line["message"].as_str());
    let first = lines.find(|line| line.contains("lease")).unwrap();
    assert!(first.contains("all leases begin anew"), "{first}");
    assert!(server.names("cds").is_empty());
}

#[test]
fn a_lease_is_ended_by_a_write_without_one() {
    let server = Server::start(&[]);
    let gone = server.http("POST", "/api/v1/leases/pod-7", &[], "");
    assert_eq!(gone.0, 404, "{}", gone.1);
    let refused = post(&server, "lease=30s", &two());
    assert_eq!(refused.0, 400, "{}", refused.1);
    assert!(server.names("cds").is_empty());

    // In parts, nothing is leased before the last of them.
    let first = post(&server, "origin=pod-7&lease=1h&bulk=x", &two()[..1]);
    assert_eq!(first.0, 200, "{}", first.1);
    assert!(lease(&server).is_none());
    let last = "origin=pod-7&lease=1h&bulk=x&part=1&last=true";
    let last = post(&server, last, &two()[1..]);
    assert_eq!(last.0, 200, "{}", last.1);
    assert_eq!(lease(&server).unwrap()["ttl_seconds"], 3600.0);
    assert_eq!(server.names("cds"), two());

    let (status, body) = server.http("DELETE", "/api/v1/leases/pod-7", &[], "");
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"deleted\":2"), "{body}");
    post(&server, "origin=pod-7&lease=1h", &two());
    let (_, body) = post(&server, "origin=pod-7", &two());
    assert!(body.contains("has no lease any more"), "{body}");
    assert!(lease(&server).is_none());
    assert_eq!(server.names("cds"), two());
}

#[test]
fn references_of_others_do_not_keep_what_was_leased() {
    let server = Server::start(&["--dangling", "error"]);
    let backend = ["backend".to_owned()];
    let made = post(&server, "origin=pod-7&lease=1h", &backend);
    assert_eq!(made.0, 200, "{}", made.1);
    let made = server.http("POST", "/api/v1/resources", &[], ROUTES);
    assert_eq!(made.0, 200, "{}", made.1);
    let delete = |path: &str| server.http("DELETE", path, &[], "");
    let refused = delete("/api/v1/resources/cds?name=backend&origin=pod-7");
    assert_eq!(refused.0, 422, "{}", refused.1);
    let (status, body) = delete("/api/v1/leases/pod-7");
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("refers"), "the warning: {body}");
    assert!(server.names("cds").is_empty());
}

#[test]
fn flags_that_make_no_sense_with_a_lease_are_refused() {
    let apply = ["apply", "-f", "x.yaml", "--lease"];
    let with = |flags: &[&str]| bad(&run(&[&apply, flags].concat()), 2);
    assert!(with(&["30s"]).contains("--origin"));
    let own = ["--origin", "pod-7"];
    assert!(with(&[&["30s", "--dry-run"], &own[..]].concat()).contains("--dry-run"));
    assert!(with(&[&["10ms"], &own[..]].concat()).contains("from 1s to 24h"));
    assert!(with(&[&["soon"], &own[..]].concat()).contains("such as"));
}
