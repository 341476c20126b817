//! `trunkline validate`: files of resources, checked as `serve` checks them.

use std::collections::HashMap;
use std::path::Path;

use trunkline::checked::Finding;
use trunkline_store::{Files, Loaded};

use super::print;
use super::sources::{INPUT, INPUT_NAME, Input, no_files};
use crate::cli;
use crate::contents;
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::output::count_of;
use crate::report::{Report, Severity, count_mistakes};

/// Checks files. Warnings and mistakes go to standard error, in the order of the
/// files and their lines; without a mistake, the number of resources is printed.
///
/// # Errors
/// There is a mistake.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let report = Report::new();
    let (input, paths): (Vec<_>, Vec<_>) = args.paths.iter().partition(|path| is_input(path));
    let mut files = Files::new(paths, contents::options(args.dangling));
    let loaded = match input.is_empty() {
        true => files.load(),
        false => {
            let text = Input::default().read()?;
            report.add_text(INPUT_NAME, &text);
            files.load_with_text(INPUT_NAME, &text)
        }
    };
    let findings = report.list(in_order(&loaded));
    if !loaded.errors.is_empty() {
        let failure = Failure::wrong(count_mistakes(&loaded.errors));
        return Err(failure.with_findings(findings));
    }
    eprint!("{findings}");

    let (resources, files) = (loaded.resources.len(), loaded.files);
    if files == 0 {
        let paths: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
        return Err(no_files(&paths));
    }
    let verb = if resources == 1 { "is" } else { "are" };
    let (resources, files) = (count_of(resources, "resource"), count_of(files, "file"));
    print(format!("{resources} in {files} {verb} valid\n").as_bytes())
}

/// Returns all findings, in the order of the files and their lines.
fn in_order(loaded: &Loaded) -> Vec<(Severity, &Finding)> {
    let ranks: HashMap<&str, usize> = loaded.paths.iter().map(|path| &**path).zip(0..).collect();
    let rank = |finding: &Finding| ranks.get(&*finding.place.file).copied();
    let errors = loaded.errors.iter().map(|error| (Severity::Error, error));
    let warnings = loaded.warnings.iter();
    let warnings = warnings.map(|warning| (Severity::Warning, warning));
    let mut findings: Vec<_> = errors.chain(warnings).collect();
    findings.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then_with(|| a.compare(b)));
    findings
}

/// Returns whether a path stands for standard input.
fn is_input(path: &Path) -> bool {
    path == Path::new(INPUT)
}
