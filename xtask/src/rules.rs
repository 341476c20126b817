//! The table of rules and what shows that they hold.

use crate::command;
use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// Writes `docs/rules.md`, or says whether it is current.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    table(workspace, command::check_flag(args)?)
}

/// Whether every rule that should be shown by a test is, and the page says so.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    table(workspace, true)
}

fn table(workspace: &Workspace, check: bool) -> Result<()> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--package", "testkit", "--bin", "rules"]);
    if check {
        cargo.args(["--", "--check"]);
    }
    run(&mut cargo)
}
