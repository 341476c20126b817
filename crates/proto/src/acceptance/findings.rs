//! The findings of one body while it is checked.

use super::place::Place;
use super::policy::{Policy, Unsupported};
use super::problem::Problem;
use super::rejection::{Reason, Rejection};
use super::report::{IgnoreReason, Ignored, MAX_FINDINGS, Report};

/// The findings of one body: reasons to reject it, and what is not used of it.
/// A check goes on after a reason, so that all of them are told (C26).
#[derive(Debug)]
pub struct Findings<'p> {
    policy: &'p Policy,
    reasons: Vec<Reason>,
    omitted_reasons: usize,
    report: Report,
}

impl<'p> Findings<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            reasons: Vec::new(),
            omitted_reasons: 0,
            report: Report::default(),
        }
    }

    /// The policy by which the body is checked.
    #[must_use]
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// Rejects the body for something at a place.
    pub fn reject(&mut self, place: &Place<'_>, problem: Problem) {
        match self.reasons.len() < MAX_FINDINGS {
            true => self.reasons.push(Reason {
                path: path_of(place),
                problem,
            }),
            false => self.omitted_reasons += 1,
        }
    }

    /// Reports a part that a rule says to ignore.
    pub fn ignore(&mut self, place: &Place<'_>, reason: IgnoreReason) {
        match self.report.ignored.len() < MAX_FINDINGS {
            true => self.report.ignored.push(Ignored {
                path: path_of(place),
                why: reason,
            }),
            false => self.report.omitted += 1,
        }
    }

    /// Reports a field that is set and not supported, and rejects the body for
    /// it if the policy is strict (C57).
    pub fn unsupported(&mut self, place: &Place<'_>) {
        if self.policy.unsupported == Unsupported::Strict {
            self.reject(place, Problem::Unsupported);
        }
        match self.report.unsupported.len() < MAX_FINDINGS {
            true => self.report.unsupported.push(path_of(place)),
            false => self.report.omitted += 1,
        }
    }

    /// Rejects the body for a rule of the descriptors, unless its field has a
    /// reason already.
    pub(super) fn reject_once(&mut self, path: String, problem: Problem) {
        if self.reasons.iter().any(|reason| reason.path == path) {
            return;
        }
        match self.reasons.len() < MAX_FINDINGS {
            true => self.reasons.push(Reason { path, problem }),
            false => self.omitted_reasons += 1,
        }
    }

    /// Returns the report, or the rejection if there is a reason.
    pub(super) fn finish(self, name: Option<&str>, type_url: &str) -> Result<Report, Rejection> {
        match self.reasons.is_empty() {
            true => Ok(self.report),
            false => Err(Rejection {
                name: name.map(str::to_owned),
                type_url: type_url.to_owned(),
                reasons: self.reasons,
                omitted: self.omitted_reasons,
            }),
        }
    }
}

/// The most bytes of a path.
const MAX_PATH: usize = 512;

/// Returns the path of a place; of a very long one, the end.
fn path_of(place: &Place<'_>) -> String {
    let path = place.to_string();
    match path.len() <= MAX_PATH {
        true => path,
        false => {
            let start = path.ceil_char_boundary(path.len() - MAX_PATH);
            format!("...{}", &path[start..])
        }
    }
}
