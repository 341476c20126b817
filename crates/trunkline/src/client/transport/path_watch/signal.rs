//! Whether a file may be another: what the system tells of a directory, or,
//! where it tells nothing, a look each second.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::pem::Stamps;

/// The interval of looks where the system tells nothing.
const LOOK: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Signal {
    system_news: Arc<SystemNews>,
    /// `None` where the system does not watch the directory.
    watcher: Option<RecommendedWatcher>,
}

/// What the system told.
#[derive(Debug, Default)]
struct SystemNews {
    state: Mutex<State>,
    event: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether something was moved or closed since the last look.
    has_moved: bool,
    /// Whether that was the file itself.
    is_file: bool,
    /// Whether the file is being written in its place.
    is_writing: bool,
    /// Whether the directory is not watched any more.
    is_lost: bool,
}

impl Signal {
    /// Starts to watch a directory for a file in it. Where the system does not
    /// watch it, the file is looked at each second instead.
    pub(super) fn new(directory: &Path, file: &Path) -> Self {
        let system_news = Arc::new(SystemNews::default());
        let (news, name) = (Arc::clone(&system_news), file.to_owned());
        let watched_directory = directory.to_owned();
        let handle = move |event| news.note(event, &name, &watched_directory);
        let mut watcher = RecommendedWatcher::new(handle, Config::default()).ok();
        let watch = |watcher: &mut RecommendedWatcher| {
            watcher
                .watch(directory, RecursiveMode::NonRecursive)
                .is_ok()
        };
        if !watcher.as_mut().is_some_and(watch) {
            watcher = None;
        }
        Self {
            system_news,
            watcher,
        }
    }

    /// Waits until the file is complete, and another than that with these stamps.
    pub(super) async fn wait(&mut self, file: &Path, stamps: &Stamps) {
        while self.watcher.is_some() {
            let event = self.system_news.event.notified();
            match self.system_news.take() {
                // Within a tick of the clock its stamps may be the same.
                News::Complete { is_file: true } => return,
                News::Complete { is_file: false } if Stamps::of([file]) == *stamps => {}
                News::Complete { is_file: false } => return,
                News::Lost => self.watcher = None,
                News::Nothing => event.await,
            }
        }
        look(file, stamps).await;
    }
}

/// Waits until a file is another than that with these stamps, and the same at two
/// looks: nobody writes it.
async fn look(file: &Path, stamps: &Stamps) {
    let mut last_stamps = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let new_stamps = Some(Stamps::of([file]));
        if new_stamps == last_stamps && new_stamps.as_ref() != Some(stamps) {
            return;
        }
        last_stamps = new_stamps;
    }
}

/// What the system has told since the last look.
enum News {
    Nothing,
    /// Something is complete; if `is_file`, the file itself.
    Complete {
        is_file: bool,
    },
    /// The directory is not watched any more.
    Lost,
}

impl SystemNews {
    /// Takes the news, unless the file is being written in its place: then they
    /// wait until it is closed.
    fn take(&self) -> News {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_lost {
            return News::Lost;
        }
        match state.has_moved && !state.is_writing {
            true => {
                state.has_moved = false;
                let is_file = std::mem::take(&mut state.is_file);
                News::Complete { is_file }
            }
            false => News::Nothing,
        }
    }

    /// Records an event, and wakes the task that waits for it. Called by the
    /// thread of the system's watcher.
    fn note(&self, event: notify::Result<Event>, file: &Path, directory: &Path) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.note(event, file, directory);
        drop(state);
        self.event.notify_one();
    }
}

impl State {
    /// Records what an event means for the file. An event that was lost counts
    /// as a change of anything.
    fn note(&mut self, event: notify::Result<Event>, file: &Path, directory: &Path) {
        let Ok(event) = event else {
            self.has_moved = true;
            return;
        };
        let is_of = |path: &Path| event.paths.iter().any(|event_path| event_path == path);
        let is_file = event.paths.iter().any(|path| is_same_name(path, file));
        match event.kind {
            _ if event.need_rescan() => self.has_moved = true,
            EventKind::Remove(_) if is_of(directory) => self.is_lost = true,
            // Links are not written, so a new one is complete.
            EventKind::Create(_) if event.paths.iter().any(is_link) => self.complete(is_file),
            // Only Linux tells when a file is closed.
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_))
                if cfg!(target_os = "linux") =>
            {
                self.is_writing |= is_file;
            }
            EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Remove(_) => {
                self.complete(is_file);
            }
            EventKind::Access(_) => {}
            _ => self.has_moved |= !cfg!(target_os = "linux"),
        }
    }

    /// Records that something in the directory is complete, and that it is the
    /// file itself if `is_file`.
    fn complete(&mut self, is_file: bool) {
        self.has_moved = true;
        self.is_file |= is_file;
        self.is_writing &= !is_file;
    }
}

/// Returns whether a path is a symbolic link, or one of several names of a file.
fn is_link(path: &PathBuf) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_symlink() || has_other_names(&metadata))
}

/// Returns whether a file has several names, so that it was not created with
/// one of them.
#[cfg(unix)]
fn has_other_names(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.is_file() && metadata.nlink() > 1
}

/// Returns false: the names of a file are not counted here.
#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

/// Returns whether a path in the watched directory is the file. It compares the
/// names alone, for the system may write the directory in another way.
fn is_same_name(path: &Path, file: &Path) -> bool {
    path.file_name() == file.file_name()
}
