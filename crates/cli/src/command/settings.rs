//! `trunkline settings`: an example of a settings file, and the bounds of a
//! server.

use super::print;
use crate::cli;
use crate::failure::Result;
use crate::{bounds, settings};

/// Prints what is asked for. The command line requires one of both flags.
pub(super) fn run(args: &cli::Settings) -> Result<()> {
    let text = match args.print_bounds {
        true => bounds::to_markdown_table(&settings::Settings::new()),
        false => settings::example_file(),
    };
    print(text.as_bytes())
}
