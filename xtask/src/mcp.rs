//! `cargo xtask mcp`: what a source of the Mesh Configuration Protocol costs with
//! 100 000 resources in one collection.

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// Measures, and prints a table.
pub(crate) fn command(workspace: &Workspace) -> Result<()> {
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "trunkline-bench",
        "--example",
        "mcp",
    ];
    run(&mut workspace.cargo(&example))
}
