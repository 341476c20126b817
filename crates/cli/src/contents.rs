//! Contents from files: what the watcher finds is applied, and how the files
//! stand is logged when it changes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use trunkline::{BoxFuture, Contents, Writer};
use trunkline_store::{Dangling, Files, FilesStatus, Options, Watcher};

use crate::settings::{OnDangling, Settings};

/// Files that fill a server.
pub(crate) struct FromFiles {
    /// Taken by the one who runs it.
    watcher: Mutex<Option<Watcher>>,
    status: watch::Receiver<Arc<FilesStatus>>,
}

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

impl FromFiles {
    /// Begins to watch.
    ///
    /// # Errors
    /// The system does not give another thread.
    pub(crate) fn watch(settings: &Settings) -> std::io::Result<Self> {
        let options = Options {
            quiet: settings.config_quiet,
            rescan: settings.config_rescan,
            ..options(settings.dangling)
        };
        let watcher = Files::new(&settings.config, options).watch()?;
        let status = watcher.status();
        Ok(Self {
            watcher: Mutex::new(Some(watcher)),
            status,
        })
    }

    /// How the files stand, now and later.
    pub(crate) fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Contents for FromFiles {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let taken = {
                let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
                watcher.take()
            };
            let Some(mut watcher) = taken else {
                return;
            };
            tokio::join!(feed(&mut watcher, &writer), tell(self.status()));
        })
    }
}

async fn feed(watcher: &mut Watcher, writer: &Writer) {
    while let Some(update) = watcher.next().await {
        match writer.apply("files", update.changes) {
            Ok(_) if update.first => writer.loaded(),
            Ok(_) => {}
            // It is said with the file that is to blame.
            Err(error) => watcher.refused(error),
        }
    }
}

/// Logs each problem when it comes and each file when it is good again.
async fn tell(mut status: watch::Receiver<Arc<FilesStatus>>) {
    let mut told = Told::default();
    loop {
        let now = status.borrow_and_update().clone();
        told.tell(&now);
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// What was said already.
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
