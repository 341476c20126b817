//! Contents from files: options of watching, and the log of their problems.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;
use trunkline::checked::{Dangling, Finding};
use trunkline_proto::text;
use trunkline_store::{EmbeddedStore, FileContents, Files, FilesStatus, Options};

use crate::report::{Report, Severity};
use crate::settings::{OnDangling, Settings};

/// Makes the options by which files are checked: the defaults, with this
/// treatment of dangling references. Files may have no resources.
pub(crate) fn options(dangling: OnDangling) -> Options {
    Options {
        dangling: dangling.into(),
        allow_empty: true,
        ..Options::default()
    }
}

impl From<OnDangling> for Dangling {
    fn from(setting: OnDangling) -> Self {
        match setting {
            OnDangling::Warn => Self::Warn,
            OnDangling::Error => Self::Refuse,
        }
    }
}

/// What is read of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Resources.
    Resources,
    /// Resources, and manifests of Kubernetes as those of collections.
    Collections,
}

/// Begins to read and watch the files of the settings, in a thread. What is
/// served of them is kept in a store, if there is one.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn watch_files(
    settings: &Settings,
    reading: Reading,
    store: Option<Arc<EmbeddedStore>>,
) -> std::io::Result<FileContents> {
    let options = Options {
        allow_empty: settings.allow_empty,
        guard: settings.hold_removals,
        quiet: settings.config_quiet,
        rescan: settings.config_rescan,
        text: text::Options {
            manifests: reading == Reading::Collections,
            ..trunkline::wire::text_options()
        },
        ..options(settings.dangling)
    };
    let files = Files::new(&settings.config, options);
    FileContents::watch(match store {
        Some(store) => files.keep_in(store),
        None => files,
    })
}

/// Logs each new problem, and each file that is good again, until the watcher
/// ends. With `shows_lines`, the line of the file follows a problem.
pub(crate) async fn log_problems(mut status: watch::Receiver<Arc<FilesStatus>>, shows_lines: bool) {
    let mut log = ProblemLog {
        shows_lines,
        ..ProblemLog::default()
    };
    loop {
        let current = status.borrow_and_update().clone();
        log.log_changes(&current);
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// The problems that were logged and still exist.
#[derive(Default)]
struct ProblemLog {
    errors: HashSet<String>,
    warnings: HashSet<String>,
    /// The paths of bad files.
    bad_paths: HashSet<Arc<str>>,
    /// Whether the first load was logged.
    is_loaded: bool,
    /// Whether the lines of the files are logged with their problems.
    shows_lines: bool,
}

impl ProblemLog {
    /// Logs the problems that are new, and the files that are good again. A
    /// problem that persists is not logged again.
    fn log_changes(&mut self, status: &FilesStatus) {
        if status.loaded && !std::mem::replace(&mut self.is_loaded, true) {
            let files = status.files.len();
            match status.recalled {
                true => tracing::info!(
                    files,
                    "files are compared with what was served of them before the start"
                ),
                false => tracing::info!(
                    files,
                    "files are served as they are: no earlier state is known"
                ),
            }
        }
        let new_errors = self.show_new(Severity::Error, status.errors(), &self.errors);
        for error in new_errors {
            tracing::error!("{error}");
        }
        self.errors = status.errors().map(ToString::to_string).collect();

        let new_warnings = self.show_new(Severity::Warning, status.warnings(), &self.warnings);
        for warning in new_warnings {
            tracing::warn!("{warning}");
        }
        self.warnings = status.warnings().map(ToString::to_string).collect();

        let bad_files: HashSet<Arc<str>> =
            status.bad().map(|file| Arc::clone(&file.path)).collect();
        for path in self.bad_paths.difference(&bad_files) {
            tracing::info!(file = &**path, "the file is good again");
        }
        self.bad_paths = bad_files;
    }

    /// Formats the findings that are not in `old_texts`, in their order, each only
    /// once.
    fn show_new<'a>(
        &self,
        severity: Severity,
        findings: impl Iterator<Item = &'a Finding>,
        old_texts: &HashSet<String>,
    ) -> Vec<String> {
        // A report keeps the texts of files, which change between two calls.
        let report = Report::without_colours();
        let mut new_texts = HashSet::new();
        let new_findings = findings.filter(|finding| {
            let text = finding.to_string();
            !old_texts.contains(&text) && new_texts.insert(text)
        });
        let texts = new_findings.map(|finding| match self.shows_lines {
            true => report.show_bare(severity, &finding.into()),
            false => finding.to_string(),
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_logged_once_and_with_its_line_on_a_terminal() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        std::fs::write(&file, "resources:\n- nothing\n- nothing\n").unwrap();
        let loaded = Files::new([&file], options(OnDangling::Warn)).load();
        let file = file.display();

        let mut logged = ProblemLog::default();
        let show = |logged: &ProblemLog| {
            let errors = loaded.errors.iter().chain(&loaded.errors);
            logged.show_new(Severity::Error, errors, &logged.errors)
        };
        let plain = show(&logged);
        assert_eq!(plain.len(), 2, "{plain:?}");
        assert!(plain[0].starts_with(&format!("{file}:2:3: ")), "{plain:?}");
        assert!(plain[1].starts_with(&format!("{file}:3:3: ")), "{plain:?}");
        logged.shows_lines = true;
        let lines = show(&logged);
        assert_eq!(
            lines[0],
            format!("{}\n  |\n2 | - nothing\n  |   ^^^^^^^", plain[0])
        );
        logged.errors = plain.into_iter().collect();
        assert!(show(&logged).is_empty());
    }
}
