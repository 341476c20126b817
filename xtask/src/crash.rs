//! `cargo xtask crash`: rounds of load that end with SIGKILL, more of them than
//! the gate has.

use lexopt::Arg;
use lexopt::ValueExt as _;

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// Rounds, unless the command line says how many.
const ROUNDS: u64 = 500;

/// Runs the rounds with a program that is built for release.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let mut rounds = ROUNDS;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("rounds") => rounds = args.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let test = [
        "test",
        "--release",
        "--package",
        "trunkline-cli",
        "--test",
        "crash",
    ];
    let mut cargo = workspace.cargo(&[&test[..], &["--", "--nocapture"]].concat());
    cargo.env("TRUNKLINE_CRASH_ROUNDS", rounds.to_string());
    run(&mut cargo)
}
