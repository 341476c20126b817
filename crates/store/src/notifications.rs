//! Notifications of the system: directories are watched, never files, because a
//! file that is replaced is another file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::mailbox::{Mailbox, PathEvent};
use crate::scan::directory_identity;
use trunkline::checked::{Fault, Finding};

/// The identity of each directory when it was watched.
type Watched = BTreeMap<PathBuf, Option<(u64, u64)>>;

/// The directories that the system watches.
pub(crate) struct Notifications {
    watcher: Option<RecommendedWatcher>,
    watched: Watched,
    /// Directories that cannot be watched.
    pub(crate) unwatched: Vec<Finding>,
}

impl Notifications {
    /// Starts notifications into a mailbox, if `notify` is set. No directory is
    /// watched yet. A system without notifications is a warning, because
    /// rescans find changes too.
    pub(crate) fn open(mailbox: &Arc<Mailbox>, notify: bool) -> Self {
        let mut notifications = Self {
            watcher: None,
            watched: Watched::new(),
            unwatched: Vec::new(),
        };
        if !notify {
            return notifications;
        }

        let mailbox = Arc::clone(mailbox);
        let handle_event = move |event| add_event(&mailbox, event);
        match RecommendedWatcher::new(handle_event, Config::default()) {
            Ok(watcher) => notifications.watcher = Some(watcher),
            Err(error) => {
                let warning = unwatched(&"files", &error);
                notifications.unwatched.push(warning);
            }
        }
        notifications
    }

    /// Watches these directories and no others. Returns whether one of them is
    /// new, so that a change in it may have been missed and the caller has to
    /// scan again. A directory that cannot be watched is a warning. Does
    /// nothing without notifications.
    pub(crate) fn watch_only<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let paths: BTreeSet<_> = paths.collect();

        // Another directory at the same path needs a watch of its own.
        self.watched.retain(|path, identity| {
            let is_same = paths.contains(path) && *identity == directory_identity(path);
            if !is_same {
                // Fails for a removed directory, whose watch is gone already.
                let _ = watcher.unwatch(path);
            }
            is_same
        });

        self.unwatched.clear();
        let mut any_new = false;
        for path in paths {
            if self.watched.contains_key(path) {
                continue;
            }
            // The identity is read before the watch starts, so that the next
            // call sees a directory that was replaced in between.
            let identity = directory_identity(path);
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), identity);
                    any_new = true;
                }
                // The directory was just removed, and its parent notifies.
                Err(_) if identity.is_none() => {}
                Err(error) => self.unwatched.push(unwatched(&path.display(), &error)),
            }
        }
        any_new
    }
}

/// Records an event of the system in the mailbox, if it may be a change. Errors
/// and lost events count as a change at an unknown path.
fn add_event(mailbox: &Mailbox, event: notify::Result<Event>) {
    match event {
        Ok(event) if event.need_rescan() => mailbox.add_unknown_change(),
        Ok(event) if is_change(&event.kind) => {
            mailbox.add_change(path_event(&event), event.paths);
        }
        Ok(_) => {}
        Err(_) => mailbox.add_unknown_change(),
    }
}

/// Returns what an event means for its file. Only Linux notifies when a file is
/// closed, so no file counts as open on other systems.
fn path_event(event: &Event) -> PathEvent {
    match event.kind {
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Access(_) | EventKind::Remove(_) => {
            PathEvent::Completed
        }
        EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => PathEvent::Modified,
        EventKind::Create(_) if cfg!(target_os = "linux") && event.paths.iter().all(is_begun) => {
            PathEvent::Modified
        }
        _ => PathEvent::Other,
    }
}

/// Returns whether a file that was created is still to be written: it is empty.
/// A link is not written.
fn is_begun(path: &PathBuf) -> bool {
    let meta = fs::symlink_metadata(path);
    meta.is_ok_and(|meta| meta.is_file() && meta.len() == 0 && !is_linked(&meta))
}

/// Returns whether a file has several names, so that it was not created with
/// one of them.
#[cfg(unix)]
fn is_linked(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.nlink() > 1
}

/// Returns `false`: the system does not tell.
#[cfg(not(unix))]
fn is_linked(_: &fs::Metadata) -> bool {
    false
}

/// Returns whether an event may have changed a file. Reading is no change,
/// least of all our own.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

/// Makes the warning that a path is not watched.
fn unwatched(path: &impl ToString, error: &notify::Error) -> Finding {
    let reason = error.to_string();
    Finding::whole(&path.to_string().into(), Fault::Unwatched { reason })
}
