//! The reports of a run: one for each time that it was repeated.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::figures::{Figure, Run};
use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture};

/// More reports of one run than this are not looked for.
pub(super) const MOST: usize = 99;

/// Where reports are.
pub(super) struct Samples {
    folder: PathBuf,
}

impl Samples {
    pub(super) fn new(workspace: &Workspace, quick: bool) -> Self {
        let name = if quick { "quick" } else { "figures" };
        Self {
            folder: workspace.target().join("bench").join(name),
        }
    }

    pub(super) fn make(&self) -> Result<()> {
        make(&self.folder)
    }

    pub(super) fn file(&self, figure: &Figure, run: &Run, repeat: usize) -> PathBuf {
        self.folder.join(figure.file(run, repeat))
    }

    /// All reports of a run; what was not measured has none.
    pub(super) fn of(&self, figure: &Figure, run: &Run) -> Vec<Value> {
        let read = |repeat| read(&self.file(figure, run, repeat));
        (1..=MOST).filter_map(read).collect()
    }

    /// Takes away what earlier runs left: it is of another tree.
    pub(super) fn forget(&self, figure: &Figure, run: &Run) {
        for repeat in 1..=MOST {
            let file = self.file(figure, run, repeat);
            let _ = fs::remove_file(failed(&file));
            let _ = fs::remove_file(file);
        }
    }

    pub(super) fn keep(&self, file: &Path, report: &Value) -> Result<()> {
        fs::write(file, format!("{report:#}\n"))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
    }

    /// Adds to a report how it was made, how long that took and of what it is.
    pub(super) fn note(
        &self,
        workspace: &Workspace,
        file: &Path,
        command: &str,
        seconds: f64,
    ) -> Result<()> {
        let mut report = read(file)
            .ok_or_else(|| Failure::new(format!("{}: no report was written", file.display())))?;
        report["run"] = json!({
            "command": command,
            "seconds": seconds,
            "tree": tree(workspace),
            "day": day(workspace),
        });
        self.keep(file, &report)
    }

    /// Keeps the report of a run that failed, if there is one, but not as a
    /// sample.
    pub(super) fn set_aside(&self, file: &Path) {
        let _ = fs::rename(file, failed(file));
    }
}

/// How long the last run took that is known of.
pub(super) fn seconds(reports: &[Value]) -> Option<f64> {
    reports.last()?.pointer("/run/seconds")?.as_f64()
}

pub(super) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))
}

fn failed(file: &Path) -> PathBuf {
    file.with_extension("failed.json")
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// The commit, as far as git knows it.
pub(super) fn tree(workspace: &Workspace) -> Option<String> {
    let mut git = workspace.program("git");
    let said = capture(git.args(["describe", "--always", "--dirty=+"])).ok()?;
    Some(said.trim().to_owned())
}

/// The day, as the system tells it.
pub(super) fn day(workspace: &Workspace) -> Option<String> {
    let said = capture(workspace.program("date").args(["-u", "+%Y-%m-%d"])).ok()?;
    Some(said.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_is_kept_beside_the_samples() {
        let file = Path::new("a/1-floor-2.json");
        assert_eq!(failed(file), Path::new("a/1-floor-2.failed.json"));
    }

    #[test]
    fn the_last_run_tells_how_long_the_next_takes() {
        let took = |s: f64| json!({"run": {"seconds": s}});
        assert_eq!(seconds(&[took(3.0), took(5.0)]), Some(5.0));
        assert_eq!(seconds(&[json!({})]), None);
    }
}
