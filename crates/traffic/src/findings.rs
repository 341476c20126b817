//! Findings of a compilation: the parts of a message that no table can be made
//! of, each with its field path.
//!
//! A compiler goes on after a finding, so that all of them are told at once. A
//! message with a finding gives no table: a part that is silently left out
//! would route requests in another way than Envoy does.

use std::fmt;

use trunkline_proto::acceptance::{Place, Problem};

/// A part of a message that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path of the field, as in YAML.
    pub path: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// All findings of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Returns the findings, in the order of the message.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.0
    }

    /// Adds a finding.
    pub(crate) fn add(&mut self, place: &Place<'_>, problem: Problem) {
        self.0.push(Finding {
            path: place.to_string(),
            problem,
        });
    }

    /// Adds a field that no rule here covers, if it is set.
    pub(crate) fn unsupported(&mut self, place: &Place<'_>, is_set: bool) {
        if is_set {
            self.add(place, Problem::Unsupported);
        }
    }

    /// Adds the findings of a part that was compiled by itself, below its place.
    pub(crate) fn extend(&mut self, place: &Place<'_>, inner: Self) {
        self.0.extend(inner.0.into_iter().map(|finding| Finding {
            path: format!("{place}.{}", finding.path),
            problem: finding.problem,
        }));
    }

    /// Returns the compiled thing.
    ///
    /// # Errors
    /// Something was found: all findings.
    pub(crate) fn finish<T>(self, compiled: T) -> Result<T, Self> {
        match self.0.is_empty() {
            true => Ok(compiled),
            false => Err(self),
        }
    }
}
