//! Notifications of the system: directories are watched, never files, because a
//! file that is replaced is another file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::mailbox::Mailbox;
use crate::scan::directory;
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
    /// Starts notifications into a mailbox, if `notify` is set. If the system
    /// has none, that is a warning: a rescan finds changes too.
    pub(crate) fn open(mailbox: &Arc<Mailbox>, notify: bool) -> Self {
        let mut notifications = Self {
            watcher: None,
            watched: Watched::new(),
            unwatched: Vec::new(),
        };
        let mailbox = Arc::clone(mailbox);
        let tell = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() => mailbox.touch(Vec::new()),
            Ok(event) if is_change(&event.kind) => mailbox.touch(event.paths),
            Ok(_) => {}
            Err(error) => mailbox.touch(error.paths),
        };
        if notify {
            match RecommendedWatcher::new(tell, Config::default()) {
                Ok(watcher) => notifications.watcher = Some(watcher),
                Err(error) => {
                    let problem = unwatched(&"files", &error);
                    notifications.unwatched.push(problem);
                }
            }
        }
        notifications
    }

    /// Watches these directories and no others. Returns whether one of them is
    /// new, so that a change in it may have been missed.
    pub(crate) fn watch_only<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let paths: BTreeSet<_> = paths.collect();
        self.watched.retain(|path, identity| {
            let is_same = paths.contains(path) && *identity == directory(path);
            if !is_same {
                // It may be removed, and the watch with it.
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
            let identity = directory(path);
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), identity);
                    any_new = true;
                }
                // It was just removed; its parent notifies.
                Err(_) if identity.is_none() => {}
                Err(error) => self.unwatched.push(unwatched(&path.display(), &error)),
            }
        }
        any_new
    }
}

/// Whether an event may have changed a file. Reading is no change, least of all
/// our own.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn unwatched(path: &impl ToString, error: &notify::Error) -> Finding {
    let reason = error.to_string();
    Finding::whole(&path.to_string().into(), Fault::Unwatched { reason })
}
