//! A gRPC client that calls all the time, as a process behind a latency.
//!
//! Such a program finds its server by the bootstrap in
//! `GRPC_XDS_BOOTSTRAP_CONFIG`, calls the target `xds:///svc` until it is asked to
//! stop by SIGTERM, and prints lines:
//!
//! ```text
//! answer k0                     an answer that it has not had before
//! failed 1700000000.123 TEXT    a call that failed: when, and why
//! made 1234                     how many calls it made, at its end
//! ```

use std::process::Command;
use std::time::Duration;

use super::contents::LISTENER;
use super::play::{Client, PATIENCE};
use super::record::{Lost, Tally};
use crate::{Gate, Script, bootstrap};

/// A client and its way to the server.
#[derive(Debug)]
pub struct Caller {
    name: String,
    script: Script,
    patience: Option<Duration>,
    /// Ends the connection when dropped.
    _gate: Gate,
}

impl Caller {
    /// Starts a program of this kind, with such a latency each way.
    ///
    /// # Panics
    ///
    /// When the program does not start.
    #[must_use]
    pub fn start(name: &str, program: Command, server: u16, latency: Duration) -> Self {
        let gate = Gate::far_from(server, latency);
        let bootstrap = bootstrap::grpc(gate.port, "g1");
        let mut program = program;
        program.arg(format!("xds:///{LISTENER}"));
        program.env("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap);
        Self {
            name: format!("{name} at {} ms", latency.as_millis() * 2),
            script: Script::run(name, &mut program),
            patience: None,
            _gate: gate,
        }
    }

    /// Lets it take so long to see the answer of a round.
    #[must_use]
    pub fn with_patience(mut self, patience: Option<Duration>) -> Self {
        self.patience = patience;
        self
    }
}

impl Client for Caller {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn has_seen(&self, answer: &str) -> bool {
        let text = self.script.text();
        let mut answers = text.lines().filter_map(|line| line.strip_prefix("answer "));
        answers.any(|seen| seen == answer)
    }

    fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }

    fn stop(mut self: Box<Self>) -> Tally {
        self.script.stop();
        let text = self.script.text();
        let made = text.lines().find_map(|line| line.strip_prefix("made "));
        let made = made.and_then(|made| made.parse().ok());
        let made = made.unwrap_or_else(|| panic!("{} did not end well:\n{text}", self.name));
        let lost = text.lines().filter_map(lost).collect();
        let who = self.name;
        Tally { who, made, lost }
    }
}

fn lost(line: &str) -> Option<Lost> {
    let (at, text) = line.strip_prefix("failed ")?.split_once(' ')?;
    let (at, text) = (at.parse().ok()?, text.to_owned());
    Some(Lost { at, text })
}
