//! The table of rules and what shows that they hold.

use lexopt::Arg;

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// Writes `docs/rules.md`, or says whether it is current.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let mut check = false;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("check") => check = true,
            other => return Err(other.unexpected().into()),
        }
    }
    table(workspace, check)
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
