//! Licences, sources and known faults of every dependency, by `deny.toml`.

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, run};

/// Runs all of cargo-deny's checks, or those that are named.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    capture(&mut workspace.cargo(&["deny", "--version"])).map_err(|_| {
        Failure::new("cargo-deny is not installed").remedy("cargo install --locked cargo-deny")
    })?;
    let mut deny = workspace.cargo(&["deny", "--workspace", "check"]);
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Value(check) => deny.arg(check),
            other => return Err(other.unexpected().into()),
        };
    }
    run(&mut deny)
}
