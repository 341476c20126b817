//! gRPC clients in other languages, through the same successions as the tests
//! of Envoy and of gRPC's C-core; Trunkline's channel with servers of grpc-go;
//! and Trunkline's client at go-control-plane.
//!
//! `cargo xtask peers` builds the programs and says where they are:
//!
//! ```text
//! peers grpc-go=PROGRAM grpc-java=FOLDER go-control-plane=PROGRAM plane=PROGRAM go-server=PROGRAM
//! ```
//!
//! Each is optional. It fails when a client loses a call with Trunkline that is
//! not the client's own fault, and when Trunkline's client does not hold what a
//! control plane has.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use interop::control_plane::{self, Cache};
use interop::succession::{
    By, Caller, Channel, Client, Control, Lost, Peer, Record, Scene, Stage, Step, play,
};

/// Each way, in milliseconds: round trips of 0, 20 and 50.
const LATENCIES: [u64; 3] = [0, 10, 25];

const CASES: [(Step, By, &str); 7] = [
    (Step::Swap, By::Change, "another cluster"),
    (Step::Move, By::Change, "another route configuration"),
    (Step::Inline, By::Change, "routes inline and back"),
    (Step::Return, By::Change, "names that return"),
    (Step::Move, By::Haste, "changes that overtake"),
    (Step::Swap, By::Restart, "restart, another cluster"),
    (
        Step::Move,
        By::Restart,
        "restart, another route configuration",
    ),
];

/// grpc-go forgets a cluster that a call has chosen already, whatever a server
/// does.
const GO_RACE: &str = "unknown cluster selected";

/// grpc-java stays subscribed to the routes of its old tree until it has the
/// new one, and does not take that while a resource for one of them is missing.
/// In state of the world no server can say that they are removed, so it waits
/// for as long as for any resource, fifteen seconds, once for each such name.
const JAVA_WAITS: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let pairs = arguments.iter().filter_map(|pair| pair.split_once('='));
    let given: BTreeMap<&str, &str> = pairs.collect();
    let mut sound = true;
    for client in ["grpc-go", "grpc-java"] {
        let Some(program) = given.get(client) else {
            continue;
        };
        for (step, by, about) in CASES {
            let mut ours = Stage::new(step, Peer::Grpc, by.rounds());
            let record = run(&mut ours, client, program, by);
            sound &= tell(client, "Trunkline", about, record);
            let Some(control) = given.get("go-control-plane") else {
                continue;
            };
            if client == "grpc-go" || by == By::Haste {
                let mut theirs = Control::start(Path::new(control), step, by.rounds());
                let record = run(&mut theirs, client, program, by);
                tell(client, "go-control-plane", about, record);
            }
        }
    }
    if let Some(server) = given.get("go-server") {
        sound &= channel(Path::new(server));
    }
    if let Some(plane) = given.get("plane") {
        sound &= subscribe(Path::new(plane));
    }
    match sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Trunkline's channel for tonic, whose calls go to servers of grpc-go.
fn channel(program: &Path) -> bool {
    let mut sound = true;
    for (step, by, about) in CASES {
        let mut ours = Stage::with_servers(step, program, by.rounds());
        let port = ours.port();
        let clients = LATENCIES.map(|latency| {
            let latency = Duration::from_millis(latency);
            Box::new(Channel::start(port, latency)) as Box<dyn Client>
        });
        let record = play(&mut ours, by, clients.into());
        sound &= tell("channel to grpc-go", "Trunkline", about, record);
    }
    sound
}

/// Trunkline's client in all its ways, at all caches of go-control-plane.
fn subscribe(plane: &Path) -> bool {
    let mut sound = true;
    for cache in [Cache::Snapshot, Cache::SnapshotAds, Cache::Linear] {
        for (delta, aggregated) in [(false, true), (false, false), (true, true), (true, false)] {
            for by in [control_plane::By::Name, control_plane::By::Wildcard] {
                let case = control_plane::Case {
                    cache,
                    delta,
                    aggregated,
                    by,
                };
                let (wrong, nacks) = control_plane::play(plane, case);
                println!("Trunkline's client, {case:?}: {nacks} NACKs in a second");
                wrong.iter().for_each(|wrong| println!("  WRONG {wrong}"));
                sound &= wrong.is_empty();
            }
        }
    }
    sound
}

/// Clients at all distances, through all rounds of a server.
fn run(server: &mut dyn Scene, client: &str, program: &str, by: By) -> Record {
    let port = server.port();
    let clients = LATENCIES.map(Duration::from_millis).map(|latency| {
        let command = command(client, program);
        let waits = client == "grpc-java" && by == By::Haste;
        let caller = Caller::start(client, command, port, latency);
        Box::new(caller.with_patience(waits.then_some(JAVA_WAITS))) as Box<dyn Client>
    });
    play(server, by, clients.into())
}

fn command(client: &str, program: &str) -> Command {
    if client == "grpc-go" {
        return Command::new(program);
    }
    let mut java = Command::new("java");
    // Three of them share the machine: little is compiled, and by one thread.
    java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"]);
    java.args(["-cp", &format!("{program}/classes:{program}/dependency/*")]);
    java.arg("peers.Caller");
    java
}

/// Whether nothing was lost but by the client's own fault.
fn tell(client: &str, server: &str, about: &str, mut record: Record) -> bool {
    let own = record.set_apart(|lost: &Lost| lost.text.contains(GO_RACE));
    println!("{client}, {server}, {about}: {own} lost by a race of the client's own");
    println!("{record}");
    let lost = record.tallies.iter().any(|tally| !tally.lost.is_empty());
    !lost && record.late.is_empty()
}
