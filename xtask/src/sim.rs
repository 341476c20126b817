//! Simulated worlds: many seeds, each a run of servers, relays and clients.

use lexopt::Arg;
use lexopt::ValueExt as _;

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// How many seeds the gate runs.
const GATE: u64 = 2000;

/// Runs seeds and says which fail.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let (mut seeds, mut from, mut more) = (GATE, 0, Vec::new());
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("seeds") => seeds = args.value()?.parse()?,
            Arg::Long("from") => from = args.value()?.parse()?,
            Arg::Long("tell") => more.push("--tell".to_owned()),
            Arg::Long("only") => more.extend(["--only".to_owned(), args.value()?.parse()?]),
            other => return Err(other.unexpected().into()),
        }
    }
    worlds(workspace, seeds, from, &more)
}

/// The seeds of the gate.
pub(crate) fn gate(workspace: &Workspace) -> Result<()> {
    worlds(workspace, GATE, 0, &[])
}

fn worlds(workspace: &Workspace, seeds: u64, from: u64, more: &[String]) -> Result<()> {
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
    cargo.args(more);
    run(&mut cargo)
}
