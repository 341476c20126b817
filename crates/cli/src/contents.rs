//! Contents from files: options of watching, and the log of their problems.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;
use trunkline::checked::Dangling;
use trunkline_store::{FileContents, Files, FilesStatus, Options};

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

/// Begins to read and watch the files of the settings, in a thread.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn watch(settings: &Settings) -> std::io::Result<FileContents> {
    let options = Options {
        allow_empty: settings.allow_empty,
        guard: settings.hold_removals,
        quiet: settings.config_quiet,
        rescan: settings.config_rescan,
        ..options(settings.dangling)
    };
    FileContents::watch(Files::new(&settings.config, options))
}

/// Logs each problem when it comes and each file when it is good again, until
/// the watcher ends.
pub(crate) async fn log_problems(mut status: watch::Receiver<Arc<FilesStatus>>) {
    let mut logged = Logged::default();
    loop {
        let current = status.borrow_and_update().clone();
        logged.update(&current);
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// The problems that were logged and still exist.
#[derive(Default)]
struct Logged {
    errors: HashSet<String>,
    warnings: HashSet<String>,
    /// The paths of bad files.
    bad: HashSet<Arc<str>>,
    /// Whether the first load was logged.
    is_loaded: bool,
}

impl Logged {
    /// Logs the problems that are new, and the files that are good again. A
    /// problem that stays was logged when it came.
    fn update(&mut self, status: &FilesStatus) {
        if status.loaded && !std::mem::replace(&mut self.is_loaded, true) {
            tracing::info!(
                files = status.files.len(),
                "files are served as they are: no earlier state is known"
            );
        }
        let errors: HashSet<String> = status.errors().map(ToString::to_string).collect();
        for error in errors.difference(&self.errors) {
            tracing::error!("{error}");
        }
        self.errors = errors;

        let warnings: HashSet<String> = status.warnings().map(ToString::to_string).collect();
        for warning in warnings.difference(&self.warnings) {
            tracing::warn!("{warning}");
        }
        self.warnings = warnings;

        let bad: HashSet<Arc<str>> = status.bad().map(|file| Arc::clone(&file.path)).collect();
        for path in self.bad.difference(&bad) {
            tracing::info!(file = &**path, "the file is good again");
        }
        self.bad = bad;
    }
}
