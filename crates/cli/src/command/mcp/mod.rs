//! `trunkline mcp`: the Mesh Configuration Protocol.

mod source;
mod status;
mod watch;

use crate::cli::{Global, Mcp};
use crate::failure::Result;

/// Runs the command below `mcp`.
pub(super) fn run(args: Mcp, global: Global) -> Result<()> {
    match args {
        Mcp::Source(args) => source::run(&args, global),
        Mcp::Watch(args) => watch::run(&args),
        Mcp::Status(args) => status::run(&args),
    }
}
