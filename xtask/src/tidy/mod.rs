//! Habits of the tree that no compiler checks.
//!
//! Each check is a function from a file's text to findings. They read text,
//! not syntax: quick, and wrong only where someone tries.

mod guide;
mod manifest;
mod markdown;
mod paths;
mod source;

use std::fmt;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;

/// Something that a check has to say about a line.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Counted from 1; 0 when the file as a whole is meant.
    line: usize,
    what: String,
}

impl Finding {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Checks every file of the tree and shows every finding.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let mut broken = 0;
    for path in &files {
        let text = workspace.read(path)?;
        for finding in check(path, &text, &files) {
            println!("{path}{finding}");
            broken += 1;
        }
    }
    for finding in guide::check(workspace, &files)? {
        println!("ARCHITECTURE.md{finding}");
        broken += 1;
    }
    if broken > 0 {
        return Err(Failure::new(format!("{broken} habits broken")));
    }
    println!("{} files are tidy", files.len());
    Ok(())
}

fn check(path: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !matches!(path, "LICENSE" | "Cargo.lock") {
        findings.extend(paths::check(text));
    }
    if path.ends_with(".rs") {
        findings.extend(source::check(path, text));
    } else if path.ends_with("Cargo.toml") {
        findings.extend(manifest::check(text));
    } else if path.ends_with(".md") {
        findings.extend(markdown::check(path, text, files));
    }
    findings
}

/// The lines of a text with their numbers, from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}
