//! `trunkline completions`: completions of the command line for a shell.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::print;
use crate::cli::Cli;
use crate::failure::Result;

/// Prints the completions.
pub(super) fn run(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "trunkline", &mut script);
    print(&script)
}
