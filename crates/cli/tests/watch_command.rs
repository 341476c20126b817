//! `trunkline watch` and `get --watch`: what they print, and a connection that is
//! cut.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use support::program::Program;
use support::{CLUSTER, Server, bad, good, run, until};

fn apply(server: &Server, text: &str) {
    good(&server.ask_with(&["apply", "-f", "-"], text));
}

/// Makes the cluster another one.
fn apply_timeout(server: &Server, seconds: u32) {
    apply(server, &CLUSTER.replace("1s", &format!("{seconds}s")));
}

/// Passes connections on to an address that may change, and can cut them.
struct Relay {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            target: Arc::new(Mutex::new(target)),
            sockets: Arc::default(),
        };
        let (target, sockets) = (Arc::clone(&relay.target), Arc::clone(&relay.sockets));
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let Ok(far) = TcpStream::connect(*target.lock().unwrap()) else {
                    continue;
                };
                let clone = |socket: &TcpStream| socket.try_clone().unwrap();
                sockets.lock().unwrap().extend([clone(&near), clone(&far)]);
                for (mut from, mut to) in [(clone(&near), clone(&far)), (far, near)] {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        relay
    }

    /// Ends all connections.
    fn cut(&self) {
        for socket in self.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Starts a command that watches a server.
fn start(admin: SocketAddr, flags: &[&str]) -> Program {
    let admin = admin.to_string();
    Program::start(&[flags, &["--admin", &admin]].concat())
}

#[test]
fn the_program_goes_on_after_a_cut_and_says_what_it_missed() {
    let server = Server::start(&[]);
    let relay = Relay::start(server.admin);
    let mut program = start(relay.address, &["watch", "--json"]);
    assert!(program.line().contains("bookmark"));
    apply(&server, CLUSTER);
    let mut seen = vec![program.line()];
    relay.cut();
    program.said("the connection is lost");
    apply_timeout(&server, 2);
    apply_timeout(&server, 3);
    program.said("connected again");
    assert!(program.line().contains("bookmark"));
    seen.extend([program.line(), program.line()]);
    let revision = |line: &String| serde_json::from_str::<Value>(line).unwrap()["revision"].clone();
    assert_eq!(seen.iter().map(revision).collect::<Vec<_>>(), [1, 2, 3]);

    // Another server has other events.
    let other = Server::start(&[]);
    *relay.target.lock().unwrap() = other.admin;
    relay.cut();
    program.said("warning: events were missed, going on from now: ");
    assert!(program.line().contains("bookmark"));
    apply(&other, CLUSTER);
    assert_eq!(revision(&program.line()), 1);
}

#[test]
fn the_program_prints_a_line_for_people() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    apply_timeout(&server, 2);
    let mut program = start(server.admin, &["watch", "--from", "1", "--type", "cds"]);
    let line = program.line();
    let what = "changed      revision 2 by api 127.0.0.1: cds/backend changed";
    assert!(line.ends_with(what), "{line}");
    drop(program);
    let error = bad(&server.ask(&["watch", "--from", "9"]), 1);
    assert!(
        error.contains("revision 2, and have not been at 9"),
        "{error}"
    );
    let error = bad(&server.ask(&["watch", "--event", "x"]), 1);
    assert!(error.contains("expected one of changed"), "{error}");
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    bad(&run(&["watch", "--admin", &free.to_string()]), 3);
}

#[test]
fn the_program_ends_when_nobody_reads_what_it_prints() {
    let server = Server::start(&[]);
    let mut program = start(server.admin, &["watch", "--json"]);
    assert!(program.line().contains("bookmark"));
    program.lines = None;
    apply(&server, CLUSTER);
    let status = until("the end", || program.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

/// Returns what a line says behind the version, which is a hash.
fn without_version(line: &str) -> String {
    let parts: Vec<&str> = line.split("  ").collect();
    format!("{} | {}", parts[0], parts[parts.len() - 1])
}

#[test]
fn get_goes_on_with_each_change_of_what_was_selected() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let relay = Relay::start(server.admin);
    let program = start(relay.address, &["get", "cds/backend", "cds/other", "-w"]);
    program.said("there is no cds \"other\"");
    apply(&server, &CLUSTER.replace("backend", "other"));

    let mut program = start(relay.address, &["get", "cds/backend", "cds/other", "-w"]);
    let head: Vec<String> = (0..3).map(|_| program.line()).collect();
    assert!(head[0].starts_with("NAME"), "{head:?}");
    assert!(
        head[1].starts_with("backend ") && head[2].starts_with("other "),
        "{head:?}"
    );
    apply_timeout(&server, 2);
    assert_eq!(
        without_version(&program.line()),
        "backend | changed at revision 3"
    );
    // Others are not told.
    apply(&server, &CLUSTER.replace("backend", "third"));
    good(&server.ask(&["delete", "cds", "other"]));
    assert_eq!(
        without_version(&program.line()),
        "other | deleted at revision 5"
    );

    // Nothing is lost with the connection.
    relay.cut();
    apply_timeout(&server, 3);
    assert_eq!(
        without_version(&program.line()),
        "backend | changed at revision 6"
    );

    // Another server has other contents, and counts anew.
    let other = Server::start(&[]);
    apply(&other, &CLUSTER.replace("backend", "other"));
    *relay.target.lock().unwrap() = other.admin;
    relay.cut();
    assert_eq!(
        without_version(&program.line()),
        "backend | deleted at revision 1"
    );
    assert_eq!(
        without_version(&program.line()),
        "other | added at revision 1"
    );
    apply_timeout(&other, 4);
    assert_eq!(
        without_version(&program.line()),
        "backend | added at revision 2"
    );
}

#[test]
fn get_watches_in_every_form() {
    let server = Server::start(&[]);
    let mut names = start(server.admin, &["get", "cds", "--watch", "-o", "name"]);
    let mut json = start(server.admin, &["get", "cds", "--watch", "-o", "json"]);
    apply(&server, CLUSTER);
    let mut yaml = start(server.admin, &["get", "cds", "--watch", "-o", "yaml"]);
    assert_eq!(names.line(), "cds/backend");
    let event: Value = serde_json::from_str(&json.line()).unwrap();
    // It may have begun after the change.
    assert!(
        event["event"] == "added" || event["event"] == "present",
        "{event}"
    );
    assert_eq!(event["name"], "backend");
    assert_eq!(event["revision"], 1);
    assert_eq!(event["resource"]["connect_timeout"], "1s");

    let mut lines = |count: usize| (0..count).map(|_| yaml.line() + "\n").collect::<String>();
    assert_eq!(
        lines(6),
        "---\n# cds/backend present at revision 1\nresources:\n- \
         \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: backend\n  \
         connect_timeout: \"1s\"\n"
    );
    apply_timeout(&server, 2);
    assert!(lines(6).ends_with("connect_timeout: \"2s\"\n"));
    good(&server.ask(&["delete", "cds", "backend"]));
    assert_eq!(lines(2), "---\n# cds/backend deleted at revision 3\n");
    assert_eq!(names.line(), "cds/backend");
    let told: Vec<Value> = (0..2)
        .map(|_| serde_json::from_str(&json.line()).unwrap())
        .collect();
    assert_eq!(told[1]["event"], "deleted");
    assert_eq!(told[1]["version"], Value::Null);

    bad(&server.ask(&["get", "--watch"]), 2);
}
