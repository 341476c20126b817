//! `trunkline watch`: what it prints, and a connection that is cut.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::io::{self, BufRead as _, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
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

/// `trunkline watch`; it is ended when it is dropped.
struct Program {
    child: Child,
    /// What it prints, while somebody reads it.
    lines: Option<io::Lines<BufReader<ChildStdout>>>,
    errors: Arc<Mutex<String>>,
}

impl Program {
    fn start(admin: SocketAddr, flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(["watch", "--admin", &admin.to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let errors = Arc::<Mutex<String>>::default();
        let kept = Arc::clone(&errors);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &(line + "\n");
            }
        });
        Self {
            child,
            lines: Some(BufReader::new(stdout).lines()),
            errors,
        }
    }

    fn line(&mut self) -> String {
        self.lines.as_mut().unwrap().next().unwrap().unwrap()
    }

    fn said(&self, text: &str) {
        until(text, || {
            let errors = self.errors.lock().unwrap();
            errors.contains(text).then_some(())
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_program_goes_on_after_a_cut_and_says_what_it_missed() {
    let server = Server::start(&[]);
    let relay = Relay::start(server.admin);
    let mut program = Program::start(relay.address, &["--json"]);
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
    let mut program = Program::start(server.admin, &["--from", "1", "--type", "cds"]);
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
    let mut program = Program::start(server.admin, &["--json"]);
    assert!(program.line().contains("bookmark"));
    program.lines = None;
    apply(&server, CLUSTER);
    let status = until("the end", || program.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
