//! What became of the mutants, and the page that says so.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Everything from this heading on is written by hand and kept.
const REMARKS: &str = "## Remarks";

/// The mutants that were run, by what became of them.
#[derive(Default)]
pub(super) struct Summary {
    /// A test failed.
    pub(super) caught: Vec<String>,
    /// No test failed.
    pub(super) missed: Vec<String>,
    /// The tests did not end.
    pub(super) timeout: Vec<String>,
    /// It did not compile.
    pub(super) unviable: Vec<String>,
}

impl Summary {
    pub(super) fn add(&mut self, other: Self) {
        self.caught.extend(other.caught);
        self.missed.extend(other.missed);
        self.timeout.extend(other.timeout);
        self.unviable.extend(other.unviable);
    }

    pub(super) fn viable(&self) -> usize {
        self.caught.len() + self.missed.len() + self.timeout.len()
    }

    /// Whether these are the mutants that were run.
    pub(super) fn holds_exactly(&self, names: &[String]) -> bool {
        let groups = [&self.caught, &self.missed, &self.timeout, &self.unviable];
        let run: BTreeSet<&String> = groups.into_iter().flatten().collect();
        run == names.iter().collect()
    }

    /// The figure, in one line.
    pub(super) fn line(&self) -> String {
        let share = 100.0 * self.caught.len() as f64 / self.viable().max(1) as f64;
        format!(
            "{} of {} viable mutants caught ({share:.1} %)",
            self.caught.len(),
            self.viable()
        )
    }

    /// The page, with the remarks that stood on it before.
    pub(super) fn page(
        &self,
        package: &str,
        command: &str,
        population: usize,
        remarks: Option<&str>,
    ) -> String {
        let mut page = format!(
            "# Mutants\n\n\
             Code of `{package}` is broken at random places, one at a time, and its tests are run. \
             A mutant that no test notices is a rule that no test keeps. \
             This page is written by the command below; the remarks at its end are kept.\n\n\
             ```text\n{command}\n```\n\n\
             {}, out of {population} that there are.\n\n\
             | outcome | mutants |\n|---|---|\n",
            self.line()
        );
        for (outcome, mutants) in [
            ("caught: a test failed", &self.caught),
            ("missed: no test failed", &self.missed),
            ("timeout: the tests did not end", &self.timeout),
            ("unviable: did not compile", &self.unviable),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "| {outcome} | {} |", mutants.len());
        }
        for (heading, mutants) in [("Survivors", &self.missed), ("Timeouts", &self.timeout)] {
            if !mutants.is_empty() {
                let _ = write!(
                    page,
                    "\n## {heading}\n\n```text\n{}\n```\n",
                    sorted(mutants)
                );
            }
        }
        if let Some(remarks) = remarks {
            let _ = write!(page, "\n{remarks}");
        }
        page
    }
}

fn sorted(mutants: &[String]) -> String {
    let mut lines: Vec<&str> = mutants.iter().map(String::as_str).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The part of an earlier page that was written by hand.
pub(super) fn remarks(page: &str) -> Option<String> {
    let start = page.find(&format!("\n{REMARKS}"))?;
    page.get(start + 1..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            caught: vec!["a".into(), "b".into(), "c".into()],
            missed: vec!["z".into(), "d".into()],
            timeout: Vec::new(),
            unviable: vec!["e".into()],
        }
    }

    #[test]
    fn unviable_mutants_do_not_count() {
        assert_eq!(summary().line(), "3 of 5 viable mutants caught (60.0 %)");
    }

    #[test]
    fn a_mutant_too_many_or_too_few_is_noticed() {
        let names = ["a", "b", "c", "d", "e", "z"].map(str::to_owned);
        assert!(summary().holds_exactly(&names));
        assert!(!summary().holds_exactly(&names[1..]));
        assert!(!Summary::default().holds_exactly(&names));
    }

    #[test]
    fn survivors_are_named_and_remarks_are_kept() {
        let first = summary().page("a", "run", 9, None);
        assert!(first.contains("d\nz\n"));
        assert_eq!(remarks(&first), None);
        let second = summary().page("a", "run", 9, Some("## Remarks\n\nFine.\n"));
        assert_eq!(remarks(&second).as_deref(), Some("## Remarks\n\nFine.\n"));
    }
}
