//! The program `trunkline`.
//!
//! Each command is a file in `command`. The others are parts that commands
//! share: `report` and `color` (findings as people read them), `settings`, `running` (a server with its contents and APIs), `runtimes` (its threads),
//! `collector` (memory that goes back), `bounds` (what it bounds), `admin`
//! (the HTTP API) and `client` (its user), `metrics`, `audit` and `journal`
//! (hooks), `recording` (exchanges of `watch --record`), `demo`, `envoy`. Wiring only: the server is in the crate `trunkline`, the
//! rules of the protocol in `trunkline-core`. Rule numbers such as S12 or TP2
//! are explained in `docs/rules.md` of the repository.
#![deny(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what the commands print is what they are for"
)]

mod admin;
mod allocator;
mod applied;
mod audit;
mod bounds;
mod cli;
mod client;
mod collector;
mod color;
mod command;
mod contents;
mod data;
mod demo;
mod descriptors;
mod envoy;
mod failure;
mod journal;
mod kinds;
mod line_diff;
mod log;
mod mcp;
mod metrics;
mod output;
mod plaintext;
mod progress;
mod recording;
mod report;
mod running;
mod runtimes;
mod settings;
mod signals;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use self::color::{Palette, Style};

/// Runs the command of the command line. Prints a failure to standard error and
/// exits with its code.
fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    color::set(cli.global.color);
    match command::run(cli) {
        Ok(code) => {
            log::finish("");
            code
        }
        Err(failure) => {
            let error = Palette::of_stderr().paint(Style::Bad, "error");
            log::finish(&format!("{}{error}: {failure}\n", failure.findings()));
            failure.code()
        }
    }
}
