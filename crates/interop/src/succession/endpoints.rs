//! An endpoint for each round, which answers with the name of its cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::contents::Peer;
use super::name_of;
use crate::{Backend, GrpcBackend, Script};

/// How long a program may take until it listens.
const START: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_millis(5);

/// They answer until they are dropped.
#[derive(Debug)]
pub(super) struct Endpoints(Vec<Endpoint>);

#[derive(Debug)]
enum Endpoint {
    Http(Backend),
    Grpc(GrpcBackend),
    /// A program, and where it listens.
    Program(
        SocketAddr,
        #[expect(dead_code, reason = "it ends with this")] Script,
    ),
}

impl Endpoint {
    fn start(peer: Peer, round: usize) -> Self {
        let text = name_of(round);
        match peer {
            Peer::Grpc => Self::Grpc(GrpcBackend::start(&text)),
            Peer::Envoy => Self::Http(Backend::start(&text)),
        }
    }

    /// Starts a program that answers with its argument, and prints where it
    /// listens.
    fn run(program: &Path, round: usize) -> Self {
        let name = name_of(round);
        let mut command = Command::new(program);
        let script = Script::run("server", command.arg(&name));
        let deadline = Instant::now() + START;
        loop {
            let text = script.text();
            let port = text
                .lines()
                .find_map(|line| line.strip_prefix("listening "));
            if let Some(port) = port.and_then(|port| port.parse().ok()) {
                return Self::Program((Ipv4Addr::LOCALHOST, port).into(), script);
            }
            assert!(Instant::now() < deadline, "{name} does not listen: {text}");
            thread::sleep(LOOK);
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Program(address, _) => *address,
            Self::Http(backend) => backend.address(),
            Self::Grpc(backend) => backend.address(),
        }
    }
}

impl Endpoints {
    /// For round 0 and so many others.
    pub(super) fn start(peer: Peer, rounds: usize) -> Self {
        let all = (0..=rounds).map(|round| Endpoint::start(peer, round));
        Self(all.collect())
    }

    /// The same, each a program that answers with its argument.
    pub(super) fn run(program: &Path, rounds: usize) -> Self {
        let all = (0..=rounds).map(|round| Endpoint::run(program, round));
        Self(all.collect())
    }

    pub(super) fn address(&self, round: usize) -> SocketAddr {
        self.0[round].address()
    }

    /// How many rounds come after the first.
    pub(super) fn rounds(&self) -> usize {
        self.0.len() - 1
    }
}
