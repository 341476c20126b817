//! Runs the benchmarks of core and writes `docs/benchmarks.md` from what they
//! found.
//!
//! Times come from criterion's files, counts as the table that the benchmark
//! `memory` prints. A bar that is missed fails the command, after the page is
//! written.

mod machine;
mod times;

use std::fs;
use std::process::Stdio;

use lexopt::Arg;

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run};

const PAGE: &str = "docs/benchmarks.md";

/// Whose benchmarks these are.
const BENCH: [&str; 4] = ["bench", "--package", "trunkline-core", "--bench"];

/// Runs everything and writes the page.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    let quick = parse(args)?;
    let (counts, kept) = counts(workspace)?;
    let times = times::table(&measure(workspace, quick)?);
    let text = page(&machine::describe(workspace)?, quick, &counts, &times);
    fs::write(workspace.root().join(PAGE), text)
        .map_err(|error| Failure::new(format!("cannot write {PAGE}: {error}")))?;
    println!("written to {PAGE}");
    match kept {
        true => Ok(()),
        false => Err(Failure::new("a bar is missed; see the table above")),
    }
}

fn parse(mut args: lexopt::Parser) -> Result<bool> {
    let mut quick = false;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("quick") => quick = true,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(quick)
}

/// What the benchmark `memory` prints, and whether all bars are kept.
fn counts(workspace: &Workspace) -> Result<(String, bool)> {
    let mut bench = workspace.cargo(&BENCH);
    let output = bench
        .arg("memory")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("cargo did not start: {error}")))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}");
    if printed.trim().is_empty() {
        return Err(Failure::new("the benchmark `memory` printed nothing"));
    }
    Ok((printed, output.status.success()))
}

/// Runs the benchmark `engine` and reads what criterion wrote of it.
fn measure(workspace: &Workspace, quick: bool) -> Result<Vec<times::Time>> {
    let written = workspace.target().join("criterion");
    // What an earlier run measured is not a result of this one.
    if written.exists() {
        fs::remove_dir_all(&written).map_err(|error| {
            Failure::new(format!("cannot empty {}: {error}", written.display()))
        })?;
    }
    let mut bench = workspace.cargo(&BENCH);
    bench.args(["engine", "--", "--noplot"]);
    if quick {
        bench.arg("--quick");
    }
    run(bench.env("CRITERION_HOME", &written))?;
    times::read(&written)
}

fn page(machine: &str, quick: bool, counts: &str, times: &str) -> String {
    let option = if quick { " --quick" } else { "" };
    format!(
        "# Benchmarks\n\n\
         What the engine costs: `crates/core/benches`. \
         This page is written by the command below.\n\n\
         ```sh\ncargo xtask bench{option}\n```\n\n\
         Machine: {machine}.\n\n\
         ## Counts\n\n\
         Bytes are those asked of the allocator, without its own rounding. Work is what \
         `Database::work` counts until every stream has accepted the change. \
         The same on every machine; a bar that is missed fails the command. \
         At smaller sizes, `crates/core/tests/cost.rs` keeps the counts in every test run.\n\
         {counts}\n\
         ## Times\n\n\
         The fastest of many samples, and how each compares with the first of its kind. A time is never a reason to \
         fail: another machine has others. What a ratio shows is whether a cost grows with what \
         should not matter. The bar for a change with named subscribers is 3 × between a thousand \
         and a million resources; where any of them may change, fewer are in a cache the more \
         there are, and that is what the ratio shows.\n\n\
         {times}"
    )
}
