//! `trunkline validate`: files of resources, checked as `serve` checks them.

use trunkline_store::Files;

use super::print;
use crate::cli;
use crate::contents;
use crate::failure::{Failure, Result};

/// Checks files. Warnings and mistakes go to standard error; without a mistake,
/// the number of resources is printed.
///
/// # Errors
/// There is a mistake.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    let mut files = Files::new(&args.paths, contents::options(args.dangling));
    let loaded = files.load();
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    for error in &loaded.errors {
        eprintln!("{error}");
    }

    match loaded.errors.len() {
        0 => {}
        1 => return Err(Failure::wrong("1 mistake")),
        count => return Err(Failure::wrong(format!("{count} mistakes"))),
    }
    let (resources, files) = (loaded.resources.len(), loaded.files);
    print(format!("{resources} resources in {files} files are valid\n").as_bytes())
}
