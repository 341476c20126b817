//! `trunkline validate`: files of resources, checked as `serve` checks them.

use std::path::Path;

use trunkline_store::Files;

use super::print;
use super::sources::{INPUT, INPUT_NAME, Input, no_files};
use crate::cli;
use crate::contents;
use crate::descriptors;
use crate::failure::{Failure, Result};

/// Checks files. Warnings and mistakes go to standard error; without a mistake,
/// the number of resources is printed.
///
/// # Errors
/// There is a mistake.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let (input, paths): (Vec<_>, Vec<_>) = args.paths.iter().partition(|path| is_input(path));
    let mut files = Files::new(paths, contents::options(args.dangling));
    let loaded = match input.is_empty() {
        true => files.load(),
        false => files.load_with_text(INPUT_NAME, &Input::default().read()?),
    };
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
    if files == 0 {
        let paths: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
        return Err(no_files(&paths));
    }
    print(format!("{resources} resources in {files} files are valid\n").as_bytes())
}

/// Returns whether a path stands for standard input.
fn is_input(path: &Path) -> bool {
    path == Path::new(INPUT)
}
