//! Rounds of random load that end with SIGKILL: every transaction that was
//! acknowledged is there, in the order of revisions, and none is there by half.
//!
//! `cargo xtask crash` runs more rounds than the gate does.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "all of this is a test"
)]

mod support;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use support::Server;

/// The rounds of the gate.
const ROUNDS: usize = 100;
const WRITERS: usize = 4;

/// What a writer knows: the last step that it sent, and each that was
/// acknowledged with its revision.
#[derive(Default)]
struct Writer {
    sent: u64,
    acknowledged: Vec<(u64, u64)>,
}

/// Writes one step of a writer: two clusters in one transaction.
fn body(writer: usize, step: u64) -> String {
    let cluster = |half: &str| {
        format!(
            "- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n  \
             name: w{writer}-{half}\n  alt_stat_name: s{step}\n"
        )
    };
    format!("resources:\n{}{}", cluster("x"), cluster("y"))
}

/// Applies a body. Returns the revision that it made, if the server lived to
/// say so.
fn apply(admin: SocketAddr, body: &str) -> Option<u64> {
    let mut socket = TcpStream::connect(admin).ok()?;
    let head = format!(
        "POST /api/v1/resources?summary=true HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + body).as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let body: Value = serde_json::from_str(body).ok()?;
    body["revision"].as_u64()
}

/// The most changes that are waited for before a kill.
const MOST_CHANGES: usize = 16;
/// How long they are waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets all writers write until the server is killed: after a random number of
/// changes, which does not depend on how fast the machine is, and anywhere in
/// the life of the next ones.
fn load(server: &Server, writers: &mut [Writer], random: &mut fastrand::Rng) {
    let (is_over, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let admin = server.admin;
    thread::scope(|scope| {
        for (number, writer) in writers.iter_mut().enumerate() {
            let (is_over, made) = (&is_over, &made);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    writer.sent += 1;
                    match apply(admin, &body(number, writer.sent)) {
                        Some(revision) => writer.acknowledged.push((writer.sent, revision)),
                        None => return,
                    }
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (wanted, begun) = (random.usize(..MOST_CHANGES), Instant::now());
        while made.load(Ordering::Relaxed) < wanted && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(Duration::from_micros(random.u64(..20_000)));
        kill_process(server.running.pid(), Signal::KILL).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Returns the step that the server has of each cluster.
fn steps(server: &Server) -> BTreeMap<String, u64> {
    let (status, list) = server.get("/api/v1/resources/cds");
    assert_eq!(status, 200, "{list}");
    let list: Value = serde_json::from_str(&list).unwrap();
    let all = list["resources"].as_array().unwrap().iter();
    let step = |one: &Value| one["resource"]["alt_stat_name"].as_str()?[1..].parse().ok();
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), step(one).unwrap()))
        .collect()
}

/// Checks what is there after a crash, and lets writers go on from it.
fn check(server: &Server, writers: &mut [Writer], round: usize) {
    let steps = steps(server);
    for (number, writer) in writers.iter_mut().enumerate() {
        let step = |half: &str| steps.get(&format!("w{number}-{half}")).copied();
        assert_eq!(step("x"), step("y"), "round {round}: half a transaction");
        let there = step("x").unwrap_or_default();
        let last = writer.acknowledged.last().map_or(0, |(step, _)| *step);
        assert!(
            there >= last,
            "round {round}: {last} was acknowledged, {there} is there"
        );
        assert!(
            there <= writer.sent,
            "round {round}: {there} was never sent"
        );
        writer.sent = there;

        // An acknowledged step is in the history, at the revision that it made.
        for (_, revision) in writer.acknowledged.drain(..) {
            let (status, shown) = server.get(&format!("/api/v1/history/{revision}"));
            assert_eq!(status, 200, "round {round}: revision {revision}: {shown}");
            let names = format!("\"name\":\"w{number}-x\"");
            assert!(shown.contains(&names), "round {round}: {shown}");
        }
    }
    let (_, history) = server.get("/api/v1/history?limit=1000");
    let history: Value = serde_json::from_str(&history).unwrap();
    let revisions = history["revisions"].as_array().unwrap().iter();
    let revisions: Vec<u64> = revisions
        .map(|it| it["revision"].as_u64().unwrap())
        .collect();
    assert!(
        revisions.is_sorted_by(|a, b| *a == *b + 1),
        "round {round}: {revisions:?}"
    );
}

#[test]
fn what_was_acknowledged_survives_every_crash() {
    let rounds = std::env::var("TRUNKLINE_CRASH_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let flags = ["--data", data.to_str().unwrap(), "--history", "100000"];
    let mut random = fastrand::Rng::with_seed(20);
    let mut writers: [Writer; WRITERS] = Default::default();
    let mut acknowledged = 0;
    for round in 0..rounds {
        let server = Server::start(&flags);
        check(&server, &mut writers, round);
        load(&server, &mut writers, &mut random);
        acknowledged += writers
            .iter()
            .map(|it| it.acknowledged.len())
            .sum::<usize>();
    }
    let server = Server::start(&flags);
    check(&server, &mut writers, rounds);
    assert!(acknowledged >= rounds, "{acknowledged}");
    println!("{rounds} crashes, {acknowledged} transactions acknowledged, all there");
}
