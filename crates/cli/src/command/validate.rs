//! `trunkline validate`: files of resources, checked as `serve` checks them,
//! and judged by a real Envoy if that is wanted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use trunkline::checked::{Fault, Finding};
use trunkline_store::{Files, Loaded};

use super::sources::{INPUT, INPUT_NAME, Input, no_files};
use super::{print, run_request};
use crate::cli;
use crate::contents;
use crate::descriptors;
use crate::envoy::{self, Judgement};
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
    let (envoy, named_paths) = envoy_and_paths(args)?;
    let (input, paths): (Vec<_>, Vec<_>) = named_paths.iter().partition(|path| is_input(path));
    let mut files = Files::new(paths, contents::options(args.dangling));
    let loaded = match input.is_empty() {
        true => files.load(),
        false => {
            let text = Input::default().read()?;
            report.add_text(INPUT_NAME, &text);
            files.load_with_text(INPUT_NAME, &text)
        }
    };
    let found = loaded.errors.iter().map(|error| (Severity::Error, error));
    let warnings = loaded.warnings.iter();
    let warnings = warnings.map(|warning| (Severity::Warning, warning));
    let findings = report.list(in_order(&loaded, found.chain(warnings)));
    if !loaded.errors.is_empty() {
        let failure = Failure::wrong(count_mistakes(&loaded.errors));
        return Err(failure.with_findings(findings));
    }
    eprint!("{findings}");
    if loaded.files == 0 {
        let paths: Vec<String> = named_paths
            .iter()
            .map(|p| p.display().to_string())
            .collect();
        return Err(no_files(&paths));
    }

    let judge = match envoy {
        Some(envoy) => judge(&envoy, &files, &loaded, &report)?,
        None => String::new(),
    };
    let (resources, files) = (loaded.resources.len(), loaded.files);
    let verb = if resources == 1 { "is" } else { "are" };
    let (resources, files) = (count_of(resources, "resource"), count_of(files, "file"));
    print(format!("{resources} in {files} {verb} valid{judge}\n").as_bytes())
}

/// Sorts findings by the order of the files and their lines.
fn in_order<'a>(
    loaded: &Loaded,
    findings: impl Iterator<Item = (Severity, &'a Finding)>,
) -> Vec<(Severity, &'a Finding)> {
    let ranks: HashMap<&str, usize> = loaded.paths.iter().map(|path| &**path).zip(0..).collect();
    let rank = |finding: &Finding| ranks.get(&*finding.place.file).copied();
    let mut findings: Vec<_> = findings.collect();
    findings.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then_with(|| a.compare(b)));
    findings
}

/// Lets an Envoy judge the resources. Returns who it is, for the last line.
///
/// # Errors
/// Envoy rejects one, or does not run.
fn judge(envoy: &Path, files: &Files, loaded: &Loaded, report: &Report) -> Result<String> {
    let Judgement {
        version,
        rejected,
        is_cut,
        left_out,
    } = run_request(envoy::judge(envoy, &loaded.resources))?;
    if let Some(left_out) = left_out {
        eprintln!("note: Envoy did not judge {left_out}");
    }

    let findings = rejected
        .into_iter()
        .filter_map(|(type_url, resource, words)| {
            let (version, words) = (version.as_str().into(), words.into());
            files.finding(&type_url, &resource, Fault::Envoy { version, words })
        });
    let findings: Vec<Finding> = findings.collect();
    if findings.is_empty() {
        return Ok(match loaded.resources.len() {
            1 => format!(", and Envoy {version} takes it"),
            _ => format!(", and Envoy {version} takes them"),
        });
    }
    let more = match is_cut {
        true => ", and Envoy may find more",
        false => "",
    };
    let errors = findings.iter().map(|finding| (Severity::Error, finding));
    let failure = Failure::wrong(count_mistakes(&findings) + more);
    Err(failure.with_findings(report.list(in_order(loaded, errors))))
}

/// Returns the Envoy that is to judge, if one is, and the paths to check. A
/// value of `--envoy` that is no program is the first of the paths: the flag
/// stands alone then.
///
/// # Errors
/// There is no Envoy, or no path.
fn envoy_and_paths(args: &cli::Validate) -> Result<(Option<PathBuf>, Vec<PathBuf>)> {
    let mut paths = args.paths.clone();
    let Some(named) = &args.envoy else {
        return Ok((None, paths));
    };
    let mut named = named.as_deref();
    if let Some(path) = named.filter(|path| is_input(path) || is_no_program(path)) {
        paths.insert(0, path.to_owned());
        named = None;
    }
    if paths.is_empty() {
        return Err(Failure::usage(
            "which files? give their paths, such as trunkline validate --envoy clusters.yaml",
        ));
    }
    let missing = || {
        Failure::wrong(
            "no Envoy is installed in a directory of PATH; install one, or name one with \
             --envoy PROGRAM",
        )
    };
    let found = envoy::find(named)?.ok_or_else(missing)?;
    Ok((Some(found), paths))
}

/// Returns whether a path is that of a directory, or of a file that nobody may
/// execute.
fn is_no_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_dir() || metadata.permissions().mode() & 0o111 == 0)
}

/// Returns whether a path stands for standard input.
fn is_input(path: &Path) -> bool {
    path == Path::new(INPUT)
}
