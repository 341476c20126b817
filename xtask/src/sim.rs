//! Simulated worlds: many seeds, each a run of servers, relays and clients.

use lexopt::Arg;
use lexopt::ValueExt as _;

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// How many seeds the gate runs.
const GATE: u64 = 2000;

/// Runs seeds and says which fail.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let (mut seeds, mut from, mut tell) = (GATE, 0, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("seeds") => seeds = args.value()?.parse()?,
            Arg::Long("from") => from = args.value()?.parse()?,
            Arg::Long("tell") => tell = true,
            other => return Err(other.unexpected().into()),
        }
    }
    worlds(workspace, seeds, from, tell)
}

/// The seeds of the gate.
pub(crate) fn gate(workspace: &Workspace) -> Result<()> {
    worlds(workspace, GATE, 0, false)
}

fn worlds(workspace: &Workspace, seeds: u64, from: u64, tell: bool) -> Result<()> {
    let build = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "testkit",
        "--bin",
        "sim",
    ];
    let mut cargo = workspace.cargo(&build);
    cargo.args([
        "--",
        "--seeds",
        &seeds.to_string(),
        "--from",
        &from.to_string(),
    ]);
    if tell {
        cargo.arg("--tell");
    }
    run(&mut cargo)
}
