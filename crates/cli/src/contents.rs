//! Contents from files: options of watching, and the log of their problems.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;
use trunkline_store::{Dangling, FileContents, Files, FilesStatus, Options};

use crate::settings::{OnDangling, Settings};

/// How files are read and watched.
pub(crate) fn options(dangling: OnDangling) -> Options {
    Options {
        dangling: match dangling {
            OnDangling::Warn => Dangling::Warn,
            OnDangling::Error => Dangling::Refuse,
        },
        ..Options::default()
    }
}

/// Begins to watch files.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn watch(settings: &Settings) -> std::io::Result<FileContents> {
    let options = Options {
        quiet: settings.config_quiet,
        rescan: settings.config_rescan,
        ..options(settings.dangling)
    };
    let watcher = Files::new(&settings.config, options).watch()?;
    Ok(FileContents::new(watcher))
}

/// Logs each problem when it comes and each file when it is good again.
pub(crate) async fn tell(mut status: watch::Receiver<Arc<FilesStatus>>) {
    let mut told = Told::default();
    loop {
        let now = status.borrow_and_update().clone();
        told.tell(&now);
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// The problems that were logged.
#[derive(Default)]
struct Told {
    errors: HashSet<String>,
    warnings: HashSet<String>,
    bad: HashSet<Arc<str>>,
}

impl Told {
    fn tell(&mut self, status: &FilesStatus) {
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
