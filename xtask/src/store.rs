//! `cargo xtask store`: what it costs to keep contents, beside a file that is
//! synced for each record.

use lexopt::Arg;

use crate::failure::Result;
use crate::workspace::{Workspace, run};

/// Measures, in the directory of the command line or in that for temporary
/// files.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let example = [
        "run",
        "--release",
        "--package",
        "trunkline-store",
        "--example",
        "speed",
    ];
    let mut cargo = workspace.cargo(&example);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("in") => cargo.args(["--", "in"]).arg(args.value()?),
            other => return Err(other.unexpected().into()),
        };
    }
    run(&mut cargo)
}
