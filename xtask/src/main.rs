//! The project's own commands: `cargo xtask <command>`.
//!
//! One file, or one folder, for each command, and one table of them in
//! [`command`]. This crate depends on no other crate of the workspace, so it
//! builds, and can say what is wrong, when they do not.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what these commands print is what they are for"
)]

mod api;
mod attack;
mod bench;
mod command;
mod crash;
mod deny;
mod deps;
mod failure;
mod fuzz;
mod go;
mod java;
mod mcp;
mod mutants;
mod peers;
mod release;
mod rules;
mod setup;
mod sim;
mod store;
mod test;
mod tidy;
mod traffic;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, failure::Failure::Told) {
                eprintln!("\nerror: {failure}");
            }
            ExitCode::FAILURE
        }
    }
}
