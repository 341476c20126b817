//! What core costs by itself: `crates/core/benches`.
//!
//! Times come from criterion's files, counts as the table that the benchmark
//! `memory` prints.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use super::times;
use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run};

/// Whose benchmarks these are.
const BENCH: [&str; 4] = ["bench", "--package", "trunkline-core", "--bench"];

/// Measures; whether all bars are kept.
pub(super) fn measure(workspace: &Workspace, quick: bool) -> Result<bool> {
    let (counts, kept) = counts(workspace)?;
    let times = times::table(&times(workspace, quick)?);
    let file = file(workspace);
    let folder = workspace.target().join("bench");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, text(&counts, &times)))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
    Ok(kept)
}

/// What was found last.
pub(super) fn found(workspace: &Workspace) -> Result<String> {
    let file = file(workspace);
    fs::read_to_string(&file).map_err(|_| {
        Failure::new("the engine was not measured yet").remedy("run `cargo xtask bench engine`")
    })
}

fn file(workspace: &Workspace) -> PathBuf {
    workspace.target().join("bench/engine.md")
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
fn times(workspace: &Workspace, quick: bool) -> Result<Vec<times::Time>> {
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

fn text(counts: &str, times: &str) -> String {
    format!(
        "### Counts\n\n\
         Bytes are those asked of the allocator, without its own rounding. Work is what \
         `Database::work` counts until every stream has accepted the change. \
         The same on every machine; a bar that is missed fails the command. \
         At smaller sizes, `crates/core/tests/cost.rs` keeps the counts in every test run.\n\
         {counts}\n\
         ### Times\n\n\
         The fastest of many samples, and how each compares with the first of its kind. A time is \
         never a reason to fail: another machine has others. What a ratio shows is whether a cost \
         grows with what should not matter. The bar for a change with named subscribers is 3 × \
         between a thousand and a million resources; where any of them may change, fewer are in a \
         cache the more there are, and that is what the ratio shows.\n\n\
         {times}"
    )
}
