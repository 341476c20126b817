//! What is wrong with a scenario, or with the machine that it shows.

use std::fmt;

use super::Script;

/// How many lines of the exchange are shown before a failure.
const SHOWN: usize = 12;

/// Something wrong at one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, in one or more lines.
    pub what: String,
}

impl Fault {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { line, what }
    }
}

/// A failed scenario, for people.
#[derive(Clone, Debug)]
pub struct Report {
    file: String,
    title: String,
    rules: String,
    fault: Fault,
    transcript: Vec<String>,
}

impl Report {
    pub(super) fn new(file: &str, script: &Script, fault: Fault, transcript: Vec<String>) -> Self {
        Self {
            file: file.to_owned(),
            title: script.title.clone(),
            rules: script.rules.join(" "),
            fault,
            transcript,
        }
    }

    pub(super) fn unreadable(file: &str, fault: Fault) -> Self {
        Self {
            file: file.to_owned(),
            title: "cannot be read".to_owned(),
            rules: String::new(),
            fault,
            transcript: Vec::new(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, fault, .. } = self;
        writeln!(f, "{file}:{}: {} [{}]", fault.line, self.title, self.rules)?;
        for line in fault.what.lines() {
            writeln!(f, "    {line}")?;
        }
        let skipped = self.transcript.len().saturating_sub(SHOWN);
        if !self.transcript.is_empty() {
            writeln!(f, "  so far:")?;
        }
        for line in &self.transcript[skipped..] {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}
