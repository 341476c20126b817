//! A log that nobody reads.
#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::Signal;
use support::{Server, until};

/// Clusters, each of which is a line of the log with every change.
fn clusters(timeout: u32) -> String {
    let mut text = String::from("resources:\n");
    for n in 0..20 {
        let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        text.push_str(&format!(
            "- {{\"@type\": {url}, name: c{n}, connect_timeout: {timeout}s}}\n"
        ));
    }
    text
}

fn lost(server: &Server) -> u64 {
    let (status, text) = server.get("/metrics");
    assert_eq!(status, 200);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("trunkline_log_dropped_lines_total "));
    line.unwrap().parse().unwrap()
}

#[test]
fn a_full_pipe_of_the_log_holds_nobody() {
    let flags = ["--log-level", "debug", "--drain-time", "100ms"];
    let mut server = Server::start_unread(&flags);
    assert_eq!(lost(&server), 0);
    // The pipe takes 64 KiB, and the queue of the server a MiB.
    let mut timeout = 1;
    until("lost lines", || {
        timeout += 1;
        let (status, body) = server.http("POST", "/api/v1/resources", &[], &clusters(timeout));
        assert_eq!(status, 200, "{body}");
        (lost(&server) > 0).then_some(())
    });
    assert_eq!(server.get("/ready").0, 200);
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.wait().code(), Some(0));
}

#[test]
fn lost_lines_are_told_when_the_pipe_is_read_again() {
    let mut server = Server::start_unread(&["--drain-time", "100ms"]);
    let mut timeout = 1;
    until("lost lines", || {
        timeout += 1;
        let (status, body) = server.http("POST", "/api/v1/resources", &[], &clusters(timeout));
        assert_eq!(status, 200, "{body}");
        (lost(&server) > 0).then_some(())
    });
    let reader = {
        let mut unread = server.running.take_unread();
        std::thread::spawn(move || std::io::read_to_string(&mut unread).unwrap())
    };
    // A line that comes after the pipe is drained.
    until("the queue to be drained", || {
        let before = lost(&server);
        timeout += 1;
        server.http("POST", "/api/v1/resources", &[], &clusters(timeout));
        (lost(&server) == before).then_some(())
    });
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.wait().code(), Some(0));
    let rest = reader.join().unwrap();
    assert!(rest.contains("lines of the log were lost"), "{rest}");
    for line in rest.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok(),
            "{line}"
        );
    }
    assert!(
        rest.lines().last().unwrap().contains("\"stopped\""),
        "{rest}"
    );
}
