//! The instructions of a match and of a pick, counted by valgrind.
//!
//! Unlike times they are the same on a busy machine. A thing is done some
//! thousand times, and twice as often; half of the difference is without the
//! making of tables.

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture};

const COUNT: u64 = 20_000;

/// Prints the instructions of everything that the example `steps` does, and
/// fails when a bar is missed.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    capture(workspace.program("valgrind").arg("--version")).map_err(|_| {
        Failure::new("valgrind is not installed").remedy("install it with the system's packages")
    })?;
    let package = "trunkline-traffic";
    let build = [
        "build",
        "--release",
        "--package",
        package,
        "--example",
        "steps",
    ];
    capture(&mut workspace.cargo(&build))?;
    let program = workspace.target().join("release/examples/steps");
    let names = capture(&mut workspace.program(&program))?;
    let mut missed = Vec::new();
    for name in names.lines() {
        let once = instructions(workspace, &program, name, COUNT)?;
        let twice = instructions(workspace, &program, name, 2 * COUNT)?;
        let each = (twice - once) / COUNT;
        let bar = bar(name);
        let verdict = if each <= bar { "" } else { ", which is missed" };
        println!("{name:<22}{each:>6} instructions (bar {bar}{verdict})");
        if each > bar {
            missed.push(name);
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "beyond the bar: {}",
            missed.join(", ")
        ))),
    }
}

/// The most instructions: about a quarter more than there are, so that a change
/// that makes one dearer is noticed. What they may take is 300 ns for a match,
/// twice that in a large table, and 60 ns for a pick; `cargo bench --package
/// trunkline-traffic` measures it on a quiet machine. Instructions alone do not
/// tell: a pick by weight has twice those of a heap, and no branch that is missed.
fn bar(name: &str) -> u64 {
    match name {
        name if name.starts_with("match") => 1_500,
        "pick-round-robin" | "pick-least-request" => 800,
        _ => 350,
    }
}

/// Runs the program under valgrind and returns the instructions that it counts.
fn instructions(
    workspace: &Workspace,
    program: &std::path::Path,
    name: &str,
    count: u64,
) -> Result<u64> {
    let mut valgrind = workspace.program("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([name, &count.to_string()]);
    let output = valgrind
        .output()
        .map_err(|error| Failure::new(format!("valgrind: {error}")))?;
    // `==1== Collected : 12345`
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once("Collected : "));
    let found = lines
        .next()
        .and_then(|(_, number)| number.trim().parse().ok());
    found.ok_or_else(|| Failure::new(format!("valgrind counts nothing for {name}:\n{text}")))
}
