//! Breaks a crate at random places and counts how often a test fails.
//!
//! All mutants are listed, a sample is drawn from a seed, and exactly those
//! are run by cargo-mutants. Some mutants do not compile and say nothing, so
//! the sample grows, in the order that the seed gives, until it holds as many
//! viable ones as were asked for. The result is written to a page of the crate.

mod names;
mod sample;
mod summary;

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use lexopt::{Arg, ValueExt};

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, status};
use summary::Summary;

/// A crate that is broken.
struct Subject {
    name: &'static str,
    package: &'static str,
    /// Whose tests must notice.
    tested: &'static [&'static str],
    /// The tests that are run first. They take seconds and notice most mutants;
    /// all tests are run on those that they miss. Empty: all at once.
    quick: &'static [&'static str],
    page: &'static str,
}

/// The first one is broken unless `--of` says another.
const SUBJECTS: &[Subject] = &[
    Subject {
        name: "core",
        package: "trunkline-core",
        tested: &["trunkline-core", "testkit"],
        quick: &[
            "--lib",
            "--test",
            "scenarios",
            "--test",
            "names_properties",
            "--test",
            "params_properties",
        ],
        page: "docs/mutants.md",
    },
    Subject {
        name: "traffic",
        package: "trunkline-traffic",
        tested: &["trunkline-traffic"],
        quick: &["--lib"],
        page: "docs/mutants-traffic.md",
    },
];

/// What is asked for.
struct Options {
    subject: &'static Subject,
    viable: usize,
    seed: u64,
    /// How many mutants are tried at the same time.
    jobs: usize,
    /// Whether this tree itself is broken, and not a copy of it, which would be
    /// built from nothing.
    in_place: bool,
    /// Globs of the files to break; empty means all of the crate.
    files: Vec<String>,
}

/// Draws a sample, runs it and writes the page.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    let options = parse(args)?;
    capture(&mut workspace.cargo(&["mutants", "--version"])).map_err(|_| {
        Failure::new("cargo-mutants is not installed")
            .remedy("cargo install --locked cargo-mutants")
    })?;
    let mut list = mutants(workspace, &options);
    let all = names::from_json(&capture(list.args(["--list", "--json"]))?)?;
    let shuffled = sample::shuffled(all, options.seed);
    let summary = run_until_enough(workspace, &options, &shuffled)?;
    let path = workspace.root().join(options.subject.page);
    let remarks = fs::read_to_string(&path)
        .ok()
        .and_then(|page| summary::remarks(&page));
    let Subject { package, page, .. } = options.subject;
    let text = summary.page(
        package,
        &options.command_line(),
        shuffled.len(),
        remarks.as_deref(),
    );
    fs::write(&path, text)
        .map_err(|error| Failure::new(format!("cannot write {page}: {error}")))?;
    println!("{}\nwritten to {page}", summary.line());
    Ok(())
}

fn parse(mut args: lexopt::Parser) -> Result<Options> {
    let mut options = Options {
        subject: &SUBJECTS[0],
        viable: 150,
        seed: 1,
        jobs: 1,
        in_place: false,
        files: Vec::new(),
    };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("of") => {
                let name = args.value()?.string()?;
                let mut subjects = SUBJECTS.iter();
                options.subject = subjects
                    .find(|subject| subject.name == name)
                    .ok_or_else(|| Failure::new(format!("there are no mutants of {name:?}")))?;
            }
            Arg::Long("sample") => options.viable = args.value()?.parse()?,
            Arg::Long("seed") => options.seed = args.value()?.parse()?,
            Arg::Long("jobs") => options.jobs = args.value()?.parse()?,
            Arg::Long("in-place") => options.in_place = true,
            Arg::Short('f') | Arg::Long("file") => options.files.push(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

impl Options {
    /// The command that repeats this run.
    fn command_line(&self) -> String {
        let Self {
            subject,
            viable,
            seed,
            files,
            jobs: _,
            in_place: _,
        } = self;
        let mut line = format!("cargo xtask mutants --sample {viable} --seed {seed}");
        if subject.name != SUBJECTS[0].name {
            line.push_str(&format!(" --of {}", subject.name));
        }
        for file in files {
            line.push_str(&format!(" -f '{file}'"));
        }
        line
    }
}

/// cargo-mutants over the files that are asked for.
fn mutants(workspace: &Workspace, options: &Options) -> Command {
    let mut cargo = workspace.cargo(&["mutants", "--package", options.subject.package]);
    for file in &options.files {
        cargo.args(["--file", file]);
    }
    cargo
}

/// Runs mutants from the front until enough of them were viable.
fn run_until_enough(
    workspace: &Workspace,
    options: &Options,
    shuffled: &[String],
) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut done = 0;
    while summary.viable() < options.viable && done < shuffled.len() {
        let missing = options.viable - summary.viable();
        let (before, rest) = shuffled.split_at(done);
        let (round, after) = rest.split_at(missing.min(rest.len()));
        let others = [before, after].concat();
        summary.add(run_round(workspace, options, round, others)?);
        done += round.len();
    }
    Ok(summary)
}

/// Runs one round of mutants: the quick tests on all of it, then every test on
/// what those missed.
fn run_round(
    workspace: &Workspace,
    options: &Options,
    round: &[String],
    mut others: Vec<String>,
) -> Result<Summary> {
    let mut summary = run_tests(workspace, options, round, &others, options.subject.quick)?;
    if options.subject.quick.is_empty() {
        return Ok(summary);
    }
    let missed = std::mem::take(&mut summary.missed);
    if !missed.is_empty() {
        let noticed = round.iter().filter(|name| !missed.contains(name));
        others.extend(noticed.cloned());
        summary.add(run_tests(workspace, options, &missed, &others, &[])?);
    }
    Ok(summary)
}

/// Runs some tests on exactly these mutants and none of the others.
///
/// cargo-mutants chooses by expressions that some kinds of mutants escape. What
/// holds for all is that it can go on from an earlier run and leave out what
/// was caught there, so the others are laid before it as such a run.
fn run_tests(
    workspace: &Workspace,
    options: &Options,
    round: &[String],
    others: &[String],
    tests: &[&str],
) -> Result<Summary> {
    let parent = workspace.target().join("mutants");
    let folder = parent.join("mutants.out");
    lay_out(&folder, others)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", folder.display())))?;
    let mut cargo = mutants(workspace, options);
    match options.in_place {
        true => cargo.arg("--in-place"),
        false => cargo.args(["--jobs", &options.jobs.to_string()]),
    };
    cargo
        .args(["--iterate", "--no-shuffle", "--output"])
        .arg(&parent);
    for package in options.subject.tested {
        cargo.args(["--test-package", package]);
    }
    // An argument of the tests alone would not keep the others from being built.
    for test in tests {
        cargo.args(["--cargo-arg", test]);
    }
    match status(&mut cargo)?.code() {
        // All caught; some missed; some timed out: each a finished run.
        Some(0 | 2 | 3) => {}
        Some(4) => {
            return Err(Failure::new("the tests fail before anything is broken")
                .remedy("`cargo xtask test --only test` first"));
        }
        other => return Err(Failure::new(format!("cargo mutants ended with {other:?}"))),
    }
    let summary = read(&folder)?;
    if !summary.holds_exactly(round) {
        return Err(
            Failure::new("cargo mutants did not run the mutants of the sample")
                .remedy("use cargo-mutants 27"),
        );
    }
    Ok(summary)
}

/// Makes a folder that looks like an earlier run which caught these mutants.
fn lay_out(folder: &Path, caught: &[String]) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join("caught.txt"), caught.join("\n"))
}

fn read(folder: &Path) -> Result<Summary> {
    let lines = |name: &str| -> Result<Vec<String>> {
        let path = folder.join(name);
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Summary {
        caught: lines("caught.txt")?,
        missed: lines("missed.txt")?,
        timeout: lines("timeout.txt")?,
        unviable: lines("unviable.txt")?,
    })
}
