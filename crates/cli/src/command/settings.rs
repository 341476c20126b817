//! `trunkline settings`: an example of a settings file.

use super::print;
use crate::cli;
use crate::failure::Result;
use crate::settings;

/// Prints the example. The command line requires the flag for it, so there is
/// nothing else to do.
pub(super) fn run(args: &cli::Settings) -> Result<()> {
    match args.print_defaults {
        true => print(settings::example_file().as_bytes()),
        false => Ok(()),
    }
}
