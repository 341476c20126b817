//! What ran, how it ended and how long it took.

use std::fmt;
use std::time::Duration;

/// How one part ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// The named part, which this one needs, did not pass.
    Skipped(&'static str),
}

/// The outcomes of a run, in order.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<(&'static str, Outcome, Duration)>,
}

impl Report {
    pub(super) fn add(&mut self, part: &'static str, outcome: Outcome, took: Duration) {
        self.rows.push((part, outcome, took));
    }

    pub(super) fn passed_part(&self, name: &str) -> bool {
        self.rows
            .iter()
            .any(|(part, outcome, _)| *part == name && *outcome == Outcome::Passed)
    }

    pub(super) fn failed(&self) -> usize {
        self.count(|outcome| outcome == Outcome::Failed)
    }

    fn count(&self, which: impl Fn(Outcome) -> bool) -> usize {
        self.rows
            .iter()
            .filter(|(_, outcome, _)| which(*outcome))
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<10} {:>8}  result", "part", "seconds")?;
        for (part, outcome, took) in &self.rows {
            write!(f, "{part:<10} {:>8.1}  ", took.as_secs_f64())?;
            match outcome {
                Outcome::Passed => writeln!(f, "passed")?,
                Outcome::Failed => writeln!(f, "FAILED")?,
                Outcome::Skipped(need) => writeln!(f, "skipped: {need} did not pass")?,
            }
        }
        let all: Duration = self.rows.iter().map(|(_, _, took)| *took).sum();
        writeln!(f, "{:<10} {:>8.1}\n", "all", all.as_secs_f64())?;
        if self.failed() > 0 {
            writeln!(f, "`cargo xtask test --only PART` runs one part again\n")?;
        }
        let passed = self.count(|outcome| outcome == Outcome::Passed);
        write!(f, "{passed} passed, {} failed", self.failed())?;
        match self.count(|outcome| matches!(outcome, Outcome::Skipped(_))) {
            0 => writeln!(f),
            skipped => writeln!(f, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(outcomes: &[Outcome]) -> String {
        let mut report = Report::default();
        for outcome in outcomes {
            report.add("part", *outcome, Duration::from_millis(1500));
        }
        report.to_string().lines().last().unwrap().to_owned()
    }

    #[test]
    fn the_last_line_counts_parts() {
        assert_eq!(
            last_line(&[Outcome::Passed, Outcome::Passed]),
            "2 passed, 0 failed"
        );
        assert_eq!(
            last_line(&[Outcome::Failed, Outcome::Skipped("part")]),
            "0 passed, 1 failed, 1 skipped"
        );
    }
}
