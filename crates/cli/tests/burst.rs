//! A fleet that comes all at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use support::Server;

/// Descriptors that are needed beside those of the fleet.
const OTHERS: u64 = 100;

/// How many can come at once here: the system has limits of its own.
fn fleet() -> u64 {
    let descriptors = getrlimit(Resource::Nofile);
    let most = descriptors.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit {
        current: descriptors.maximum,
        ..descriptors
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let waiting = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    let waiting = waiting.map_or(128, |text| text.trim().parse().unwrap());
    2000.min(most - OTHERS).min(waiting)
}

/// While the server is busy, who connects waits; nobody is turned away.
#[test]
fn a_fleet_that_comes_at_once_is_let_in() {
    let fleet = fleet();
    let server = Server::start(&[]);
    server.running.signal(Signal::STOP);
    for address in [server.listen, server.admin] {
        let mut connected = Vec::new();
        for number in 0..fleet {
            let one = TcpStream::connect_timeout(&address, Duration::from_secs(5));
            let one = one.unwrap_or_else(|error| panic!("{number} of {fleet}: {error}"));
            connected.push(one);
        }
    }
    server.running.signal(Signal::CONT);
    assert_eq!(server.get("/ready").0, 200);
}
