//! `trunkline validate`: files of resources, checked as `serve` checks them,
//! and judged by a real Envoy if that is wanted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use trunkline::checked::{Fault, Finding};
use trunkline_store::{Files, Loaded};

use super::sources::{INPUT, INPUT_NAME, Input, no_files};
use super::{print, run_request};
use crate::cli;
use crate::descriptors;
use crate::envoy::{self, Judgement};
use crate::failure::{Failure, Result};
use crate::output::count_of;
use crate::report::{Report, Severity, count_mistakes};

/// Checks files. Warnings and mistakes go to standard error, in the order of
/// the files and their lines. Without a mistake, prints the number of
/// resources.
///
/// # Errors
/// A file has a mistake, or Envoy rejects a resource.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let report = Report::new();
    let (envoy, named_paths) = envoy_and_paths(args)?;
    let (input, paths): (Vec<_>, Vec<_>) = named_paths.iter().partition(|path| is_input(path));
    let mut files = Files::new(paths, crate::contents::options(args.dangling));

    let contents = match input.is_empty() {
        true => files.load(),
        false => load_with_input(&mut files, &report)?,
    };

    let errors = contents.errors.iter().map(|error| (Severity::Error, error));
    let warnings = contents.warnings.iter();
    let warnings = warnings.map(|warning| (Severity::Warning, warning));
    let findings = report.list(sort_findings(&contents, errors.chain(warnings)));

    if !contents.errors.is_empty() {
        let failure = Failure::wrong(count_mistakes(&contents.errors));
        return Err(failure.with_findings(findings));
    }

    eprint!("{findings}");
    if contents.files == 0 {
        let paths: Vec<String> = named_paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(no_files(&paths));
    }

    let envoy_note = match envoy {
        Some(envoy) => ask_envoy(&envoy, &files, &contents, &report)?,
        None => String::new(),
    };
    let verb = match contents.resources.len() {
        1 => "is",
        _ => "are",
    };

    let resources = count_of(contents.resources.len(), "resource");
    let files = count_of(contents.files, "file");
    print(format!("{resources} in {files} {verb} valid{envoy_note}\n").as_bytes())
}

/// Loads the files, and standard input as one more of them.
fn load_with_input(files: &mut Files, report: &Report) -> Result<Loaded> {
    let text = Input::default().read()?;
    report.add_text(INPUT_NAME, &text);
    Ok(files.load_with_text(INPUT_NAME, &text))
}

/// Returns the findings in the order of the files and their lines.
fn sort_findings<'a>(
    contents: &Loaded,
    findings: impl Iterator<Item = (Severity, &'a Finding)>,
) -> Vec<(Severity, &'a Finding)> {
    let ranks: HashMap<&str, usize> = contents.paths.iter().map(|path| &**path).zip(0..).collect();
    let rank = |finding: &Finding| ranks.get(&*finding.place.file).copied();
    let mut findings: Vec<_> = findings.collect();
    findings.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then_with(|| a.compare(b)));
    findings
}

/// Has an Envoy check the resources. Returns the note about the Envoy for the
/// last line.
///
/// # Errors
/// Envoy rejects a resource, or cannot be run.
fn ask_envoy(envoy: &Path, files: &Files, contents: &Loaded, report: &Report) -> Result<String> {
    let Judgement {
        version,
        rejected,
        is_cut,
        left_out,
    } = run_request(envoy::judge(envoy, &contents.resources))?;
    if let Some(omission) = left_out {
        eprintln!("note: Envoy did not judge {omission}");
    }

    let findings = rejected
        .into_iter()
        .filter_map(|(type_url, resource, words)| {
            let (version, words) = (version.as_str().into(), words.into());
            files.finding(&type_url, &resource, Fault::Envoy { version, words })
        });
    let findings: Vec<Finding> = findings.collect();
    if findings.is_empty() {
        return Ok(match contents.resources.len() {
            1 => format!(", and Envoy {version} takes it"),
            _ => format!(", and Envoy {version} takes them"),
        });
    }

    let note = match is_cut {
        true => ", and Envoy may find more",
        false => "",
    };
    let errors = findings.iter().map(|finding| (Severity::Error, finding));
    let failure = Failure::wrong(count_mistakes(&findings) + note);
    Err(failure.with_findings(report.list(sort_findings(contents, errors))))
}

/// Returns the Envoy that checks the resources, if the flag is given, and the
/// paths to check. If the value of `--envoy` is not a program, the value is the
/// first of the paths, and the Envoy is that of PATH.
///
/// # Errors
/// No Envoy is installed, or no path is given.
fn envoy_and_paths(args: &cli::Validate) -> Result<(Option<PathBuf>, Vec<PathBuf>)> {
    let mut paths = args.paths.clone();
    let Some(named_program) = &args.envoy else {
        return Ok((None, paths));
    };
    let mut named_program = named_program.as_deref();
    if let Some(path) = named_program.filter(|path| is_input(path) || is_no_program(path)) {
        paths.insert(0, path.to_owned());
        named_program = None;
    }
    if paths.is_empty() {
        return Err(Failure::usage(
            "which files? give their paths, such as trunkline validate --envoy clusters.yaml",
        ));
    }
    let no_envoy = || {
        Failure::wrong(
            "no Envoy is installed in a directory of PATH; install one, or name one with \
             --envoy PROGRAM",
        )
    };
    let program = envoy::find_envoy(named_program)?.ok_or_else(no_envoy)?;
    Ok((Some(program), paths))
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
