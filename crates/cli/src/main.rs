//! The program `trunkline`.
//!
//! Each command is a file in `command`. The others are parts that commands
//! share: `settings`, `running` (a server with its contents and APIs), `admin`
//! (the HTTP API) and `client` (its user), `metrics`, `audit` and `journal`
//! (hooks), `demo`, `envoy`. Wiring only: the server is in the crate `trunkline`, the
//! rules of the protocol in `trunkline-core`. Rule numbers such as S12 or TP2
//! are explained in `docs/rules.md` of the repository.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what the commands print is what they are for"
)]

mod admin;
mod applied;
mod audit;
mod cli;
mod client;
mod command;
mod contents;
mod demo;
mod envoy;
mod failure;
mod journal;
mod kinds;
mod line_diff;
mod log;
mod metrics;
mod output;
mod running;
mod settings;
mod signals;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

/// Runs the command of the command line. A failure is printed to standard
/// error, and decides the exit code.
fn main() -> ExitCode {
    match command::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.code()
        }
    }
}
