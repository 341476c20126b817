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
    told: Arc<Told>,
    /// `None` where the system does not watch the directory.
    watcher: Option<RecommendedWatcher>,
}

/// What the system told.
#[derive(Debug, Default)]
struct Told {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Something was moved or closed since the last look.
    moved: bool,
    /// It was the file itself.
    named: bool,
    /// The file is being written in its place.
    writing: bool,
    /// The directory is not watched any more.
    lost: bool,
}

impl Signal {
    /// Starts to watch a directory for a file in it. Where the system does not
    /// watch it, the file is looked at each second instead.
    pub(super) fn new(directory: &Path, file: &Path) -> Self {
        let told = Arc::new(Told::default());
        let (teller, name) = (Arc::clone(&told), file.to_owned());
        let watched = directory.to_owned();
        let handle = move |event| teller.note(event, &name, &watched);
        let mut watcher = RecommendedWatcher::new(handle, Config::default()).ok();
        let watch = |watcher: &mut RecommendedWatcher| {
            watcher
                .watch(directory, RecursiveMode::NonRecursive)
                .is_ok()
        };
        if !watcher.as_mut().is_some_and(watch) {
            watcher = None;
        }
        Self { told, watcher }
    }

    /// Waits until the file is complete and another than it was seen.
    pub(super) async fn wait(&mut self, file: &Path, seen: &Stamps) {
        while self.watcher.is_some() {
            let changed = self.told.changed.notified();
            match self.told.take() {
                // Within a tick of the clock its stamps may be the same.
                News::Complete { named: true } => return,
                News::Complete { named: false } if Stamps::of([file]) == *seen => {}
                News::Complete { named: false } => return,
                News::Lost => self.watcher = None,
                News::Nothing => changed.await,
            }
        }
        look(file, seen).await;
    }
}

/// Waits until a file is another than it was seen, and the same at two looks:
/// nobody writes it.
async fn look(file: &Path, seen: &Stamps) {
    let mut last = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = Some(Stamps::of([file]));
        if now == last && now.as_ref() != Some(seen) {
            return;
        }
        last = now;
    }
}

/// What the system has told since the last look.
enum News {
    Nothing,
    /// Something is complete; if `named`, the file itself.
    Complete {
        named: bool,
    },
    /// The directory is not watched any more.
    Lost,
}

impl Told {
    /// Takes the news, unless the file is being written in its place: then they
    /// wait until it is closed.
    fn take(&self) -> News {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lost {
            return News::Lost;
        }
        match state.moved && !state.writing {
            true => {
                state.moved = false;
                let named = std::mem::take(&mut state.named);
                News::Complete { named }
            }
            false => News::Nothing,
        }
    }

    /// Records an event, and wakes who waits for it. Called by the thread of the
    /// system's watcher.
    fn note(&self, event: notify::Result<Event>, file: &Path, directory: &Path) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.note(event, file, directory);
        drop(state);
        self.changed.notify_one();
    }
}

impl State {
    /// Records what an event means for the file. An event that was lost counts
    /// as a change of anything.
    fn note(&mut self, event: notify::Result<Event>, file: &Path, directory: &Path) {
        let Ok(event) = event else {
            self.moved = true;
            return;
        };
        let is_of = |path: &Path| event.paths.iter().any(|told| told == path);
        let is_file = event.paths.iter().any(|told| is_same_name(told, file));
        match event.kind {
            _ if event.need_rescan() => self.moved = true,
            EventKind::Remove(_) if is_of(directory) => self.lost = true,
            // Links are not written, so a new one is complete.
            EventKind::Create(_) if event.paths.iter().any(is_link) => self.complete(is_file),
            // Only Linux tells when a file is closed.
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_))
                if cfg!(target_os = "linux") =>
            {
                self.writing |= is_file;
            }
            EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Remove(_) => {
                self.complete(is_file);
            }
            EventKind::Access(_) => {}
            _ => self.moved |= !cfg!(target_os = "linux"),
        }
    }

    /// Records that something in the directory is complete, and that it is the
    /// file itself if `is_file`.
    fn complete(&mut self, is_file: bool) {
        self.moved = true;
        self.named |= is_file;
        self.writing &= !is_file;
    }
}

/// Returns whether a path is a symbolic link, or one of several names of a file.
fn is_link(path: &PathBuf) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() || has_other_names(&found))
}

/// Returns whether a file has several names, so that it was not created with
/// one of them.
#[cfg(unix)]
fn has_other_names(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.is_file() && metadata.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

/// Returns whether a path in the watched directory is the file. It compares the
/// names alone, for the system may write the directory in another way.
fn is_same_name(told: &Path, file: &Path) -> bool {
    told.file_name() == file.file_name()
}
