//! The program `trunkline`. Each command is a file in `command`; what they
//! share is beside it. Wiring only: the rules and the server are in the library.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what the commands print is what they are for"
)]

mod admin;
mod audit;
mod cli;
mod client;
mod command;
mod contents;
mod demo;
mod failure;
mod journal;
mod kinds;
mod log;
mod metrics;
mod output;
mod running;
mod settings;
mod signals;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match command::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.code()
        }
    }
}
