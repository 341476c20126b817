//! A fleet that connects all at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use support::Server;

/// Descriptors that are needed beside those of the fleet.
const OTHERS: u64 = 100;

/// How many clients can connect at once, to each of two addresses: the system
/// has limits of its own.
fn fleet() -> u64 {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let waiting = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    let waiting = waiting.map_or(128, |text| text.trim().parse().unwrap());
    2000.min((most - OTHERS) / 2).min(waiting)
}

/// Sets the limit of descriptors of this process, and of those that it starts
/// from now on.
fn descriptors(current: Option<u64>) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}

/// While the server is busy, new connections wait; none is turned away, however
/// few descriptors the server was started with.
#[test]
fn a_fleet_that_comes_at_once_is_let_in() {
    let fleet = fleet();
    descriptors(Some(OTHERS));
    let server = Server::start(&[]);
    descriptors(getrlimit(Resource::Nofile).maximum);
    server.running.signal(Signal::STOP);
    let mut connected = Vec::new();
    for address in [server.listen, server.admin] {
        for number in 0..fleet {
            let one = TcpStream::connect_timeout(&address, Duration::from_secs(5));
            let one = one.unwrap_or_else(|error| panic!("{number} of {fleet}: {error}"));
            connected.push(one);
        }
    }
    server.running.signal(Signal::CONT);
    assert_eq!(server.get("/ready").0, 200);
    drop(connected);
}
