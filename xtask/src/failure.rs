//! Why a command did not succeed, in words for the person who ran it.

use std::fmt;

/// What went wrong and, where we know it, what to do next.
#[derive(Debug)]
pub(crate) enum Failure {
    /// To be shown.
    Because {
        what: String,
        remedy: Option<String>,
    },
    /// Everything there is to say has been shown.
    Told,
}

/// The result of a command or of a part of one.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Because {
            what: what.into(),
            remedy: None,
        }
    }

    /// Adds what the person can do about it.
    pub(crate) fn remedy(mut self, text: impl Into<String>) -> Self {
        if let Self::Because { remedy, .. } = &mut self {
            *remedy = Some(text.into());
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Because { what, remedy: None } => f.write_str(what),
            Self::Because {
                what,
                remedy: Some(remedy),
            } => write!(f, "{what}\n  what to do: {remedy}"),
            Self::Told => f.write_str("see above"),
        }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::new(error.to_string()).remedy("`cargo xtask --help` lists the commands")
    }
}
