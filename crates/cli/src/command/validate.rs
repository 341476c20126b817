//! `trunkline validate`: files of resources, checked as `serve` checks them,
//! and judged by a real Envoy if that is wanted.

use std::path::{Path, PathBuf};

use trunkline::checked::{Fault, Finding};
use trunkline_store::{Files, Loaded};

use super::sources::{INPUT, INPUT_NAME, Input};
use super::{print, run_request};
use crate::cli;
use crate::contents;
use crate::envoy::{self, Judgement};
use crate::failure::{Failure, Result};

/// Checks files. Warnings and mistakes go to standard error; without a mistake,
/// the number of resources is printed.
///
/// # Errors
/// There is a mistake.
pub(super) fn run(args: &cli::Validate) -> Result<()> {
    let (envoy, paths) = envoy_and_paths(args)?;
    let (input, paths): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_input(path));
    let mut files = Files::new(paths, contents::options(args.dangling));
    let loaded = match input.is_empty() {
        true => files.load(),
        false => files.load_with_text(INPUT_NAME, &Input::default().read()?),
    };
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    fail_if_any(&loaded.errors, "")?;

    let judge = match envoy {
        Some(envoy) => judge(&envoy, &files, &loaded)?,
        None => String::new(),
    };
    let (resources, files) = (loaded.resources.len(), loaded.files);
    print(format!("{resources} resources in {files} files are valid{judge}\n").as_bytes())
}

/// Prints mistakes.
///
/// # Errors
/// There is one. The failure has their number, and then `more`.
fn fail_if_any(errors: &[Finding], more: &str) -> Result<()> {
    for error in errors {
        eprintln!("{error}");
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(Failure::wrong(format!("1 mistake{more}"))),
        count => Err(Failure::wrong(format!("{count} mistakes{more}"))),
    }
}

/// Lets an Envoy judge the resources. Returns who it is, for the last line.
///
/// # Errors
/// Envoy rejects one, or does not run.
fn judge(envoy: &Path, files: &Files, loaded: &Loaded) -> Result<String> {
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
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by_key(|finding| {
        let place = &finding.place;
        (place.file.clone(), place.line, place.column)
    });
    let more = match is_cut {
        true => ", and Envoy may find more",
        false => "",
    };
    fail_if_any(&findings, more)?;
    Ok(format!(", and Envoy {version} takes them"))
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
