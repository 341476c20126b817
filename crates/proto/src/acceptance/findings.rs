//! The findings of one body while it is checked.

use super::place::Place;
use super::policy::{Policy, Unsupported};
use super::problem::Problem;
use super::rejection::{Reason, Rejection};
use super::report::{IgnoreReason, Ignored, MAX_FINDINGS, Report};

/// The findings of one body: reasons to reject it, and parts of it that are not
/// used. A check goes on after a reason, so that all reasons are told (C26).
#[derive(Debug)]
pub struct Findings<'p> {
    policy: &'p Policy,
    reasons: Vec<Reason>,
    omitted_reasons: usize,
    report: Report,
}

impl<'p> Findings<'p> {
    /// Makes findings without a reason, for a check by this policy.
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            reasons: Vec::new(),
            omitted_reasons: 0,
            report: Report::default(),
        }
    }

    /// Returns the policy by which the body is checked.
    #[must_use]
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// Rejects the body for a problem at a place. Beyond [`MAX_FINDINGS`]
    /// reasons, only counts.
    pub fn reject(&mut self, place: &Place<'_>, problem: Problem) {
        match self.reasons.len() < MAX_FINDINGS {
            true => self.reasons.push(Reason {
                path: shortened_path(place),
                problem,
            }),
            false => self.omitted_reasons += 1,
        }
    }

    /// Reports a part that a rule says to ignore. Beyond [`MAX_FINDINGS`]
    /// parts, only counts.
    pub fn ignore(&mut self, place: &Place<'_>, reason: IgnoreReason) {
        match self.report.ignored.len() < MAX_FINDINGS {
            true => self.report.ignored.push(Ignored {
                path: shortened_path(place),
                why: reason,
            }),
            false => self.report.omitted += 1,
        }
    }

    /// Reports a field that is set and not supported. If the policy is strict,
    /// rejects the body too (C57).
    pub fn unsupported(&mut self, place: &Place<'_>) {
        if self.policy.unsupported == Unsupported::Strict {
            self.reject(place, Problem::Unsupported);
        }
        match self.report.unsupported.len() < MAX_FINDINGS {
            true => self.report.unsupported.push(shortened_path(place)),
            false => self.report.omitted += 1,
        }
    }

    /// Rejects the body for a rule of the descriptors. Does nothing if the
    /// field has a reason already: a rule of the profile tells more.
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
    ///
    /// # Errors
    /// The findings have a reason. The rejection has all of them.
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

/// Returns the path of a place; of a path beyond [`MAX_PATH`] bytes, the end.
fn shortened_path(place: &Place<'_>) -> String {
    let path = place.to_string();
    match path.len() <= MAX_PATH {
        true => path,
        false => {
            let start = path.ceil_char_boundary(path.len() - MAX_PATH);
            format!("...{}", &path[start..])
        }
    }
}
