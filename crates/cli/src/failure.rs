//! Failures of commands: their messages and exit codes.

use std::fmt;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    /// The findings that it is about, as they are shown before the message.
    findings: String,
    message: String,
}

/// Whose fault it is; each has an exit code, which is a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The input is wrong, or a check failed: 1.
    Wrong,
    /// The command line or the settings make no sense: 2, as clap has it.
    Usage,
    /// The server cannot be reached: 3.
    Unreachable,
    /// Clients have not answered in time: 3.
    TimedOut,
}

/// The meaning of the exit codes, for `--help`.
pub(crate) const CODES: &str = "Exit codes: 0 done; 1 what was given is wrong, or a check failed; \
     2 the command line or the settings make no sense; 3 the server cannot be reached, or \
     clients have not answered in time (--wait). Of `diff`, and of `status --envoy-admin`: 1 there is a difference; 2 what was given is wrong.";

/// The result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Makes the failure of wrong input, or of a check.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self::new(Kind::Wrong, message)
    }

    /// Makes the failure of a command line or settings that make no sense.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Makes the failure of a server that cannot be reached.
    pub(crate) fn unreachable(message: impl fmt::Display) -> Self {
        Self::new(Kind::Unreachable, message)
    }

    /// Makes the failure of clients that have not answered in time.
    pub(crate) fn timed_out(message: impl fmt::Display) -> Self {
        Self::new(Kind::TimedOut, message)
    }

    /// Returns whether the server could not be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// Returns a failure whose exit code is not 1, for a command that exits
    /// with 1 if it found a difference.
    pub(crate) fn into_comparison_failure(self) -> Self {
        match self.kind {
            Kind::Wrong => Self {
                kind: Kind::Usage,
                ..self
            },
            Kind::Usage | Kind::Unreachable | Kind::TimedOut => self,
        }
    }

    /// Adds words to the message.
    pub(crate) fn with_words(self, words: impl fmt::Display) -> Self {
        Self::new(self.kind, format!("{self}{words}"))
    }

    /// Makes a failure without findings.
    fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            findings: String::new(),
            message: message.to_string(),
        }
    }

    /// Adds the findings that the failure is about, as they are shown: each line
    /// ends in a newline.
    pub(crate) fn with_findings(self, findings: String) -> Self {
        Self { findings, ..self }
    }

    /// Returns the findings that the failure is about, as they are shown.
    pub(crate) fn findings(&self) -> &str {
        &self.findings
    }

    /// Returns the exit code of the kind of failure.
    pub(crate) fn code(&self) -> ExitCode {
        match self.kind {
            Kind::Wrong => 1.into(),
            Kind::Usage => 2.into(),
            Kind::Unreachable | Kind::TimedOut => 3.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
