//! A server that is not ours, with the same contents: what a client loses with
//! this one too may be the client's own fault.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::contents::{Peer, Step};
use super::endpoints::Endpoints;
use super::play::Scene;
use crate::{Script, free_port, http};

const PATIENCE: Duration = Duration::from_secs(10);

/// A program that serves the contents of a round to gRPC, and goes to another
/// when it is asked to: `peers/go/control`.
#[derive(Debug)]
pub struct Control {
    program: PathBuf,
    step: Step,
    endpoints: Endpoints,
    /// Where clients come.
    port: u16,
    /// Where it is asked.
    rounds: SocketAddr,
    running: Option<Script>,
}

impl Control {
    /// A server of round 0, that can go on to so many others.
    ///
    /// # Panics
    ///
    /// When the program does not start.
    #[must_use]
    pub fn start(program: &Path, step: Step, rounds: usize) -> Self {
        let mut control = Self {
            program: program.to_owned(),
            step,
            endpoints: Endpoints::start(Peer::Grpc, rounds),
            port: free_port(),
            rounds: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
            running: None,
        };
        control.run(0);
        control
    }

    fn run(&mut self, round: usize) {
        let at = self.endpoints.address(round);
        let step = match self.step {
            Step::Swap => "swap",
            Step::Move => "move",
            Step::Inline => "inline",
            Step::Return => "return",
        };
        let mut program = Command::new(&self.program);
        program.arg(format!("-listen=127.0.0.1:{}", self.port));
        program.arg(format!("-control={}", self.rounds));
        program.args([format!("-step={step}"), format!("-round={round}")]);
        program.arg(format!("-at={at}"));
        let mut running = Script::run("control", &mut program);
        running.wait_for_line("ready", PATIENCE);
        self.running = Some(running);
    }
}

impl Scene for Control {
    fn port(&self) -> u16 {
        self.port
    }

    fn rounds(&self) -> usize {
        self.endpoints.rounds()
    }

    fn change_to(&mut self, round: usize) {
        let at = self.endpoints.address(round);
        let answer = http::get(self.rounds, &format!("/round?number={round}&at={at}"));
        let answer = answer.unwrap_or_else(|error| panic!("the control is gone: {error}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    fn restart_with(&mut self, round: usize) {
        drop(self.running.take());
        self.run(round);
    }
}
