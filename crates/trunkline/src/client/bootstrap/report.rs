//! Findings of one reading, collected: reading goes on after a mistake.

use std::cell::RefCell;
use std::fmt::Display;

use trunkline_proto::text::TextError;

use super::error::{ConfigError, Mistake, Place};
use super::problem::Problem;

/// The findings so far. Places are found at the end, by the paths.
#[derive(Debug, Default)]
pub(super) struct Report {
    findings: RefCell<Findings>,
}

#[derive(Debug, Default)]
struct Findings {
    mistakes: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

impl Report {
    /// Returns the scope of the message as a whole.
    pub(super) fn root(&self) -> Scope<'_> {
        Scope {
            report: self,
            path: String::new(),
        }
    }

    /// Adds mistakes of the text, which have their places already. A mistake
    /// follows from an earlier one, and is left out, if both are about the same
    /// field.
    pub(super) fn add_text_errors(&self, errors: impl IntoIterator<Item = TextError>) {
        let mistakes = &mut self.findings.borrow_mut().mistakes;
        let earlier_count = mistakes.len();
        for error in errors {
            let mut earlier_mistakes = mistakes[..earlier_count].iter();
            if !earlier_mistakes.any(|mistake| is_related(&mistake.path, &error.path)) {
                mistakes.push(error.into());
            }
        }
    }

    /// Adds warnings that have a place already.
    pub(super) fn add_text_warnings(&self, errors: impl IntoIterator<Item = TextError>) {
        let mut findings = self.findings.borrow_mut();
        findings
            .warnings
            .extend(errors.into_iter().map(Mistake::from));
    }

    /// Returns the value with the warnings, or all mistakes in the order of
    /// their places if there is any. `place` finds the place of a path.
    pub(super) fn finish<T>(
        self,
        value: Option<T>,
        place: impl Fn(&str) -> Option<Place>,
    ) -> Result<(T, Vec<Mistake>), ConfigError> {
        let Findings { mistakes, warnings } = self.findings.into_inner();
        let mut mistakes = add_places(mistakes, &place);
        mistakes.sort_by(|a, b| a.place.cmp(&b.place));
        match value {
            Some(value) if mistakes.is_empty() => Ok((value, add_places(warnings, &place))),
            _ => Err(ConfigError { mistakes }),
        }
    }
}

/// Gives findings their places and drops duplicates: a cluster that two sources
/// name is read twice.
fn add_places(findings: Vec<Mistake>, place: &impl Fn(&str) -> Option<Place>) -> Vec<Mistake> {
    let mut placed_findings: Vec<Mistake> = Vec::with_capacity(findings.len());
    for mut finding in findings {
        if finding.place.is_none() {
            finding.place = place(&finding.path);
        }
        if !placed_findings.contains(&finding) {
            placed_findings.push(finding);
        }
    }
    placed_findings
}

/// A part of the message that is read: where its mistakes are reported.
#[derive(Clone, Debug)]
pub(super) struct Scope<'r> {
    report: &'r Report,
    path: String,
}

impl<'r> Scope<'r> {
    /// Returns the scope of a field, or of one further down: `name` may be several
    /// names with dots between them.
    pub(super) fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.with_path(format!("{}{dot}{name}", self.path))
    }

    /// Returns the scope of an item of the list in a field.
    pub(super) fn index(&self, name: &str, index: usize) -> Self {
        let list = self.field(name);
        self.with_path(format!("{}[{index}]", list.path))
    }

    /// Returns the scope of a value of this map.
    pub(super) fn key(&self, key: impl Display) -> Self {
        let key = key.to_string();
        self.with_path(format!("{}[{key:?}]", self.path))
    }

    /// Returns the scope of another part of the same text, by its whole path.
    pub(super) fn at_path(&self, path: &str) -> Self {
        self.with_path(path.to_owned())
    }

    /// Returns the scope of a part of the same text, by its whole path.
    fn with_path(&self, path: String) -> Self {
        let report = self.report;
        Self { report, path }
    }

    /// Reports a mistake, unless it follows from one in the text. Always returns
    /// `None`, for the caller to return.
    pub(super) fn mistake<T>(&self, problem: Problem) -> Option<T> {
        let mut findings = self.report.findings.borrow_mut();
        let follows = findings
            .mistakes
            .iter()
            .any(|earlier| match &earlier.problem {
                // A cluster with a mistake in its name has none.
                Problem::Text(_) if matches!(problem, Problem::UnknownCluster { .. }) => {
                    is_related(&earlier.path, "static_resources")
                }
                Problem::Text(_) => is_related(&earlier.path, &self.path),
                _ => false,
            });

        if !follows {
            findings.mistakes.push(self.finding(problem));
        }
        None
    }

    /// Reports a warning.
    pub(super) fn warn(&self, problem: Problem) {
        let mut findings = self.report.findings.borrow_mut();
        findings.warnings.push(self.finding(problem));
    }

    /// Reports a field that is missing. Always returns `None`.
    pub(super) fn missing<T>(&self, field: &'static str, remedy: &'static str) -> Option<T> {
        self.mistake(Problem::Missing { field, remedy })
    }

    /// Reports a field that is not supported. Always returns `None`.
    pub(super) fn unsupported<T>(
        &self,
        field: impl Into<String>,
        remedy: &'static str,
    ) -> Option<T> {
        let field = field.into();
        self.mistake(Problem::Unsupported {
            what: field,
            remedy,
        })
    }

    /// Warns of a field that is ignored.
    pub(super) fn warn_ignored(&self, field: impl Into<String>, remedy: &'static str) {
        let field = field.into();
        self.warn(Problem::Ignored {
            what: field,
            remedy,
        });
    }

    /// Makes a finding about this part, without a place yet.
    fn finding(&self, problem: Problem) -> Mistake {
        Mistake {
            place: None,
            path: self.path.clone(),
            problem,
        }
    }
}

/// Returns whether one of two paths leads into the other. Every path leads into
/// the empty one, which is that of an unknown field at the top: it says nothing
/// of the others.
fn is_related(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let suffix = long.strip_prefix(short).filter(|_| !short.is_empty());
    suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_related_when_one_leads_into_the_other() {
        assert!(is_related("a.b", "a.b[0].c"));
        assert!(is_related("a.b[0].c", "a.b"));
        assert!(!is_related("", "a"));
        assert!(!is_related("a.b", "a.bc"));
        assert!(!is_related("a.b[0]", "a.b[1]"));
    }
}
