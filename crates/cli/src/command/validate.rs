//! `trunkline validate`: files of resources, checked as `serve` checks them.

use trunkline_store::Files;

use super::print;
use crate::cli;
use crate::contents;
use crate::failure::{Failure, Result};

/// Checks files; prints warnings and mistakes, and fails if there is a mistake.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    let mut files = Files::new(&args.paths, contents::options(args.dangling));
    let loaded = files.load();
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    if !loaded.errors.is_empty() {
        for error in &loaded.errors {
            eprintln!("{error}");
        }
        let count = loaded.errors.len();
        return Err(Failure::wrong(format!(
            "{count} mistake{}",
            if count == 1 { "" } else { "s" }
        )));
    }
    let (resources, files) = (loaded.resources.len(), loaded.files);
    print(format!("{resources} resources in {files} files are valid\n").as_bytes())
}
